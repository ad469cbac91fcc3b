// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/alerts/pagetest"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const (
	// notificationTimeout is how long a test waits for each notification. loadTimeout is how
	// long a test waits for Alertmanager to load a policy that was written recently.
	notificationTimeout = 2 * time.Minute
	loadTimeout         = 5 * time.Minute
	loadPollInterval    = 10 * time.Second
	maxMessageLength    = 1024
)

// Tester runs the self-tests of policies, one at a time, because Alertmanager counts
// notifications only by their kind.
type Tester struct {
	// Alertmanager is the server to test. If it is nil, no test runs.
	Alertmanager pagetest.Alertmanager
	queue        chan types.NamespacedName
	mu           sync.Mutex
	results      map[types.NamespacedName]v1alpha1.PagingSelfTestStatus
}

// NewTester returns a tester. It runs tests after Start is called.
func NewTester(am pagetest.Alertmanager) *Tester {
	return &Tester{Alertmanager: am, queue: make(chan types.NamespacedName),
		results: map[types.NamespacedName]v1alpha1.PagingSelfTestStatus{}}
}

// Start runs the requested tests until the context ends. It implements manager.Runnable.
func (t *Tester) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case policy := <-t.queue:
			// The result of a test that was interrupted by the end of the process is discarded.
			if result := t.runTest(ctx, policy); ctx.Err() == nil {
				t.storeResult(ctx, policy, result)
			}
		}
	}
}

// storeResult logs the result of a policy's test and stores it as the newest result.
func (t *Tester) storeResult(ctx context.Context, policy types.NamespacedName, result v1alpha1.PagingSelfTestStatus) {
	log.FromContext(ctx).Info("Tested whom a policy pages", "namespace", policy.Namespace,
		"policy", policy.Name, "passed", result.Passed, "message", result.Message)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.results[policy] = result
}

// RequestTests requests tests of the policies. It does not wait: while a test is running, requests are
// dropped, and the caller requests the tests again in its next pass.
func (t *Tester) RequestTests(due []types.NamespacedName) {
	if t.Alertmanager == nil {
		return
	}
	for _, policy := range due {
		select {
		case t.queue <- policy:
		default:
			return
		}
	}
}

// Results returns the newest result for each tested policy.
func (t *Tester) Results() map[types.NamespacedName]v1alpha1.PagingSelfTestStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.results)
}

// runTest tests one policy and returns the result. It waits until Alertmanager has loaded the
// policy, at most for loadTimeout.
func (t *Tester) runTest(ctx context.Context, policy types.NamespacedName) v1alpha1.PagingSelfTestStatus {
	var result *pagetest.Result
	var err error
	// The error of the poll only means that the policy was not loaded in time. In
	// that case err is set too.
	_ = wait.PollUntilContextTimeout(ctx, loadPollInterval, loadTimeout, true, func(ctx context.Context) (bool, error) {
		result, err = pagetest.Run(ctx, t.Alertmanager, pagetest.Test{Policy: policy, By: "Bellwether",
			Severity: paging.SeveritySelfTest, Patience: notificationTimeout})
		return !errors.Is(err, pagetest.ErrNotRouted), nil
	})
	out := v1alpha1.PagingSelfTestStatus{At: metav1.Now().Rfc3339Copy()}
	switch {
	case err != nil:
		out.Message = phrase.Truncate(err.Error(), maxMessageLength)
	default:
		out.Message = phrase.Truncate(result.Problem(), maxMessageLength)
		out.Passed = out.Message == ""
	}
	return out
}
