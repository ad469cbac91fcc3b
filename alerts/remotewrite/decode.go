// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remotewrite

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/bellwether-dev/bellwether/alerts/series"
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
)

// content is what a request would write.
type content struct {
	series  []labels.Labels
	samples int
}

// decode reads a body, of which not more than a limit is taken into memory. Labels are as
// they were sent: neither sorted nor without duplicates.
func decode(contentType, encoding string, body []byte, limit int) (content, error) {
	kind, err := remote.ParseProtoMsg(contentType)
	if err != nil || encoding != string(remote.SnappyBlockCompression) {
		return content{}, refuse(http.StatusUnsupportedMediaType, reasonFormat,
			"send snappy-compressed protobuf of remote write 1.0 or 2.0, not Content-Type %q, Content-Encoding %q",
			contentType, encoding)
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
		if err := c.add(pairs, len(ts.Samples), len(ts.Histograms), len(ts.Exemplars)); err != nil {
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
	symbol := func(ref uint32) (string, error) {
		if int64(ref) >= int64(len(request.Symbols)) {
			return "", errors.New("a label refers to no symbol")
		}
		return request.Symbols[ref], nil
	}
	for _, ts := range request.Timeseries {
		if len(ts.LabelsRefs)%2 != 0 {
			return c, refuse(http.StatusBadRequest, reasonFormat, "a label has no value")
		}
		pairs := make([]labels.Label, 0, len(ts.LabelsRefs)/2)
		for i := 0; i < len(ts.LabelsRefs); i += 2 {
			name, err := symbol(ts.LabelsRefs[i])
			value, err2 := symbol(ts.LabelsRefs[i+1])
			if err := errors.Join(err, err2); err != nil {
				return c, refuse(http.StatusBadRequest, reasonFormat, "%v", err)
			}
			pairs = append(pairs, labels.Label{Name: name, Value: value})
		}
		if err := c.add(pairs, len(ts.Samples), len(ts.Histograms), len(ts.Exemplars)); err != nil {
			return c, err
		}
	}
	return c, nil
}

// add takes a series. Labels out of order are refused, as both protocols ask for, and so
// are two of one name: stores do not agree which of them counts.
func (c *content) add(pairs []labels.Label, samples, histograms, exemplars int) error {
	for i, l := range pairs {
		if i > 0 && pairs[i-1].Name >= l.Name {
			return refuse(http.StatusBadRequest, reasonFormat, "the labels of a series are not sorted, or there are "+
				"two of the name %q", l.Name)
		}
	}
	if histograms > 0 || exemplars > 0 {
		return errNotSent
	}
	c.series, c.samples = append(c.series, labels.New(pairs...)), c.samples+samples
	return nil
}

// Most labels of a series, and bytes of one of them: what Prometheus itself would take is
// not bounded.
const (
	maxLabels     = 32
	maxLabelBytes = 1024
)

// check wants series of one cluster and of the given names only.
func (c content) check(cluster string, names map[string]bool) error {
	for _, s := range c.series {
		name, of := s.Get(model.MetricNameLabel), s.Get(series.Cluster)
		switch {
		case of != cluster:
			return refuse(http.StatusForbidden, reasonCluster,
				"the sender is cluster %q, and the series %.200q has the label cluster=%.200q", cluster, name, of)
		case !names[name]:
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
	}
	return nil
}
