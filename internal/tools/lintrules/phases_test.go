// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// phaseOwners are the packages that decide what phases mean. All other packages use them: apis/conditions for the
// severity of a phase, rollouts for the outcome of a rollout, explain for its cause.
var phaseOwners = []string{"apis/", "rollouts/", "explain/", "testbed/", "internal/tools/"}

// phaseWords are files that only have texts for phases, and decide nothing by phases.
var phaseWords = []string{
	"alerts/changes/changes.go",                 // names of change events
	"cmd/bellwether/internal/rollout/render.go", // the note beside each wave
}

// maxPhases is the maximum number of phases that one switch or map outside phaseOwners may distinguish.
const maxPhases = 2

// TestPhasesAreJudgedByTheirOwners finds switches and maps outside phaseOwners that distinguish phases.
func TestPhasesAreJudgedByTheirOwners(t *testing.T) {
	for _, problem := range judgedPhases(t, os.DirFS(root(t))) {
		t.Error(problem)
	}
}

const switchOverPhases = `package x

func f(p v1alpha1.RolloutPhase) bool {
	switch {
	case p == v1alpha1.RolloutHalted, p == v1alpha1.RolloutAborted:
		return true
	case p == v1alpha1.RolloutPaused:
	}
	return false
}
`

const mapOfPhases = `package x

var colours = map[v1alpha1.WavePhase]string{
	v1alpha1.WaveGated: "red", v1alpha1.WaveSoaking: "blue", v1alpha1.WaveVerified: "green",
}
`

func TestJudgedPhases(t *testing.T) {
	tree := fstest.MapFS{}
	for file, text := range map[string]string{"cmd/a.go": switchOverPhases, "controllers/b.go": mapOfPhases,
		"explain/c.go": switchOverPhases, "cmd/d_test.go": switchOverPhases} {
		tree[file] = &fstest.MapFile{Data: []byte(text)}
	}
	const instead = "call conditions.RolloutSeverity, conditions.WaveSeverity or rollouts.OutcomeOf"
	want := []string{"cmd/a.go tells 3 phases apart: " + instead, "controllers/b.go tells 3 phases apart: " + instead}
	if diff := cmp.Diff(want, judgedPhases(t, tree)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func judgedPhases(t *testing.T, tree fs.FS) []string {
	t.Helper()
	constants := phaseConstants(t)
	var found []string
	walkSources(t, tree, func(file string, text []byte) {
		isOwner := slices.ContainsFunc(phaseOwners, func(o string) bool { return strings.HasPrefix(file, o) })
		if isOwner || slices.Contains(phaseWords, file) || !strings.HasSuffix(file, ".go") ||
			strings.HasSuffix(file, "_test.go") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if phases := phasesIn(n, constants); len(phases) > maxPhases {
				found = append(found, fmt.Sprintf("%s tells %d phases apart: call conditions.RolloutSeverity, "+
					"conditions.WaveSeverity or rollouts.OutcomeOf", file, len(phases)))
			}
			return true
		})
	})
	slices.Sort(found)
	return found
}

// phaseConstants returns the names of the constants of phases of rollouts and waves.
func phaseConstants(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(),
		filepath.Join(root(t), "apis", "v1alpha1", "operatorrollout.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && (kind.Name == "RolloutPhase" || kind.Name == "WavePhase") {
			names[spec.Names[0].Name] = true
		}
		return true
	})
	if len(names) == 0 {
		t.Fatal("apis/v1alpha1/operatorrollout.go has no constants of phases")
	}
	return names
}

// phasesIn returns the phases in the cases of a switch, or in the keys of a map. constants has the names of phases.
func phasesIn(n ast.Node, constants map[string]bool) map[string]bool {
	var judged []ast.Expr
	switch n := n.(type) {
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			judged = append(judged, clause.(*ast.CaseClause).List...)
		}
	case *ast.CompositeLit:
		for _, element := range n.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				judged = append(judged, pair.Key)
			}
		}
	}
	phases := map[string]bool{}
	for _, expression := range judged {
		ast.Inspect(expression, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && constants[selector.Sel.Name] {
				phases[selector.Sel.Name] = true
			}
			return true
		})
	}
	return phases
}
