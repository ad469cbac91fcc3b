// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	server "github.com/bellwether-dev/bellwether/alerts/prometheus"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// Evaluator evaluates queries. It is an error if there is no complete result within
// the timeout. Package alerts/prometheus has a client.
type Evaluator interface {
	Evaluate(ctx context.Context, query string, at time.Time, timeout time.Duration) (model.Value, error)
}

const (
	// queryTimeout bounds one query, and questionTimeout all queries of a gate.
	queryTimeout    = 10 * time.Second
	questionTimeout = 20 * time.Second
	// evaluations is how many gates are measured at a time.
	evaluations = 4
	// keep is how long answers are kept after the last question of a rollout.
	keep = 10 * time.Minute
	// maxFailure is how long the text of an error is at most.
	maxFailure = 500
)

// Measurer answers the questions of gates in the background, so that a Prometheus
// that is slow holds up no rollout but those that wait for it. It keeps the newest
// answer for each gate, in memory: after a restart everything is measured again.
// A nil Measurer measures nothing.
type Measurer struct {
	evaluator Evaluator
	// slots are those of questions whose queries are ours, and custom those of other queries, of which each namespace
	// has one at a time: no tenant's query holds up what others ask.
	slots, custom chan struct{}
	// answered tells the controller of rollouts that have a new answer.
	answered chan event.TypedGenericEvent[*v1alpha1.OperatorRollout]

	mu      sync.Mutex
	ctx     context.Context
	running sync.WaitGroup
	known   map[types.UID]*measurements
	tenants map[string]chan struct{}
}

// measurements are those of a rollout.
type measurements struct {
	askedAt time.Time
	busy    map[gateKey]bool
	answers map[gateKey]rollouts.Answer
}

type gateKey struct{ wave, gate string }

// newMeasurer makes one. Without an evaluator every answer is that there is none.
func newMeasurer(evaluator Evaluator) *Measurer {
	if evaluator == nil {
		evaluator = noPrometheus{}
	}
	return &Measurer{evaluator: evaluator, slots: make(chan struct{}, evaluations),
		custom:   make(chan struct{}, evaluations),
		answered: make(chan event.TypedGenericEvent[*v1alpha1.OperatorRollout]),
		known:    map[types.UID]*measurements{}, tenants: map[string]chan struct{}{}}
}

// evaluatorOf is nil where there is no Prometheus to ask.
func evaluatorOf(e server.Endpoint) (Evaluator, error) {
	if e.URL == "" {
		return nil, nil
	}
	client, err := e.Client()
	if err != nil {
		return nil, err
	}
	return client, nil
}

// noPrometheus stands for a Prometheus that the hub was not told of.
type noPrometheus struct{}

var errNoPrometheus = errors.New("the hub has no address of a Prometheus: set its flag --prometheus-url")

func (noPrometheus) Evaluate(context.Context, string, time.Time, time.Duration) (model.Value, error) {
	return nil, errNoPrometheus
}

// Start implements manager.Runnable. It returns once nothing is measured any more.
func (m *Measurer) Start(ctx context.Context) error {
	m.mu.Lock()
	m.ctx = ctx
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	m.ctx = nil
	m.mu.Unlock()
	m.running.Wait()
	return nil
}

// answers are the newest ones for a rollout.
func (m *Measurer) answers(rollout types.UID) []rollouts.Answer {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.known[rollout]
	if known == nil {
		return nil
	}
	all := make([]rollouts.Answer, 0, len(known.answers))
	for _, a := range known.answers {
		all = append(all, a)
	}
	return all
}

// prune drops rollouts that nothing was asked about for a while. Waves that gates hold
// back are measured again and again.
func (m *Measurer) prune(now time.Time) {
	for uid, known := range m.known {
		if now.Sub(known.askedAt) > keep {
			delete(m.known, uid)
		}
	}
}

