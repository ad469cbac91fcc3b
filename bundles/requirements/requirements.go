// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requirements says what a bundle needs of a cluster, as far as that is in
// the bundle: objects whose API Kubernetes removed, and upgrades that the API server
// refuses because of a CustomResourceDefinition. It is pure. Whether a cluster meets
// them is decided in package rollouts/holds.
package requirements

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// RemovedAPIs returns the objects of a bundle whose API some version of Kubernetes
// does not have any more, in the bundle's order. The ClusterServiceVersion is left
// out: what it merely mentions does no harm.
func RemovedAPIs(b *bundles.Bundle) []RemovedAPI {
	var out []RemovedAPI
	for _, o := range b.Objects {
		if o == b.CSVObject() {
			continue
		}
		if in := removedIn(b, o); in != "" {
			out = append(out, RemovedAPI{Object: o, In: in})
		}
	}
	return out
}

// removedIn asks k8s.io/api, and for what that has no types of any more the validator
// of operator-framework, one object at a time: it says the version in its message only.
func removedIn(b *bundles.Bundle, o *bundles.Object) string {
	if in := removedByLifecycle(o.GroupVersionKind()); in != "" {
		return in
	}
	one := &manifests.Bundle{Name: b.Name, CSV: b.CSV, Objects: []*unstructured.Unstructured{o.Unstructured}}
	if d := OldCRD(o); d != nil {
		one.V1beta1CRDs = append(one.V1beta1CRDs, d)
	}
	for _, result := range validation.AlphaDeprecatedAPIsValidator.Validate(one) {
		for _, e := range slices.Concat(result.Errors, result.Warnings) {
			_, version, found := strings.Cut(e.Error(), "removed in v")
			version, _, _ = strings.Cut(version, ". ")
			if found && version != "" { // others are about spec.minKubeVersion
				return version
			}
		}
	}
	return ""
}

// OldCRD is a CustomResourceDefinition of v1beta1; nil if the object is none.
func OldCRD(o *bundles.Object) *apiextensionsv1beta1.CustomResourceDefinition {
	if o.GroupVersionKind() != apiextensionsv1beta1.SchemeGroupVersion.WithKind("CustomResourceDefinition") {
		return nil
	}
	d := &apiextensionsv1beta1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
		return nil
	}
	return d
}

// RefusedUpgrade says why the API server refuses the definitions of the newer bundle
// on every cluster that runs the older one; empty if it does not. Both bundles follow
// each other directly. The version that the older bundle stores objects as is in
// status.storedVersions for as long as it is installed, so nothing that is done
// before the upgrade changes the verdict.
func RefusedUpgrade(older, newer *bundles.Bundle) string {
	for _, was := range crd.Definitions(older) {
		is := crd.Definition(newer, was.Name)
		if is == nil {
			continue // OLM leaves a definition that is gone from the bundle
		}
		for _, c := range crd.Compare(was, is) {
			if c.Kind == crd.ChangedIdentity || c.Kind == crd.RemovedStored {
				return fmt.Sprintf("from %s to %s, in %s, %s", older.Name, newer.Name, was.Name, c)
			}
		}
	}
	return ""
}
