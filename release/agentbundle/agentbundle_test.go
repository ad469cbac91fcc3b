// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agentbundle_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/bundles/lint"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/engines/olmv0/templates"
	"github.com/bellwether-dev/bellwether/release/agentbundle"
	"github.com/bellwether-dev/bellwether/release/image"
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
	for _, p := range r.Placements {
		if strings.HasPrefix(p.Becomes, "left out") {
			t.Errorf("%s: %s", p.Object, p.Becomes)
		}
	}
	report := lint.Run(lint.Input{Bundle: b}, lint.Options{})
	var notes []string
	for _, f := range report.Findings {
		if f.Severity != lint.Info && f.Rule != "runtime-missing-object" {
			t.Errorf("%s %s: %s", f.Severity, f.Rule, f.Message)
			continue
		}
		notes = append(notes, f.Rule)
	}
	// Its description asks for the Secret with the hub's kubeconfig. It has no icon, uses OperatorConditions where
	// there are some, and leaves priority classes to the cluster's owner.
	want := []string{"runtime-missing-object", "of-hub", "olmv1-operator-condition", "runtime-priority-class"}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("remarks (-want +got):\n%s", diff)
	}
}

// TestBundleIsTheChart verifies that the bundle has the same Deployment with the same
// permissions, in any namespace, and the one kind that an agent reads.
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

// TestPreReleasesAreNoBundles verifies that there is no bundle of a pre-release, because version
// ranges do not include pre-releases.
func TestPreReleasesAreNoBundles(t *testing.T) {
	if _, err := agentbundle.Build(charts.Release{Version: "1.2.3-rc.1"}); !errors.Is(err, build.ErrInput) {
		t.Errorf("error %v, want %v", err, build.ErrInput)
	}
}

// TestCatalogKeepsVersions: each release adds its version, and OLM gets from each to the newest. A version is published
// once.
func TestCatalogKeepsVersions(t *testing.T) {
	client := oci.NewClient(oci.Options{})
	target := image.Target{Client: client, Registry: serve(t) + "/bellwether"}
	var catalog image.Published
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		made, err := agentbundle.Build(charts.Release{Version: version})
		if err != nil {
			t.Fatal(err)
		}
		published, err := agentbundle.Publish(t.Context(), target, made, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		catalog = published.Catalog
	}
	files, err := client.Open(t.Context(), oci.Source{Image: catalog.Repository + ":" + catalog.Tag}, catalog.Digest)
	if err != nil {
		t.Fatal(err)
	}
	p, err := catalogs.ReadPackage(files, v1alpha1.AgentPackage)
	if err != nil {
		t.Fatal(err)
	}
	path, err := p.Path(agentbundle.Channel, "bellwether-agent.v1.0.0", "bellwether-agent.v1.2.0")
	if err != nil || len(p.Bundles) != 3 || len(path) != 2 {
		t.Errorf("path %v from the first version to the last, %d bundles, error %v", path, len(p.Bundles), err)
	}
	other, err := agentbundle.Build(charts.Release{Version: "1.1.0", Registry: "registry.example.com/other"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agentbundle.Publish(t.Context(), target, other, time.Now()); err == nil {
		t.Error("version 1.1.0 was replaced with another bundle")
	}
}

// TestManifestInstallsTheAgent: the agent takes the Subscription over, so it has the name that the agent gives.
func TestManifestInstallsTheAgent(t *testing.T) {
	text, err := agentbundle.BuildManifest("1.2.3", "registry.example.com/bellwether/catalog@sha256:0")
	if err != nil {
		t.Fatal(err)
	}
	set, err := templates.Load("")
	if err != nil {
		t.Fatal(err)
	}
	data := templates.Data{Namespace: agentbundle.Namespace, Package: v1alpha1.AgentPackage,
		Channel: agentbundle.Channel}
	found := 0
	for document := range strings.SplitSeq(string(text), "---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		if kind := o.GetKind(); kind == "Subscription" || kind == "OperatorGroup" {
			found++
			of, err := set.Render(kind, data)
			if err != nil {
				t.Fatal(err)
			}
			if of.GetName() != o.GetName() || of.GetNamespace() != o.GetNamespace() {
				t.Errorf("%s %s is not the agent's, %s", kind, o.GetName(), of.GetName())
			}
		}
	}
	if found != 2 {
		t.Errorf("%d of a Subscription and an OperatorGroup in:\n%s", found, text)
	}
}

func serve(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- registry.Serve(ctx, registry.Options{Ready: func(addr string) { ready <- addr }}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve registry: %v", err)
		}
	})
	select {
	case addr := <-ready:
		return addr
	case err := <-done:
		done <- nil
		t.Fatal(err)
		return ""
	}
}
