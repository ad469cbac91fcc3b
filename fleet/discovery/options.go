// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// maxLabels is the API's limit for the labels in the status.
const maxLabels = 32

// CheckLabels returns an error if a mapping of labels to fields of a source is not valid: it has too many labels, a
// label that is not valid or belongs to the hub, or an unknown field.
func CheckLabels(mapping map[string]string) error {
	if len(mapping) > maxLabels {
		return fmt.Errorf("%d labels are mapped, and %d are allowed", len(mapping), maxLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		if invalid := validation.IsQualifiedName(key); len(invalid) > 0 {
			return fmt.Errorf("%q is no label: %s", key, invalid[0])
		}
		if prefix, _, _ := strings.Cut(key, "/"); prefix == v1alpha1.SchemeGroupVersion.Group {
			return fmt.Errorf("label %q belongs to the hub", key)
		}
		if field := mapping[key]; !isField(field) {
			return fmt.Errorf("label %q comes from %q, which is no field of a source: use namespace, name, platform, "+
				"region, version, manager, labels/KEY or properties/NAME", key, field)
		}
	}
	return nil
}

// isField reports whether a source can have a field with this name.
func isField(field string) bool {
	switch field {
	case "namespace", "name", "platform", "region", "version", "manager":
		return true
	}
	kind, name, found := strings.Cut(field, "/")
	return found && name != "" && (kind == "labels" || kind == "properties")
}

// SelectUnownedLabels returns the mapped labels that no field manager except own owns. A write of another label would
// take the label away from its owner. fields are the managed fields of the FleetCluster.
func SelectUnownedLabels(mapped map[string]string, fields []metav1.ManagedFieldsEntry, own string) map[string]string {
	unowned := maps.Clone(mapped)
	for _, entry := range fields {
		isOwn := entry.Manager == own && entry.Operation == metav1.ManagedFieldsOperationApply
		if isOwn || entry.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Metadata struct {
				Labels map[string]json.RawMessage `json:"f:labels"`
			} `json:"f:metadata"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err != nil {
			continue // the API server writes the field, so this error does not happen
		}
		for field := range owned.Metadata.Labels {
			delete(unowned, strings.TrimPrefix(field, "f:"))
		}
	}
	return unowned
}
