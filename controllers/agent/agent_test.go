// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// TestAgentCacheHasEachKindOnce: of two entries for a kind, the cache takes one by chance.
func TestAgentCacheHasEachKindOnce(t *testing.T) {
	scheme := clientgoscheme.Scheme
	if err := operatorsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	seen := map[schema.GroupVersionKind]bool{}
	for o := range Cache().ByObject {
		kind, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			t.Fatal(err)
		}
		if seen[kind] {
			t.Errorf("%s has two entries", kind)
		}
		seen[kind] = true
	}
}
