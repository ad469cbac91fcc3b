// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package requirements

import "github.com/operator-framework/api/pkg/encoding"

const (
	// MaxPacked is what opm puts into a ConfigMap at most when it unpacks a bundle:
	// pkg/configmap/configmap_writer.go of operator-registry.
	MaxPacked = 1 << 20
	// MaxObject is the size of a request that etcd refuses: no object is larger.
	MaxObject = 3 << 19
)

// PackedSize is what files of a bundle take in the ConfigMap that OLM unpacks it to:
// each is compressed on its own, and encoded.
func PackedSize(files [][]byte) (int, error) {
	size := 0
	for _, text := range files {
		packed, err := encoding.GzipBase64Encode(text)
		if err != nil {
			return 0, err
		}
		size += len(packed)
	}
	return size, nil
}
