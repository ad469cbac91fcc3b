// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/bellwether-dev/bellwether/bundles"
)

// TestLinesCountFromTheFile reads several documents, the second of which is wrong, from a file and from a stream.
func TestLinesCountFromTheFile(t *testing.T) {
	const annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: a}"
	const first = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n--- # next\n"
	for name, tc := range map[string]struct{ document, says string }{
		"broken YAML":    {"apiVersion: v1\nkind: b: c\n", ": broken YAML: yaml: line 7:"},
		"a field twice":  {"apiVersion: v1\nkind: Secret\nkind: Role\n", `line 8: the field "kind" is there twice`},
		"no object":      {"- a\n", ": the document at line 6: it is not an object"},
		"without a kind": {"apiVersion: v1\n", ": the document at line 6: it has no kind"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bundles.Read(fstest.MapFS{"manifests/all.yaml": {Data: []byte(first + tc.document)},
				"metadata/annotations.yaml": {Data: []byte(annotations)}})
			_, inStream := bundles.FromStream([]byte(first + tc.document))
			for _, err := range []error{err, inStream} {
				if !errors.Is(err, bundles.ErrNotBundle) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error %v, want one that says %q", err, tc.says)
				}
			}
		})
	}
}
