// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/hub/fleet"
)

// Cache returns the options of the hub's cache: which objects of the hub's cluster are
// cached, and with which fields.
func Cache() cache.Options {
	return cache.Options{DefaultTransform: compactObject, ByObject: fleet.CacheByObject()}
}

// compactObject prepares an object for the cache. It removes fields that are not used, and
// shares equal texts between objects, because thousands of objects have the same texts. An
// object from the cache must not be written back as a whole.
func compactObject(object any) (any, error) {
	o, ok := object.(client.Object)
	if !ok {
		return object, nil
	}
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(annotations)
	}
	o.SetLabels(shareMap(o.GetLabels()))
	switch o := o.(type) {
	case *v1alpha1.OperatorInstall:
		shareInstall(o)
	case *v1alpha1.FleetCluster:
		shareTexts(&o.Status.Versions.Agent, &o.Status.Versions.Kubernetes, &o.Status.Versions.OLM)
		shareConditions(o.Status.Conditions)
	}
	return object, nil
}

// shareInstall shares the texts of an OperatorInstall.
func shareInstall(o *v1alpha1.OperatorInstall) {
	shareTexts(&o.Name, &o.Spec.Operator.Namespace, &o.Spec.Operator.Name)
	for i := range o.Spec.Blocks {
		b := &o.Spec.Blocks[i]
		shareTexts(&b.Package, &b.Version, &b.Reason, &b.Instead)
	}
	if a := o.Spec.Admission; a != nil {
		r := &a.Release
		shareTexts(&a.Rollout, &a.RolloutUID, &a.Wave, &a.Hash, &r.Package, &r.Channel, &r.Version, &r.Bundle,
			&r.Catalog.Source.Image, &r.Catalog.Digest, &r.Install.Namespace)
		for i := range r.Catalog.PublicKeys {
			shareTexts(&r.Catalog.PublicKeys[i])
		}
	}
	shareTexts(&o.Status.SucceededHash)
	if i := o.Status.Installed; i != nil {
		shareTexts(&i.Bundle, &i.Version)
	}
	if s := o.Status.OLM; s != nil {
		shareTexts(&s.CatalogSource, &s.Subscription, &s.CSVPhase)
	}
	shareConditions(o.Status.Conditions)
}

// shareConditions shares the texts of conditions.
func shareConditions(conditions []metav1.Condition) {
	for i := range conditions {
		shareTexts(&conditions[i].Type, &conditions[i].Reason, &conditions[i].Message)
	}
}

// shareMap returns a copy of a map whose texts are shared.
func shareMap(texts map[string]string) map[string]string {
	if texts == nil {
		return nil
	}
	shared := make(map[string]string, len(texts))
	for key, value := range texts {
		shareTexts(&key, &value)
		shared[key] = value
	}
	return shared
}

// shareTexts replaces each text by an equal text that other objects use, so that
// it is in memory only once.
func shareTexts(texts ...*string) {
	for _, text := range texts {
		*text = unique.Make(*text).Value()
	}
}
