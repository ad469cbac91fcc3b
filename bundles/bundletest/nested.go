// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// NestedCRDs describes large definitions as real operators have them: deep schemas with long descriptions, with small
// changes in each version.
type NestedCRDs struct {
	// Count is the number of definitions in a bundle, and Versions the number of API versions in each definition.
	Count, Versions int
	// Bytes is the approximate size of all definitions as YAML.
	Bytes int
	// Seed selects the generated schemas.
	Seed uint64
}

// Generate returns the CRDs of the j-th version of an operator. The same numbers give the same result.
func (n NestedCRDs) Generate(group string, j int) []map[string]any {
	const bytesPerField = 480
	fields := n.Bytes / bytesPerField / n.Count / n.Versions
	var out []map[string]any
	for i := range n.Count {
		plural := fmt.Sprintf("things%d", i)
		if i == 0 {
			plural = "things"
		}
		kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
		var versions []any
		for v := range n.Versions {
			s := nestedSchema{seed: n.Seed + uint64(i), version: j, remaining: fields}
			versions = append(versions, map[string]any{
				"name": fmt.Sprintf("v%d", v+1), "served": true, "storage": v == n.Versions-1,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema":       map[string]any{"openAPIV3Schema": s.makeRoot()},
			})
		}
		out = append(out, map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": plural + "." + group},
			"spec": map[string]any{"group": group, "scope": "Namespaced", "versions": versions,
				"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural,
					"singular": strings.ToLower(kind)}},
		})
	}
	return out
}

// nestedSchema generates one schema. remaining is the number of fields that it can still add.
type nestedSchema struct {
	seed      uint64
	version   int
	remaining int
}

// makeRoot returns the schema of a custom resource. It uses all remaining fields.
func (s *nestedSchema) makeRoot() map[string]any {
	spec := map[string]any{}
	// Each field of the spec has some hundred fields below it.
	for i := 0; s.remaining > 0; i++ {
		name := fmt.Sprintf("part%03d", i)
		spec[name] = s.makeObject(name, 4)
	}
	return map[string]any{"type": "object", "properties": map[string]any{
		"spec": map[string]any{"type": "object", "properties": spec},
		"status": map[string]any{"type": "object", "properties": map[string]any{
			"phase": map[string]any{"type": "string"}}},
	}}
}

// hashPath returns a pseudo-random number that depends only on the seed and the path.
func (s *nestedSchema) hashPath(path string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s", s.seed, path)
	return h.Sum64()
}

// makeObject returns the schema of an object with up to depth levels of objects below it.
func (s *nestedSchema) makeObject(path string, depth int) map[string]any {
	fields := map[string]any{}
	for i := range 3 + s.hashPath(path)%6 {
		if s.remaining <= 0 {
			break
		}
		s.remaining--
		name := fmt.Sprintf("field%d", i)
		fieldPath := path + "." + name
		switch kind := s.hashPath(fieldPath) % 10; {
		case depth > 0 && kind < 4:
			fields[name] = s.makeObject(fieldPath, depth-1)
		case depth > 0 && kind < 5:
			fields[name] = map[string]any{"type": "array", "description": s.makeDescription(fieldPath),
				"items": s.makeObject(fieldPath, depth-1)}
		default:
			fields[name] = s.makeLeaf(fieldPath)
		}
	}
	// Some versions add a field, and later versions keep it.
	if since := s.hashPath(path+" new") % 500; since > 0 && since <= uint64(s.version) {
		fields[fmt.Sprintf("added%d", since)] = map[string]any{"type": "string", "description": s.makeDescription(path)}
	}
	return map[string]any{"type": "object", "description": s.makeDescription(path), "properties": fields}
}

// makeLeaf returns the schema of a field without children.
func (s *nestedSchema) makeLeaf(path string) map[string]any {
	out := map[string]any{"description": s.makeDescription(path), "type": "string"}
	switch s.hashPath(path) % 7 {
	case 0:
		out["type"], out["format"] = "integer", "int32"
	case 1:
		out["type"] = "boolean"
	case 2:
		out["enum"] = []any{"Always", "IfNotPresent", "Never"}
	case 3:
		delete(out, "type")
		out["anyOf"] = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
		out["x-kubernetes-int-or-string"] = true
	}
	return out
}

// makeDescription returns the description of a field. Some versions change the description of some fields.
func (s *nestedSchema) makeDescription(path string) string {
	n := s.hashPath(path)
	edition := 0
	if by := int(n % 40); by <= s.version {
		edition = by
	}
	return fmt.Sprintf("%s says what the operator does about %x. Users can leave it out, and then the operator "+
		"chooses what suits the size of the cluster (edition %d).", path[strings.LastIndex(path, ".")+1:], n, edition)
}
