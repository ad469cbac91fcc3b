// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gomarkers reads how an operator's kinds are described to people from the markers
// of Operator SDK on their Go types:
//
//	// +operator-sdk:csv:customresourcedefinitions:displayName="Snack",resources={{Deployment,v1,""}}
//	type Snack struct {
//
//	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Size"
//	Size int32 `json:"size"`
//
// The Go toolchain has to be there, since it finds the files of a package.
package gomarkers

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// ErrSource says that Go sources cannot be read, or that a marker is not written as it must be.
var ErrSource = errors.New("invalid API sources")

// Descriptions are those of kinds, by kind and version. Their names are not known.
type Descriptions []operatorsv1alpha1.CRDDescription

const (
	markerName = "operator-sdk:csv:customresourcedefinitions"
	typeSpec   = "spec"
	typeStatus = "status"
)

// kindMarker is the marker of a type.
type kindMarker struct {
	DisplayName string     `marker:"displayName,optional"`
	Resources   [][]string `marker:"resources,optional"`
	Order       *int       `marker:"order,optional"`
}

// fieldMarker is the marker of a field.
type fieldMarker struct {
	Type         string   `marker:"type"`
	DisplayName  string   `marker:"displayName,optional"`
	XDescriptors []string `marker:"xDescriptors,optional"`
	Order        *int     `marker:"order,optional"`
}

