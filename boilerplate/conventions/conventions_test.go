// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/repotest"
)

// required are values of the parameters that have no default.
var required = map[string]any{"module": "example.org/echo", "project": "Echo", "approvers": []any{"anna", "acme/sre"},
	"operator": "echo-operator", "image": "registry.example.com/echo", "group": "echo.example.org",
	"resources": []any{"echoes", "mirrors"}, "metricsPrefix": "echo"}

func load(t *testing.T) []*convention.Convention {
	t.Helper()
	folders, err := fs.ReadDir(Files, ".")
	if err != nil {
		t.Fatal(err)
	}
	var out []*convention.Convention
	for _, f := range folders {
		sub, err := fs.Sub(Files, f.Name())
		if err != nil {
			t.Fatal(err)
		}
		c, err := convention.Load(sub)
		if err != nil {
			t.Fatal(err)
		}
		if c.Name != f.Name() {
			t.Errorf("folder %s has convention %s", f.Name(), c.Name)
		}
		out = append(out, c)
	}
	return out
}

// write renders all conventions into a folder, with additional values of parameters.
func write(t *testing.T, more map[string]any) (string, convention.Tree) {
	t.Helper()
	given := map[string]any{}
	for _, values := range []map[string]any{required, more} {
		for name, value := range values {
			given[name] = value
		}
	}
	tree, err := convention.Render(load(t), given)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, r := range tree {
		file := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(r.Text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir, tree
}

// everything sets the parameters that are off by default.
var everything = map[string]any{"generators": true, "reviewers": []any{"ben"}, "prometheusRule": true,
	"scope": "cluster"}

// TestFormats parses the rendered files.
func TestFormats(t *testing.T) {
	for name, more := range map[string]map[string]any{"defaults": nil, "everything": everything,
		"less": {"renovate": false, "bellwether": ""}} {
		t.Run(name, func(t *testing.T) {
			_, tree := write(t, more)
			for path, r := range tree {
				var err error
				switch filepath.Ext(path) {
				case ".yaml", ".yml":
					err = yaml.UnmarshalStrict([]byte(r.Text), &map[string]any{})
				case ".json":
					err = json.Unmarshal([]byte(r.Text), &map[string]any{})
				}
				if path == "OWNERS" {
					err = yaml.UnmarshalStrict([]byte(r.Text), &map[string][]string{})
				}
				if err != nil {
					t.Errorf("%s: %v\n%s", path, err, r.Text)
				}
				if strings.Contains(r.Text, "[[") || strings.Contains(r.Text, "<no value>") {
					t.Errorf("%s has something of its template:\n%s", path, r.Text)
				}
			}
			if name == "less" && (tree["renovate.json"] != nil ||
				strings.Contains(tree[".github/workflows/ci.yaml"].Text, "bellwether@")) {
				t.Error("renovate and the check are not left out")
			}
		})
	}
}

var target = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):.*## `)

// TestMakeTargets runs make for each target without commands, and shows the help.
func TestMakeTargets(t *testing.T) {
	dir, tree := write(t, everything)
	var targets []string
	for _, match := range target.FindAllStringSubmatch(tree["Makefile"].Text, -1) {
		targets = append(targets, match[1])
	}
	slices.Sort(targets)
	want := "build bundle catalog coverage docs-lint e2e fmt generate help image lint publish test tidy try validate"
	if got := strings.Join(targets, " "); got != want {
		t.Errorf("targets %s, want %s", got, want)
	}
	for _, args := range [][]string{append([]string{"-n", "--warn-undefined-variables"}, targets...), nil} {
		cmd := exec.CommandContext(t.Context(), "make", args...)
		cmd.Dir = dir
		cmd.Env = repotest.MakeEnvironment("KUBEBUILDER_ASSETS=assets")
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "warning") {
			t.Errorf("make %v: %v\n%s", args, err, out)
		}
		if args == nil && !strings.Contains(string(out), "  docs-lint        Check the Markdown") {
			t.Errorf("help:\n%s", out)
		}
	}
}

// TestGoTargets runs targets in a small module. Its program is in ./cmd, and is called as the module.
func TestGoTargets(t *testing.T) {
	dir, _ := write(t, map[string]any{"module": "example.org/echo/v2"})
	for name, text := range map[string]string{"go.mod": "module example.org/echo/v2\n\ngo 1.26\n",
		filepath.Join("cmd", "main.go"): "package main\n\nfunc main() {}\n"} {
		file := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "make", "build", "validate")
	cmd.Dir = dir
	cmd.Env = repotest.MakeEnvironment("GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "bin", "echo")); err != nil {
		t.Error(err)
	}
}

var action = regexp.MustCompile(`(?m)^\s*- uses: (.*)$`)

// TestActionsArePinned refuses an action without a digest.
func TestActionsArePinned(t *testing.T) {
	_, tree := write(t, nil)
	found := action.FindAllStringSubmatch(tree[".github/workflows/ci.yaml"].Text, -1)
	for _, match := range found {
		if !regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40} # v[0-9.]+$`).MatchString(match[1]) {
			t.Errorf("%s is not pinned", match[1])
		}
	}
	if len(found) == 0 {
		t.Error("there are no actions")
	}
}

// TestOperatorMonitoring parses the expressions of the alerts and of the dashboard.
func TestOperatorMonitoring(t *testing.T) {
	_, tree := write(t, everything)
	var rule struct {
		Spec struct{ Groups any }
	}
	if err := yaml.Unmarshal([]byte(tree["config/monitoring/alerts.yaml"].Text), &rule); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(map[string]any{"groups": rule.Spec.Groups})
	if err != nil {
		t.Fatal(err)
	}
	expressions := parser.NewParser(parser.Options{})
	groups, problems := rulefmt.Parse(text, false, model.UTF8Validation, expressions, nil)
	if len(problems) > 0 || len(groups.Groups) != 1 || len(groups.Groups[0].Rules) == 0 {
		t.Errorf("alerts: %v\n%s", problems, text)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(tree["config/monitoring/dashboard.json"].Text), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			if _, err := expressions.ParseExpr(strings.ReplaceAll(target.Expr, "$namespace", "echo")); err != nil {
				t.Errorf("%s: %v", target.Expr, err)
			}
		}
	}
	if len(dashboard.Panels) == 0 {
		t.Error("the dashboard has no panels")
	}
}

// TestOperatorProfile reads the SLO profile as a bundle brings it.
func TestOperatorProfile(t *testing.T) {
	_, tree := write(t, nil)
	var properties struct {
		Properties []struct {
			Type  string
			Value json.RawMessage
		}
	}
	if err := yaml.Unmarshal([]byte(tree["config/bundle/properties.yaml"].Text), &properties); err != nil {
		t.Fatal(err)
	}
	if len(properties.Properties) != 1 || properties.Properties[0].Type != "bellwether.dev/slo" {
		t.Errorf("properties: %+v", properties)
	}
}
