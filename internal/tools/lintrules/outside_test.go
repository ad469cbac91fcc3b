// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var (
	// upward matches a relative path that begins with "..", as a separate word.
	upward = regexp.MustCompile(`(?:^|[^\w./-])(\.\.(?:/[\w.-]+)*)`)
	// upwardOfFolder is one below a folder that a script computes, such as "$(dirname "$0")/..".
	upwardOfFolder = regexp.MustCompile(`[)}"](?:/)(\.\.(?:/[\w.-]+)*)`)
)

// TestNothingOutsideTheTree fails if a Go file, script or Makefile contains a path that leaves the tree, because there
// is nothing next to a clone. (.ci/run also runs all tests in such a clone.)
func TestNothingOutsideTheTree(t *testing.T) {
	for _, found := range pathsOutside(t, os.DirFS(root(t))) {
		t.Errorf("%s leaves the tree: copy what is needed into it", found)
	}
}

func TestPathsOutside(t *testing.T) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "outside.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := txtar.FS(archive)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(strings.ReplaceAll(string(archive.Comment), ": ", ":"))
	var got []string
	for _, found := range pathsOutside(t, tree) {
		got = append(got, strings.ReplaceAll(found, ": ", ":"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths that leave the tree (-want +got):\n%s", diff)
	}
}

// pathsOutside lists "file: path" for each path that leaves the tree.
func pathsOutside(t *testing.T, tree fs.FS) []string {
	t.Helper()
	var found []string
	add := func(file string, paths []string, leaves func(string) bool) {
		for _, p := range paths {
			if leaves(p) {
				found = append(found, file+": "+p)
			}
		}
	}
	walkSources(t, tree, func(file string, text []byte) {
		dir := path.Dir(file)
		switch {
		case strings.HasSuffix(file, "_test.go"): // tests run in the folder of their package
			add(file, pathsInGo(t, file, text), func(p string) bool { return isOutside(path.Join(dir, p)) })
		case strings.HasSuffix(file, ".go"): // run in any folder above
			add(file, pathsInGo(t, file, text), func(p string) bool { return !isInSomeParent(tree, dir, p) })
		case path.Base(file) == "Makefile", strings.HasSuffix(file, ".sh"), strings.HasPrefix(string(text), "#!"):
			paths := slices.Concat(matches(upward, string(text)), matches(upwardOfFolder, string(text)))
			add(file, paths, func(p string) bool { return isOutside(path.Join(dir, p)) })
		}
	})
	return found
}

func isOutside(p string) bool { return p == ".." || strings.HasPrefix(p, "../") }

// isInSomeParent reports whether the path exists in the tree, relative to the folder or to one of its parents.
func isInSomeParent(tree fs.FS, dir, p string) bool {
	for {
		if target := path.Join(dir, p); !isOutside(target) {
			if _, err := fs.Stat(tree, target); err == nil {
				return true
			}
		}
		if dir == "." {
			return false
		}
		dir = path.Dir(dir)
	}
}

// walkSources visits all text files of the tree, except for test data and build results.
func walkSources(t *testing.T, tree fs.FS, visit func(file string, text []byte)) {
	t.Helper()
	err := fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "build", "testdata"}, file),
			entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err == nil {
			visit(file, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// pathsInGo returns the paths that begin with ".." in the strings of a Go file, and such paths that calls of
// Join build.
func pathsInGo(t *testing.T, name string, text []byte) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if joined := joinedPath(n); joined != "" {
				found = append(found, matches(upward, joined)...)
				return false
			}
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				found = append(found, matches(upward, s)...)
			}
		}
		return true
	})
	return found
}

// joinedPath returns the constant start of the path that a call such as filepath.Join("..", "a", b) builds. It returns
// "" for other calls.
func joinedPath(call *ast.CallExpr) string {
	if name, ok := call.Fun.(*ast.SelectorExpr); !ok || name.Sel.Name != "Join" {
		return ""
	}
	var elements []string
	for _, arg := range call.Args {
		literal, ok := arg.(*ast.BasicLit)
		if !ok {
			break
		}
		s, err := strconv.Unquote(literal.Value)
		if err != nil {
			break
		}
		elements = append(elements, s)
	}
	return path.Join(elements...)
}

func matches(pattern *regexp.Regexp, text string) []string {
	var found []string
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, filepath.ToSlash(m[1]))
	}
	return found
}
