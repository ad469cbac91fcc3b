// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agentbundle_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/bundles/lint"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/release/agentbundle"
)

func made(t *testing.T) (*build.Result, *bundles.Bundle) {
	t.Helper()
	r, err := agentbundle.Build(charts.Release{Version: "1.2.3", Registry: "registry.example.com/bellwether",
		Digests: map[string]string{"agent": "sha256:" + strings.Repeat("a", 64)}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Files.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	return r, b
}

// TestBundleIsClean: our linter, which has the validators of operator-framework/api among its rules, finds nothing that
// is to be changed, and nothing is left out when the bundle is built.
func TestBundleIsClean(t *testing.T) {
	r, b := made(t)
	for _, p := range r.Account {
		if strings.HasPrefix(p.Becomes, "left out") {
			t.Errorf("%s: %s", p.Object, p.Becomes)
		}
	}
	report := lint.Run(lint.Input{Bundle: b}, lint.Options{})
	var notes []string
	for _, f := range report.Findings {
		if f.Severity != lint.Info {
			t.Errorf("%s %s: %s", f.Severity, f.Rule, f.Message)
			continue
		}
		notes = append(notes, f.Rule)
	}
	// It has no icon, uses OperatorConditions where there are some, and leaves priority classes to the cluster's owner.
	want := []string{"of-hub", "olmv1-operator-condition", "runtime-priority-class"}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("remarks (-want +got):\n%s", diff)
	}
}

// TestBundleIsTheChart: the same Deployment with the same rights, in any namespace, and the one kind that an agent reads.
func TestBundleIsTheChart(t *testing.T) {
	r, b := made(t)
	if r.Name != "bellwether-agent.v1.2.3" {
		t.Errorf("its name is %s", r.Name)
	}
	var kinds []string
	for _, o := range b.Objects {
		if ns := o.GetNamespace(); ns != "" {
			t.Errorf("%s %s is in namespace %s", o.GetKind(), o.GetName(), ns)
		}
		kinds = append(kinds, o.GetKind()+" "+o.GetName())
	}
	slices.Sort(kinds)
	want := []string{"ClusterServiceVersion bellwether-agent.v1.2.3",
		"CustomResourceDefinition endpointprobes.bellwether.dev", "Service bellwether-agent"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
	strategy := b.CSV.Spec.InstallStrategy.StrategySpec
	pod := strategy.DeploymentSpecs[0].Spec.Template.Spec
	for _, arg := range pod.Containers[0].Args {
		if strings.HasPrefix(arg, "--cluster=") || strings.Contains(arg, agentbundle.Namespace) {
			t.Errorf("argument %s is not the same on all clusters", arg)
		}
	}
	image := "registry.example.com/bellwether/agent@sha256:" + strings.Repeat("a", 64)
	if got := pod.Containers[0].Image; got != image {
		t.Errorf("image %s, want %s", got, image)
	}
	patches := func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Resources, "installplans") && slices.Contains(rule.Verbs, "patch")
	}
	if len(strategy.ClusterPermissions) != 1 || !slices.ContainsFunc(strategy.ClusterPermissions[0].Rules, patches) {
		t.Errorf("it may not approve InstallPlans: %v", strategy.ClusterPermissions)
	}
}

func TestBuildIsReproducible(t *testing.T) {
	first, _ := made(t)
	second, _ := made(t)
	if diff := cmp.Diff(first.Files, second.Files); diff != "" {
		t.Errorf("the same release gives another bundle (-first +second):\n%s", diff)
	}
}

// TestPreReleasesAreNoBundles: ranges of versions do not see them.
func TestPreReleasesAreNoBundles(t *testing.T) {
	if _, err := agentbundle.Build(charts.Release{Version: "1.2.3-rc.1"}); !errors.Is(err, build.ErrInput) {
		t.Errorf("error %v, want %v", err, build.ErrInput)
	}
}
