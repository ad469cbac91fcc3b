// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Archive keeps published versions of an operator in little memory. Versions differ little, and so parts of schemas
// that are equal are kept once for all versions; and nothing is kept that comparisons do not look at. Its methods may
// be called from several goroutines.
type Archive struct {
	mu          sync.Mutex
	definitions map[sum]*apiextensionsv1.CustomResourceDefinition
	schemas     map[sum]*apiextensionsv1.JSONSchemaProps
	properties  map[sum]map[string]apiextensionsv1.JSONSchemaProps
}

type sum = [sha256.Size]byte

// NewArchive returns an empty archive.
func NewArchive() *Archive {
	return &Archive{definitions: map[sum]*apiextensionsv1.CustomResourceDefinition{},
		schemas:    map[sum]*apiextensionsv1.JSONSchemaProps{},
		properties: map[sum]map[string]apiextensionsv1.JSONSchemaProps{}}
}

// Reduce returns a bundle for comparisons with other versions. Functions of this package, of package rollback and the
// rules of package lint find the same in it as in b. It lacks descriptions, examples, the icon, and the manifests of
// the ClusterServiceVersion and of definitions but for their names; definitions of v1beta1 are converted, and so are
// their objects. Bundle.Manifests of it is an error.
func (a *Archive) Reduce(b *bundles.Bundle) *bundles.Bundle {
	out := *b
	out.CSV = reduceCSV(b.CSV)
	out.CRDs, out.Objects = nil, make([]*bundles.Object, 0, len(b.Objects))
	count := map[string]int{}
	for _, o := range b.Objects {
		if o.GetKind() == kindDefinition {
			count[o.GetName()]++
		}
	}
	readable := map[string]bool{}
	for _, d := range Definitions(b) {
		readable[d.Name] = true
		if count[d.Name] == 1 {
			out.CRDs = append(out.CRDs, a.keep(b.CRDObject(d.Name), d))
		} else {
			out.CRDs = append(out.CRDs, a.Definition(d))
		}
	}
	for _, o := range b.Objects {
		switch {
		case o.GetKind() == kindDefinition && readable[o.GetName()]:
			out.Objects = append(out.Objects, o.Reduced(identity(apiextensionsv1.SchemeGroupVersion.String(), o)))
		case o.GetKind() == operatorsv1alpha1.ClusterServiceVersionKind:
			out.Objects = append(out.Objects, o.Reduced(identity(o.GetAPIVersion(), o)))
		default:
			out.Objects = append(out.Objects, o.Reduced(o.Object))
		}
	}
	return &out
}

const kindDefinition = "CustomResourceDefinition"

// identity is what remains of an object whose content is elsewhere.
func identity(apiVersion string, o *bundles.Object) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": o.GetKind(), "metadata": map[string]any{
		"name": o.GetName()}}
}

// examplesAnnotation holds an example of each kind.
const examplesAnnotation = "alm-examples"

func reduceCSV(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	out := *csv
	out.Annotations = maps.Clone(csv.Annotations)
	delete(out.Annotations, examplesAnnotation)
	out.Spec.Description, out.Spec.Icon = "", nil
	return &out
}

// keep returns the definition of an object as the archive keeps it.
func (a *Archive) keep(o *bundles.Object, d *apiextensionsv1.CustomResourceDefinition,
) *apiextensionsv1.CustomResourceDefinition {
	key := o.Sum()
	a.mu.Lock()
	known := a.definitions[key]
	a.mu.Unlock()
	if known != nil {
		return known
	}
	known = a.Definition(d)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.definitions[key] = known
	return known
}

// Definition returns a definition that Compare finds no different from d. Parts of it that are equal to those of an
// earlier one are the same in memory, which makes comparisons quick. A nil archive returns d.
func (a *Archive) Definition(d *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	if a == nil {
		return d
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	out := *d
	out.Spec.Versions = slices.Clone(d.Spec.Versions)
	for i := range out.Spec.Versions {
		v := &out.Spec.Versions[i]
		v.AdditionalPrinterColumns = nil
		if v.Schema != nil {
			schema, _ := a.schema(v.Schema.OpenAPIV3Schema)
			v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema}
		}
	}
	return &out
}

// schema returns the one copy of a schema, without what only people read, and its hash.
func (a *Archive) schema(s *apiextensionsv1.JSONSchemaProps) (*apiextensionsv1.JSONSchemaProps, sum) {
	if s == nil {
		return nil, sum{}
	}
	reduced, key := a.reduce(s)
	if known := a.schemas[key]; known != nil {
		return known, key
	}
	a.schemas[key] = &reduced
	return &reduced, key
}

