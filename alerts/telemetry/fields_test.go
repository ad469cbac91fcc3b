// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

const (
	contentV1 = "application/x-protobuf;proto=prometheus.WriteRequest"
	contentV2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
)

// TestSmallBodiesThatBecomeLarge has bodies of less than 1 MiB that became hundreds of MiB: each cluster may send four
// at a time.
func TestSmallBodiesThatBecomeLarge(t *testing.T) {
	const size = 15 << 20
	series := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	empty := bytes.Repeat(series(1, nil), size/2)
	taken := untrustedtest.Allocated(func() {
		var request prompb.WriteRequest
		if err := request.Unmarshal(empty); err != nil {
			t.Error(err)
		}
	})
	if taken < 500<<20 {
		t.Errorf("%d bytes take %d: not an attack", len(empty), taken)
	}
	for name, test := range map[string]struct {
		kind string
		raw  []byte
	}{
		"empty series":            {contentV1, empty},
		"empty labels":            {contentV1, series(1, bytes.Repeat(series(1, nil), size/2))},
		"empty samples":           {contentV1, series(1, bytes.Repeat(series(2, nil), size/2))},
		"empty metadata":          {contentV1, bytes.Repeat(series(3, nil), size/2)},
		"histograms":              {contentV1, series(1, series(4, bytes.Repeat(series(8, nil), size/2)))},
		"2.0, empty series":       {contentV2, bytes.Repeat(series(5, nil), size/2)},
		"2.0, empty symbols":      {contentV2, bytes.Repeat(series(4, nil), size/2)},
		"2.0, labels":             {contentV2, series(5, series(1, make([]byte, size)))},
		"2.0, many small symbols": {contentV2, bytes.Repeat(series(4, []byte("a")), size/3)},
	} {
		t.Run(name, func(t *testing.T) {
			body := snappy.Encode(nil, test.raw)
			if len(body) > 1<<20 {
				t.Fatalf("the body has %d bytes", len(body))
			}
			untrustedtest.Bound(t, len(test.raw), 1<<20, 2, func() {
				_, err := decode(headers(test.kind), body, 16<<20)
				if refused := (*refusal)(nil); !errors.As(err, &refused) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func FuzzDecode(f *testing.F) {
	request := prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:  []prompb.Label{{Name: "__name__", Value: "up"}, {Name: "cluster", Value: "prod"}},
		Samples: []prompb.Sample{{Value: 1, Timestamp: 2}}}}}
	raw, err := request.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(false, snappy.Encode(nil, raw))
	f.Add(true, snappy.Encode(nil, raw))
	f.Add(true, snappy.Encode(nil, []byte("\x22\x00\x22\x01a\x2a\x04\x0a\x02\x01\x01")))
	f.Add(false, []byte("\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, two bool, body []byte) {
		kind := contentV1
		if two {
			kind = contentV2
		}
		const limit = 1 << 20
		untrustedtest.Bound(t, len(body), 64<<20, 100, func() {
			c, err := decode(headers(kind), body, limit)
			if refused := (*refusal)(nil); err != nil && !errors.As(err, &refused) {
				t.Errorf("an error of no kind: %v", err)
			}
			if err == nil && len(c.series) > maxFields {
				t.Errorf("%d series", len(c.series))
			}
		})
	})
}

func headers(contentType string) http.Header {
	return http.Header{"Content-Type": {contentType}, "Content-Encoding": {"snappy"}}
}