// Read reads the packages in a folder and in those below it. A package has the name of the
// API version. Errors wrap ErrSource.
func Read(dir string) (Descriptions, error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	packages, err := loader.LoadRoots(whole + "/...")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	registry := &markers.Registry{}
	if err := errors.Join(registry.Define(markerName, markers.DescribesType, kindMarker{}),
		registry.Define(markerName, markers.DescribesField, fieldMarker{})); err != nil {
		return nil, fmt.Errorf("define markers: %w", err)
	}
	collector := &markers.Collector{Registry: registry}
	var out Descriptions
	for _, p := range packages {
		found, err := readPackage(collector, p)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(packages) == 0 || len(out) == 0 {
		return nil, fmt.Errorf("%w: no type in %s has a marker +%s", ErrSource, dir, markerName)
	}
	return out, nil
}

func readPackage(collector *markers.Collector, p *loader.Package) (Descriptions, error) {
	types := map[string]*markers.TypeInfo{}
	if err := markers.EachType(collector, p, func(t *markers.TypeInfo) { types[t.Name] = t }); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	for _, e := range p.Errors {
		return nil, fmt.Errorf("%w: %s", ErrSource, e.Error())
	}
	var out Descriptions
	for _, name := range slices.Sorted(maps.Keys(types)) {
		w := &walk{types: types}
		if d, ok := w.describe(types[name]); ok {
			d.Version = p.Name
			out = append(out, d)
		}
		if w.err != nil {
			return nil, w.err
		}
	}
	return out, nil
}

// walk collects the descriptors of one kind.
type walk struct {
	types map[string]*markers.TypeInfo
	// within are the types that lead to the present one: a type may contain itself.
	within []string
	found  []found
	err    error
}

// found is a descriptor. Those without an order come last.
type found struct {
	kind, path, text string
	marker           fieldMarker
}

// describe describes a kind: a struct with metadata and a field Spec or Status.
func (w *walk) describe(t *markers.TypeInfo) (operatorsv1alpha1.CRDDescription, bool) {
	d := operatorsv1alpha1.CRDDescription{Kind: t.Name, Description: oneLine(t.Doc)}
	if !isKind(t) {
		return d, false
	}
	for _, value := range t.Markers[markerName] {
		m := value.(kindMarker)
		d.DisplayName = cmp.Or(d.DisplayName, m.DisplayName)
		d.Resources = append(d.Resources, w.resources(t.Name, m)...)
	}
	for _, f := range t.Fields {
		if kind := strings.ToLower(f.Name); kind == typeSpec || kind == typeStatus {
			w.enter(f.RawField.Type, kind, "")
		}
	}
	slices.SortStableFunc(w.found, func(a, b found) int {
		return cmp.Or(cmp.Compare(orderOf(a), orderOf(b)), strings.Compare(a.path, b.path))
	})
	w.addDescriptors(&d)
	return d, len(w.found) > 0 || len(t.Markers[markerName]) > 0
}

// resources are those that a marker of a type names.
func (w *walk) resources(kind string, m kindMarker) []operatorsv1alpha1.APIResourceReference {
	var out []operatorsv1alpha1.APIResourceReference
	for _, r := range m.Resources {
		if len(r) < 2 || len(r) > 3 {
			w.err = fmt.Errorf("%w: type %s: a resource is {kind,version} or {kind,version,name}, not %v", ErrSource,
				kind, r)
			return nil
		}
		reference := operatorsv1alpha1.APIResourceReference{Kind: r[0], Version: r[1]}
		if len(r) == 3 {
			reference.Name = r[2]
		}
		out = append(out, reference)
	}
	return out
}

func (w *walk) addDescriptors(d *operatorsv1alpha1.CRDDescription) {
	for _, f := range w.found {
		if f.kind == typeSpec {
			d.SpecDescriptors = append(d.SpecDescriptors, operatorsv1alpha1.SpecDescriptor{Path: f.path,
				DisplayName: f.marker.DisplayName, Description: f.text, XDescriptors: f.marker.XDescriptors})
		} else {
			d.StatusDescriptors = append(d.StatusDescriptors, operatorsv1alpha1.StatusDescriptor{Path: f.path,
				DisplayName: f.marker.DisplayName, Description: f.text, XDescriptors: f.marker.XDescriptors})
		}
	}
}

// isKind tells whether objects of a type have a kind and metadata.
func isKind(t *markers.TypeInfo) bool {
	embeds := func(name string) bool {
		return slices.ContainsFunc(t.Fields, func(f markers.FieldInfo) bool {
			s, ok := f.RawField.Type.(*ast.SelectorExpr)
			return f.Name == "" && ok && s.Sel.Name == name
		})
	}
	return embeds("TypeMeta") && embeds("ObjectMeta")
}

func orderOf(f found) int {
	if f.marker.Order == nil {
		return int(^uint(0) >> 1)
	}
	return *f.marker.Order
}

// enter collects the descriptors of the fields of a type, if it is a struct of this package,
// or a pointer to one, or a list of them.
func (w *walk) enter(expression ast.Expr, kind, path string) {
	switch e := expression.(type) {
	case *ast.StarExpr:
		w.enter(e.X, kind, path)
	case *ast.ArrayType:
		w.enter(e.Elt, kind, path+"[0]")
	case *ast.Ident:
		t := w.types[e.Name]
		if t == nil || slices.Contains(w.within, e.Name) {
			return
		}
		w.within = append(w.within, e.Name)
		for _, f := range t.Fields {
			w.field(f, kind, path)
		}
		if len(t.Fields) == 0 { // such as a list with a name
			w.enter(t.RawSpec.Type, kind, path)
		}
		w.within = w.within[:len(w.within)-1]
	}
}

func (w *walk) field(f markers.FieldInfo, kind, path string) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case name == "-":
		return
	case name == "" && (f.Name == "" || options == "inline"):
		w.enter(f.RawField.Type, kind, path)
		return
	}
	name = cmp.Or(name, f.Name)
	here := strings.TrimPrefix(path+"."+name, ".")
	for _, value := range f.Markers[markerName] {
		m := value.(fieldMarker)
		if m.Type != typeSpec && m.Type != typeStatus {
			w.err = fmt.Errorf("%w: field %s: the type of a descriptor is spec or status, not %q", ErrSource, here,
				m.Type)
		}
		if m.Type != kind {
			continue
		}
		var x []string
		for _, d := range m.XDescriptors {
			x = append(x, strings.Split(d, ",")...)
		}
		m.XDescriptors = x
		m.DisplayName = cmp.Or(m.DisplayName, spaced(f.Name))
		w.found = append(w.found, found{kind: kind, path: here, text: oneLine(f.Doc), marker: m})
	}
	w.enter(f.RawField.Type, kind, here)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// spaced writes MaxSize as Max Size, and leaves abbreviations together.
func spaced(name string) string {
	var out strings.Builder
	letters := []rune(name)
	isUpper := func(i int) bool { return letters[i] >= 'A' && letters[i] <= 'Z' }
	for i, letter := range letters {
		if i > 0 && isUpper(i) && (!isUpper(i-1) || i+1 < len(letters) && !isUpper(i+1)) {
			out.WriteByte(' ')
		}
		out.WriteRune(letter)
	}
	return out.String()
}
