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
	"github.com/bellwether-dev/bellwether/phrase"
)

const (
	// testPatience is for how long a test waits for each notification, and loadPatience
	// for Alertmanager to load a policy that has just been written.
	testPatience = 2 * time.Minute
	loadPatience = 5 * time.Minute
	loadPoll     = 10 * time.Second
	maxMessage   = 1024
)

// Tester carries out self-tests, one at a time: Alertmanager counts notifications by
// their kind only.
type Tester struct {
	// Alertmanager is tested; without one nothing is.
	Alertmanager pagetest.Alertmanager
	queue        chan types.NamespacedName
	mu           sync.Mutex
	results      map[types.NamespacedName]v1alpha1.PagingSelfTestStatus
}

// NewTester makes a tester, which tests once it is started.
func NewTester(am pagetest.Alertmanager) *Tester {
	return &Tester{Alertmanager: am, queue: make(chan types.NamespacedName),
		results: map[types.NamespacedName]v1alpha1.PagingSelfTestStatus{}}
}

// Start tests what is asked for until the context ends.
func (t *Tester) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case policy := <-t.queue:
			// A test that the end of the hub cuts off says nothing.
			if result := t.test(ctx, policy); ctx.Err() == nil {
				t.keep(ctx, policy, result)
			}
		}
	}
}

func (t *Tester) keep(ctx context.Context, policy types.NamespacedName, result v1alpha1.PagingSelfTestStatus) {
	log.FromContext(ctx).Info("Tested whom a policy pages", "namespace", policy.Namespace,
		"policy", policy.Name, "passed", result.Passed, "message", result.Message)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.results[policy] = result
}

// Ask asks for tests. While one is running nothing is begun: whoever asks asks again.
func (t *Tester) Ask(due []types.NamespacedName) {
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

// Results are those of the newest tests.
func (t *Tester) Results() map[types.NamespacedName]v1alpha1.PagingSelfTestStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.results)
}

func (t *Tester) test(ctx context.Context, policy types.NamespacedName) v1alpha1.PagingSelfTestStatus {
	var result *pagetest.Result
	var err error
	// An error of the poll says only that the policy was not loaded in time.
	_ = wait.PollUntilContextTimeout(ctx, loadPoll, loadPatience, true, func(ctx context.Context) (bool, error) {
		result, err = pagetest.Run(ctx, t.Alertmanager, pagetest.Test{Policy: policy, By: "Bellwether",
			Severity: paging.SeveritySelfTest, Patience: testPatience})
		return !errors.Is(err, pagetest.ErrNotRouted), nil
	})
	out := v1alpha1.PagingSelfTestStatus{At: metav1.Now().Rfc3339Copy()}
	switch {
	case err != nil:
		out.Message = phrase.Truncate(err.Error(), maxMessage)
	default:
		out.Message = phrase.Truncate(result.Problem(), maxMessage)
		out.Passed = out.Message == ""
	}
	return out
}
