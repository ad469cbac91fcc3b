// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package requirements

import "github.com/operator-framework/api/pkg/encoding"

const (
	// MaxPacked is the maximum number of bytes that opm writes into a ConfigMap when it unpacks a bundle
	// (pkg/configmap/configmap_writer.go of operator-registry).
	MaxPacked = 1 << 20
	// MaxObject is the size of requests that etcd refuses. It is an upper limit for the size of objects.
	MaxObject = 3 << 19
)

// PackedSize returns the number of bytes that the files of a bundle need in the ConfigMap that OLM unpacks the bundle
// to. Each file is compressed and encoded separately.
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
