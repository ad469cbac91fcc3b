// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/pin"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

var midnight = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func summary(packages ...catalogs.PackageSummary) *catalogs.Summary {
	return &catalogs.Summary{Packages: packages}
}

func TestNext(t *testing.T) {
	tag := v1alpha1.CatalogSource{Image: "registry.example.com/catalog:latest"}
	pinned := v1alpha1.CatalogSource{Image: "registry.example.com/catalog@sha256:1"}
	good := v1alpha1.OperatorCatalogStatus{Digest: "sha256:1", Source: &tag, PackageCount: 1,
		Packages: []v1alpha1.CatalogPackage{{Name: "old"}}}
	echo := catalogs.PackageSummary{Name: "echo", DefaultChannel: "stable", Channels: []catalogs.ChannelSummary{
		{Name: "stable", Head: "echo.v1.1.0", HeadVersion: "1.1.0", Versions: 2},
	}}
	tests := map[string]struct {
		source   v1alpha1.CatalogSource
		status   v1alpha1.OperatorCatalogStatus
		digest   string
		summary  *catalogs.Summary
		failure  *pin.Failure
		want     string // digest in use
		packages []v1alpha1.CatalogPackage
		ready    metav1.ConditionStatus
		reason   string
		contains string
		recheck  time.Duration
	}{
		"first reading": {
			source: tag, digest: "sha256:1", summary: summary(echo),
			want: "sha256:1", ready: metav1.ConditionTrue, reason: v1alpha1.ReasonSucceeded, recheck: time.Minute,
			packages: []v1alpha1.CatalogPackage{{Name: "echo", DefaultChannel: "stable",
				Channels: []v1alpha1.CatalogChannel{{Name: "stable", Head: "1.1.0", Versions: 2}}}},
		},
		"unchanged": {
			source: tag, status: good, digest: "sha256:1", packages: good.Packages,
			want: "sha256:1", ready: metav1.ConditionTrue, reason: v1alpha1.ReasonSucceeded, recheck: time.Minute,
		},
		"by digest is read once": {
			source: pinned, digest: "sha256:1", summary: summary(echo),
			want: "sha256:1", ready: metav1.ConditionTrue, reason: v1alpha1.ReasonSucceeded,
			packages: []v1alpha1.CatalogPackage{{Name: "echo", DefaultChannel: "stable",
				Channels: []v1alpha1.CatalogChannel{{Name: "stable", Head: "1.1.0", Versions: 2}}}},
		},
		"by digest is tried again after a failure": {
			source: pinned, failure: &pin.Failure{Reason: v1alpha1.ReasonCatalogUnreachable,
				Cause: "connection refused"},
			ready: metav1.ConditionFalse, reason: v1alpha1.ReasonCatalogUnreachable, contains: "connection refused",
			recheck: time.Minute,
		},
		"unreachable keeps the good one": {
			source: tag, status: good, failure: &pin.Failure{Reason: v1alpha1.ReasonCatalogUnreachable,
				Cause: "connection refused"},
			want: "sha256:1", packages: good.Packages, ready: metav1.ConditionFalse,
			reason:   v1alpha1.ReasonCatalogUnreachable,
			contains: "stays in use (sha256:1)", recheck: time.Minute,
		},
		"a contradiction keeps the good one": {
			source: tag, status: good, digest: "sha256:2",
			summary: summary(echo, catalogs.PackageSummary{Name: "bad", Problem: "two heads"}),
			want:    "sha256:1", packages: good.Packages, ready: metav1.ConditionFalse,
			reason:   v1alpha1.ReasonCatalogInvalid,
			contains: "package bad: two heads. Correct the error", recheck: time.Minute,
		},
		"an empty one is no catalog": {
			source: tag, digest: "sha256:2", summary: summary(),
			ready: metav1.ConditionFalse, reason: v1alpha1.ReasonNotACatalog, contains: "the catalog has no packages",
			recheck: time.Minute,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			catalog := &v1alpha1.OperatorCatalog{Spec: v1alpha1.OperatorCatalogSpec{Source: test.source},
				Status: test.status}
			got := pin.Decide(pin.Input{Now: now, Catalog: catalog, Digest: test.digest, Summary: test.summary,
				Failure: test.failure})
			if got.Status.Digest != test.want {
				t.Errorf("digest = %q, want %q", got.Status.Digest, test.want)
			}
			if diff := cmp.Diff(test.packages, got.Status.Packages); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
			ready := conditions.Get(got.Status.Conditions, v1alpha1.ConditionReady)
			if ready.Status != test.ready || ready.Reason != test.reason ||
				!strings.Contains(ready.Message, test.contains) {
				t.Errorf("Ready = %s %s %q, want %s %s with %q", ready.Status, ready.Reason, ready.Message, test.ready,
					test.reason, test.contains)
			}
			if got.RecheckAfter != test.recheck {
				t.Errorf("recheck after %s, want %s", got.RecheckAfter, test.recheck)
			}
		})
	}
}

func TestNeedsRead(t *testing.T) {
	a, b := v1alpha1.CatalogSource{Image: "a:1"}, v1alpha1.CatalogSource{Image: "b:1"}
	tests := map[string]struct {
		status v1alpha1.OperatorCatalogStatus
		digest string
		want   bool
	}{
		"nothing read yet": {digest: "sha256:1", want: true},
		"in use": {status: v1alpha1.OperatorCatalogStatus{Digest: "sha256:1", Source: &a},
			digest: "sha256:1"},
		"another digest": {status: v1alpha1.OperatorCatalogStatus{Digest: "sha256:1", Source: &a}, digest: "sha256:2",
			want: true},
		"another source": {status: v1alpha1.OperatorCatalogStatus{Digest: "sha256:1", Source: &b}, digest: "sha256:1",
			want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			catalog := &v1alpha1.OperatorCatalog{Spec: v1alpha1.OperatorCatalogSpec{Source: a}, Status: test.status}
			if got := pin.NeedsRead(catalog, test.digest); got != test.want {
				t.Errorf("needs read = %v, want %v", got, test.want)
			}
		})
	}
}

func TestSummaryStaysWithinTheAPI(t *testing.T) {
	var s catalogs.Summary
	for i := range pin.MaxPackages + 1 {
		p := catalogs.PackageSummary{Name: fmt.Sprintf("p%03d", i)}
		for j := range pin.MaxChannels + 1 {
			p.Channels = append(p.Channels, catalogs.ChannelSummary{Name: fmt.Sprintf("c%d", j)})
		}
		s.Packages = append(s.Packages, p)
	}
	got := pin.Decide(pin.Input{Now: now, Catalog: &v1alpha1.OperatorCatalog{}, Digest: "sha256:1", Summary: &s}).Status
	if len(got.Packages) != pin.MaxPackages || len(got.Packages[0].Channels) != pin.MaxChannels {
		t.Errorf("%d packages with %d channels", len(got.Packages), len(got.Packages[0].Channels))
	}
	if got.PackageCount != pin.MaxPackages+1 {
		t.Errorf("package count = %d, want the true number", got.PackageCount)
	}
}
