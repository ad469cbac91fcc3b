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
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// Evaluator evaluates queries of Prometheus. An incomplete result within the timeout is an
// error. Package alerts/prometheus has a client.
type Evaluator interface {
	Evaluate(ctx context.Context, query string, at time.Time, timeout time.Duration) (model.Value, error)
}

const (
	// queryTimeout limits one query, and questionTimeout limits all queries of a gate together.
	queryTimeout    = 10 * time.Second
	questionTimeout = 20 * time.Second
	// maxEvaluations is how many gates are measured at the same time.
	maxEvaluations = 4
	// answerRetention is how long answers are kept after the last question of a rollout.
	answerRetention = 10 * time.Minute
	// maxFailureLength limits the text of an error.
	maxFailureLength = 500
)

// Measurer answers the questions of gates in the background, so that a slow Prometheus blocks
// only the rollouts that wait for an answer. It keeps the newest answer for each gate in memory;
// after a restart, all gates are measured again. A nil Measurer measures nothing.
type Measurer struct {
	evaluator Evaluator
	// slots limit the questions with Bellwether's own queries. customSlots limit the questions
	// with queries of tenants. tenantSlots give each namespace one custom question at a time, so
	// that no tenant can block another tenant.
	slots, customSlots chan struct{}
	// answered notifies the controller of rollouts that have a new answer.
	answered chan event.TypedGenericEvent[*v1alpha1.OperatorRollout]

	mu          sync.Mutex
	ctx         context.Context
	running     sync.WaitGroup
	byRollout   map[types.UID]*measurements
	tenantSlots map[string]chan struct{}
}

// measurements are the running and finished measurements of one rollout.
type measurements struct {
	requestedAt time.Time
	busy        map[gateKey]bool
	answers     map[gateKey]rollouts.Answer
}

// gateKey identifies a gate of a wave.
type gateKey struct{ wave, gate string }

// newMeasurer returns a Measurer. If evaluator is nil, each answer is an error
// about the missing Prometheus.
func newMeasurer(evaluator Evaluator) *Measurer {
	if evaluator == nil {
		evaluator = noPrometheus{}
	}
	return &Measurer{evaluator: evaluator, slots: make(chan struct{}, maxEvaluations),
		customSlots: make(chan struct{}, maxEvaluations),
		answered:    make(chan event.TypedGenericEvent[*v1alpha1.OperatorRollout]),
		byRollout:   map[types.UID]*measurements{}, tenantSlots: map[string]chan struct{}{}}
}

// newEvaluator returns a client for the endpoint; nil if the endpoint has no URL.
func newEvaluator(e server.Endpoint) (Evaluator, error) {
	if e.URL == "" {
		return nil, nil
	}
	client, err := e.Client()
	if err != nil {
		return nil, err
	}
	return client, nil
}

// noPrometheus is the Evaluator that is used if no Prometheus is configured. It always fails.
type noPrometheus struct{}

var errNoPrometheus = errors.New("the hub has no address of a Prometheus: set its flag --prometheus-url")

func (noPrometheus) Evaluate(context.Context, string, time.Time, time.Duration) (model.Value, error) {
	return nil, errNoPrometheus
}

// Start implements manager.Runnable. It allows measurements until the context ends, and returns
// after all running measurements have ended.
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

// listAnswers returns the newest answers for the gates of a rollout; nil if there are none.
func (m *Measurer) listAnswers(rollout types.UID) []rollouts.Answer {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	state := m.byRollout[rollout]
	if state == nil {
		return nil
	}
	all := make([]rollouts.Answer, 0, len(state.answers))
	for _, a := range state.answers {
		all = append(all, a)
	}
	return all
}

// prune removes rollouts without a question for answerRetention. The gates of a waiting wave are
// asked repeatedly, so such rollouts stay. The caller holds the lock.
func (m *Measurer) prune(now time.Time) {
	for uid, state := range m.byRollout {
		if now.Sub(state.requestedAt) > answerRetention {
			delete(m.byRollout, uid)
		}
	}
}

