// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"bytes"
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// Manifest is an object of a bundle in a form that all decoders read in the same way.
type Manifest struct {
	Kind string
	Name string
	// JSON has sorted fields, each only once, and no white space.
	JSON []byte
}

// Canonicalize decodes each manifest, which is JSON or YAML, and encodes the result as JSON. Code that checks a bundle
// and then passes the manifests on must use this result for both, so that the receiver reads what was checked. Empty
// manifests are omitted. Errors wrap ErrNotBundle.
func Canonicalize(manifests [][]byte) ([]Manifest, error) {
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

// IsCSV reports whether a manifest, as JSON, is a ClusterServiceVersion. As in OLM, only the kind counts.
func IsCSV(manifest []byte) bool {
	// Decoding is slow for large manifests, and most are not CSVs. The text of a CSV contains the kind, either in full
	// or with an escape.
	if !bytes.Contains(manifest, []byte(kindCSV)) && !bytes.Contains(manifest, []byte(`\u`)) {
		return false
	}
	var in struct {
		Kind string `json:"kind"`
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(manifest, &in) == nil && in.Kind == kindCSV
}
