// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/rollouts"
)

func echoPackage() *catalogs.Package {
	p := &catalogs.Package{Name: "echo-operator", DefaultChannel: "stable", Bundles: map[string]*catalogs.Bundle{}}
	stable := &catalogs.Channel{Name: "stable", Entries: []catalogs.Entry{
		{Name: "echo-operator.v1.0.0"},
		{Name: "echo-operator.v1.1.0", Replaces: "echo-operator.v1.0.0"},
		{Name: "echo-operator.v1.3.0", Replaces: "echo-operator.v1.1.0", Skips: []string{"echo-operator.v1.2.0"},
			SkipRange: ">=1.1.0 <1.3.0"},
	}}
	for _, version := range []string{"1.0.0", "1.1.0", "1.3.0"} {
		name := "echo-operator.v" + version
		p.Bundles[name] = &catalogs.Bundle{Name: name, Version: semver.MustParse(version),
			Image: "registry.example.com/echo:" + version}
	}
	p.Bundles["echo-operator.v1.1.0"].Deprecation = "use 1.3.0"
	p.Channels = map[string]*catalogs.Channel{"stable": stable}
	return p
}

func TestPlan(t *testing.T) {
	waves := []rollouts.WavePreview{
		{Name: "canary", Clusters: []string{"canary-1"}, MaxConcurrency: 1, Deadline: 30 * time.Minute,
			Soak: time.Hour},
		{Name: "prod", Clusters: []string{"prod-1", "prod-2", "prod-3"}, MaxConcurrency: 1, MaxFailures: 1,
			Deadline: 30 * time.Minute, Gates: []string{"sre"}},
		{Name: "rest", MaxConcurrency: 1, Deadline: 30 * time.Minute},
	}
	running := rolloutAt()
	ahead := installs()
	ahead[1].Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo-operator.v2.0.0", Version: "2.0.0"}
	p := echoPackage()
	for name, in := range map[string]PlanInput{
		"paths": {Waves: waves, Installs: ahead[:3], Clusters: fleetOfFour(), Running: running, Package: p,
			Target: p.Bundles["echo-operator.v1.3.0"], Channel: "stable"},
		"unreadable": {Waves: waves, Installs: installs(), Clusters: fleetOfFour(),
			Unread: errors.New("registry unreachable")},
		"nobody": {Waves: waves[2:], Package: p, Target: p.Bundles["echo-operator.v1.3.0"], Channel: "stable"},
	} {
		t.Run(name, func(t *testing.T) {
			in.Now, in.Operator = noon, operator()
			golden(t, "plan-"+name, Plan(in, Style{}, false))
		})
	}
}

func TestCatalog(t *testing.T) {
	golden(t, "catalog-package", CatalogPackage(echoPackage(), Style{}))
	golden(t, "catalog-summary", CatalogSummary(catalogs.Summary{Packages: []catalogs.PackageSummary{
		echoPackage().Summary(), {Name: "broken", Problem: "invalid package: channel \"stable\" has 2 heads"},
	}}).Render(Style{}))
}

func TestMemberList(t *testing.T) {
	many := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	for name, test := range map[string]struct {
		clusters []string
		wide     bool
		want     string
	}{
		"none": {want: "-"},
		"few":  {clusters: many[:2], want: "a, b"},
		"many": {clusters: many, want: "a, b, c, d, e, f, g, h and 2 more (-o wide)"},
		"wide": {clusters: many, wide: true, want: "a, b, c, d, e, f, g, h, i, j"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := memberList(test.clusters, test.wide); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestHealthWithoutConditions(t *testing.T) {
	if got := health([]metav1.Condition{}); got != (Cell{"Unknown", Warn}) {
		t.Errorf("an object that nobody has looked at is %v", got)
	}
}
