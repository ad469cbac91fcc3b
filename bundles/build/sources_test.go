// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/bundles/bundletest"
)

const (
	registryModule = "github.com/operator-framework/operator-registry"
	olmModule      = "github.com/operator-framework/operator-lifecycle-manager"
	slothModule    = "github.com/slok/sloth"
)

// realSource is published input for an operator, and its bundle.
type realSource struct {
	objects []*unstructured.Unstructured
	bundle  *build.Result
}

// ofSources builds a bundle, and reads the same input without the tested code.
func ofSources(t *testing.T, sources []build.Source, o build.Options) realSource {
	t.Helper()
	r, err := build.Assemble(sources, o)
	if err != nil {
		t.Fatal(err)
	}
	out := realSource{bundle: r}
	for _, s := range sources {
		out.objects = append(out.objects, objectsOf(t, s.Text)...)
	}
	return out
}

func objectsOf(t *testing.T, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		switch {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatal(err)
		case len(o.Object) > 0:
			out = append(out, o)
		}
	}
}

func ofFiles(o build.Options, files ...string) func(*testing.T) realSource {
	return func(t *testing.T) realSource {
		var sources []build.Source
		for _, file := range files {
			if module, path, ok := strings.Cut(file, ":"); ok {
				file = filepath.Join(bundletest.Module(t, module), path)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, build.Source{Name: file, Text: text})
		}
		return ofSources(t, sources, o)
	}
}

func ofKustomization(o build.Options, module, path string) func(*testing.T) realSource {
	return func(t *testing.T) realSource {
		dir := path
		if module != "" {
			dir = filepath.Join(bundletest.Module(t, module), path)
		}
		sources, err := build.BuildKustomization(dir)
		if err != nil {
			t.Fatal(err)
		}
		return ofSources(t, sources, o)
	}
}

