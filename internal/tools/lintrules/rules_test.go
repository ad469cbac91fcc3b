// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build lint

package lintrules

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stubs are the packages of other modules that the cases import. They are empty, because the rules only use paths.
var stubs = []string{
	"k8s.io/api/core/v1", "k8s.io/api/apps/v1", "k8s.io/apimachinery/pkg/types", "k8s.io/client-go/kubernetes",
	"sigs.k8s.io/controller-runtime/pkg/client", "github.com/go-logr/logr", "google.golang.org/grpc",
}

// ours are the packages of this module that the cases import.
var ours = []string{
	"apis/v1alpha1", "bundles", "catalogs", "cmd/hub/flags", "testbed/fleet", "controllers/kit",
	"controllers/hub/operator", "controllers/hub/rollout", "fleet",
	"controllers/probe", "engines", "engines/olmv0", "rollouts", "explain", "apis/remedy",
}

func TestRules(t *testing.T) {
	cases := map[string]struct {
		file    string // in the module
		imports string // or
		body    string
		want    string // the linter that must object; empty: none
	}{
		"the API may import apimachinery": {file: "apis/v1alpha1/a.go",
			imports: "k8s.io/apimachinery/pkg/types"},
		"the API may import core types": {file: "apis/v1alpha1/b.go", imports: "k8s.io/api/core/v1"},
		"the API imports no other Kubernetes API": {file: "apis/v1alpha1/c.go", imports: "k8s.io/api/apps/v1",
			want: "depguard"},
		"the API imports no domain package": {file: "apis/v1alpha1/d.go", imports: module + "/catalogs",
			want: "depguard"},
		"the API imports no client": {file: "apis/v1alpha1/e.go", imports: "k8s.io/client-go/kubernetes",
			want: "depguard"},
		"a plan has no client": {file: "fleet/a.go",
			imports: "sigs.k8s.io/controller-runtime/pkg/client", want: "depguard"},
		"a plan has no logger": {file: "fleet/b.go",
			imports: "github.com/go-logr/logr", want: "depguard"},
		"a plan has no clock": {file: "fleet/c.go", imports: "time",
			body: "var _ = time.Now", want: "forbidigo"},
		"a plan may count time": {file: "fleet/d.go", imports: "time",
			body: "var _ = time.Minute"},
		"the graph has no network": {file: "catalogs/a.go", imports: "net/http",
			body: "var _ = http.NoBody", want: "depguard"},
		"a view has no client": {file: "catalogs/view/a.go", imports: "k8s.io/client-go/kubernetes",
			want: "depguard"},
		"a server of views has a network": {file: "catalogs/serve/a.go", imports: "google.golang.org/grpc"},
		"a catalog knows no controller": {file: "catalogs/serve/b.go", imports: module + "/controllers/kit",
			want: "depguard"},
		"bundle rules have no client": {file: "bundles/lint/a.go", imports: "k8s.io/client-go/kubernetes",
			want: "depguard"},
		"a bundle knows no catalog": {file: "bundles/rollback/a.go", imports: module + "/catalogs",
			want: "depguard"},
		"a compiler of catalogs may read bundles": {file: "catalogs/compile/a.go", imports: module + "/bundles"},
		"what the agent links validates no bundles": {file: "catalogs/load/a.go", imports: module + "/bundles/lint",
			want: "depguard"},
		"what the agent links decodes bundles": {file: "catalogs/load/c.go", imports: module + "/bundles"},
		"SLO maths has no client": {file: "alerts/slo/a.go", imports: "k8s.io/client-go/kubernetes",
			want: "depguard"},
		"runbooks follow no link": {file: "alerts/runbooks/a.go", imports: "net/http",
			body: "var _ = http.NoBody", want: "depguard"},
		"dashboards have no clock": {file: "dashboards/a.go", imports: "time", body: "var _ = time.Now",
			want: "forbidigo"},
		"dashboards have no client": {file: "dashboards/lint/a.go",
			imports: "sigs.k8s.io/controller-runtime/pkg/client", want: "depguard"},
		"a controller has a clock": {file: "controllers/hub/fleet/e.go", imports: "time",
			body: "var _ = time.Now"},
		"an explanation has no client": {file: "explain/a.go",
			imports: "sigs.k8s.io/controller-runtime/pkg/client", want: "depguard"},
		"an explanation has no clock": {file: "explain/b.go", imports: "time", body: "var _ = time.Now",
			want: "forbidigo"},
		"an explanation imports no controller": {file: "explain/c.go", imports: module + "/controllers/hub/rollout",
			want: "depguard"},
		"an explanation may import rollouts": {file: "explain/d.go", imports: module + "/rollouts"},
		"a remedy imports the API alone": {file: "apis/remedy/a.go", imports: module + "/rollouts",
			want: "depguard"},
		"a controller may import remedies": {file: "controllers/hub/fleet/f.go", imports: module + "/apis/remedy"},
		"a controller imports no explanations": {file: "controllers/hub/fleet/g.go", imports: module + "/explain",
			want: "depguard"},
		"rollouts have no client": {file: "rollouts/a.go", imports: "sigs.k8s.io/controller-runtime/pkg/client",
			want: "depguard"},
		"rollouts have no clock": {file: "rollouts/removal/a.go", imports: "time", body: "var _ = time.Now",
			want: "forbidigo"},
		"the plan of an engine has no client": {file: "engines/olmv0/plan/a.go",
			imports: "k8s.io/client-go/kubernetes", want: "depguard"},
		"the plan of an engine has no clock": {file: "engines/olmv0/plan/b.go", imports: "time",
			body: "var _ = time.Now", want: "forbidigo"},
		"what is read of sources has no clock": {file: "fleet/discovery/a.go", imports: "time",
			body: "var _ = time.Now", want: "forbidigo"},
		"the graph has no clock": {file: "catalogs/d.go", imports: "time",
			body: "var _ = time.Now", want: "forbidigo"},
		"what is known of vulnerabilities has no clock": {file: "catalogs/scan/a.go", imports: "time",
			body: "var _ = time.Now", want: "forbidigo"},
		"an engine has a client": {file: "engines/olmv0/a.go",
			imports: "sigs.k8s.io/controller-runtime/pkg/client"},
		"an engine knows no controller": {file: "engines/olmv0/b.go", imports: module + "/controllers/kit",
			want: "depguard"},
		"rollouts know no controller": {file: "rollouts/b.go", imports: module + "/controllers/kit",
			want: "depguard"},
		"conditions have no clock": {file: "apis/conditions/a.go", imports: "time", body: "var _ = time.Now",
			want: "forbidigo"},
		"the graph has no client": {file: "catalogs/e.go", imports: "k8s.io/client-go/kubernetes",
			want: "depguard"},
		"the seam of engines has no client": {file: "engines/a.go",
			imports: "sigs.k8s.io/controller-runtime/pkg/client", want: "depguard"},
		"the seam of engines has no clock": {file: "engines/b.go", imports: "time",
			body: "var _ = time.Now", want: "forbidigo"},
		"an engine has a clock":                {file: "engines/olmv0/c.go", imports: "time", body: "var _ = time.Now"},
		"the install controller uses the seam": {file: "controllers/agent/install/b.go", imports: module + "/engines"},
		"the install controller knows no engine": {file: "controllers/agent/install/c.go", imports: module +
			"/engines/olmv0", want: "depguard"},
		"nothing imports cmd": {file: "controllers/a.go", imports: module + "/cmd/hub/flags",
			want: "depguard"},
		"cmd may import cmd": {file: "cmd/agent/a.go", imports: module + "/cmd/hub/flags"},
		"the product knows no testbed": {file: "controllers/b.go", imports: module + "/testbed/fleet",
			want: "depguard"},
		"the testbed may import the testbed": {file: "testbed/e2e/a.go", imports: module + "/testbed/fleet"},
	}

	files := map[string]string{"go.mod": modfile()}
	for _, pkg := range ours {
		files[pkg+"/doc.go"] = source(pkg, "", "")
	}
	for _, pkg := range stubs {
		files["stubs/"+pkg+"/doc.go"] = source(pkg, "", "")
	}
	for _, name := range stubModules() {
		files["stubs/"+name+"/go.mod"] = "module " + name + "\n"
	}
	want := map[string][]string{}
	for name, c := range cases {
		if _, taken := files[c.file]; taken {
			t.Fatalf("two cases write %s; the second is %q", c.file, name)
		}
		files[c.file] = source(path.Dir(c.file), c.imports, c.body)
		if c.want != "" {
			want[c.file] = []string{c.want}
		}
	}
	if diff := cmp.Diff(want, lint(t, files)); diff != "" {
		t.Errorf("findings by file (-want +got):\n%s", diff)
	}
}

