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

// Archive stores published versions of an operator in little memory. Versions are mostly equal, so equal parts of
// schemas are stored only once for all versions, and data that comparisons do not need is dropped. Its methods can be
// called from several goroutines.
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

// Reduce returns a copy of a bundle for comparisons with other versions. Functions of this package and of package
// rollback, and the rules of package lint, give the same results for the copy. The copy has no descriptions, examples
// and icon. The manifests of the ClusterServiceVersion and of definitions have only their names; definitions of v1beta1
// and their objects are converted to v1. Bundle.Manifests returns an error for the copy.
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
		if count[d.Name] == 1 { // CRDObject finds definitions by name only
			out.CRDs = append(out.CRDs, a.cacheDefinition(b.CRDObject(d.Name), d))
		} else {
			out.CRDs = append(out.CRDs, a.Definition(d))
		}
	}
	for _, o := range b.Objects {
		switch {
		case o.GetKind() == kindDefinition && readable[o.GetName()]:
			out.Objects = append(out.Objects, o.Reduced(newIdentity(apiextensionsv1.SchemeGroupVersion.String(), o)))
		case o.GetKind() == operatorsv1alpha1.ClusterServiceVersionKind:
			out.Objects = append(out.Objects, o.Reduced(newIdentity(o.GetAPIVersion(), o)))
		default:
			out.Objects = append(out.Objects, o.Reduced(o.Object))
		}
	}
	return &out
}

const kindDefinition = "CustomResourceDefinition"

// newIdentity returns the apiVersion, kind and name of an object as the content of a reduced object.
func newIdentity(apiVersion string, o *bundles.Object) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": o.GetKind(), "metadata": map[string]any{
		"name": o.GetName()}}
}

// examplesAnnotation is the annotation with an example of each kind.
const examplesAnnotation = "alm-examples"

// reduceCSV returns a copy without description, icon and examples.
func reduceCSV(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	out := *csv
	out.Annotations = maps.Clone(csv.Annotations)
	delete(out.Annotations, examplesAnnotation)
	out.Spec.Description, out.Spec.Icon = "", nil
	return &out
}

// cacheDefinition returns the archive's definition for an object. Objects with the same text have the same definition.
func (a *Archive) cacheDefinition(o *bundles.Object, d *apiextensionsv1.CustomResourceDefinition,
) *apiextensionsv1.CustomResourceDefinition {
	key := o.Sum()
	a.mu.Lock()
	cached := a.definitions[key]
	a.mu.Unlock()
	if cached != nil {
		return cached
	}
	cached = a.Definition(d) // locks the archive itself
	a.mu.Lock()
	defer a.mu.Unlock()
	a.definitions[key] = cached
	return cached
}

// Definition returns a definition that is equal to d for Compare. Parts that are equal to parts of an earlier
// definition share the same memory, which makes comparisons fast. A nil archive returns d.
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
			schema, _ := a.shareSchema(v.Schema.OpenAPIV3Schema)
			v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema}
		}
	}
	return &out
}

// shareSchema returns the only copy of a schema, without descriptions, and its hash; nil and a zero hash for nil.
func (a *Archive) shareSchema(s *apiextensionsv1.JSONSchemaProps) (*apiextensionsv1.JSONSchemaProps, sum) {
	if s == nil {
		return nil, sum{}
	}
	reduced, key := a.reduceSchema(s)
	if shared := a.schemas[key]; shared != nil {
		return shared, key
	}
	a.schemas[key] = &reduced
	return &reduced, key
}

// reduceSchema returns a copy of a schema whose children are shared, and its hash.
func (a *Archive) reduceSchema(s *apiextensionsv1.JSONSchemaProps) (apiextensionsv1.JSONSchemaProps, sum) {
	out := copyWithoutChildren(s)
	out.Required = s.Required
	var hash hasher
	hash.addOwnFields(&out)
	out.Properties = a.shareFields(s.Properties, &hash)
	if s.Items != nil {
		items, key := a.shareSchema(s.Items.Schema)
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items, JSONSchemas: s.Items.JSONSchemas}
		hash.addBytes('i', key[:])
		hash.addJSON('I', len(s.Items.JSONSchemas) > 0, s.Items.JSONSchemas)
	}
	if values := s.AdditionalProperties; values != nil {
		schema, key := a.shareSchema(values.Schema)
		out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: values.Allows, Schema: schema}
		hash.addBytes('a', key[:])
		hash.addFlag('A', values.Allows)
	}
	return out, sha256.Sum256(hash.text)
}