func ofChart(o build.Options, module, path string) func(*testing.T) realSource {
	return func(t *testing.T) realSource {
		dir := path
		if module != "" {
			dir = filepath.Join(bundletest.Module(t, module), path)
		}
		chart, err := build.ReadChartDir(os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := chart.Render(build.ChartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return ofSources(t, rendered.Sources, o.FillDefaults(chart.Defaults()))
	}
}

// ofPackage converts a version in the package manifest format.
func ofPackage(module, path, version string, channels ...string) func(*testing.T) realSource {
	return func(t *testing.T) realSource {
		dir := filepath.Join(bundletest.Module(t, module), path)
		p, err := build.ReadPackageManifests(os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Convert(build.Options{Version: version, Channels: channels})
		if r == nil {
			t.Fatal(err)
		}
		out := realSource{bundle: r}
		files, err := filepath.Glob(filepath.Join(dir, version, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out.objects = append(out.objects, objectsOf(t, text)...)
		}
		return out
	}
}

func realSources() map[string]func(*testing.T) realSource {
	named := func(name string, leaveOut ...string) build.Options {
		return build.Options{Package: name, Version: "1.0.0", LeaveOut: leaveOut}
	}
	out := map[string]func(*testing.T) realSource{
		"kubebuilder's layout": ofKustomization(named("snack"), "", "testdata/kustomize"),
		"a chart":              ofChart(build.Options{}, "", "testdata/chart"),
		"hub": ofFiles(named("bellwether-hub", "ValidatingAdmissionPolicy",
			"ValidatingAdmissionPolicyBinding", "Pod"), "../../charts/testdata/hub.yaml"),
		"agent": ofFiles(named("bellwether-agent", "ValidatingAdmissionPolicy",
			"ValidatingAdmissionPolicyBinding"), "../../charts/testdata/agent.yaml"),
		"sloth": ofFiles(named("sloth", "PodMonitor"), slothModule+":deploy/kubernetes/raw/sloth.yaml"),
		"sloth with plug-ins": ofFiles(named("sloth", "PodMonitor"),
			slothModule+":deploy/kubernetes/raw/sloth-with-common-plugins.yaml"),
		"sloth's kustomization": ofKustomization(named("sloth", "PodMonitor"), slothModule, "deploy/kubernetes"),
		"sloth's chart":         ofChart(named("sloth", "PodMonitor"), slothModule, "deploy/kubernetes/helm/sloth"),
		"olm": ofFiles(named("olm", "OperatorGroup", "CatalogSource"),
			olmModule+":deploy/upstream/quickstart/crds.yaml", olmModule+":deploy/upstream/quickstart/olm.yaml"),
	}
	for folder, versions := range map[string][]string{
		registryModule + ":test/e2e/testdata/aqua":                               {"0.0.1", "0.0.2", "1.0.0", "1.0.1"},
		olmModule + ":test/e2e/data/kiali-manifests":                             {"0.18.1", "1.1.0", "1.3.1", "1.4.2"},
		olmModule + ":pkg/package-server/provider/testdata/manifests/etcd":       {"0.6.0", "0.6.1"},
		registryModule + ":pkg/lib/bundle/testdata/etcd":                         {"0.9.0", "0.9.2"},
		olmModule + ":pkg/package-server/provider/testdata/manifests/prometheus": {"0.14.0", "0.15.0", "0.22.2"},
	} {
		module, path, _ := strings.Cut(folder, ":")
		for _, version := range versions {
			out[filepath.Base(path)+" "+version] = ofPackage(module, path, version)
		}
	}
	// The package manifest names no channel with this version.
	out["etcd 0.9.4"] = ofPackage(registryModule, "pkg/lib/bundle/testdata/etcd", "0.9.4", "alpha")
	return out
}

// TestNothingGetsLost compares input and output, object by object, and checks that the account is true.
func TestNothingGetsLost(t *testing.T) {
	all := realSources()
	if len(all) < 20 {
		t.Errorf("there are only %d sources", len(all))
	}
	for name, read := range all {
		t.Run(name, func(t *testing.T) {
			s := read(t)
			b, err := s.bundle.Files.Bundle()
			if err != nil {
				t.Fatal(err)
			}
			account := map[string]string{}
			for _, p := range s.bundle.Placements {
				what, _, _ := strings.Cut(p.Object, " (")
				account[what] = p.Becomes
			}
			if len(s.objects) == 0 || len(s.bundle.Placements) != len(s.objects) {
				t.Errorf("the input has %d objects, the account %d", len(s.objects), len(s.bundle.Placements))
			}
			for _, o := range s.objects {
				what := o.GetKind() + " " + o.GetName()
				becomes, ok := account[what]
				if !ok {
					t.Errorf("%s is not in the account", what)
					continue
				}
				for _, problem := range untrue(s.bundle, b, o, becomes) {
					t.Errorf("%s becomes %q: %s", what, becomes, problem)
				}
			}
		})
	}
}

// untrue returns the reason why the recorded result of an object is wrong.
func untrue(r *build.Result, b *bundles.Bundle, o *unstructured.Unstructured, becomes string) []string {
	spec := b.CSV.Spec
	strategy := spec.InstallStrategy.StrategySpec
	if reason, out := strings.CutPrefix(becomes, "left out: "); out {
		if !strings.Contains(strings.Join(r.Warnings, "\n"), reason) {
			return []string{"no warning says so"}
		}
		return nil
	}
	var problems []string
	missing := func(found bool, what string) {
		if !found {
			problems = append(problems, what+" is not in the bundle")
		}
	}
	if strings.HasSuffix(becomes, "a manifest") {
		problems = append(problems, differences(b, o)...)
	}
	switch {
	case strings.HasPrefix(becomes, "permissions of"):
		granted := map[string]bool{}
		for _, p := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
			maps.Copy(granted, rights(p.Rules))
		}
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			return []string{err.Error()}
		}
		for right := range rights(role.Rules) {
			missing(granted[right], right)
		}
	case becomes == "a Deployment of the install strategy":
		found := false
		for _, d := range strategy.DeploymentSpecs {
			found = found || d.Name == o.GetName()
		}
		missing(found, "the Deployment")
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			image, _, _ := unstructured.NestedString(c.(map[string]any), "image")
			missing(bytes.Contains(csvText(r), []byte("image: "+image)), "the image "+image)
		}
	case strings.HasPrefix(becomes, "webhook definitions"):
		hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		for _, h := range hooks {
			name := h.(map[string]any)["name"]
			missing(bytes.Contains(csvText(r), []byte(fmt.Sprintf("generateName: %v\n", name))), fmt.Sprint(name))
		}
	case strings.HasPrefix(becomes, "an example"):
		missing(strings.Contains(b.CSV.Annotations["alm-examples"], `"`+o.GetName()+`"`), "the example")
	case becomes == "the base of the ClusterServiceVersion":
		name, _, _ := unstructured.NestedString(o.Object, "spec", "displayName")
		missing(strings.Contains(spec.DisplayName, name), "its display name")
	}
	return problems
}

func csvText(r *build.Result) []byte {
	for name, text := range r.Files {
		if strings.HasSuffix(name, ".clusterserviceversion.yaml") {
			return text
		}
	}
	return nil
}

// rights are all rights of rules, one by one.
func rights(rules []rbacv1.PolicyRule) map[string]bool {
	out := map[string]bool{}
	for _, r := range rules {
		for _, verb := range r.Verbs {
			for _, url := range r.NonResourceURLs {
				out[verb+" "+url] = true
			}
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					for _, name := range append(slices.Clone(r.ResourceNames), "")[:max(1, len(r.ResourceNames))] {
						out[fmt.Sprintf("%s %s.%s %s", verb, resource, group, name)] = true
					}
				}
			}
		}
	}
	return out
}

// differences between an object and the manifest that it became. OLM decides on the namespace; the status is the
// cluster's.
func differences(b *bundles.Bundle, o *unstructured.Unstructured) []string {
	for _, m := range b.Objects {
		if m.GetKind() != o.GetKind() || m.GetName() != o.GetName() || m.GroupVersionKind() != o.GroupVersionKind() {
			continue
		}
		want, got := leaves("", o.Object), leaves("", m.Object)
		if diff := cmp.Diff(want, got); diff != "" {
			return []string{"it is another (-input +bundle):\n" + diff}
		}
		return nil
	}
	return []string{"it is not in the bundle"}
}

// leaves are the values of an object by their path, without empty ones.
func leaves(path string, v any) map[string]string {
	out := map[string]string{}
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			if at := path + "." + key; at != ".metadata.namespace" && at != ".status" {
				maps.Copy(out, leaves(at, child))
			}
		}
	case []any:
		for i, child := range v {
			maps.Copy(out, leaves(fmt.Sprintf("%s[%d]", path, i), child))
		}
	case nil:
	default:
		out[path] = fmt.Sprint(v)
	}
	return out
}
