// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

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

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// ErrSource means that Go sources cannot be read, or that a marker is invalid.
var ErrSource = errors.New("invalid API sources")

// Descriptions are descriptions of kinds, by kind and version. The names of their CRDs are empty.
type Descriptions []operatorsv1alpha1.CRDDescription

const (
	markerName = "operator-sdk:csv:customresourcedefinitions"
	typeSpec   = "spec"
	typeStatus = "status"
)

// kindMarker is the content of a marker on a type.
type kindMarker struct {
	DisplayName string     `marker:"displayName,optional"`
	Resources   [][]string `marker:"resources,optional"`
	Order       *int       `marker:"order,optional"`
}

// fieldMarker is the content of a marker on a field.
type fieldMarker struct {
	Type         string   `marker:"type"`
	DisplayName  string   `marker:"displayName,optional"`
	XDescriptors []string `marker:"xDescriptors,optional"`
	Order        *int     `marker:"order,optional"`
}

// ReadMarkers reads the markers in all Go packages in a folder and below. The name of a package is the API version.
// Errors wrap ErrSource.
func ReadMarkers(dir string) (Descriptions, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	packages, err := loader.LoadRoots(absolute + "/...")
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

// readPackage returns the descriptions of the kinds in a package.
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
		w := &descriptorCollector{types: types}
		if d, ok := w.describeKind(types[name]); ok {
			d.Version = p.Name
			out = append(out, d)
		}
		if w.err != nil {
			return nil, w.err
		}
	}
	return out, nil
}

// descriptorCollector collects the descriptors of one kind.
type descriptorCollector struct {
	types map[string]*markers.TypeInfo
	// parents are the types on the path to the current type. They prevent an endless recursion, because a type can
	// contain itself.
	parents     []string
	descriptors []descriptor
	err         error
}

// descriptor describes a field. Descriptors without an order come last.
type descriptor struct {
	kind, path, text string
	marker           fieldMarker
}

// describeKind returns the description of a type and true if the type is a kind and it or its fields have markers.
func (w *descriptorCollector) describeKind(t *markers.TypeInfo) (operatorsv1alpha1.CRDDescription, bool) {
	d := operatorsv1alpha1.CRDDescription{Kind: t.Name, Description: phrase.OneLine(t.Doc)}
	if !isKind(t) {
		return d, false
	}
	for _, value := range t.Markers[markerName] {
		m := value.(kindMarker)
		d.DisplayName = cmp.Or(d.DisplayName, m.DisplayName)
		d.Resources = append(d.Resources, w.readResources(t.Name, m)...)
	}
	for _, f := range t.Fields {
		if kind := strings.ToLower(f.Name); kind == typeSpec || kind == typeStatus {
			w.collectType(f.RawField.Type, kind, "")
		}
	}
	slices.SortStableFunc(w.descriptors, func(a, b descriptor) int {
		return cmp.Or(cmp.Compare(readOrder(a), readOrder(b)), strings.Compare(a.path, b.path))
	})
	w.addDescriptors(&d)
	return d, len(w.descriptors) > 0 || len(t.Markers[markerName]) > 0
}

// readResources returns the resources that the marker of a type names.
func (w *descriptorCollector) readResources(kind string, m kindMarker) []operatorsv1alpha1.APIResourceReference {
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

// addDescriptors adds the collected descriptors to a description.
func (w *descriptorCollector) addDescriptors(d *operatorsv1alpha1.CRDDescription) {
	for _, f := range w.descriptors {
		if f.kind == typeSpec {
			d.SpecDescriptors = append(d.SpecDescriptors, operatorsv1alpha1.SpecDescriptor{Path: f.path,
				DisplayName: f.marker.DisplayName, Description: f.text, XDescriptors: f.marker.XDescriptors})
		} else {
			d.StatusDescriptors = append(d.StatusDescriptors, operatorsv1alpha1.StatusDescriptor{Path: f.path,
				DisplayName: f.marker.DisplayName, Description: f.text, XDescriptors: f.marker.XDescriptors})
		}
	}
}

// isKind reports whether a type embeds TypeMeta and ObjectMeta, as API kinds do.
func isKind(t *markers.TypeInfo) bool {
	embeds := func(name string) bool {
		return slices.ContainsFunc(t.Fields, func(f markers.FieldInfo) bool {
			s, ok := f.RawField.Type.(*ast.SelectorExpr)
			return f.Name == "" && ok && s.Sel.Name == name
		})
	}
	return embeds("TypeMeta") && embeds("ObjectMeta")
}

// readOrder returns the order of a descriptor; the maximum if it has none.
func readOrder(f descriptor) int {
	if f.marker.Order == nil {
		return int(^uint(0) >> 1)
	}
	return *f.marker.Order
}

// collectType collects the descriptors of the fields of a type. The type must be a struct of this package, a pointer to
// such a struct, or a list of them; other types are ignored.
func (w *descriptorCollector) collectType(expression ast.Expr, kind, path string) {
	switch e := expression.(type) {
	case *ast.StarExpr:
		w.collectType(e.X, kind, path)
	case *ast.ArrayType:
		w.collectType(e.Elt, kind, path+"[0]")
	case *ast.Ident:
		t := w.types[e.Name]
		if t == nil || slices.Contains(w.parents, e.Name) { // a type of another package, or a recursive type
			return
		}
		w.parents = append(w.parents, e.Name)
		for _, f := range t.Fields {
			w.collectField(f, kind, path)
		}
		if len(t.Fields) == 0 { // a named list type, for example
			w.collectType(t.RawSpec.Type, kind, path)
		}
		w.parents = w.parents[:len(w.parents)-1]
	}
}

// collectField collects the descriptors of a field and of the fields of its type. kind is spec or status, and path is
// the path of the parent. A marker with another kind is ignored, and an invalid marker sets w.err.
func (w *descriptorCollector) collectField(f markers.FieldInfo, kind, path string) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case name == "-":
		return
	case name == "" && (f.Name == "" || options == "inline"): // an embedded struct, whose fields are at this level
		w.collectType(f.RawField.Type, kind, path)
		return
	}
	name = cmp.Or(name, f.Name)
	fieldPath := strings.TrimPrefix(path+"."+name, ".")
	for _, value := range f.Markers[markerName] {
		m := value.(fieldMarker)
		if m.Type != typeSpec && m.Type != typeStatus {
			w.err = fmt.Errorf("%w: field %s: the type of a descriptor is spec or status, not %q", ErrSource, fieldPath,
				m.Type)
		}
		if m.Type != kind {
			continue
		}
		var ids []string
		for _, d := range m.XDescriptors {
			ids = append(ids, strings.Split(d, ",")...)
		}
		m.XDescriptors = ids
		m.DisplayName = cmp.Or(m.DisplayName, splitWords(f.Name))
		w.descriptors = append(w.descriptors, descriptor{kind: kind, path: fieldPath, text: phrase.OneLine(f.Doc),
			marker: m})
	}
	w.collectType(f.RawField.Type, kind, fieldPath)
}

// splitWords converts MaxSize to Max Size, and APIServer to API Server. It does not split abbreviations.
func splitWords(name string) string {
	var out strings.Builder
	letters := []rune(name)
	isUpper := func(i int) bool { return letters[i] >= 'A' && letters[i] <= 'Z' }
	for i, letter := range letters {
		isLastCapital := i+1 < len(letters) && !isUpper(i+1) // the last capital begins the next word, as in APIServer
		if i > 0 && isUpper(i) && (!isUpper(i-1) || isLastCapital) {
			out.WriteByte(' ')
		}
		out.WriteRune(letter)
	}
	return out.String()
}
