// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package starter_test

import (
	"errors"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles/build/starter"
	"github.com/bellwether-dev/bellwether/bundles/lint"
)

func options() starter.Options {
	o := starter.Options{Package: "snack-operator", Version: "0.1.0", Group: "snacks.example.com", Kind: "Snack"}
	o.About = starter.About(o)
	return o
}

// A first bundle has no finding but that its image, which does not exist yet, has no digest, and that nobody can know
// how important its pods are.
func TestBundlePassesTheLinter(t *testing.T) {
	r, err := starter.Bundle(options())
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
	for name, change := range map[string]func(*starter.Options){
		"package": func(o *starter.Options) { o.Package = "Snack Operator" },
		"kind":    func(o *starter.Options) { o.Kind = "snack" },
		"group":   func(o *starter.Options) { o.Group = "snacks" },
		"plural":  func(o *starter.Options) { o.Plural = "Snacks" },
		"version": func(o *starter.Options) { o.Version = "1" },
	} {
		o := options()
		change(&o)
		if _, err := starter.Bundle(o); !errors.Is(err, starter.ErrOptions) {
			t.Errorf("a wrong %s gives %v", name, err)
		}
	}
}
