// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package newoperator makes new operators as their authors do: with `bellwether operator init`, make, and no edit.
package newoperator

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/boilerplate/repotest"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// kind is one kind of operator.
type kind struct {
	name string
	init []string
}

func namespaced() kind { return kind{"echo-operator", nil} }

func clusterScoped() kind {
	return kind{"tenant-operator", []string{"--scope", "cluster", "--webhook", "--module", "example.org/acme/tenants",
		"--group", "tenants.acme.example", "--api-version", "v1beta1"}}
}

func existingTypes(t *testing.T) kind {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return kind{"tenancy-operator", []string{"--api-from", filepath.Join(dir, "types", "v1"), "--example",
		filepath.Join(dir, "tenant.yaml")}}
}

// author is somebody at a shell, in the folder of a new operator.
type author struct {
	t                    *testing.T
	kind                 kind
	program, dir, assets string
	env                  []string
}

// newAuthor writes the operator.
func newAuthor(t *testing.T, k kind) *author {
	t.Helper()
	a := &author{t: t, kind: k, program: testenv.Binary(t, build.Bellwether), dir: filepath.Join(t.TempDir(), k.name),
		assets: t.TempDir()}
	components, err := build.Ensure(t.Context(), os.Stderr, build.Etcd, build.KubeAPIServer)
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range components {
		if err := os.Symlink(path, filepath.Join(a.assets, name)); err != nil {
			t.Fatal(err)
		}
	}
	a.env = repotest.MakeEnvironment("KUBEBUILDER_ASSETS="+a.assets, "GOFLAGS=-buildvcs=false", "GOWORK=off",
		"BELLWETHER="+a.program, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	cmd := exec.CommandContext(t.Context(), a.program, append([]string{"operator", "init", k.name, "--dir", a.dir},
		k.init...)...)
	cmd.Env = a.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("operator init: %v\n%s", err, out)
	}
	a.run("git", "init", "--quiet")
	return a
}

// run runs a program in the folder of the operator, and returns its output.
func (a *author) run(name string, args ...string) string {
	a.t.Helper()
	out, err := a.try(name, args...)
	if err != nil {
		a.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func (a *author) try(name string, args ...string) (string, error) {
	started := time.Now()
	cmd := exec.CommandContext(a.t.Context(), name, args...)
	cmd.Dir, cmd.Env = a.dir, a.env
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	a.t.Logf("%s %s: %s", filepath.Base(name), strings.Join(args, " "), time.Since(started).Round(time.Second))
	if err != nil {
		return out.String() + problems.String(), err
	}
	return out.String(), nil
}

// makeOperator has the operator generated, built, tested and bundled, and checks the bundle.
func (a *author) makeOperator() {
	a.t.Helper()
	for _, target := range []string{"generate", "build", "test", "catalog"} {
		a.run("make", target)
	}
	out := a.run("go", "test", "-count=1", "-run", "TestReconcile$", "-v", "./internal/controller")
	if !strings.Contains(out, "--- PASS: TestReconcile") {
		a.t.Errorf("the tests against an API server did not run:\n%s", out)
	}
	a.run("go", "vet", "./...")
	a.run("go", "mod", "tidy", "-diff")
	a.run(a.program, "boilerplate", "check")
	a.checkBundle()
}

// checkBundle reads the lint and the scorecard of the bundle.
func (a *author) checkBundle() {
	a.t.Helper()
	bundle := filepath.Join(a.dir, "ladders", "bundles", "0.1.0")
	var lint struct {
		Findings []struct{ Rule, Severity, Message string }
	}
	if err := json.Unmarshal([]byte(a.run(a.program, "bundle", "lint", bundle, "-o", "json")), &lint); err != nil {
		a.t.Fatal(err)
	}
	for _, f := range lint.Findings {
		// The image was not pushed, and so it has no digest yet. A priority class is for the author to choose.
		if !slices.Contains([]string{"image-digest", "runtime-priority-class"}, f.Rule) {
			a.t.Errorf("%s %s: %s", f.Severity, f.Rule, f.Message)
		}
	}
	var card struct{ Shown string }
	if err := json.Unmarshal([]byte(a.run(a.program, "bundle", "scorecard", bundle, "-o", "json")), &card); err != nil {
		a.t.Fatal(err)
	}
	if want := "Full Lifecycle"; card.Shown != want {
		a.t.Errorf("the bundle shows capability level %s, want %s", card.Shown, want)
	}
}

// image is the repository of the operator's image.
func (a *author) image() string {
	for i, arg := range a.kind.init {
		if arg == "--module" {
			return a.kind.init[i+1]
		}
	}
	return "example.com/" + a.kind.name
}

// binary builds the program that is in the image.
func (a *author) binary() string {
	path := filepath.Join(a.dir, "dist", "manager")
	a.run("go", "build", "-o", path, "./cmd")
	return path
}