// lint runs golangci-lint with this repository's rules on the files, and returns the linters with findings, by file.
func lint(t *testing.T, files map[string]string) map[string][]string {
	t.Helper()
	tool := os.Getenv("GOLANGCI_LINT")
	if tool == "" {
		t.Fatal("GOLANGCI_LINT does not name the linter: run make lint-rules")
	}
	config, err := os.ReadFile(filepath.Join(root(t), ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files[".golangci.yml"] = string(config)
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), tool, "run", "--enable-only=depguard,forbidigo", "--issues-exit-code=0",
		"--output.json.path=stdout", "--show-stats=false", "--allow-parallel-runners", "./...")
	cmd.Dir = dir
	// Findings in the shared cache name the folder of an earlier run.
	cmd.Env = append(os.Environ(), "GOLANGCI_LINT_CACHE="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run golangci-lint: %v\n%s", err, stderr.String())
	}
	var report struct {
		Issues []struct {
			FromLinter string
			Text       string
			Pos        struct{ Filename string }
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("decode report: %v\n%s", err, out)
	}
	found := map[string][]string{}
	for _, issue := range report.Issues {
		found[issue.Pos.Filename] = append(found[issue.Pos.Filename], issue.FromLinter)
	}
	return found
}

// source returns a file of a package that imports one other package.
func source(pkg, imports, body string) string {
	text := "// Copyright The Bellwether Authors.\n// SPDX-License-Identifier: Apache-2.0\n\n" +
		"// Package " + path.Base(pkg) + " is part of a test.\npackage " + path.Base(pkg) + "\n"
	switch {
	case imports == "":
	case body == "":
		text += "\nimport _ \"" + imports + "\"\n"
	default:
		text += "\nimport \"" + imports + "\"\n\n" + body + "\n"
	}
	return text
}

// stubModules returns the modules of the stubs: two elements of the path for Kubernetes modules, three for modules
// on GitHub.
func stubModules() []string {
	var names []string
	for _, pkg := range stubs {
		length := 2
		if strings.HasPrefix(pkg, "github.com/") {
			length = 3
		}
		name := strings.Join(strings.Split(pkg, "/")[:length], "/")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func modfile() string {
	text := "module " + module + "\n\ngo 1.26\n"
	for _, name := range stubModules() {
		text += "\nrequire " + name + " v0.0.0\n\nreplace " + name + " => ./stubs/" + name + "\n"
	}
	return text
}
