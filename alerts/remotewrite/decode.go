// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remotewrite

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/phrase"
)

// refusal is what is wrong with a request, for its sender, who must not send it again.
type refusal struct {
	status int
	// reason is a word for metrics.
	reason  string
	message string
}

func (r *refusal) Error() string { return r.message }

func refuse(status int, reason, format string, args ...any) error {
	return &refusal{status, reason, fmt.Sprintf(format, args...)}
}

// Reasons of refusals.
const (
	reasonFormat  = "format"
	reasonTooBig  = "too_big"
	reasonCluster = "cluster"
	reasonName    = "name"
	reasonLimit   = "limit"
	reasonValue   = "value"
	reasonTime    = "time"
)

// content is what a request would write.
type content struct {
	series  []labels.Labels
	samples int
	// spans are those of the samples of each series.
	spans []span
}

// span is what the samples of a series lie within.
type span struct {
	samples     int
	low, high   float64
	first, last int64 // in milliseconds since 1970
}

// add takes a sample. A mark that a series has ended is no value.
func (s *span) add(milliseconds int64, v float64) {
	if s.samples++; s.samples == 1 {
		s.first, s.last, s.low, s.high = milliseconds, milliseconds, math.Inf(1), math.Inf(-1)
	}
	s.first, s.last = min(s.first, milliseconds), max(s.last, milliseconds)
	if !value.IsStaleNaN(v) {
		s.low, s.high = min(s.low, v), max(s.high, v) // not a number if one of them is not
	}
}

// kindOf returns which message a request says that its body is.
func kindOf(h http.Header) (remote.WriteMessageType, error) {
	contentType, encoding := h.Get("Content-Type"), h.Get("Content-Encoding")
	kind, err := remote.ParseProtoMsg(contentType)
	if err != nil || encoding != string(remote.SnappyBlockCompression) {
		return "", refuse(http.StatusUnsupportedMediaType, reasonFormat,
			"send snappy-compressed protobuf of remote write 1.0 or 2.0, not Content-Type %.200q, Content-Encoding "+
				"%.200q", contentType, encoding)
	}
	return kind, nil
}

// decode reads a body, of which not more than a limit is taken into memory. Labels are as
// they were sent: neither sorted nor without duplicates.
func decode(h http.Header, body []byte, limit int) (content, error) {
	kind, err := kindOf(h)
	if err != nil {
		return content{}, err
	}
	size, err := snappy.DecodedLen(body)
	if err != nil {
		return content{}, refuse(http.StatusBadRequest, reasonFormat, "the body is not snappy-compressed: %v", err)
	}
	if size > limit {
		return content{}, refuse(http.StatusRequestEntityTooLarge, reasonTooBig,
			"the body is %d bytes uncompressed, and may be %d", size, limit)
	}
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		return content{}, refuse(http.StatusBadRequest, reasonFormat, "the body is not snappy-compressed: %v", err)
	}
	if kind == remote.WriteV2MessageType {
		if err := layoutV2.check(raw); err != nil {
			return content{}, err
		}
		return decodeV2(raw)
	}
	if err := layoutV1.check(raw); err != nil {
		return content{}, err
	}
	return decodeV1(raw)
}

// errAmbiguous is about a body that has fields of another version: a store that does not
// look at the Content-Type would write those, which were not checked.
var errAmbiguous = refuse(http.StatusBadRequest, reasonFormat,
	"the body has fields that are not of the version of remote write that the Content-Type says")

var errNotSent = refuse(http.StatusBadRequest, reasonFormat, "histograms and exemplars are not sent")

func decodeV1(raw []byte) (content, error) {
	var request prompb.WriteRequest
	if err := request.Unmarshal(raw); err != nil {
		return content{}, refuse(http.StatusBadRequest, reasonFormat, "the body is no prometheus.WriteRequest: %v", err)
	}
	if len(request.XXX_unrecognized) > 0 {
		return content{}, errAmbiguous
	}
	if len(request.Timeseries) > 0 && len(request.Metadata) > 0 {
		return content{}, refuse(http.StatusBadRequest, reasonFormat, "send no metadata with samples")
	}
	var c content
	for _, ts := range request.Timeseries {
		pairs := make([]labels.Label, 0, len(ts.Labels))
		for _, l := range ts.Labels {
			pairs = append(pairs, labels.Label{Name: l.Name, Value: l.Value})
		}
		var of span
		for _, sample := range ts.Samples {
			of.add(sample.Timestamp, sample.Value)
		}
		if err := c.add(pairs, of, len(ts.Histograms), len(ts.Exemplars)); err != nil {
			return c, err
		}
	}
	return c, nil
}

