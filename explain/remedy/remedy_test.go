// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

func TestEveryReasonHasOneRemedy(t *testing.T) {
	counts := map[string]int{}
	for _, r := range All() {
		counts[r.Reason]++
		if r.Means == "" || !strings.HasSuffix(r.Means, ".") {
			t.Errorf("%s: its meaning is not a sentence: %q", r.Reason, r.Means)
		}
	}
	for _, reason := range reasons(t) {
		if counts[reason] != 1 {
			t.Errorf("%s has %d remedies, want 1", reason, counts[reason])
		}
		delete(counts, reason)
	}
	for reason := range counts {
		t.Errorf("%s is no reason of the API", reason)
	}
}

// reasons reads the API's source, so that a new reason cannot be forgotten.
func reasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../apis/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatalf("parse the API's conditions: %v", err)
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatalf("read the value of %s: %v", spec.Names[0].Name, err)
		}
		out = append(out, value)
		return true
	})
	if len(out) < 30 {
		t.Fatalf("found only %d reasons", len(out))
	}
	return out
}

func TestMarkdownHasAHeadingPerReason(t *testing.T) {
	text := Markdown()
	for _, r := range All() {
		if !strings.Contains(text, "\n## "+r.Reason+"\n") {
			t.Errorf("no heading for %s", r.Reason)
		}
	}
}
