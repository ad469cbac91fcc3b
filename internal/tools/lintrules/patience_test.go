// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// patience is the minimum timeout of a test, because a busy machine is slow.
const patience = time.Minute

// deliberate matches the comment on a line that may be impatient. The comment says why.
var deliberate = regexp.MustCompile(`//.*\bimpatient: \S`)

// waits are the functions with a timeout, with the index of the timeout in their arguments.
var waits = map[string]int{
	"context.WithTimeout": 1, "context.WithTimeoutCause": 1, "wait.PollUntilContextTimeout": 2, "time.After": 0,
	"time.NewTimer": 0, "time.Now.Add": 0,
}

// TestTestsArePatient fails for tests that sleep, that have a timeout below a minute, or that compare a measured
// duration, because such tests fail on a busy machine. Durations must be tested with testing/synctest, fake clocks or
// benchmarks. A necessary exception ends with "// impatient: " and the reason.
func TestTestsArePatient(t *testing.T) {
	packages := map[string]map[string][]byte{}
	walkSources(t, os.DirFS(root(t)), func(file string, text []byte) {
		if strings.HasSuffix(file, "_test.go") {
			dir := path.Dir(file)
			if packages[dir] == nil {
				packages[dir] = map[string][]byte{}
			}
			packages[dir][file] = text
		}
	})
	for _, files := range packages {
		for _, found := range findImpatience(t, files) {
			t.Error(found)
		}
	}
}

func TestFindImpatience(t *testing.T) {
	const source = `package a

import (
	"testing/synctest"
	"time"
)

const short, limit = 5 * time.Second, time.Minute

func wait() {
	time.Sleep(time.Second)
	time.Sleep(time.Second) // impatient: the file system has seconds
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	ctx, cancel = context.WithTimeout(t.Context(), short)
	ctx, cancel = context.WithTimeout(t.Context(), unknown)
	_ = wait.PollUntilContextTimeout(ctx, time.Second, 2*limit, true, f)
	_ = wait.PollUntilContextTimeout(ctx, time.Second, limit/2, true, f)
	<-time.After(30 * time.Second)
	if took := time.Since(start); time.Since(start) > limit {
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Second)
	})
	deadline := time.Now().Add(2 * limit)
	deadline = time.Now().Add(2 * short)
	deadline = time.Now().Add(unknown)
}
`
	got := findImpatience(t, map[string][]byte{"a_test.go": []byte(source)})
	want := []string{
		"a_test.go:11: sleeps: wait for a state that lasts",
		"a_test.go:14: context.WithTimeout gives up after 5s: give it 1m0s",
		"a_test.go:17: wait.PollUntilContextTimeout gives up after 30s: give it 1m0s",
		"a_test.go:18: time.After gives up after 30s: give it 1m0s",
		"a_test.go:19: judges how long something took: use testing/synctest, a fake clock or a benchmark",
		"a_test.go:25: time.Now.Add gives up after 10s: give it 1m0s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

// findImpatience returns the impatient lines in the test files of a package.
func findImpatience(t *testing.T, files map[string][]byte) []string {
	t.Helper()
	set, parsed, constants := token.NewFileSet(), map[string]*ast.File{}, durations{}
	for name, text := range files {
		file, err := parser.ParseFile(set, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed[name] = file
		constants.declare(file)
	}
	var found []string
	for name, file := range parsed {
		lines := strings.Split(string(files[name]), "\n")
		ast.Inspect(file, func(n ast.Node) bool {
			what, inside := constants.judge(n)
			if n == nil || what == "" {
				return inside
			}
			if line := set.Position(n.Pos()).Line; !deliberate.MatchString(lines[line-1]) {
				found = append(found, fmt.Sprintf("%s:%d: %s", filepath.ToSlash(name), line, what))
			}
			return inside
		})
	}
	return found
}

// durations are the constants of a package that are durations.
type durations map[string]time.Duration

func (d durations) declare(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				if value, ok := d.eval(spec.Values[i]); ok {
					d[name.Name] = value
				}
			}
		}
		return true
	})
}

// judge says why a node is impatient, "" if it is not, and whether to examine its children.
func (d durations) judge(n ast.Node) (what string, inside bool) {
	switch n := n.(type) {
	case *ast.CallExpr:
		name := nameOf(n.Fun)
		if name == "synctest.Test" {
			return "", false // its time is not the machine's
		}
		if name == "time.Sleep" {
			return "sleeps: wait for a state that lasts", true
		}
		if place, ok := waits[name]; ok && place < len(n.Args) {
			if limit, ok := d.eval(n.Args[place]); ok && limit < patience {
				return fmt.Sprintf("%s gives up after %s: give it %s", name, limit, patience), true
			}
		}
	case *ast.BinaryExpr:
		if isComparison(n.Op) && (isElapsed(n.X) || isElapsed(n.Y)) {
			return "judges how long something took: use testing/synctest, a fake clock or a benchmark", true
		}
	}
	return "", true
}

func isComparison(op token.Token) bool {
	return op == token.LSS || op == token.GTR || op == token.LEQ || op == token.GEQ
}

func isElapsed(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && nameOf(call.Fun) == "time.Since"
}

// nameOf returns the name of a function of another package, such as "time.Since", or of a method of the function's
// result, such as "time.Now.Add".
func nameOf(e ast.Expr) string {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch x := selector.X.(type) {
	case *ast.Ident:
		return x.Name + "." + selector.Sel.Name
	case *ast.CallExpr:
		return nameOf(x.Fun) + "." + selector.Sel.Name
	}
	return ""
}

var units = map[string]time.Duration{
	"time.Nanosecond": time.Nanosecond, "time.Microsecond": time.Microsecond, "time.Millisecond": time.Millisecond,
	"time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour,
}

// eval returns the value of an expression of constants; a number without a unit counts as nanoseconds.
func (d durations) eval(e ast.Expr) (time.Duration, bool) {
	switch e := e.(type) {
	case *ast.Ident:
		value, ok := d[e.Name]
		return value, ok
	case *ast.SelectorExpr:
		value, ok := units[nameOf(e)]
		return value, ok
	case *ast.ParenExpr:
		return d.eval(e.X)
	case *ast.BasicLit:
		n, err := strconv.ParseInt(strings.ReplaceAll(e.Value, "_", ""), 10, 64)
		return time.Duration(n), err == nil
	case *ast.BinaryExpr:
		return d.evalBinary(e)
	}
	return 0, false
}

func (d durations) evalBinary(e *ast.BinaryExpr) (time.Duration, bool) {
	x, okX := d.eval(e.X)
	y, okY := d.eval(e.Y)
	if !okX || !okY {
		return 0, false
	}
	switch e.Op {
	case token.MUL:
		return x * y, true
	case token.QUO:
		return x / max(y, 1), true
	case token.ADD:
		return x + y, true
	case token.SUB:
		return x - y, true
	}
	return 0, false
}
