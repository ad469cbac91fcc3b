// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/fleet"
)

// HubCache says what of the hub's cluster is kept in memory, and how.
func HubCache() cache.Options {
	return cache.Options{DefaultTransform: shrink, ByObject: fleet.CacheByObject()}
}

// shrink prepares an object for the cache: it drops what nobody reads, and has the texts
// that an object has in common with thousands of others kept once. Nobody may write a
// whole object that comes from the cache.
func shrink(in any) (any, error) {
	o, ok := in.(client.Object)
	if !ok {
		return in, nil
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
		share(&o.Status.Versions.Agent, &o.Status.Versions.Kubernetes, &o.Status.Versions.OLM)
		shareConditions(o.Status.Conditions)
	}
	return in, nil
}

func shareInstall(o *v1alpha1.OperatorInstall) {
	share(&o.Name, &o.Spec.Operator.Namespace, &o.Spec.Operator.Name)
	for i := range o.Spec.Blocks {
		b := &o.Spec.Blocks[i]
		share(&b.Package, &b.Version, &b.Reason, &b.Instead)
	}
	if a := o.Spec.Admission; a != nil {
		r := &a.Release
		share(&a.Rollout, &a.RolloutUID, &a.Wave, &a.Hash, &r.Package, &r.Channel, &r.Version, &r.Bundle,
			&r.Catalog.Source.Image, &r.Catalog.Digest, &r.Install.Namespace)
		for i := range r.Catalog.PublicKeys {
			share(&r.Catalog.PublicKeys[i])
		}
	}
	share(&o.Status.SucceededHash)
	if i := o.Status.Installed; i != nil {
		share(&i.Bundle, &i.Version)
	}
	if s := o.Status.OLM; s != nil {
		share(&s.CatalogSource, &s.Subscription, &s.CSVPhase)
	}
	shareConditions(o.Status.Conditions)
}

func shareConditions(conditions []metav1.Condition) {
	for i := range conditions {
		share(&conditions[i].Type, &conditions[i].Reason, &conditions[i].Message)
	}
}

func shareMap(texts map[string]string) map[string]string {
	if texts == nil {
		return nil
	}
	shared := make(map[string]string, len(texts))
	for key, value := range texts {
		share(&key, &value)
		shared[key] = value
	}
	return shared
}

// share replaces texts by the ones that others have, where they are equal.
func share(texts ...*string) {
	for _, text := range texts {
		*text = unique.Make(*text).Value()
	}
}
