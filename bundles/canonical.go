// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"bytes"
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// Manifest is an object of a bundle in a form that all decoders read alike.
type Manifest struct {
	Kind string
	Name string
	// JSON has sorted fields, each once, and no white space.
	JSON []byte
}

// Canonical decodes manifests, JSON or YAML, one by one, and encodes what was decoded. Whoever judges a bundle and
// passes it on does both with the result. Errors wrap ErrNotBundle.
func Canonical(manifests [][]byte) ([]Manifest, error) {
	out := make([]Manifest, 0, len(manifests))
	for i, text := range manifests {
		o, err := parseObject(fmt.Sprintf("manifests/%d", i), 1, text)
		if err != nil {
			return nil, err
		}
		if o == nil {
			continue
		}
		encoded, err := json.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s %q: %w", o.GetKind(), o.GetName(), err)
		}
		out = append(out, Manifest{Kind: o.GetKind(), Name: o.GetName(), JSON: encoded})
	}
	return out, nil
}

// IsCSV tells whether a manifest, as JSON, is a ClusterServiceVersion: by its kind, as OLM does it.
func IsCSV(manifest []byte) bool {
	// Most manifests are large and none, which their text tells: a kind is written in full there, or with an escape.
	if !bytes.Contains(manifest, []byte(kindCSV)) && !bytes.Contains(manifest, []byte(`\u`)) {
		return false
	}
	var in struct {
		Kind string `json:"kind"`
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(manifest, &in) == nil && in.Kind == kindCSV
}
