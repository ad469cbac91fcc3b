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
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/vitals/plan"
)

// maxPods of one Deployment are observed.
const maxPods = 100

// podObserver observes the pods of operators. They are not cached: a cluster has
// many pods, and those of operators have no label in common.
type podObserver struct {
	// local reads from the API server.
	local client.Reader
	now   func() time.Time

	mu    sync.Mutex
	known map[v1alpha1.OperatorReference]*podState
	// isForbidden says that the agent may not list pods, which is logged once.
	isForbidden bool
}

// podState is what is known of an operator's pods.
type podState struct {
	history plan.PodHistory
	// restarts are those since the agent's start, by values of series.RestartReason.
	restarts map[string]int
	// pending is how many have been Pending for long; nil if that is not known.
	pending *int
}

func newPodObserver(local client.Reader, now func() time.Time) *podObserver {
	return &podObserver{local: local, now: now, known: map[v1alpha1.OperatorReference]*podState{}}
}

// observe lists the pods of an operator's Deployments. If that fails, the number
// of pending pods is not known any more, and restarts keep their count.
func (p *podObserver) observe(ctx context.Context, seen observation) {
	var all []corev1.Pod
	for _, d := range seen.deployments {
		found, err := p.list(ctx, seen.namespace, d.selector)
		if err != nil {
			p.fail(ctx, seen.operator, err)
			return
		}
		all = append(all, found...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isForbidden = false
	state := p.known[seen.operator]
	if state == nil {
		state = &podState{restarts: map[string]int{series.RestartOOM: 0, series.RestartError: 0,
			series.RestartOther: 0}}
		p.known[seen.operator] = state
	}
	now := p.now()
	for reason, n := range state.history.Observe(all, now) {
		state.restarts[reason] += n
	}
	pending := plan.PendingPods(all, now)
	state.pending = &pending
}

func (p *podObserver) list(ctx context.Context, namespace string,
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

func (p *podObserver) fail(ctx context.Context, operator v1alpha1.OperatorReference, err error) {
	p.mu.Lock()
	if state := p.known[operator]; state != nil {
		state.pending = nil
	}
	isLogged := apierrors.IsForbidden(err) && p.isForbidden
	p.isForbidden = apierrors.IsForbidden(err)
	p.mu.Unlock()
	if !isLogged {
		log.FromContext(ctx).Error(err, "Cannot observe the pods of an operator", "namespace", operator.Namespace,
			"operator", operator.Name)
	}
}

// keep forgets the operators that are not expected any more.
func (p *podObserver) keep(expected []*v1alpha1.OperatorInstall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.known, func(operator v1alpha1.OperatorReference, _ *podState) bool {
		return !slices.ContainsFunc(expected, func(oi *v1alpha1.OperatorInstall) bool {
			return oi.Spec.Operator == operator
		})
	})
}

// stateOf returns what is known of an operator's pods.
func (p *podObserver) stateOf(operator v1alpha1.OperatorReference) (podState, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.known[operator]
	if state == nil {
		return podState{}, false
	}
	return podState{restarts: maps.Clone(state.restarts), pending: state.pending}, true
}
