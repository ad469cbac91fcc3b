// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import "github.com/operator-framework/operator-registry/pkg/api"

// addEncodedFields adds fields to a message that are already encoded, without decoding them.
//
// A message may carry fields that its type does not know, as encoded bytes, and gRPC sends these unchanged; the client
// decodes them as usual. Here they are fields that api.Bundle does know. Manifests are up to a megabyte, and this saves
// decoding and encoding them for each client. docs/benchmarks.md promises that listing a whole catalog takes no longer
// than with opm, and it takes 0.54 of opm's time; with proto.Unmarshal instead, BenchmarkListBundles takes 2.3 times as
// long, which would break the promise.
//
// The message keeps the bytes, not a copy: it must be sent before the next one is read, and the fields cannot be read
// from it.
func (r *bundleReader) addEncodedFields(to *api.Bundle, fields ...blob) error {
	encoded, err := readBlobs(r.stored, r.buffer, fields...)
	if err != nil {
		return err
	}
	r.buffer = encoded
	to.ProtoReflect().SetUnknown(encoded)
	return nil
}
