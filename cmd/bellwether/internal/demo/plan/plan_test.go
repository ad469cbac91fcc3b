// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/demo/plan"
)

var update = flag.Bool("update", false, "write the golden files")

func image(name string) plan.Image {
	return plan.Image{Repository: "registry.example.com/bellwether/" + name, Tag: "1.2.3",
		Digest: "sha256:" + strings.Repeat("a", 64)}
}

// fresh is a cluster of kind with OLM, and nothing of Bellwether.
func fresh() plan.Observation {
	return plan.Observation{Context: "kind-dev", Server: "https://127.0.0.1:6443", Kubernetes: "v1.34.0",
		Required: ">=1.30.0-0", Administrator: true, OLM: true, Namespaces: map[string]plan.Presence{},
		Images: plan.Images{Hub: image("hub"), Agent: image("agent"), Bellwether: image("bellwether")}}
}

// installed is the same cluster with the demo.
func installed() plan.Observation {
	o := fresh()
	o.Installed, o.Version = true, plan.After
	o.Clusters, o.Operators = []string{plan.Cluster}, []string{plan.Namespace + "/" + plan.Operator}
	for _, name := range plan.Namespaces() {
		o.Namespaces[name] = plan.Presence{Exists: true,
			Marked: name == plan.SystemNamespace || name == plan.Namespace}
	}
	return o
}

func options() plan.Options {
	return plan.Options{Program: "bellwether", HubServer: plan.HubServer, Timeout: "5m0s"}
}

// TestPlans compares the text that the user confirms.
func TestPlans(t *testing.T) {
	named := options()
	named.Kubeconfig, named.Values = "my cluster.kubeconfig", []string{"imagePullSecrets[0].name=login"}
	tagged := fresh()
	tagged.Images.Hub.Digest, tagged.Images.Agent.Digest, tagged.Images.Bellwether.Digest = "", "", ""
	begun := fresh()
	begun.Namespaces[plan.SystemNamespace] = plan.Presence{Exists: true, Marked: true}
	for name, test := range map[string]struct {
		decide  func(plan.Observation, plan.Options) ([]plan.Step, []plan.Problem)
		seen    plan.Observation
		options plan.Options
	}{
		"install":            {plan.Install, fresh(), options()},
		"install with flags": {plan.Install, tagged, named},
		"install again":      {plan.Install, installed(), options()},
		"remove":             {plan.Remove, installed(), options()},
		"remove a beginning": {plan.Remove, begun, options()},
	} {
		t.Run(name, func(t *testing.T) {
			steps, problems := test.decide(test.seen, test.options)
			if len(problems) > 0 {
				t.Fatalf("problems: %v", problems)
			}
			golden(t, strings.ReplaceAll(name, " ", "-")+".txt", plan.RenderPlan(test.seen, test.options, steps))
		})
	}
	golden(t, "end.txt", plan.RenderNextSteps(fresh(), options()))
}

// TestObjects compares what is created, with the address of the catalog.
func TestObjects(t *testing.T) {
	w := options()
	w.CatalogAddress = "10.96.0.7:5000"
	steps, _ := plan.Install(fresh(), w)
	var out strings.Builder
	for _, s := range steps {
		for _, object := range s.Apply {
			text, err := yaml.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString("---\n# " + s.Title + "\n")
			out.Write(text)
		}
	}
	golden(t, "objects.yaml", out.String())
}

