// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"encoding/json"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// Rollbacks returns, for each bundle that this one can directly replace, how to go back to it, as far as the catalog
// knows. A property that cannot be decoded is ignored.
func (b *Bundle) Rollbacks() []registryv1.Rollback {
	var out []registryv1.Rollback
	for _, p := range b.Properties {
		var rollbacks []registryv1.Rollback
		if p.Type == registryv1.PropertyRollback && json.Unmarshal(p.Value, &rollbacks) == nil {
			out = append(out, rollbacks...)
		}
	}
	return out
}

// SLO returns the value of the bundle's property registryv1.PropertySLO; nil if it has none.
func (b *Bundle) SLO() json.RawMessage {
	for _, p := range b.Properties {
		if p.Type == registryv1.PropertySLO {
			return p.Value
		}
	}
	return nil
}

// MinKubeVersion returns the oldest version of Kubernetes that the bundle supports, by its property
// registryv1.PropertyCSVMetadata; empty if it has none.
func (b *Bundle) MinKubeVersion() string {
	for _, p := range b.Properties {
		var metadata struct {
			MinKubeVersion string `json:"minKubeVersion"`
		}
		if p.Type == registryv1.PropertyCSVMetadata && json.Unmarshal(p.Value, &metadata) == nil {
			return metadata.MinKubeVersion
		}
	}
	return ""
}

// Support returns for how long the bundle is supported and on which versions of Kubernetes, by its first property
// registryv1.PropertySupport; zero if it has none. Errors wrap registryv1.ErrSupport.
func (b *Bundle) Support() (registryv1.Support, error) {
	for _, p := range b.Properties {
		if p.Type == registryv1.PropertySupport {
			return registryv1.ParseSupport(p.Value)
		}
	}
	return registryv1.Support{}, nil
}
