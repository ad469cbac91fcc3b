// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AppliedFields lists the fields of an object that were applied, a line each: "bellwether-rollout: spec.cluster"
// or "bellwether-agent/status: status.phase", sorted. Elements of a list are one: "spec.blocks[].reason".
func AppliedFields(o client.Object) (string, error) {
	var lines []string
	for _, entry := range o.GetManagedFields() {
		if entry.Operation != metav1.ManagedFieldsOperationApply {
			continue
		}
		manager := entry.Manager
		if entry.Subresource != "" {
			manager += "/" + entry.Subresource
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return "", fmt.Errorf("decode fields of %s: %w", manager, err)
		}
		for _, path := range leaves(fields) {
			lines = append(lines, manager+": "+path+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), ""), nil
}

// leaves returns the paths to what has nothing below it.
func leaves(fields map[string]any) []string {
	var paths []string
	for name, below := range fields {
		children, _ := below.(map[string]any)
		if name == "." {
			continue // the element itself, beside its fields
		}
		name, isField := strings.CutPrefix(name, "f:")
		if !isField {
			name = "[]"
		}
		if len(children) == 0 {
			paths = append(paths, name)
		}
		for _, path := range leaves(children) {
			paths = append(paths, strings.Replace(name+"."+path, ".[]", "[]", 1))
		}
	}
	return paths
}
