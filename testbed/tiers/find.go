// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

var testName = regexp.MustCompile(`^(Test|Fuzz|Example)([^a-z]\w*)?$`)

// findTests returns the tests of all modules below root, in the order of their folders and names. The tier of those
// in a file with the build tag of a tier is set.
func findTests(root string) ([]Entry, error) {
	var found []Entry
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && name != "." || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		tests, err := testsOf(path.Dir(name), name, text)
		found = append(found, tests...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find tests: %w", err)
	}
	slices.SortFunc(found, func(a, b Entry) int { return strings.Compare(a.String(), b.String()) })
	return found, nil
}

// testsOf returns the tests of one file.
func testsOf(folder, name string, text []byte) ([]Entry, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	tier, err := tierOfTags(file)
	if err != nil {
		return nil, fmt.Errorf("read build tags of %s: %w", name, err)
	}
	var found []Entry
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Recv == nil && function.Name.Name != "TestMain" && testName.MatchString(function.Name.Name) {
			found = append(found, Entry{Folder: folder, Name: function.Name.Name, Tier: tier})
		}
	}
	return found, nil
}

// tierOfTags returns the tier whose build tag the file needs; empty if it needs none.
func tierOfTags(file *ast.File) (Tier, error) {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if !constraint.IsGoBuild(comment.Text) || comment.Pos() > file.Package {
				continue
			}
			expression, err := constraint.Parse(comment.Text)
			if err != nil {
				return "", err
			}
			if tier := tierOf(expression); tier != "" {
				return tier, nil
			}
		}
	}
	return "", nil
}

// tierOf returns the tier whose build tag makes the expression true.
func tierOf(expression constraint.Expr) Tier {
	here := func(tag string) bool { return tag == runtime.GOOS || tag == runtime.GOARCH }
	for _, tier := range []Tier{Long, Lint} {
		with := func(tag string) bool { return here(tag) || tag == string(tier) }
		if expression.Eval(with) && !expression.Eval(here) {
			return tier
		}
	}
	return ""
}
