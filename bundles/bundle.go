// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// Errors from reading a bundle wrap one of these errors, or are errors of the file system.
var (
	// ErrNotBundle means that the input is not a registry+v1 bundle. The error text gives the reason.
	ErrNotBundle = errors.New("not a registry+v1 bundle")
	// ErrSyntax means that a file of a bundle is not YAML or JSON; the error names the file. It comes
	// with ErrNotBundle.
	ErrSyntax = untrusted.ErrSyntax
	// ErrVersion means that the version of a ClusterServiceVersion is not a semantic version. It comes
	// with ErrNotBundle.
	ErrVersion = errors.New("not a semantic version")
	// ErrTooLarge means that a bundle is far larger than anything OLM can install.
	ErrTooLarge = errors.New("bundle too large")
)

// errReduced means that the bundle has only the fields that comparisons need.
var errReduced = errors.New("the bundle was reduced for comparisons")

const (
	kindCSV = "ClusterServiceVersion"
	kindCRD = "CustomResourceDefinition"
)

// Bundle is one version of an operator. It must be treated as read-only.
type Bundle struct {
	// Name is the name of the ClusterServiceVersion.
	Name    string
	Version semver.Version
	// Package, Channels and DefaultChannel come from the annotations; they are empty if a bundle has no annotations.
	Package        string
	Channels       []string
	DefaultChannel string
	Annotations    map[string]string

	CSV *operatorsv1alpha1.ClusterServiceVersion
	// CRDs are the definitions of apiextensions.k8s.io/v1. Definitions of v1beta1, which Kubernetes removed in 1.22,
	// are only in Objects.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Objects are all manifests, ordered by file and then by document within a file.
	Objects []*Object

	// Dependencies and Properties come from metadata/dependencies.yaml and metadata/properties.yaml.
	Dependencies []Property
	Properties   []Property

	// valueCount counts the keys and values of the manifests.
	valueCount int
	// reduce, if set, replaces each object directly after it is read.
	reduce func(*Object) *Object
}

// Manifests returns all manifests as JSON, in the form that a catalog contains. It returns an error if objects of the
// bundle are reduced.
func (b *Bundle) Manifests() ([][]byte, error) {
	out := make([][]byte, 0, len(b.Objects))
	for _, o := range b.Objects {
		if o.sum != nil {
			return nil, fmt.Errorf("encode %s: %w", o.File, errReduced)
		}
		raw, err := json.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", o.File, err)
		}
		out = append(out, raw)
	}
	return out, nil
}

// CSVObject returns the manifest that contains the ClusterServiceVersion.
func (b *Bundle) CSVObject() *Object { return b.findObject(kindCSV, b.Name) }

// CRDObject returns the manifest of the CustomResourceDefinition with the given name, or nil if there is none.
func (b *Bundle) CRDObject(name string) *Object { return b.findObject(kindCRD, name) }

// findObject returns the manifest with the given kind and name, or nil if there is none.
func (b *Bundle) findObject(kind, name string) *Object {
	i := slices.IndexFunc(b.Objects, func(o *Object) bool { return o.GetKind() == kind && o.GetName() == name })
	if i < 0 {
		return nil
	}
	return b.Objects[i]
}

// FromManifests parses a bundle from manifests in JSON or YAML, as catalogs and images contain them; each manifest is
// one object. annotations may be nil. Errors wrap ErrNotBundle or ErrTooLarge.
func FromManifests(manifests [][]byte, annotations map[string]string) (*Bundle, error) {
	b := &Bundle{Annotations: maps.Clone(annotations)}
	return b, b.addManifests(manifests)
}

// FromStream parses a bundle from a stream of YAML documents. Each document counts as a separate file, and line numbers
// count from the beginning of the stream. Errors wrap ErrNotBundle or ErrTooLarge.
func FromStream(text []byte) (*Bundle, error) {
	b := &Bundle{}
	err := visitDocuments(text, func(line int, document []byte) error {
		return b.addDocument(fmt.Sprintf("manifests/%d", len(b.Objects)), line, document)
	})
	if err != nil {
		return b, err
	}
	return b, b.assemble()
}

// ParseForRights parses a bundle as FromManifests does, but keeps only the data that Rights needs, to save memory.
// Objects whose content gives no rights are reduced to apiVersion, kind and name, and CRDs is empty.
func ParseForRights(manifests [][]byte) (*Bundle, error) {
	b := &Bundle{reduce: func(o *Object) *Object {
		if canGiveRights(o) {
			return o
		}
		return o.Reduced(map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(),
			"metadata": map[string]any{"name": o.GetName()}})
	}}
	return b, b.addManifests(manifests)
}

