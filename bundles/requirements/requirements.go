// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requirements returns the requirements of a bundle on a cluster that the bundle itself shows: objects whose
// API Kubernetes removed, and upgrades that the API server refuses because of a CustomResourceDefinition. It has no
// side effects. Package rollouts/holds checks whether a cluster meets the requirements.
package requirements

import (
	"fmt"

	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// RemovedAPI is an object of a bundle whose API Kubernetes removed.
type RemovedAPI struct {
	Object *bundles.Object
	// In is the first version of Kubernetes without the API, such as 1.25.
	In string
}

// RemovedAPIs returns the objects of a bundle whose API some version of Kubernetes has removed, in the order of the
// bundle. The ClusterServiceVersion is omitted, because APIs that it only mentions are harmless.
func RemovedAPIs(b *bundles.Bundle) []RemovedAPI {
	var out []RemovedAPI
	for _, o := range b.Objects {
		if o == b.CSVObject() {
			continue
		}
		if version := findRemoval(o.GroupVersionKind()); version != "" {
			out = append(out, RemovedAPI{Object: o, In: version})
		}
	}
	return out
}

// DecodeV1beta1CRD decodes a CustomResourceDefinition of v1beta1. It returns nil if the object is none or does
// not decode.
func DecodeV1beta1CRD(o *bundles.Object) *apiextensionsv1beta1.CustomResourceDefinition {
	if o.GroupVersionKind() != apiextensionsv1beta1.SchemeGroupVersion.WithKind("CustomResourceDefinition") {
		return nil
	}
	d := &apiextensionsv1beta1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
		return nil
	}
	return d
}

// ExplainRefusedUpgrade returns the reason why the API server refuses the definitions of the newer bundle on every
// cluster that runs the older bundle; empty if it accepts them. The newer bundle must directly replace the older
// bundle. The storage version of the older bundle is in status.storedVersions as long as the older bundle is
// installed, so no action before the upgrade changes the result.
func ExplainRefusedUpgrade(older, newer *bundles.Bundle) string {
	for _, oldDefinition := range crd.Definitions(older) {
		newDefinition := crd.Definition(newer, oldDefinition.Name)
		if newDefinition == nil {
			continue // OLM keeps a definition that the newer bundle does not have
		}
		for _, c := range crd.Compare(oldDefinition, newDefinition) {
			if c.Kind == crd.ChangedIdentity || c.Kind == crd.RemovedStored {
				return fmt.Sprintf("from %s to %s, in %s, %s", older.Name, newer.Name, oldDefinition.Name, c)
			}
		}
	}
	return ""
}
