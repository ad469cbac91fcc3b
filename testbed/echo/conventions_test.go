// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package echo_test

import (
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/boilerplate/conventions"
	"github.com/bellwether-dev/bellwether/boilerplate/run"
	"github.com/bellwether-dev/bellwether/boilerplate/source"
)

// TestConventions checks that the sample operator is as its conventions are now.
func TestConventions(t *testing.T) {
	r, err := run.Open(".", source.Loader{Builtin: conventions.Files})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Tree.Close() }()
	findings, err := r.Check(time.Now())
	if len(findings) > 0 || err != nil {
		t.Errorf("%v, %v", findings, err)
	}
	p, err := r.Plan(t.Context(), run.Options{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Changes {
		t.Errorf("%s is not current: run bellwether boilerplate update in testbed/echo", c.Path)
	}
}