// shareFields returns the only copy of the fields of an object, and adds their hash to hash.
func (a *Archive) shareFields(fields map[string]apiextensionsv1.JSONSchemaProps, hash *hasher,
) map[string]apiextensionsv1.JSONSchemaProps {
	if fields == nil {
		return nil
	}
	var fieldsHash hasher
	out := make(map[string]apiextensionsv1.JSONSchemaProps, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		s := fields[name]
		reduced, key := a.reduceSchema(&s)
		out[name] = reduced
		fieldsHash.addString('n', name)
		fieldsHash.addBytes('f', key[:])
	}
	key := sha256.Sum256(fieldsHash.text)
	hash.addBytes('p', key[:])
	if shared := a.properties[key]; shared != nil {
		return shared
	}
	a.properties[key] = out
	return out
}

// hasher collects the data to be hashed: the tag, the length and the content of each field that is set.
type hasher struct{ text []byte }

// addBytes adds a field.
func (h *hasher) addBytes(tag byte, content []byte) {
	h.text = append(h.text, tag)
	h.text = binary.AppendUvarint(h.text, uint64(len(content)))
	h.text = append(h.text, content...)
}

// addString adds a field if it is not empty.
func (h *hasher) addString(tag byte, content string) {
	if content != "" {
		h.addBytes(tag, []byte(content))
	}
}

// addFlag adds a tag if a flag is set.
func (h *hasher) addFlag(tag byte, set bool) {
	if set {
		h.text = append(h.text, tag)
	}
}

// addJSON adds a value of any type as JSON if it is set.
func (h *hasher) addJSON(tag byte, set bool, value any) {
	if !set {
		return
	}
	content, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encode a part of a schema: %v", err)) // It was decoded from JSON.
	}
	h.addBytes(tag, content)
}

// addOwnFields adds a schema without its children. Most schemas have few fields, which are added without a slow
// JSON encoder.
func (h *hasher) addOwnFields(s *apiextensionsv1.JSONSchemaProps) {
	h.addString('t', s.Type)
	h.addString('F', s.Format)
	h.addString('P', s.Pattern)
	h.addFlag('N', s.Nullable)
	h.addFlag('S', s.XIntOrString)
	h.addFlag('E', s.XEmbeddedResource)
	for _, name := range s.Required {
		h.addBytes('r', []byte(name))
	}
	for _, value := range s.Enum {
		h.addBytes('e', value.Raw)
	}
	if s.Default != nil {
		h.addBytes('d', s.Default.Raw)
	}
	if s.XPreserveUnknownFields != nil {
		h.addFlag('u', *s.XPreserveUnknownFields)
		h.addFlag('U', !*s.XPreserveUnknownFields)
	}
	rest := *s
	rest.Type, rest.Format, rest.Pattern, rest.Nullable, rest.XIntOrString = "", "", "", false, false
	rest.XEmbeddedResource, rest.XPreserveUnknownFields = false, nil
	rest.Required, rest.Enum, rest.Default = nil, nil, nil
	h.addJSON('R', hasOther(&rest), &rest)
}

// hasOther reports whether a schema has fields that addOwnFields must add as JSON.
func hasOther(s *apiextensionsv1.JSONSchemaProps) bool {
	hasBounds := s.Maximum != nil || s.Minimum != nil || s.MaxLength != nil || s.MinLength != nil ||
		s.MaxItems != nil || s.MinItems != nil || s.MultipleOf != nil || s.MaxProperties != nil ||
		s.MinProperties != nil || s.ExclusiveMaximum || s.ExclusiveMinimum || s.UniqueItems
	hasSchemas := len(s.AllOf)+len(s.OneOf)+len(s.AnyOf)+len(s.PatternProperties)+len(s.Dependencies)+
		len(s.Definitions) > 0 || s.Not != nil || s.AdditionalItems != nil
	hasExtensions := len(s.XListMapKeys)+len(s.XValidations) > 0 || s.XListType != nil || s.XMapType != nil
	return hasBounds || hasSchemas || hasExtensions || s.ID != "" || s.Schema != "" || s.Ref != nil
}
