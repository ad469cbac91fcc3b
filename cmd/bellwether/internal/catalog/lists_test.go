// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

func TestLists(t *testing.T) {
	catalogs := []v1alpha1.OperatorCatalog{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "main"},
		Spec: v1alpha1.OperatorCatalogSpec{
			Source: v1alpha1.CatalogSource{Image: "registry.example.com/catalogs/main:latest"}},
		Status: v1alpha1.OperatorCatalogStatus{
			Digest: "sha256:0123456789abcdef0123456789abcdef", PackageCount: 2, LastReadTime: fixture.AgoPtr(time.Hour),
			Conditions: []metav1.Condition{fixture.Condition(v1alpha1.ConditionReady, true,
				v1alpha1.ReasonSucceeded, "")},
			BlockedVersions: []v1alpha1.BlockedVersion{{Clusters: 2}, {Clusters: 1}, {}},
		},
	}}
	brief := term.Listing{Now: fixture.Noon}
	for name, table := range map[string]*term.Table{
		"catalogs": BuildCatalogTable(catalogs, brief),
	} {
		t.Run(name, func(t *testing.T) { fixture.AssertGolden(t, name, table.Render(term.Style{})) })
	}
}