func decodeV2(raw []byte) (content, error) {
	var request writev2.Request
	if err := request.Unmarshal(raw); err != nil {
		return content{}, refuse(http.StatusBadRequest, reasonFormat,
			"the body is no io.prometheus.write.v2.Request: %v", err)
	}
	if len(request.XXX_unrecognized) > 0 {
		return content{}, errAmbiguous
	}
	var c content
	for _, ts := range request.Timeseries {
		pairs, err := pairsOf(ts.LabelsRefs, request.Symbols)
		if err != nil {
			return c, err
		}
		var of span
		for _, sample := range ts.Samples {
			of.add(sample.Timestamp, sample.Value)
		}
		if err := c.add(pairs, of, len(ts.Histograms), len(ts.Exemplars)); err != nil {
			return c, err
		}
	}
	return c, nil
}

// pairsOf are labels, whose names and values are symbols.
func pairsOf(refs []uint32, symbols []string) ([]labels.Label, error) {
	if len(refs)%2 != 0 {
		return nil, refuse(http.StatusBadRequest, reasonFormat, "a label has no value")
	}
	pairs := make([]labels.Label, 0, len(refs)/2)
	for i := 0; i < len(refs); i += 2 {
		if last := uint64(max(refs[i], refs[i+1])); last >= uint64(len(symbols)) {
			return nil, refuse(http.StatusBadRequest, reasonFormat, "a label refers to no symbol")
		}
		pairs = append(pairs, labels.Label{Name: symbols[refs[i]], Value: symbols[refs[i+1]]})
	}
	return pairs, nil
}

// add takes a series. Labels out of order are refused, as both protocols ask for, and so
// are two of one name: stores do not agree which of them counts.
func (c *content) add(pairs []labels.Label, of span, histograms, exemplars int) error {
	for i, l := range pairs {
		if i > 0 && pairs[i-1].Name >= l.Name {
			return refuse(http.StatusBadRequest, reasonFormat, "the labels of a series are not sorted, or there are "+
				"two of the name %q", l.Name)
		}
	}
	if histograms > 0 || exemplars > 0 {
		return errNotSent
	}
	c.series, c.spans, c.samples = append(c.series, labels.New(pairs...)), append(c.spans, of), c.samples+of.samples
	return nil
}

// How old samples may be, and how far ahead the clock of a cluster: what is older the hub's rules do not read any more.
const (
	maxAge   = 2*time.Hour + 10*time.Minute
	maxAhead = 5 * time.Minute
)

// check wants values that the series can have, and times about now.
func (s span) check(name string, now time.Time) error {
	if s.samples == 0 {
		return nil
	}
	first, last := time.UnixMilli(s.first), time.UnixMilli(s.last)
	if now.Sub(first) > maxAge || last.Sub(now) > maxAhead {
		return refuse(http.StatusBadRequest, reasonTime, "samples of %q are of %s to %s, and may be at most %s old "+
			"and %s ahead of %s: check the clock of the cluster, and sample_age_limit of its sender", name,
			phrase.Time(first), phrase.Time(last), maxAge, maxAhead,
			phrase.Time(now))
	}
	of, _ := series.ValuesOf(name)
	if of.Now {
		of.Max = float64(now.Add(maxAhead).Unix())
	}
	if isEmpty := s.low > s.high; !isEmpty && !(s.low >= of.Min && s.high <= of.Max) {
		return refuse(http.StatusBadRequest, reasonValue, "the values of %q are between %g and %g, and can be between "+
			"%g and %g only", name, s.low, s.high, of.Min, of.Max)
	}
	return nil
}

// Most labels of a series, and bytes of one of them: what Prometheus itself would take is
// not bounded.
const (
	maxLabels     = 32
	maxLabelBytes = 1024
)

// check wants series of one cluster that travel, with what they can have.
func (c content) check(cluster string, now time.Time) error {
	for i, s := range c.series {
		name, of := s.Get(model.MetricNameLabel), s.Get(series.Cluster)
		_, travels := series.ValuesOf(name)
		switch {
		case of != cluster:
			return refuse(http.StatusForbidden, reasonCluster,
				"the sender is cluster %q, and the series %.200q has the label cluster=%.200q", cluster, name, of)
		case !travels:
			return refuse(http.StatusForbidden, reasonName,
				"no rule reads the series %.200q of a cluster; take the configuration of the sender from "+
					"`bellwether slo edge-config`", name)
		case s.Len() > maxLabels:
			return refuse(http.StatusBadRequest, reasonTooBig, "a series of %q has %d labels, and may have %d", name,
				s.Len(), maxLabels)
		}
		if err := s.Validate(func(l labels.Label) error {
			if len(l.Name)+len(l.Value) > maxLabelBytes {
				return refuse(http.StatusBadRequest, reasonTooBig, "the label %.100q of a series of %q has %d bytes, "+
					"and may have %d", l.Name, name, len(l.Name)+len(l.Value), maxLabelBytes)
			}
			return nil
		}); err != nil {
			return err
		}
		if err := c.spans[i].check(name, now); err != nil {
			return err
		}
	}
	return nil
}
