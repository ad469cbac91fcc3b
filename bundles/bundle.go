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

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// Errors of this package wrap one of these.
var (
	// ErrNotBundle says that what was read is no registry+v1 bundle, and why.
	ErrNotBundle = errors.New("not a registry+v1 bundle")
	// ErrSyntax says that a file of a bundle is not YAML or JSON; the error names the file. It comes with ErrNotBundle.
	ErrSyntax = untrusted.ErrSyntax
	// ErrVersion says that the version of a ClusterServiceVersion is not a semantic version. It comes with
	// ErrNotBundle.
	ErrVersion = errors.New("not a semantic version")
	// ErrTooLarge says that a bundle is far larger than anything OLM can install.
	ErrTooLarge = errors.New("bundle too large")
)

// errReduced says that a bundle has only what comparisons need.
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
	// Package, Channels and DefaultChannel are those of the annotations; empty where a bundle was read without them.
	Package        string
	Channels       []string
	DefaultChannel string
	Annotations    map[string]string

	CSV *operatorsv1alpha1.ClusterServiceVersion
	// CRDs are those of apiextensions.k8s.io/v1. Others, which Kubernetes removed in 1.22, are among the Objects only.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Objects are all manifests, in the order of their files and of the documents in those.
	Objects []*Object

	// Dependencies and Properties are those of metadata/dependencies.yaml and metadata/properties.yaml.
	Dependencies []registryv1.Property
	Properties   []registryv1.Property

	// values counts the keys and values of the manifests.
	values int
	// reduce, if set, is applied to each object as soon as it is read.
	reduce func(*Object) *Object
}

// Manifests returns all manifests as JSON, as a catalog carries them. It is an error if objects of the bundle were
// reduced.
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

// CSVObject returns the manifest that CSV was read from.
func (b *Bundle) CSVObject() *Object { return b.object(kindCSV, b.Name) }

// CRDObject returns the manifest that a CRD was read from, and nil if there is none of that name.
func (b *Bundle) CRDObject(name string) *Object { return b.object(kindCRD, name) }

func (b *Bundle) object(kind, name string) *Object {
	i := slices.IndexFunc(b.Objects, func(o *Object) bool { return o.GetKind() == kind && o.GetName() == name })
	if i < 0 {
		return nil
	}
	return b.Objects[i]
}

// FromManifests returns the bundle of manifests, JSON or YAML, as a catalog or an image has them: each is one object.
// The annotations may be nil. Errors wrap ErrNotBundle or ErrTooLarge.
func FromManifests(manifests [][]byte, annotations map[string]string) (*Bundle, error) {
	b := &Bundle{Annotations: maps.Clone(annotations)}
	return b, b.addManifests(manifests)
}

// FromStream is FromManifests for YAML documents one after another. Each counts as a file of its own, and lines count
// from the beginning of the stream.
func FromStream(text []byte) (*Bundle, error) {
	b := &Bundle{}
	err := eachDocument(text, func(line int, document []byte) error {
		return b.addDocument(fmt.Sprintf("manifests/%d", len(b.Objects)), line, document)
	})
	if err != nil {
		return b, err
	}
	return b, b.assemble()
}

// RightsOf is FromManifests for those who judge what a bundle may do, in less memory. Objects of kinds that give no
// rights by what they say have no more than their apiVersion, kind and name, and there are no CRDs.
func RightsOf(manifests [][]byte) (*Bundle, error) {
	b := &Bundle{reduce: func(o *Object) *Object {
		if givesRights(o) {
			return o
		}
		return o.Reduced(map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(),
			"metadata": map[string]any{"name": o.GetName()}})
	}}
	return b, b.addManifests(manifests)
}

func givesRights(o *Object) bool {
	return o.IsRBAC() || slices.Contains([]string{kindCSV, "ServiceAccount", kindSecret, kindServiceMonitor,
		kindPriorityClass}, o.GetKind())
}

// addManifests reads all of a bundle.
func (b *Bundle) addManifests(manifests [][]byte) error {
	for i, text := range manifests {
		if err := b.addDocument(fmt.Sprintf("manifests/%d", i), 1, text); err != nil {
			return err
		}
	}
	return b.assemble()
}

// CheckCSV returns an error that wraps ErrTooLarge if a ClusterServiceVersion, as JSON or YAML, has too many values to
// be decoded into its type.
func CheckCSV(text []byte) error {
	if untrusted.Values(text) > MaxCSVValues {
		return fmt.Errorf("%w: its %s has more than %d keys and values", ErrTooLarge, kindCSV, MaxCSVValues)
	}
	return nil
}

// assemble fills what follows from the objects and annotations.
func (b *Bundle) assemble() error {
	b.Package, b.DefaultChannel = b.Annotations[registryv1.AnnotationPackage],
		b.Annotations[registryv1.AnnotationDefaultChannel]
	for channel := range strings.SplitSeq(b.Annotations[registryv1.AnnotationChannels], ",") {
		if channel = strings.TrimSpace(channel); channel != "" {
			b.Channels = append(b.Channels, channel)
		}
	}
	for _, o := range b.Objects {
		var err error
		switch gvk := o.GroupVersionKind(); {
		case gvk.Kind == kindCSV: // OLM and opm find it by its kind, whatever its apiVersion
			err = b.addCSV(o)
		case b.reduce != nil: // has no definitions
		case gvk.Kind == kindCRD && gvk.GroupVersion() == apiextensionsv1.SchemeGroupVersion:
			crd := &apiextensionsv1.CustomResourceDefinition{}
			err = o.into(crd)
			b.CRDs = append(b.CRDs, crd)
		}
		if err != nil {
			return err
		}
	}
	if b.CSV == nil {
		return fmt.Errorf("%w: it has no %s among its manifests (%s)", ErrNotBundle, kindCSV,
			cmp.Or(phrase.First(b.files(), maxNamedFiles), "there are none"))
	}
	return nil
}

// maxNamedFiles bounds how many files an error names.
const maxNamedFiles = 5

// files are those that the objects were read from.
func (b *Bundle) files() []string {
	var out []string
	for _, o := range b.Objects {
		out = append(out, o.File)
	}
	return slices.Compact(out)
}

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
	if err := o.into(csv); err != nil {
		return err
	}
	if csv.Name == "" {
		return fmt.Errorf("%w: the %s in %s has no name", ErrNotBundle, kindCSV, o.File)
	}
	b.CSV, b.Name, b.Version = csv, csv.Name, csv.Spec.Version.Version
	return nil
}

func (o *Object) into(typed any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return fmt.Errorf("%w: %s: decode %s %q: %w", ErrNotBundle, o.File, o.GetKind(), o.GetName(), err)
	}
	return nil
}
