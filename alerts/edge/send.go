// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

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
	// observeEvery is how often samples are taken. Slices are made every slo.Step.
	observeEvery = 15 * time.Second
	// mostSamples bounds what waits to be sent: two hours of 60 operators.
	mostSamples = 150_000
	// minBackoff and maxBackoff bound how long it waits after a failure.
	minBackoff, maxBackoff = time.Second, time.Minute
	// requestTimeout bounds a request.
	requestTimeout = 30 * time.Second
)

// Options configure a Sender.
type Options struct {
	// Registry has what the agent measures.
	Registry prometheus.Gatherer
	// URL takes remote write, and Client has the credentials for it.
	URL    string
	Client *http.Client
	// Metrics takes those of the sender.
	Metrics prometheus.Registerer
	// Report is told when sending begins to fail, and when it works again (nil).
	Report func(error)
	Now    func() time.Time
}

// Sender makes slices every minute, and sends them. While the receiver is away it keeps
// those of slo.OutOfOrderWindow in memory; what is older is lost, and so is what is in
// memory when the process ends.
type Sender struct {
	Options

	evaluator *Evaluator
	api       *remote.API
	outbox    *outbox
	sent      prometheus.Counter
	dropped   *prometheus.CounterVec
	failing   bool
}

// Reasons for which samples are dropped.
const (
	droppedOld     = "old"
	droppedRefused = "refused"
)

// NewSender makes a sender.
func NewSender(e *Evaluator, o Options) (*Sender, error) {
	client := *o.Client
	client.Timeout = requestTimeout
	api, err := remote.NewAPI(o.URL, remote.WithAPIHTTPClient(&client), remote.WithAPIPath(""),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: minBackoff, Max: maxBackoff}))
	if err != nil {
		return nil, fmt.Errorf("make client of remote write: %w", err)
	}
	s := &Sender{Options: o, evaluator: e, api: api, outbox: newOutbox(slo.OutOfOrderWindow, mostSamples)}
	all := series.SliceSender()
	s.sent = prometheus.NewCounter(prometheus.CounterOpts{Name: all[0].Name, Help: all[0].Help})
	s.dropped = prometheus.NewCounterVec(prometheus.CounterOpts{Name: all[1].Name, Help: all[1].Help}, all[1].Labels)
	for _, reason := range []string{droppedOld, droppedRefused} {
		s.dropped.WithLabelValues(reason) // 0, and not absent
	}
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: all[2].Name, Help: all[2].Help},
		func() float64 { return float64(s.outbox.waiting()) })
	for _, c := range []prometheus.Collector{s.sent, s.dropped, waiting} {
		if err := o.Metrics.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return s, nil
}

// Start makes and sends slices until its context ends.
func (s *Sender) Start(ctx context.Context) error {
	go s.send(ctx)
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

// Observe takes samples and, if it is time for slices, evaluates the rules. It puts what
// travels into the outbox.
func (s *Sender) Observe(ctx context.Context, slices bool) error {
	// What cannot be gathered is missing, and the rest is there.
	families, err := s.Registry.Gather()
	now := s.Now()
	samples := s.evaluator.Observe(families, now)
	if !slices {
		return err
	}
	recorded, evaluateErr := s.evaluator.Evaluate(ctx, now)
	if all := append(samples, recorded...); len(all) > 0 {
		s.dropped.WithLabelValues(droppedOld).Add(float64(s.outbox.put(batch{now, all})))
	}
	return errors.Join(err, evaluateErr)
}

// send sends one batch after the other, the oldest first.
func (s *Sender) send(ctx context.Context) {
	for {
		b, ok := s.outbox.next()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-s.outbox.news:
			}
			continue
		}
		err := s.write(ctx, b)
		if ctx.Err() != nil {
			return
		}
		s.finish(b, err)
	}
}

// write returns when a batch was taken or refused, or when it is too old.
func (s *Sender) write(ctx context.Context, b batch) error {
	ctx, cancel := context.WithTimeout(ctx, slo.OutOfOrderWindow-s.Now().Sub(b.at))
	defer cancel()
	request := &prompb.WriteRequest{}
	for _, one := range b.samples {
		request.Timeseries = append(request.Timeseries, prompb.TimeSeries{Labels: prompb.FromLabels(one.Labels, nil),
			Samples: []prompb.Sample{{Timestamp: one.T, Value: one.V}}})
	}
	_, err := s.api.Write(ctx, remote.WriteV1MessageType, request, remote.WithWriteRetryCallback(func(err error) {
		s.report(fmt.Errorf("send slices: %w", err))
	}))
	return err
}

func (s *Sender) finish(b batch, err error) {
	if !s.outbox.done(b) {
		return // it was dropped, and counted then
	}
	n := float64(len(b.samples))
	switch {
	case err == nil:
		s.sent.Add(n)
		s.report(nil)
	case errors.Is(err, context.DeadlineExceeded):
		s.dropped.WithLabelValues(droppedOld).Add(n)
	default:
		s.dropped.WithLabelValues(droppedRefused).Add(n)
		s.report(fmt.Errorf("send slices: %w", err))
	}
}

// report tells of changes only.
func (s *Sender) report(err error) {
	if s.failing != (err != nil) {
		s.failing = err != nil
		s.Report(err)
	}
}
