// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import "encoding/json"

// PropertySLO is a bundle's property that says how its operator is to be watched: the Services to probe, where metrics
// are, and objectives that differ from the default. Authors write it to metadata/properties.yaml; its value is that of
// package alerts/slo/spec, Profile.
const PropertySLO = "bellwether.dev/slo"

// SLO returns the value of the bundle's property PropertySLO; nil if it has none.
func (b *Bundle) SLO() json.RawMessage {
	for _, p := range b.Properties {
		if p.Type == PropertySLO {
			return p.Value
		}
	}
	return nil
}
