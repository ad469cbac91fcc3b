// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"encoding/json"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Rollbacks returns the rollbacks that the catalog declares: from this bundle to bundles that it can directly replace.
// A property that cannot be decoded is ignored.
func (b *Bundle) Rollbacks() []bundles.Rollback {
	var out []bundles.Rollback
	for _, p := range b.Properties {
		var rollbacks []bundles.Rollback
		if p.Type == bundles.PropertyRollback && json.Unmarshal(p.Value, &rollbacks) == nil {
			out = append(out, rollbacks...)
		}
	}
	return out
}

// SLO returns the value of the bundle's property bundles.PropertySLO; nil if it has none.
func (b *Bundle) SLO() json.RawMessage {
	for _, p := range b.Properties {
		if p.Type == bundles.PropertySLO {
			return p.Value
		}
	}
	return nil
}

// MinKubeVersion returns the oldest version of Kubernetes that the bundle supports, from its property
// bundles.PropertyCSVMetadata; empty if it has none.
func (b *Bundle) MinKubeVersion() string {
	for _, p := range b.Properties {
		var metadata struct {
			MinKubeVersion string `json:"minKubeVersion"`
		}
		if p.Type == bundles.PropertyCSVMetadata && json.Unmarshal(p.Value, &metadata) == nil {
			return metadata.MinKubeVersion
		}
	}
	return ""
}

// Support returns for how long the bundle is supported and on which versions of Kubernetes, from its first property
// bundles.PropertySupport; zero if it has none. Errors wrap bundles.ErrSupport.
func (b *Bundle) Support() (bundles.Support, error) {
	for _, p := range b.Properties {
		if p.Type == bundles.PropertySupport {
			return bundles.ParseSupport(p.Value)
		}
	}
	return bundles.Support{}, nil
}
