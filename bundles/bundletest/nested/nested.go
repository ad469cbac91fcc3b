// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nested makes large CustomResourceDefinitions for tests and benchmarks.
package nested

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// CRDs are large ones as real operators have them: deep schemas with long descriptions, of which each version changes a
// little.
type CRDs struct {
	// Count is how many definitions a bundle has, and Versions how many API versions each of them.
	Count, Versions int
	// Bytes is roughly the size of all of them as YAML.
	Bytes int
	// Seed gives other schemas.
	Seed uint64
}

// Of returns the CRDs of the j-th version of an operator. It is the same for the same numbers.
func (n CRDs) Of(group string, j int) []map[string]any {
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
			s := schema{seed: n.Seed + uint64(i), version: j, left: fields}
			versions = append(versions, map[string]any{
				"name": fmt.Sprintf("v%d", v+1), "served": true, "storage": v == n.Versions-1,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema":       map[string]any{"openAPIV3Schema": s.root()},
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

// schema makes one schema, with as many fields as are left.
type schema struct {
	seed    uint64
	version int
	left    int
}

func (s *schema) root() map[string]any {
	spec := map[string]any{}
	// The trees below the fields of the spec have some hundred fields each.
	for i := 0; s.left > 0; i++ {
		name := fmt.Sprintf("part%03d", i)
		spec[name] = s.object(name, 4)
	}
	return map[string]any{"type": "object", "properties": map[string]any{
		"spec": map[string]any{"type": "object", "properties": spec},
		"status": map[string]any{"type": "object", "properties": map[string]any{
			"phase": map[string]any{"type": "string"}}},
	}}
}

// number is a random one that depends on a place in the schema only.
func (s *schema) number(path string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s", s.seed, path)
	return h.Sum64()
}

func (s *schema) object(path string, depth int) map[string]any {
	fields := map[string]any{}
	for i := range 3 + s.number(path)%6 {
		if s.left <= 0 {
			break
		}
		s.left--
		name := fmt.Sprintf("field%d", i)
		at := path + "." + name
		switch kind := s.number(at) % 10; {
		case depth > 0 && kind < 4:
			fields[name] = s.object(at, depth-1)
		case depth > 0 && kind < 5:
			fields[name] = map[string]any{"type": "array", "description": s.text(at), "items": s.object(at, depth-1)}
		default:
			fields[name] = s.leaf(at)
		}
	}
	// Now and then a version has a new field, and later ones keep it.
	if since := s.number(path+" new") % 500; since > 0 && since <= uint64(s.version) {
		fields[fmt.Sprintf("added%d", since)] = map[string]any{"type": "string", "description": s.text(path)}
	}
	return map[string]any{"type": "object", "description": s.text(path), "properties": fields}
}

func (s *schema) leaf(path string) map[string]any {
	out := map[string]any{"description": s.text(path), "type": "string"}
	switch s.number(path) % 7 {
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

// text is a description; some are reworded by some versions.
func (s *schema) text(path string) string {
	n := s.number(path)
	edition := 0
	if by := int(n % 40); by <= s.version {
		edition = by
	}
	return fmt.Sprintf("%s says what the operator does about %x. Users can leave it out, and then the operator "+
		"chooses what suits the size of the cluster (edition %d).", path[strings.LastIndex(path, ".")+1:], n, edition)
}
