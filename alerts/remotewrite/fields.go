// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remotewrite

import (
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxFields bounds the fields of a body before it is decoded: two bytes can become a series of a hundred. What
// Prometheus sends at once, 2,000 samples, has about 30,000.
const maxFields = 200_000

// layout has the numbers of the fields of a version of remote write that are counted.
type layout struct {
	series protowire.Number
	// packed is the field of a series whose every byte can be a value.
	packed protowire.Number
	// refused are the fields of a series that are not taken, and are larger when they are decoded.
	refused [2]protowire.Number
}

// The layouts of prometheus.WriteRequest and io.prometheus.write.v2.Request.
var (
	layoutV1 = layout{series: 1, refused: [...]protowire.Number{3, 4}}
	layoutV2 = layout{series: 5, packed: 1, refused: [...]protowire.Number{3, 4}}
)

// check returns an error if decoding a body would take too much memory. That it is broken is for its decoder to say.
func (l layout) check(raw []byte) error {
	left, err := maxFields, error(nil)
	each(raw, func(number protowire.Number, value []byte) bool {
		left--
		if number == l.series && err == nil {
			left, err = l.checkSeries(value, left)
		}
		return left >= 0 && err == nil
	})
	if err == nil && left < 0 {
		err = refuse(http.StatusRequestEntityTooLarge, reasonTooBig,
			"the body has more than %d fields: lower max_samples_per_send", maxFields)
	}
	return err
}

// checkSeries returns how many fields are left after a series.
func (l layout) checkSeries(raw []byte, left int) (int, error) {
	var err error
	each(raw, func(number protowire.Number, value []byte) bool {
		left--
		switch number {
		case l.refused[0], l.refused[1]:
			err = errNotSent
		case l.packed:
			left -= len(value)
		}
		return left >= 0 && err == nil
	})
	return left, err
}

// each calls visit for each field of a message up to the first broken one, with the value of one that has a length,
// until it returns false.
func each(raw []byte, visit func(number protowire.Number, value []byte) bool) {
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