func (a *Archive) reduce(s *apiextensionsv1.JSONSchemaProps) (apiextensionsv1.JSONSchemaProps, sum) {
	out := withoutChildren(s)
	out.Required = s.Required
	var hash hasher
	hash.ownFields(&out)
	out.Properties = a.fields(s.Properties, &hash)
	if s.Items != nil {
		items, key := a.schema(s.Items.Schema)
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items, JSONSchemas: s.Items.JSONSchemas}
		hash.bytes('i', key[:])
		hash.encoded('I', len(s.Items.JSONSchemas) > 0, s.Items.JSONSchemas)
	}
	if values := s.AdditionalProperties; values != nil {
		schema, key := a.schema(values.Schema)
		out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: values.Allows, Schema: schema}
		hash.bytes('a', key[:])
		hash.flag('A', values.Allows)
	}
	return out, sha256.Sum256(hash.text)
}

// fields returns the one copy of the fields of an object, and adds them to the hash.
func (a *Archive) fields(fields map[string]apiextensionsv1.JSONSchemaProps, hash *hasher,
) map[string]apiextensionsv1.JSONSchemaProps {
	if fields == nil {
		return nil
	}
	var own hasher
	out := make(map[string]apiextensionsv1.JSONSchemaProps, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		s := fields[name]
		reduced, key := a.reduce(&s)
		out[name] = reduced
		own.string('n', name)
		own.bytes('f', key[:])
	}
	key := sha256.Sum256(own.text)
	hash.bytes('p', key[:])
	if known := a.properties[key]; known != nil {
		return known
	}
	a.properties[key] = out
	return out
}

// hasher gathers what is hashed: for each field that is set its tag, its length, and its content.
type hasher struct{ text []byte }

func (h *hasher) bytes(tag byte, content []byte) {
	h.text = append(h.text, tag)
	h.text = binary.AppendUvarint(h.text, uint64(len(content)))
	h.text = append(h.text, content...)
}

func (h *hasher) string(tag byte, content string) {
	if content != "" {
		h.bytes(tag, []byte(content))
	}
}

func (h *hasher) flag(tag byte, is bool) {
	if is {
		h.text = append(h.text, tag)
	}
}

// encoded adds anything else, as JSON.
func (h *hasher) encoded(tag byte, is bool, value any) {
	if !is {
		return
	}
	content, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encode a part of a schema: %v", err)) // It was decoded from JSON.
	}
	h.bytes(tag, content)
}

// ownFields adds a schema without its children. Most have few fields, which need no encoder.
func (h *hasher) ownFields(s *apiextensionsv1.JSONSchemaProps) {
	h.string('t', s.Type)
	h.string('F', s.Format)
	h.string('P', s.Pattern)
	h.flag('N', s.Nullable)
	h.flag('S', s.XIntOrString)
	h.flag('E', s.XEmbeddedResource)
	for _, name := range s.Required {
		h.bytes('r', []byte(name))
	}
	for _, value := range s.Enum {
		h.bytes('e', value.Raw)
	}
	if s.Default != nil {
		h.bytes('d', s.Default.Raw)
	}
	if s.XPreserveUnknownFields != nil {
		h.flag('u', *s.XPreserveUnknownFields)
		h.flag('U', !*s.XPreserveUnknownFields)
	}
	rest := *s
	rest.Type, rest.Format, rest.Pattern, rest.Nullable, rest.XIntOrString = "", "", "", false, false
	rest.XEmbeddedResource, rest.XPreserveUnknownFields = false, nil
	rest.Required, rest.Enum, rest.Default = nil, nil, nil
	h.encoded('R', hasOther(&rest), &rest)
}

// hasOther says whether a schema has any field but those that ownFields adds itself.
func hasOther(s *apiextensionsv1.JSONSchemaProps) bool {
	numbers := s.Maximum != nil || s.Minimum != nil || s.MaxLength != nil || s.MinLength != nil || s.MaxItems != nil ||
		s.MinItems != nil || s.MultipleOf != nil || s.MaxProperties != nil || s.MinProperties != nil ||
		s.ExclusiveMaximum || s.ExclusiveMinimum || s.UniqueItems
	schemas := len(s.AllOf)+len(s.OneOf)+len(s.AnyOf)+len(s.PatternProperties)+len(s.Dependencies)+
		len(s.Definitions) > 0 || s.Not != nil || s.AdditionalItems != nil
	extensions := len(s.XListMapKeys)+len(s.XValidations) > 0 || s.XListType != nil || s.XMapType != nil
	return numbers || schemas || extensions || s.ID != "" || s.Schema != "" || s.Ref != nil
}
