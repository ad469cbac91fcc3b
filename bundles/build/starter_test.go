// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"errors"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/bundles/lint"
)

func options() build.StarterOptions {
	o := build.StarterOptions{Package: "snack-operator", Version: "0.1.0", Group: "snacks.example.com", Kind: "Snack"}
	o.About = build.StarterAbout(o)
	return o
}

// A first bundle has only two findings: its image, which does not exist yet, has no digest, and the priority of its
// pods is not known.
func TestBundlePassesTheLinter(t *testing.T) {
	r, err := build.StarterBundle(options())
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Files.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range lint.Run(lint.Input{Bundle: b}, lint.Options{}).Findings {
		if f.Rule != "image-digest" && f.Rule != "runtime-priority-class" || f.Severity == lint.Error {
			t.Errorf("%s %s: %s (%s)", f.Severity, f.Rule, f.Message, f.Path)
		}
	}
	if len(b.CRDs) != 1 || b.CRDs[0].Name != "snacks.snacks.example.com" {
		t.Errorf("it has the definitions %v", b.CRDs)
	}
	if b.CSV.Annotations["alm-examples"] == "" {
		t.Error("it has no example")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*build.StarterOptions){
		"package": func(o *build.StarterOptions) { o.Package = "Snack Operator" },
		"kind":    func(o *build.StarterOptions) { o.Kind = "snack" },
		"group":   func(o *build.StarterOptions) { o.Group = "snacks" },
		"plural":  func(o *build.StarterOptions) { o.Plural = "Snacks" },
		"version": func(o *build.StarterOptions) { o.Version = "1" },
	} {
		o := options()
		change(&o)
		if _, err := build.StarterBundle(o); !errors.Is(err, build.ErrStarterOptions) {
			t.Errorf("a wrong %s gives %v", name, err)
		}
	}
}
