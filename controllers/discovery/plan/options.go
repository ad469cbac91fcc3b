// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

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

// maxLabels is how many labels the status has room for.
const maxLabels = 32

// CheckLabels says what is wrong with a mapping of labels.
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

func isField(field string) bool {
	switch field {
	case "namespace", "name", "platform", "region", "version", "manager":
		return true
	}
	kind, name, found := strings.Cut(field, "/")
	return found && name != "" && (kind == "labels" || kind == "properties")
}

// Unowned are the labels that no other field manager owns. To write the others would take
// them from whoever set them.
func Unowned(mapped map[string]string, fields []metav1.ManagedFieldsEntry, own string) map[string]string {
	unowned := maps.Clone(mapped)
	for _, entry := range fields {
		if entry.Manager == own && entry.Operation == metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Metadata struct {
				Labels map[string]json.RawMessage `json:"f:labels"`
			} `json:"f:metadata"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err != nil {
			continue // the API server writes them, so this does not happen
		}
		for field := range owned.Metadata.Labels {
			delete(unowned, strings.TrimPrefix(field, "f:"))
		}
	}
	return unowned
}
