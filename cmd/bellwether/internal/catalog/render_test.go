// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

func TestCatalog(t *testing.T) {
	fixture.AssertGolden(t, "catalog-package", RenderPackage(fixture.EchoPackage(), term.Style{}))
	fixture.AssertGolden(t, "catalog-summary", BuildSummaryTable(catalogs.Summary{Packages: []catalogs.PackageSummary{
		fixture.EchoPackage().Summary(), {Name: "broken", Problem: "invalid package: channel \"stable\" has 2 heads"},
	}}).Render(term.Style{}))
}

func TestHubCatalog(t *testing.T) {
	c := &v1alpha1.OperatorCatalog{}
	c.Name, c.Spec.Source.Image = "main", "registry.example.com/catalogs/main:latest"
	fixture.AssertGolden(t, "hubcatalog-new", RenderHubCatalog(c, fixture.Noon, term.Style{}))

	c.Spec.Verification = &v1alpha1.CatalogVerification{PublicKeys: []string{"one", "two"}}
	c.Status = v1alpha1.OperatorCatalogStatus{
		Digest: "sha256:0123456789abcdef", PackageCount: 12, LastReadTime: fixture.AgoPtr(time.Hour),
		Conditions: []metav1.Condition{
			fixture.Condition(v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded,
				"12 packages at sha256:0123456789abcdef, signed by a trusted key"),
			fixture.Condition(v1alpha1.ConditionBlockedVersionInUse, true, v1alpha1.ReasonVersionBlocked,
				"1 cluster runs echo-operator 1.2.0, which is blocked (it loses data): canary-1; nothing newer is "+
					"good: wait for a newer version"),
		},
		BlockedVersions: []v1alpha1.BlockedVersion{{
			VersionBlock: v1alpha1.VersionBlock{Package: "echo-operator", Version: "1.2.0", Reason: "it loses data"},
			Origin:       v1alpha1.BlockFromSpec, Clusters: 1, ClusterNames: []string{"canary-1"},
			Proposal: "there is no newer version that is not blocked: publish one, or roll back to " +
				"echo-operator.v1.1.0 " +
				"(in-place): no stored object changes",
		}, {
			VersionBlock: v1alpha1.VersionBlock{Package: "echo-operator", Version: "1.0.1", Reason: "CVE",
				Expires: "2026-01-31"},
			Origin: v1alpha1.BlockFromSpec, Expired: true, Proposal: "upgrade to 1.1.0",
		}},
		Packages: []v1alpha1.CatalogPackage{{Name: "another"}, {
			Name: "echo-operator", DefaultChannel: "stable", OmittedVersions: 7,
			Channels: []v1alpha1.CatalogChannel{{Name: "candidate", Head: "1.1.0"}, {Name: "stable", Head: "1.1.0"}},
			Versions: []v1alpha1.CatalogVersion{
				{Bundle: "echo-operator.v1.2.0", Version: "1.2.0", Clusters: 1, Blocked: "it loses data",
					Rollbacks: []v1alpha1.CatalogRollback{{From: "echo-operator.v1.1.0", Class: "in-place"}}},
				{Bundle: "echo-operator.v1.1.0", Version: "1.1.0", Clusters: 2,
					Rollbacks: []v1alpha1.CatalogRollback{{From: "echo-operator.v1.0.0", Class: "needs-backup"}}},
				{Bundle: "echo-operator.v1.0.0", Version: "1.0.0", Deprecated: "use 1.1"},
				{Bundle: "echo-operator.v0.9.0", Version: "0.9.0", Clusters: 1, Absent: true},
			},
		}},
	}
	fixture.AssertGolden(t, "hubcatalog", RenderHubCatalog(c, fixture.Noon, term.Style{Width: 140}))
}
