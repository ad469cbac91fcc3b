// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// refusal is an error in a request. The sender must not send the request again.
type refusal struct {
	status int
	// reason is a word for metrics.
	reason  string
	message string
}

func (r *refusal) Error() string { return r.message }

// refuse returns a refusal with an HTTP status, a reason and a message.
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

// content is the decoded content of a request.
type content struct {
	series  []labels.Labels
	samples int
	// spans has the span of each series.
	spans []span
}

// span contains the limits of the samples of a series.
type span struct {
	samples     int
	low, high   float64
	first, last int64 // in milliseconds since 1970
}

// add adds a sample. A staleness marker has no value, so it does not change low and high.
func (s *span) add(milliseconds int64, v float64) {
	if s.samples++; s.samples == 1 {
		s.first, s.last, s.low, s.high = milliseconds, milliseconds, math.Inf(1), math.Inf(-1)
	}
	s.first, s.last = min(s.first, milliseconds), max(s.last, milliseconds)
	if !value.IsStaleNaN(v) {
		s.low, s.high = min(s.low, v), max(s.high, v) // NaN if one value is NaN
	}
}

// readMessageType returns the message type of a request from its headers.
func readMessageType(h http.Header) (remote.WriteMessageType, error) {
	contentType, encoding := h.Get("Content-Type"), h.Get("Content-Encoding")
	kind, err := remote.ParseProtoMsg(contentType)
	if err != nil || encoding != string(remote.SnappyBlockCompression) {
		return "", refuse(http.StatusUnsupportedMediaType, reasonFormat,
			"send snappy-compressed protobuf of remote write 1.0 or 2.0, not Content-Type %.200q, Content-Encoding "+
				"%.200q", contentType, encoding)
	}
	return kind, nil
}

// decode decodes a body. It returns a refusal if the uncompressed body is larger
// than limit. Labels are returned as sent: they may be unsorted or have duplicates.
func decode(h http.Header, body []byte, limit int) (content, error) {
	kind, err := readMessageType(h)
	if err != nil {
		return content{}, err
	}
	size, err := snappy.DecodedLen(body)
	if err != nil {
		return content{}, refuse(http.StatusBadRequest, reasonFormat, "the body is not snappy-compressed: %v", err)
	}
	if size > limit {
		return content{}, refuse(http.StatusRequestEntityTooLarge, reasonTooBig,
			"the body is %d bytes uncompressed, and may be at most %d", size, limit)
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

// errAmbiguous is returned for a body with fields of another version: a store
// that ignores the Content-Type would write these fields without a check.
var errAmbiguous = refuse(http.StatusBadRequest, reasonFormat,
	"the body has fields that are not of the version of remote write that the Content-Type says")

var errNotSent = refuse(http.StatusBadRequest, reasonFormat, "histograms and exemplars are not sent")

// decodeV1 decodes a body of remote write 1.0.
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
		var samples span
		for _, sample := range ts.Samples {
			samples.add(sample.Timestamp, sample.Value)
		}
		if err := c.add(pairs, samples, len(ts.Histograms), len(ts.Exemplars)); err != nil {
			return c, err
		}
	}
	return c, nil
}

// decodeV2 decodes a body of remote write 2.0.
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
		pairs, err := readLabels(ts.LabelsRefs, request.Symbols)
		if err != nil {
			return c, err
		}
		var samples span
		for _, sample := range ts.Samples {
			samples.add(sample.Timestamp, sample.Value)
		}
		if err := c.add(pairs, samples, len(ts.Histograms), len(ts.Exemplars)); err != nil {
			return c, err
		}
	}
	return c, nil
}

// readLabels returns the labels of a series. refs are indexes into the symbols.
func readLabels(refs []uint32, symbols []string) ([]labels.Label, error) {
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

// add adds a series. It refuses labels out of order, as both protocols require, and two labels
// with the same name, because some stores use the first label and other stores the second.
func (c *content) add(pairs []labels.Label, s span, histograms, exemplars int) error {
	for i, l := range pairs {
		if i > 0 && pairs[i-1].Name >= l.Name {
			return refuse(http.StatusBadRequest, reasonFormat, "the labels of a series are not sorted, or there are "+
				"two of the name %q", l.Name)
		}
	}
	if histograms > 0 || exemplars > 0 {
		return errNotSent
	}
	c.series, c.spans, c.samples = append(c.series, labels.New(pairs...)), append(c.spans, s), c.samples+s.samples
	return nil
}

// maxAge is the maximum age of samples; the hub's rules do not read older
// samples. maxAhead is how far the clock of a cluster may be ahead.
const (
	maxAge   = 2*time.Hour + 10*time.Minute
	maxAhead = 5 * time.Minute
)

// check returns a refusal if a value is not possible for the series, or a time is too far from now.
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
	limits, _ := series.FindValues(name)
	if limits.Now {
		limits.Max = float64(now.Add(maxAhead).Unix())
	}
	// The comparison is negated, so that NaN is refused. A series with only staleness markers has no values.
	if isEmpty := s.low > s.high; !isEmpty && !(s.low >= limits.Min && s.high <= limits.Max) {
		return refuse(http.StatusBadRequest, reasonValue, "the values of %q are between %g and %g, and can be between "+
			"%g and %g only", name, s.low, s.high, limits.Min, limits.Max)
	}
	return nil
}

// Maximum number of labels of a series, and maximum bytes of one label. Prometheus itself has no such limits.
const (
	maxLabels     = 32
	maxLabelBytes = 1024
)

// check returns a refusal unless all series have the label of the cluster,
// are series that clusters may send, and have valid labels and samples.
func (c content) check(cluster string, now time.Time) error {
	for i, s := range c.series {
		name, label := s.Get(model.MetricNameLabel), s.Get(series.Cluster)
		_, travels := series.FindValues(name)
		switch {
		case label != cluster:
			return refuse(http.StatusForbidden, reasonCluster,
				"the sender is cluster %q, and the series %.200q has the label cluster=%.200q", cluster, name, label)
		case !travels:
			return refuse(http.StatusForbidden, reasonName,
				"no rule reads the series %.200q of a cluster; take the configuration of the sender from "+
					"`bellwether slo edge-config`", name)
		case s.Len() > maxLabels:
			return refuse(http.StatusBadRequest, reasonTooBig, "a series of %q has %d labels, and may have at most %d",
				name, s.Len(), maxLabels)
		}
		if err := s.Validate(func(l labels.Label) error {
			if len(l.Name)+len(l.Value) > maxLabelBytes {
				return refuse(http.StatusBadRequest, reasonTooBig, "the label %.100q of a series of %q has %d bytes, "+
					"and may have at most %d", l.Name, name, len(l.Name)+len(l.Value), maxLabelBytes)
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
