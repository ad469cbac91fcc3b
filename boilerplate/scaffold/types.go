// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ErrTypes says that an operator cannot be made for the Go types that exist.
var ErrTypes = errors.New("invalid API types")

// Types are the Go types of an API that exist already.
type Types struct {
	Group, Version, Kind string
	Plural               string // empty where the types do not say it
	Cluster              bool
	ObservedGeneration   bool              // the status has such a field
	Files                map[string][]byte // are copied; none if the package is imported
	// Import is the package in another module, in a version of it.
	Import, Module, ModuleVersion string
}

// ReadTypes reads the package in a folder. Kind may be empty if it has one kind alone. Errors wrap ErrTypes.
func ReadTypes(dir, kind string) (*Types, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("%w: there are no Go files in %s", ErrTypes, dir)
	}
	p := &typesPackage{set: token.NewFileSet(), structs: map[string]*ast.StructType{}, markers: map[string]string{}}
	t := &Types{Files: map[string][]byte{}}
	for _, name := range names {
		matches, err := build.Default.MatchFile(dir, filepath.Base(name))
		if err == nil && !matches || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTypes, err)
		}
		t.Files[filepath.Base(name)] = text
		if err := p.read(name, text); err != nil {
			return nil, err
		}
	}
	return t, p.describe(t, dir, kind)
}

// typesPackage is what was read of a package.
type typesPackage struct {
	set         *token.FileSet
	name, group string
	structs     map[string]*ast.StructType
	// markers are the comments above each type.
	markers map[string]string
	// registers says that the package can be added to a scheme.
	registers bool
}

var groupName = regexp.MustCompile(`(?m)^//\s*\+groupName=(\S+)`)

func (p *typesPackage) read(name string, text []byte) error {
	f, err := parser.ParseFile(p.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTypes, err)
	}
	p.name = f.Name.Name
	if found := groupName.FindSubmatch(text); found != nil {
		p.group = string(found[1])
	}
	end := f.Name.End()
	for _, declaration := range f.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			p.registers = p.registers || d.Recv == nil && d.Name.Name == "AddToScheme"
		case *ast.GenDecl:
			above := comments(f, end, d.Pos()+1)
			for _, spec := range d.Specs {
				p.readSpec(spec, above)
			}
		}
		end = declaration.End()
	}
	return nil
}

// comments are all comments between two positions: markers need not be in the comment that is right above a type.
func comments(f *ast.File, from, to token.Pos) string {
	var out strings.Builder
	for _, group := range f.Comments {
		if group.Pos() >= from && group.Pos() < to {
			for _, c := range group.List {
				out.WriteString(c.Text + "\n")
			}
		}
	}
	return out.String()
}

func (p *typesPackage) readSpec(spec ast.Spec, above string) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		p.registers = p.registers || slices.ContainsFunc(s.Names, func(n *ast.Ident) bool {
			return n.Name == "AddToScheme"
		})
	case *ast.TypeSpec:
		if structure, ok := s.Type.(*ast.StructType); ok && s.TypeParams == nil {
			p.structs[s.Name.Name], p.markers[s.Name.Name] = structure, above
		}
	}
}

var (
	clusterScope = regexp.MustCompile(`\+kubebuilder:resource:.*\bscope="?Cluster\b`)
	pluralName   = regexp.MustCompile(`\+kubebuilder:resource:.*\bpath="?([a-z0-9-]+)`)
	hasStatus    = regexp.MustCompile(`\+kubebuilder:subresource:status\b`)
	// conditionList is how Go writes the type of a list of conditions.
	conditionList = regexp.MustCompile(`^\[\]\w+\.Condition$`)
)