// startMeasurements starts to measure the questions in the background and does not wait.
// Questions that are already being measured are skipped. It does nothing before Start
// and after Start has ended.
func (m *Measurer) startMeasurements(ro *v1alpha1.OperatorRollout, questions []rollouts.Question) {
	if m == nil || len(questions) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx == nil { // not started, or stopped
		return
	}
	m.prune(questions[0].At)
	state := m.byRollout[ro.UID]
	if state == nil {
		state = &measurements{busy: map[gateKey]bool{}, answers: map[gateKey]rollouts.Answer{}}
		m.byRollout[ro.UID] = state
	}
	state.requestedAt = questions[0].At
	rolloutRef := &v1alpha1.OperatorRollout{}
	rolloutRef.Namespace, rolloutRef.Name = ro.Namespace, ro.Name
	for _, q := range questions {
		key := gateKey{q.Wave, q.Gate}
		if state.busy[key] {
			continue
		}
		state.busy[key] = true
		m.running.Add(1)
		go m.measure(m.ctx, rolloutRef, state, q)
	}
}

// measure waits for a place, answers one question, stores the answer and notifies the controller.
// If ctx ends while it waits, there is no answer.
func (m *Measurer) measure(ctx context.Context, rolloutRef *v1alpha1.OperatorRollout, state *measurements,
	q rollouts.Question) {
	defer m.running.Done()
	key := gateKey{q.Wave, q.Gate}
	neededSlots := m.selectSlots(rolloutRef.Namespace, q)
	for i, slots := range neededSlots {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			releaseSlots(neededSlots[:i])
			return
		}
	}
	answer := m.evaluate(ctx, q)
	releaseSlots(neededSlots)
	m.mu.Lock()
	state.busy[key] = false
	state.answers[key] = answer
	m.mu.Unlock()
	select {
	case m.answered <- event.TypedGenericEvent[*v1alpha1.OperatorRollout]{Object: rolloutRef}:
	case <-ctx.Done():
	}
}

// selectSlots returns the slots that a question needs, in the order in
// which they must be acquired.
func (m *Measurer) selectSlots(namespace string, q rollouts.Question) []chan struct{} {
	if !q.Custom {
		return []chan struct{}{m.slots}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tenantSlots[namespace] == nil {
		m.tenantSlots[namespace] = make(chan struct{}, 1)
	}
	return []chan struct{}{m.tenantSlots[namespace], m.customSlots}
}

// releaseSlots releases one place in each of the slots.
func releaseSlots(slots []chan struct{}) {
	for _, s := range slots {
		<-s
	}
}

// evaluate runs the queries of a question. If one query fails, the answer has only the failure,
// because a part of the results is not sufficient for a verdict.
func (m *Measurer) evaluate(ctx context.Context, q rollouts.Question) rollouts.Answer {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	answer := rollouts.Answer{Question: q, Results: map[string]rollouts.Result{}}
	for _, name := range slices.Sorted(maps.Keys(q.Queries)) {
		value, err := m.evaluator.Evaluate(ctx, q.Queries[name], q.At, queryTimeout)
		if err != nil {
			answer.Results = nil
			answer.Failure = phrase.Truncate(phrase.OneLine(err.Error()), maxFailureLength)
			return answer
		}
		answer.Results[name] = toResult(value)
		if q.Custom {
			answer.Results[name] = truncateSamples(answer.Results[name])
		}
	}
	return answer
}

// truncateSamples keeps at most two samples of a result, without labels. That is enough to
// determine whether the result is one number.
func truncateSamples(r rollouts.Result) rollouts.Result {
	samples := make([]rollouts.Sample, 0, min(len(r.Samples), 2))
	for _, s := range r.Samples[:min(len(r.Samples), 2)] {
		samples = append(samples, rollouts.Sample{Value: s.Value})
	}
	r.Samples = samples
	return r
}

// toResult converts a value of Prometheus to a result. A type that gates do not support has no
// samples. A vector with a native histogram has the type histogram.
func toResult(value model.Value) rollouts.Result {
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
