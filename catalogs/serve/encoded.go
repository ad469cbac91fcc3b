// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import "github.com/operator-framework/operator-registry/pkg/api"

// addEncodedFields adds the encoded fields in the blobs to a message without decoding them. It stores them as unknown
// fields of the message: gRPC sends the bytes unchanged, and the client decodes them as fields of api.Bundle. The
// message's own fields and getters do not have these values.
//
// The message refers to r.buffer without a copy, so it must be sent before the reader reads the next message.
//
// Manifests have up to a megabyte, and decoding and encoding them for each client would take too long.
// docs/benchmarks.md promises that listing a whole catalog takes no longer than with opm. It takes 0.54 of opm's time;
// with proto.Unmarshal, BenchmarkListBundles takes 2.3 times as long.
func (r *bundleReader) addEncodedFields(to *api.Bundle, fields ...blob) error {
	encoded, err := readBlobs(r.stored, r.buffer, fields...)
	if err != nil {
		return err
	}
	r.buffer = encoded
	to.ProtoReflect().SetUnknown(encoded)
	return nil
}
