// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxFields limits the fields of a body before it is decoded, because two bytes can become a series
// of a hundred bytes. The usual request of Prometheus, with 2,000 samples, has about 30,000 fields.
const maxFields = 200_000

// layout has the numbers of the fields that are checked, for a version of remote write.
type layout struct {
	series protowire.Number
	// packed is the field of a series in which every byte can be a value.
	packed protowire.Number
	// refused are the fields of a series that are not accepted and that need more memory when they are decoded.
	refused [2]protowire.Number
}

// The layouts of prometheus.WriteRequest and io.prometheus.write.v2.Request.
var (
	layoutV1 = layout{series: 1, refused: [...]protowire.Number{3, 4}}
	layoutV2 = layout{series: 5, packed: 1, refused: [...]protowire.Number{3, 4}}
)

// check returns an error if decoding a body would need too much
// memory. It ignores malformed data, which the decoder reports.
func (l layout) check(raw []byte) error {
	remaining, err := maxFields, error(nil)
	visitFields(raw, func(number protowire.Number, value []byte) bool {
		remaining--
		if number == l.series && err == nil {
			remaining, err = l.checkSeries(value, remaining)
		}
		return remaining >= 0 && err == nil
	})
	if err == nil && remaining < 0 {
		err = refuse(http.StatusRequestEntityTooLarge, reasonTooBig,
			"the body has more than %d fields: lower max_samples_per_send", maxFields)
	}
	return err
}

// checkSeries returns how many of the remaining fields are left after a series. Every byte of a packed
// field counts as a field. It returns errNotSent for a series with a refused field.
func (l layout) checkSeries(raw []byte, remaining int) (int, error) {
	var err error
	visitFields(raw, func(number protowire.Number, value []byte) bool {
		remaining--
		switch number {
		case l.refused[0], l.refused[1]:
			err = errNotSent
		case l.packed:
			remaining -= len(value)
		}
		return remaining >= 0 && err == nil
	})
	return remaining, err
}

// visitFields calls visit for each field of a message, until visit returns
// false or a field is malformed. value is set for fields with a length.
func visitFields(raw []byte, visit func(number protowire.Number, value []byte) bool) {
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return
		}
		raw = raw[n:]
		var value []byte
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(raw)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, raw)
		}
		if n < 0 || !visit(number, value) {
			return
		}
		raw = raw[n:]
	}
}