// ask measures what is asked, unless it is being measured. It does not wait.
func (m *Measurer) ask(ro *v1alpha1.OperatorRollout, questions []rollouts.Question) {
	if m == nil || len(questions) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx == nil { // not started, or stopped
		return
	}
	m.prune(questions[0].At)
	known := m.known[ro.UID]
	if known == nil {
		known = &measurements{busy: map[gateKey]bool{}, answers: map[gateKey]rollouts.Answer{}}
		m.known[ro.UID] = known
	}
	known.askedAt = questions[0].At
	about := &v1alpha1.OperatorRollout{}
	about.Namespace, about.Name = ro.Namespace, ro.Name
	for _, q := range questions {
		key := gateKey{q.Wave, q.Gate}
		if known.busy[key] {
			continue
		}
		known.busy[key] = true
		m.running.Add(1)
		go m.measure(m.ctx, about, known, q)
	}
}

// measure answers one question.
func (m *Measurer) measure(ctx context.Context, about *v1alpha1.OperatorRollout, known *measurements,
	q rollouts.Question) {
	defer m.running.Done()
	key := gateKey{q.Wave, q.Gate}
	taken := m.slotsOf(about.Namespace, q)
	for i, slots := range taken {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			releaseSlots(taken[:i])
			return
		}
	}
	answer := m.evaluate(ctx, q)
	releaseSlots(taken)
	m.mu.Lock()
	known.busy[key] = false
	known.answers[key] = answer
	m.mu.Unlock()
	select {
	case m.answered <- event.TypedGenericEvent[*v1alpha1.OperatorRollout]{Object: about}:
	case <-ctx.Done():
	}
}

// slotsOf are the slots that a question needs, in the order in which they are taken.
func (m *Measurer) slotsOf(namespace string, q rollouts.Question) []chan struct{} {
	if !q.Custom {
		return []chan struct{}{m.slots}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tenants[namespace] == nil {
		m.tenants[namespace] = make(chan struct{}, 1)
	}
	return []chan struct{}{m.tenants[namespace], m.custom}
}

func releaseSlots(slots []chan struct{}) {
	for _, s := range slots {
		<-s
	}
}

// evaluate runs the queries of a question. One that fails makes the answer a
// failure: half of the evidence is none.
func (m *Measurer) evaluate(ctx context.Context, q rollouts.Question) rollouts.Answer {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	answer := rollouts.Answer{Question: q, Results: map[string]rollouts.Result{}}
	for _, name := range slices.Sorted(maps.Keys(q.Queries)) {
		value, err := m.evaluator.Evaluate(ctx, q.Queries[name], q.At, queryTimeout)
		if err != nil {
			answer.Results = nil
			answer.Failure = phrase.Truncate(phrase.OneLine(err.Error()), maxFailure)
			return answer
		}
		answer.Results[name] = resultOf(value)
		if q.Custom {
			answer.Results[name] = few(answer.Results[name])
		}
	}
	return answer
}

// few keeps of a result what tells whether it is one number.
func few(r rollouts.Result) rollouts.Result {
	kept := make([]rollouts.Sample, 0, min(len(r.Samples), 2))
	for _, s := range r.Samples[:min(len(r.Samples), 2)] {
		kept = append(kept, rollouts.Sample{Value: s.Value})
	}
	r.Samples = kept
	return r
}

// resultOf writes a result of Prometheus as rollouts read it.
func resultOf(value model.Value) rollouts.Result {
	switch v := value.(type) {
	case *model.Scalar:
		return rollouts.Result{Type: "scalar", Samples: []rollouts.Sample{{Value: float64(v.Value)}}}
	case model.Vector:
		result := rollouts.Result{Type: "vector"}
		for _, s := range v {
			sample := rollouts.Sample{Labels: make(map[string]string, len(s.Metric)), Value: float64(s.Value)}
			for name, label := range s.Metric {
				sample.Labels[string(name)] = string(label)
			}
			result.Samples = append(result.Samples, sample)
		}
		if slices.ContainsFunc(v, func(s *model.Sample) bool { return s.Histogram != nil }) {
			result.Type, result.Samples = "histogram", nil
		}
		return result
	case nil:
		return rollouts.Result{}
	default:
		return rollouts.Result{Type: fmt.Sprint(value.Type())}
	}
}
