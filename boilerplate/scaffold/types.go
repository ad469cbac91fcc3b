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

// ErrTypes means that the existing Go types cannot be used for an operator.
var ErrTypes = errors.New("invalid API types")

// Types are existing Go types of an API.
type Types struct {
	Group, Version, Kind string
	Plural               string // empty if the types do not define it
	Cluster              bool
	ObservedGeneration   bool              // the status has this field
	Files                map[string][]byte // the files to copy; empty if the package is imported
	// Import is the path of a package in another module. Module and ModuleVersion identify the module.
	Import, Module, ModuleVersion string
}

// ReadTypes reads the package in a folder. Kind can be empty if the package has only one kind. Errors wrap ErrTypes.
func ReadTypes(dir, kind string) (*Types, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("%w: there are no Go files in %s", ErrTypes, dir)
	}
	p := &typesPackage{set: token.NewFileSet(), structs: map[string]*ast.StructType{}, markers: map[string]string{}}
	t := &Types{Files: map[string][]byte{}}
	for _, name := range names {
		matches, err := build.Default.MatchFile(dir, filepath.Base(name))
		isExcluded := err == nil && !matches // by a build constraint
		if isExcluded || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTypes, err)
		}
		t.Files[filepath.Base(name)] = text
		if err := p.parseFile(name, text); err != nil {
			return nil, err
		}
	}
	return t, p.setKindFields(t, dir, kind)
}

// typesPackage is the content of a package.
type typesPackage struct {
	set         *token.FileSet
	name, group string
	structs     map[string]*ast.StructType
	// markers are the comments above each type.
	markers map[string]string
	// registers is true if the package declares AddToScheme, which adds its kinds to a scheme.
	registers bool
}

var groupPattern = regexp.MustCompile(`(?m)^//\s*\+groupName=(\S+)`)

// parseFile adds the declarations of a file, and sets the name and the API group of the package.
func (p *typesPackage) parseFile(name string, text []byte) error {
	f, err := parser.ParseFile(p.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTypes, err)
	}
	p.name = f.Name.Name
	if found := groupPattern.FindSubmatch(text); found != nil {
		p.group = string(found[1])
	}
	lastEnd := f.Name.End() // of the previous declaration
	for _, declaration := range f.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			isRegistration := d.Recv == nil && d.Name.Name == "AddToScheme"
			p.registers = p.registers || isRegistration
		case *ast.GenDecl:
			comments := joinComments(f, lastEnd, d.Pos()+1)
			for _, spec := range d.Specs {
				p.readSpec(spec, comments)
			}
		}
		lastEnd = declaration.End()
	}
	return nil
}

// joinComments returns all comments between two positions, because markers need not be directly above a type.
func joinComments(f *ast.File, from, to token.Pos) string {
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

// readSpec adds a type, or records AddToScheme. comments are the comments above the declaration.
func (p *typesPackage) readSpec(spec ast.Spec, comments string) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		p.registers = p.registers || slices.ContainsFunc(s.Names, func(n *ast.Ident) bool {
			return n.Name == "AddToScheme"
		})
	case *ast.TypeSpec:
		if structure, ok := s.Type.(*ast.StructType); ok && s.TypeParams == nil {
			p.structs[s.Name.Name], p.markers[s.Name.Name] = structure, comments
		}
	}
}

var (
	clusterPattern = regexp.MustCompile(`\+kubebuilder:resource:.*\bscope="?Cluster\b`)
	pluralPattern  = regexp.MustCompile(`\+kubebuilder:resource:.*\bpath="?([a-z0-9-]+)`)
	statusPattern  = regexp.MustCompile(`\+kubebuilder:subresource:status\b`)
	// conditionsPattern matches the Go type of a list of conditions.
	conditionsPattern = regexp.MustCompile(`^\[\]\w+\.Condition$`)
)

// setKindFields finds the kind and sets the fields of t about it. kind can be empty if the package has one kind. It
// returns an error if the package has no such kind, no group or no AddToScheme, or if the status of the kind is not
// suitable.
func (p *typesPackage) setKindFields(t *Types, dir, kind string) error {
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(p.structs)) {
		if p.findField(p.structs[name], "TypeMeta") != nil && p.findField(p.structs[name], "ObjectMeta") != nil {
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
	t.Cluster = clusterPattern.MatchString(p.markers[kind])
	if found := pluralPattern.FindStringSubmatch(p.markers[kind]); found != nil {
		t.Plural = found[1]
	}
	return p.readStatus(t)
}

// readStatus checks that the kind has a spec and a status with conditions, and that the status is a subresource. It
// sets t.ObservedGeneration.
func (p *typesPackage) readStatus(t *Types) error {
	name, _ := p.findField(p.structs[t.Kind], "Status").(*ast.Ident)
	if name == nil || p.findField(p.structs[t.Kind], "Spec") == nil || p.structs[name.Name] == nil {
		return fmt.Errorf("%w: kind %s has no fields Spec and Status with types of the same package", ErrTypes, t.Kind)
	}
	status := p.structs[name.Name]
	switch {
	case !conditionsPattern.MatchString(types.ExprString(p.findField(status, "Conditions"))):
		return fmt.Errorf("%w: %s has no field Conditions []metav1.Condition; add one, in which the operator reports",
			ErrTypes, name.Name)
	case !statusPattern.MatchString(p.markers[t.Kind]):
		return fmt.Errorf("%w: kind %s has no marker +kubebuilder:subresource:status; add it, since a status that is "+
			"no subresource can be written by users", ErrTypes, t.Kind)
	}
	t.ObservedGeneration = p.findField(status, "ObservedGeneration") != nil
	return nil
}

// findField returns the type of the field, or of the embedded type, with the given name; nil if there is none.
func (p *typesPackage) findField(s *ast.StructType, name string) ast.Expr {
	const maxDepth = 8 // prevents an endless recursion if types embed each other; Go refuses such types later
	return p.findFieldBelow(s, name, maxDepth)
}

// findFieldBelow returns the type of the field, or of the embedded type, with the given name; nil if there is none.
// depth is the maximum number of nested embedded types.
func (p *typesPackage) findFieldBelow(s *ast.StructType, name string, depth int) ast.Expr {
	for _, field := range s.Fields.List {
		if slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.Name == name }) {
			return field.Type
		}
		imported, _ := field.Type.(*ast.SelectorExpr)
		local, _ := field.Type.(*ast.Ident)
		switch {
		case len(field.Names) > 0: // a field with another name
		case imported != nil && imported.Sel.Name == name:
			return imported
		case local != nil && p.structs[local.Name] != nil && depth > 0:
			if found := p.findFieldBelow(p.structs[local.Name], name, depth-1); found != nil {
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
		cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the user named the package
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
