// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/vitals"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// maxPods is how many pods of one Deployment are observed.
const maxPods = 100

// podObserver observes the pods of operators. It does not cache them: a cluster has many pods,
// and the pods of operators have no common label.
type podObserver struct {
	// local reads from the API server.
	local client.Reader
	now   func() time.Time

	mu     sync.Mutex
	states map[v1alpha1.OperatorReference]*podState
	// isForbidden is true if the last list of pods was forbidden; this is logged once.
	isForbidden bool
}

// podState is the observed state of an operator's pods.
type podState struct {
	history vitals.PodHistory
	// restarts are the restarts since the agent's start, by values of series.RestartReason.
	restarts map[string]int
	// pending is how many pods are Pending for too long; nil if that is unknown.
	pending *int
}

// newPodObserver returns an observer without any state. local must read from the API server.
func newPodObserver(local client.Reader, now func() time.Time) *podObserver {
	return &podObserver{local: local, now: now, states: map[v1alpha1.OperatorReference]*podState{}}
}

// observe lists the pods of an operator's Deployments and updates the operator's state. If that
// fails, the number of pending pods becomes unknown, and the restarts keep their counts.
func (p *podObserver) observe(ctx context.Context, observed observation) {
	var all []corev1.Pod
	for _, d := range observed.deployments {
		found, err := p.listPods(ctx, observed.namespace, d.selector)
		if err != nil {
			p.recordFailure(ctx, observed.operator, err)
			return
		}
		all = append(all, found...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isForbidden = false
	state := p.states[observed.operator]
	if state == nil {
		state = &podState{restarts: map[string]int{series.RestartOOM: 0, series.RestartError: 0,
			series.RestartOther: 0}}
		p.states[observed.operator] = state
	}
	now := p.now()
	for reason, n := range state.history.Observe(all, now) {
		state.restarts[reason] += n
	}
	pending := vitals.PendingPods(all, now)
	state.pending = &pending
}

// listPods lists at most maxPods pods that a Deployment's selector matches.
func (p *podObserver) listPods(ctx context.Context, namespace string,
	selector *metav1.LabelSelector) ([]corev1.Pod, error) {
	matching, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("read selector: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var list corev1.PodList
	if err := p.local.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: matching},
		client.Limit(maxPods)); err != nil {
		return nil, fmt.Errorf("list Pods in namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// recordFailure marks the number of pending pods as unknown and logs the error. If the lists of
// pods are forbidden, only the first error is logged.
func (p *podObserver) recordFailure(ctx context.Context, operator v1alpha1.OperatorReference, err error) {
	p.mu.Lock()
	if state := p.states[operator]; state != nil {
		state.pending = nil
	}
	wasLogged := apierrors.IsForbidden(err) && p.isForbidden
	p.isForbidden = apierrors.IsForbidden(err)
	p.mu.Unlock()
	if !wasLogged {
		log.FromContext(ctx).Error(err, "Cannot observe the pods of an operator", "namespace", operator.Namespace,
			"operator", operator.Name)
	}
}

// retainExpected removes the state of operators that are not expected.
func (p *podObserver) retainExpected(expected []*v1alpha1.OperatorInstall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.states, func(operator v1alpha1.OperatorReference, _ *podState) bool {
		return !slices.ContainsFunc(expected, func(oi *v1alpha1.OperatorInstall) bool {
			return oi.Spec.Operator == operator
		})
	})
}

// getState returns a copy of an operator's state; false if its pods were not observed yet.
func (p *podObserver) getState(operator v1alpha1.OperatorReference) (podState, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.states[operator]
	if state == nil {
		return podState{}, false
	}
	return podState{restarts: maps.Clone(state.restarts), pending: state.pending}, true
}
