// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/prompb"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

const (
	// observeEvery is how often samples are read. Slices are made every slo.Step.
	observeEvery = 15 * time.Second
	// maxWaiting limits the samples in the queue: it is enough for two hours of 60 operators.
	maxWaiting = 150_000
	// minBackoff and maxBackoff limit the wait after a failure.
	minBackoff, maxBackoff = time.Second, time.Minute
	// requestTimeout limits a request.
	requestTimeout = 30 * time.Second
)

// SenderOptions configure a Sender.
type SenderOptions struct {
	// Registry has the metrics of the agent.
	Registry prometheus.Gatherer
	// URL is the remote-write URL, and Client has the credentials for it.
	URL    string
	Client *http.Client
	// Metrics registers the metrics of the sender.
	Metrics prometheus.Registerer
	// Report is called with an error when sending begins to fail, and with
	// nil when it works again. It is also called with each error of Observe.
	Report func(error)
	Now    func() time.Time
}

// Sender makes slices every minute, and sends them. While the receiver is not available, it keeps the samples of
// slo.OutOfOrderWindow in memory. Older samples are lost, and the samples in memory are lost when the process ends.
type Sender struct {
	SenderOptions

	evaluator *Evaluator
	api       *remote.API
	outbox    *outbox
	sent      prometheus.Counter
	dropped   *prometheus.CounterVec
	failing   bool
}

// Reasons for dropping samples.
const (
	droppedOld     = "old"
	droppedRefused = "refused"
)

// NewSender returns a sender and registers its metrics.
func NewSender(e *Evaluator, o SenderOptions) (*Sender, error) {
	client := *o.Client
	client.Timeout = requestTimeout
	api, err := remote.NewAPI(o.URL, remote.WithAPIHTTPClient(&client), remote.WithAPIPath(""),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: minBackoff, Max: maxBackoff}))
	if err != nil {
		return nil, fmt.Errorf("make client of remote write: %w", err)
	}
	s := &Sender{SenderOptions: o, evaluator: e, api: api, outbox: newOutbox(slo.OutOfOrderWindow, maxWaiting)}
	all := series.SliceSender()
	s.sent = prometheus.NewCounter(prometheus.CounterOpts{Name: all[0].Name, Help: all[0].Help})
	s.dropped = prometheus.NewCounterVec(prometheus.CounterOpts{Name: all[1].Name, Help: all[1].Help}, all[1].Labels)
	for _, reason := range []string{droppedOld, droppedRefused} {
		s.dropped.WithLabelValues(reason) // so that the metric is 0 and not absent
	}
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: all[2].Name, Help: all[2].Help},
		func() float64 { return float64(s.outbox.countSamples()) })
	for _, c := range []prometheus.Collector{s.sent, s.dropped, waiting} {
		if err := o.Metrics.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return s, nil
}

// Start makes and sends slices until its context ends.
func (s *Sender) Start(ctx context.Context) error {
	go s.sendBatches(ctx)
	ticker := time.NewTicker(observeEvery)
	defer ticker.Stop()
	const perSlice = int(slo.Step / observeEvery)
	for i := 1; ; i++ {
		if err := s.Observe(ctx, i%perSlice == 0); err != nil {
			s.Report(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Observe reads samples. If evaluateRules is true, it also evaluates
// the rules and adds the samples that are sent to the outbox.
func (s *Sender) Observe(ctx context.Context, evaluateRules bool) error {
	// Metrics that cannot be gathered are missing. All other metrics are used.
	families, err := s.Registry.Gather()
	now := s.Now()
	samples := s.evaluator.Observe(families, now)
	if !evaluateRules {
		return err
	}
	recorded, evaluateErr := s.evaluator.Evaluate(ctx, now)
	if all := append(samples, recorded...); len(all) > 0 {
		s.dropped.WithLabelValues(droppedOld).Add(float64(s.outbox.add(batch{now, all})))
	}
	return errors.Join(err, evaluateErr)
}

// sendBatches sends one batch after the other, the oldest first, until its context ends.
func (s *Sender) sendBatches(ctx context.Context) {
	for {
		b, ok := s.outbox.peek()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-s.outbox.ready:
			}
			continue
		}
		err := s.writeBatch(ctx, b)
		if ctx.Err() != nil {
			return
		}
		s.recordResult(b, err)
	}
}

// writeBatch sends a batch, with retries. It returns when the batch was accepted or refused, or is too old.
func (s *Sender) writeBatch(ctx context.Context, b batch) error {
	ctx, cancel := context.WithTimeout(ctx, slo.OutOfOrderWindow-s.Now().Sub(b.at))
	defer cancel()
	request := &prompb.WriteRequest{}
	for _, sample := range b.samples {
		request.Timeseries = append(request.Timeseries, prompb.TimeSeries{Labels: prompb.FromLabels(sample.Labels, nil),
			Samples: []prompb.Sample{{Timestamp: sample.T, Value: sample.V}}})
	}
	_, err := s.api.Write(ctx, remote.WriteV1MessageType, request, remote.WithWriteRetryCallback(func(err error) {
		s.reportChange(fmt.Errorf("send slices: %w", err))
	}))
	return err
}

// recordResult removes a batch from the outbox, and counts its samples as sent or dropped.
func (s *Sender) recordResult(b batch, err error) {
	if !s.outbox.finish(b) {
		return // it was already dropped and counted
	}
	n := float64(len(b.samples))
	switch {
	case err == nil:
		s.sent.Add(n)
		s.reportChange(nil)
	case errors.Is(err, context.DeadlineExceeded):
		s.dropped.WithLabelValues(droppedOld).Add(n)
	default:
		s.dropped.WithLabelValues(droppedRefused).Add(n)
		s.reportChange(fmt.Errorf("send slices: %w", err))
	}
}

// reportChange calls Report only if sending begins to fail or works again.
func (s *Sender) reportChange(err error) {
	if s.failing != (err != nil) {
		s.failing = err != nil
		s.Report(err)
	}
}
