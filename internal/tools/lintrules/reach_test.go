// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
)

// maxObserving is the maximum number of functions of this module that Engine.Observe of OLM v0 may reach. Observe only
// reads; package plan decides. Lower the maximum when the number falls.
const maxObserving = 10

// TestObserveOnlyReads limits the number of functions that Engine.Observe reaches.
func TestObserveOnlyReads(t *testing.T) {
	const engine = module + "/engines/olmv0"
	reached := readReferences(t, engine).reach("(*" + engine + ".Engine).Observe")
	if len(reached) == 0 || len(reached) > maxObserving {
		t.Errorf("Engine.Observe reaches %d functions, and may reach %d. Decide in engines/olmv0/plan:\n%s",
			len(reached), maxObserving, strings.Join(reached, "\n"))
	}
	if len(reached) < maxObserving {
		t.Errorf("Engine.Observe reaches %d functions: set maxObserving to that", len(reached))
	}
}

// references are the functions and variables that each function of a module refers to, because it calls them or passes
// them on. A method of an interface refers to the methods of all types of the module that implement the interface.
// Calls of functions in fields are not followed.
type references map[types.Object][]types.Object

// checked is a package of a module with its types.
type checked struct {
	files []*ast.File
	types *types.Package
	info  *types.Info
}

func referencesOf(all []checked) references {
	out := references{}
	for _, pkg := range all {
		for _, file := range pkg.files {
			for _, d := range file.Decls {
				out.addDeclaration(pkg.info, d)
			}
		}
	}
	for _, pkg := range all {
		out.addImplementations(pkg.types, all)
	}
	return out
}

func (r references) addDeclaration(info *types.Info, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		r.add(info, info.Defs[d.Name], d)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			values, isValue := spec.(*ast.ValueSpec)
			for i := 0; isValue && i < len(values.Names); i++ {
				r.add(info, info.Defs[values.Names[i]], values)
			}
		}
	}
}

// add adds what a declaration refers to.
func (r references) add(info *types.Info, from types.Object, declaration ast.Node) {
	r[from] = append(r[from], nil...)
	ast.Inspect(declaration, func(n ast.Node) bool {
		name, isName := n.(*ast.Ident)
		if !isName {
			return true
		}
		switch to := info.Uses[name].(type) {
		case *types.Func:
			r[from] = append(r[from], to.Origin())
		case *types.Var:
			if to.Parent() != nil && to.Pkg() != nil && to.Parent() == to.Pkg().Scope() {
				r[from] = append(r[from], to)
			}
		}
		return true
	})
}

// addImplementations adds references from the methods of a package's interfaces to the methods of the types that
// implement the interfaces.
func (r references) addImplementations(pkg *types.Package, all []checked) {
	for _, name := range pkg.Scope().Names() {
		defined, isType := pkg.Scope().Lookup(name).(*types.TypeName)
		if !isType || !types.IsInterface(defined.Type()) {
			continue
		}
		methods := defined.Type().Underlying().(*types.Interface)
		for _, implementing := range implementingTypes(methods, all) {
			for i := range methods.NumMethods() {
				m := methods.Method(i)
				object, _, _ := types.LookupFieldOrMethod(implementing, true, m.Pkg(), m.Name())
				if f, isFunc := object.(*types.Func); isFunc {
					r[m] = append(r[m], f.Origin())
				}
			}
		}
	}
}

func implementingTypes(methods *types.Interface, all []checked) []types.Type {
	var out []types.Type
	for _, pkg := range all {
		for _, name := range pkg.types.Scope().Names() {
			defined, isType := pkg.types.Scope().Lookup(name).(*types.TypeName)
			if !isType || types.IsInterface(defined.Type()) || methods.NumMethods() == 0 {
				continue
			}
			if pointer := types.NewPointer(defined.Type()); types.Implements(pointer, methods) {
				out = append(out, pointer)
			}
		}
	}
	return out
}

// reach returns the sorted functions of the module that are reached from the function with a full name. The function
// itself and methods of interfaces are not included.
func (r references) reach(from string) []string {
	seen := map[types.Object]bool{}
	var queue []types.Object
	for object := range r {
		if f, isFunc := object.(*types.Func); isFunc && f.FullName() == from {
			queue = append(queue, object)
		}
	}
	names := map[string]bool{}
	for len(queue) > 0 {
		object := queue[0]
		queue = queue[1:]
		if seen[object] {
			continue
		}
		seen[object] = true
		queue = append(queue, r[object]...)
		f, isFunc := object.(*types.Func)
		if _, isOurs := r[object]; isFunc && isOurs && !isInterfaceMethod(f) && f.FullName() != from {
			names[f.FullName()] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func isInterfaceMethod(f *types.Func) bool {
	receiver := f.Signature().Recv()
	return receiver != nil && types.IsInterface(receiver.Type())
}

// readReferences reads a package with all packages of this module that it imports.
func readReferences(t *testing.T, pkg string) references {
	t.Helper()
	load := func(mode packages.LoadMode, patterns ...string) []*packages.Package {
		found, err := packages.Load(&packages.Config{Mode: mode, Dir: root(t), Context: t.Context()}, patterns...)
		if err != nil {
			t.Fatal(err)
		}
		if packages.PrintErrors(found) > 0 {
			t.Fatalf("cannot load %s", patterns)
		}
		return found
	}
	var ours []string
	packages.Visit(load(packages.NeedName|packages.NeedImports|packages.NeedDeps, pkg), nil,
		func(p *packages.Package) {
			if strings.HasPrefix(p.PkgPath, module+"/") {
				ours = append(ours, p.PkgPath)
			}
		})
	var all []checked
	for _, p := range load(packages.NeedName|packages.NeedImports|packages.NeedFiles|packages.NeedCompiledGoFiles|
		packages.NeedTypes|packages.NeedTypesSizes|packages.NeedSyntax|packages.NeedTypesInfo, ours...) {
		all = append(all, checked{p.Syntax, p.Types, p.TypesInfo})
	}
	return referencesOf(all)
}

// TestReachable checks the counter itself.
func TestReachable(t *testing.T) {
	const source = `package p

import "strings"

type Store interface{ Load() string }

type file struct{ name func() string }

func (f *file) Load() string { return f.name() + byVariable["a"]() }
func (f *file) Save()        {}

type list[T any] []T

func (l list[T]) first() T { return l[0] }

var byVariable = map[string]func() string{"a": named}

func named() string  { return "" }
func handed(s string) string { return s }
func unused()        { unused() }
func each(f func(string) string) string { return strings.Map(nil, f("")) }

func Start(s Store) string {
	do := func() string { return list[string]{"a"}.first() }
	return s.Load() + each(handed) + do()
}
`
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{Importer: importer.ForCompiler(files, "source", nil)}).Check("p", files,
		[]*ast.File{file}, info)
	if err != nil {
		t.Fatal(err)
	}
	got := referencesOf([]checked{{[]*ast.File{file}, pkg, info}}).reach("p.Start")
	want := []string{"(*p.file).Load", "(p.list[T]).first", "p.each", "p.handed", "p.named"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reached (-want +got):\n%s", diff)
	}
}