// describe fills in what is known of the kind.
func (p *typesPackage) describe(t *Types, dir, kind string) error {
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(p.structs)) {
		if p.fieldOf(p.structs[name], "TypeMeta") != nil && p.fieldOf(p.structs[name], "ObjectMeta") != nil {
			kinds = append(kinds, name)
		}
	}
	if kind == "" && len(kinds) == 1 {
		kind = kinds[0]
	}
	switch {
	case len(kinds) == 0:
		return fmt.Errorf("%w: no type in %s has TypeMeta and ObjectMeta", ErrTypes, dir)
	case kind == "":
		return fmt.Errorf("%w: %s has several kinds (%s): choose one with --kind", ErrTypes, dir,
			strings.Join(kinds, ", "))
	case !slices.Contains(kinds, kind):
		return fmt.Errorf("%w: %s has no kind %s; it has %s", ErrTypes, dir, kind, strings.Join(kinds, ", "))
	case p.group == "":
		return fmt.Errorf("%w: no comment in %s has the marker +groupName", ErrTypes, dir)
	case !p.registers:
		return fmt.Errorf("%w: %s declares no AddToScheme, with which programs learn of its kinds", ErrTypes, dir)
	}
	t.Kind, t.Group, t.Version = kind, p.group, p.name
	t.Cluster = clusterScope.MatchString(p.markers[kind])
	if found := pluralName.FindStringSubmatch(p.markers[kind]); found != nil {
		t.Plural = found[1]
	}
	return p.describeStatus(t)
}

func (p *typesPackage) describeStatus(t *Types) error {
	name, _ := p.fieldOf(p.structs[t.Kind], "Status").(*ast.Ident)
	if name == nil || p.fieldOf(p.structs[t.Kind], "Spec") == nil || p.structs[name.Name] == nil {
		return fmt.Errorf("%w: kind %s has no fields Spec and Status with types of the same package", ErrTypes, t.Kind)
	}
	status := p.structs[name.Name]
	switch {
	case !conditionList.MatchString(types.ExprString(p.fieldOf(status, "Conditions"))):
		return fmt.Errorf("%w: %s has no field Conditions []metav1.Condition; add one, in which the operator reports",
			ErrTypes, name.Name)
	case !hasStatus.MatchString(p.markers[t.Kind]):
		return fmt.Errorf("%w: kind %s has no marker +kubebuilder:subresource:status; add it, since a status that is "+
			"no subresource can be written by users", ErrTypes, t.Kind)
	}
	t.ObservedGeneration = p.fieldOf(status, "ObservedGeneration") != nil
	return nil
}

// fieldOf returns the type of a field, or of an embedded type, by its name; nil without one.
func (p *typesPackage) fieldOf(s *ast.StructType, name string) ast.Expr {
	const deepest = 8 // types that embed each other are refused by Go later
	return p.fieldBelow(s, name, deepest)
}

func (p *typesPackage) fieldBelow(s *ast.StructType, name string, depth int) ast.Expr {
	for _, field := range s.Fields.List {
		if slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.Name == name }) {
			return field.Type
		}
		imported, _ := field.Type.(*ast.SelectorExpr)
		own, _ := field.Type.(*ast.Ident)
		switch {
		case len(field.Names) > 0:
		case imported != nil && imported.Sel.Name == name:
			return imported
		case own != nil && p.structs[own.Name] != nil && depth > 0:
			if found := p.fieldBelow(p.structs[own.Name], name, depth-1); found != nil {
				return found
			}
		}
	}
	return nil
}

// FetchTypes reads a package of another module, PATH or PATH@VERSION, which the go command downloads. Errors about the
// types wrap ErrTypes.
func FetchTypes(ctx context.Context, name, kind string) (*Types, error) {
	dir, err := os.MkdirTemp("", "bellwether-types-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	importPath, _, _ := strings.Cut(name, "@")
	var out, problems bytes.Buffer
	for _, args := range [][]string{{"mod", "init", "example.com/types"}, {"get", name},
		{"list", "-json=Dir,Module", importPath}} {
		out.Reset()
		cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the package is what the user named
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), "GOWORK=off"), &out, &problems
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, problems.String())
		}
	}
	var listed struct {
		Dir    string
		Module *struct{ Path, Version string }
	}
	if err := json.Unmarshal(out.Bytes(), &listed); err != nil || listed.Module == nil {
		return nil, fmt.Errorf("%w: %s is not a package of a module", ErrTypes, importPath)
	}
	t, err := ReadTypes(listed.Dir, kind)
	if err != nil {
		return nil, err
	}
	t.Files, t.Import, t.Module, t.ModuleVersion = nil, importPath, listed.Module.Path, listed.Module.Version
	return t, nil
}