// TestRefusals checks that all problems are reported together, and that nothing is planned then.
func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*plan.Observation)
		want   []string
	}{
		"nothing":                 {func(*plan.Observation) {}, nil},
		"a version of a provider": {func(o *plan.Observation) { o.Kubernetes = "v1.30.0-eks-931bdca" }, nil},
		"an old version": {func(o *plan.Observation) { o.Kubernetes = "v1.29.14+k3s1" },
			[]string{"Kubernetes v1.29.14+k3s1 is not supported: Bellwether needs >=1.30.0"}},
		"no administrator, and no OLM": {func(o *plan.Observation) { o.Administrator, o.OLM = false, false },
			[]string{"you are not an administrator of this cluster",
				"the cluster does not serve the API of OLM v0 (operators.coreos.com/v1alpha1)"}},
		"a hub of somebody else": {func(o *plan.Observation) { *o = installed(); o.Namespaces = nil },
			[]string{"Bellwether is installed on this cluster already"}},
		"an agent of somebody else": {func(o *plan.Observation) {
			o.Installed = true
			o.Namespaces[plan.SystemNamespace] = plan.Presence{Exists: true}
		}, []string{"Bellwether is installed on this cluster already",
			"namespace bellwether-system exists, and is not of a demo"}},
		"a namespace of somebody else": {func(o *plan.Observation) {
			o.Namespaces[plan.Package] = plan.Presence{Exists: true}
		}, []string{"namespace bellwether-sample exists, and is not of a demo"}},
		"a removal that goes on": {func(o *plan.Observation) {
			o.Namespaces[plan.Namespace] = plan.Presence{Exists: true, Marked: true, Terminating: true}
		}, []string{"namespace bellwether-demo is being deleted"}},
		"an earlier run": {func(o *plan.Observation) { *o = installed() }, nil},
		"no image": {func(o *plan.Observation) {
			o.Images.Agent = plan.Image{Repository: "ghcr.io/a/agent", Tag: "1.0.0", Problem: "not found"}
		}, []string{"image ghcr.io/a/agent:1.0.0 cannot be read: not found"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := fresh()
			test.change(&o)
			steps, problems := plan.Install(o, options())
			compare(t, steps, problems, test.want)
		})
	}
}

func TestRemovalRefusals(t *testing.T) {
	more := installed()
	more.Clusters = append(more.Clusters, "prod-1")
	more.Operators = append(more.Operators, "default/echo")
	for name, test := range map[string]struct {
		seen plan.Observation
		want []string
	}{
		"no demo": {fresh(),
			[]string{"there is no demo on this cluster: no namespace has the label bellwether.dev/demo"}},
		"things of the user": {more, []string{"the hub of the demo has clusters of yours: prod-1",
			"the hub of the demo has operators of yours: default/echo"}},
	} {
		t.Run(name, func(t *testing.T) {
			steps, problems := plan.Remove(test.seen, options())
			compare(t, steps, problems, test.want)
		})
	}
}

func compare(t *testing.T, steps []plan.Step, problems []plan.Problem, want []string) {
	t.Helper()
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.Text)
		if p.Remedy == "" {
			t.Errorf("%q has no remedy", p.Text)
		}
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if (len(steps) == 0) != (len(want) > 0) {
		t.Errorf("%d steps with %d problems", len(steps), len(want))
	}
}

// TestSampleCatalog checks the catalog as hub and agents do, and with OLM's own resolver.
func TestSampleCatalog(t *testing.T) {
	dir := t.TempDir()
	content := plan.BuildCatalog(image("bellwether").String())
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	c, source := oci.NewClient(oci.Options{}), oci.Source{Directory: dir}
	if _, err := c.CatalogImage(dir); err != nil {
		t.Fatal(err)
	}
	digest, err := c.Resolve(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	files, err := c.Open(t.Context(), source, digest)
	if err != nil {
		t.Fatal(err)
	}
	p, err := catalogs.ReadPackageWithManifests(files, plan.Package)
	if err != nil {
		t.Fatal(err)
	}
	report, err := agree.Check(p, catalogs.Installed{Name: plan.Package + ".v" + plan.Before, Version: plan.Before})
	if err != nil {
		t.Fatal(err)
	}
	if found := report.Disagreements(); len(found) > 0 {
		t.Errorf("OLM goes another way: %+v", found)
	}
}

// TestGuideInstallsTheTestedOLM: the guide's commands install the version that the testbed builds.
func TestGuideInstallsTheTestedOLM(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "..")
	read := func(parts ...string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(append([]string{root}, parts...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const module = "github.com/operator-framework/operator-lifecycle-manager"
	_, after, _ := strings.Cut(read("go.mod"), module+" ")
	version, _, _ := strings.Cut(after, "\n")
	want := "https://" + module + "/releases/download/" + strings.TrimSpace(version) + "\n"
	if !strings.Contains(read("docs", "guides", "try-on-your-cluster.md"), want) {
		t.Errorf("the guide does not name %s", want)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