// canGiveRights reports whether the content of an object can give rights to the operator.
func canGiveRights(o *Object) bool {
	return o.IsRBAC() || slices.Contains([]string{kindCSV, "ServiceAccount", kindSecret, kindServiceMonitor,
		kindPriorityClass}, o.GetKind())
}

// addManifests parses all manifests of a bundle and adds them to the bundle.
func (b *Bundle) addManifests(manifests [][]byte) error {
	for i, text := range manifests {
		if err := b.addDocument(fmt.Sprintf("manifests/%d", i), 1, text); err != nil {
			return err
		}
	}
	return b.assemble()
}

// CheckCSV returns an error that wraps ErrTooLarge if a ClusterServiceVersion, as JSON or YAML, has more than
// MaxCSVValues keys and values. Decoding a larger one into its type takes too much memory.
func CheckCSV(text []byte) error {
	if untrusted.Values(text) > MaxCSVValues {
		return fmt.Errorf("%w: its %s has more than %d keys and values", ErrTooLarge, kindCSV, MaxCSVValues)
	}
	return nil
}

// assemble sets the fields that are derived from the objects and the annotations. It returns an error if there is not
// exactly one valid ClusterServiceVersion.
func (b *Bundle) assemble() error {
	b.Package, b.DefaultChannel = b.Annotations[AnnotationPackage], b.Annotations[AnnotationDefaultChannel]
	for channel := range strings.SplitSeq(b.Annotations[AnnotationChannels], ",") {
		if channel = strings.TrimSpace(channel); channel != "" {
			b.Channels = append(b.Channels, channel)
		}
	}
	for _, o := range b.Objects {
		var err error
		switch gvk := o.GroupVersionKind(); {
		case gvk.Kind == kindCSV: // OLM and opm ignore the apiVersion
			err = b.addCSV(o)
		case b.reduce != nil: // a reduced bundle has no CRDs
		case gvk.Kind == kindCRD && gvk.GroupVersion() == apiextensionsv1.SchemeGroupVersion:
			crd := &apiextensionsv1.CustomResourceDefinition{}
			err = o.decodeInto(crd)
			b.CRDs = append(b.CRDs, crd)
		}
		if err != nil {
			return err
		}
	}
	if b.CSV == nil {
		return fmt.Errorf("%w: it has no %s among its manifests (%s)", ErrNotBundle, kindCSV,
			cmp.Or(phrase.First(b.listFiles(), maxNamedFiles), "there are none"))
	}
	return nil
}

// maxNamedFiles is the maximum number of files that an error names.
const maxNamedFiles = 5

// listFiles returns the files that the objects were read from, in their order.
func (b *Bundle) listFiles() []string {
	var out []string
	for _, o := range b.Objects {
		out = append(out, o.File)
	}
	return slices.Compact(out)
}

// addCSV decodes the ClusterServiceVersion and sets the fields that come from it. It returns an error for a second
// ClusterServiceVersion, and for one that is too large or has no name or no valid version.
func (b *Bundle) addCSV(o *Object) error {
	if b.CSV != nil {
		return fmt.Errorf("%w: it has two of kind %s, %s in %s and %s in %s", ErrNotBundle, kindCSV,
			b.Name, b.CSVObject().File, o.GetName(), o.File)
	}
	if text, _, _ := unstructured.NestedString(o.Object, "spec", "version"); text != "" {
		if _, err := semver.Parse(text); err != nil {
			return fmt.Errorf("%w: %s, line %d: spec.version %q: %w: %w", ErrNotBundle, o.File,
				o.Position("spec", "version"), text, ErrVersion, err)
		}
	}
	if err := CheckCSV(o.text); err != nil {
		return err
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := o.decodeInto(csv); err != nil {
		return err
	}
	if csv.Name == "" {
		return fmt.Errorf("%w: the %s in %s has no name", ErrNotBundle, kindCSV, o.File)
	}
	b.CSV, b.Name, b.Version = csv, csv.Name, csv.Spec.Version.Version
	return nil
}

// decodeInto decodes the object into a pointer to a typed API object. Errors wrap ErrNotBundle.
func (o *Object) decodeInto(typed any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return fmt.Errorf("%w: %s: decode %s %q: %w", ErrNotBundle, o.File, o.GetKind(), o.GetName(), err)
	}
	return nil
}
