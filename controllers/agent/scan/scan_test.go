// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

// found are the operators of a test's cluster. It implements Finder.
type found struct {
	status v1alpha1.OperatorScanStatus
	err    error
}

func (f *found) Find(context.Context) (v1alpha1.OperatorScanStatus, error) { return f.status, f.err }

// harness is a reporter with a hub that counts requests.
type harness struct {
	*Reporter
	found         *found
	reads, writes int
	// refuses is the hub's answer to reads, if it is an error.
	refuses error
}

func newHarness(t *testing.T, objects ...client.Object) *harness {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	h := &harness{found: &found{status: v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMServed}}}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.OperatorScan{}).
		WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			if h.reads++; h.refuses != nil {
				return h.refuses
			}
			return c.Get(ctx, key, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object,
			opts ...client.SubResourceUpdateOption) error {
			h.writes++
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}).Build()
	h.Reporter = &Reporter{Hub: hub, Namespace: "bellwether-prod-1", Finder: h.found, Now: time.Now}
	return h
}

func empty() *v1alpha1.OperatorScan {
	return &v1alpha1.OperatorScan{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod-1",
		Name: v1alpha1.ScanName}}
}

func (h *harness) stored(t *testing.T) *v1alpha1.OperatorScan {
	t.Helper()
	scan := &v1alpha1.OperatorScan{}
	if err := h.Hub.Get(t.Context(), client.ObjectKeyFromObject(empty()), scan); err != nil {
		t.Fatal(err)
	}
	h.reads--
	return scan
}

// TestIdle verifies the number of requests: an unchanged cluster causes one read and one
// write at the start, and one read in six hours. A cluster that changes all the time
// causes one write a minute.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, empty())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Start(ctx) }()
		time.Sleep(5 * time.Hour)
		if h.reads != 1 || h.writes != 1 {
			t.Errorf("%d reads and %d writes in five idle hours, want 1 of each", h.reads, h.writes)
		}
		time.Sleep(2 * time.Hour)
		if h.reads != 2 || h.writes != 1 {
			t.Errorf("%d reads and %d writes in seven idle hours, want 2 and 1", h.reads, h.writes)
		}
		h.found.status.Counts.Operators = 7
		time.Sleep(2 * Interval)
		if h.writes != 2 || h.stored(t).Status.Counts.Operators != 7 {
			t.Errorf("%d writes after a change, want 2", h.writes)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestRefused verifies that a hub of an earlier version, which does not grant the permission,
// gets few requests, and that it gets the report after its upgrade.
func TestRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, empty())
		h.refuses = apierrors.NewForbidden(schema.GroupResource{Resource: "operatorscans"}, "", nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Start(ctx) }()
		time.Sleep(time.Hour)
		if h.reads < 5 || h.reads > 7 {
			t.Errorf("%d requests in an hour, want about 6", h.reads)
		}
		h.refuses = nil
		time.Sleep(2 * refusedInterval)
		if h.writes != 1 {
			t.Errorf("%d reports to a hub that was upgraded, want 1", h.writes)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestReport(t *testing.T) {
	t.Parallel()
	t.Run("not ready yet", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, empty())
		h.found.err = engines.ErrNotReady
		if err := h.Report(t.Context()); !errors.Is(err, engines.ErrNotReady) || h.reads+h.writes > 0 {
			t.Errorf("%v, and %d requests", err, h.reads+h.writes)
		}
	})
	t.Run("a hub of an earlier version", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		if err := h.Report(t.Context()); err != nil || h.writes > 0 {
			t.Errorf("%v, and %d writes", err, h.writes)
		}
	})
	t.Run("somebody else wrote it", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, empty())
		if err := h.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := h.stored(t)
		other.Status.Counts.Operators = 3
		if err := h.Hub.Status().Update(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		h.found.status.Counts.Operators = 5
		if err := h.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := h.stored(t).Status.Counts.Operators; got != 5 {
			t.Errorf("%d operators, want 5", got)
		}
	})
	t.Run("the cluster cannot be read", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, empty())
		h.found.status.Counts.Operators = 2
		if err := h.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.found.err = errors.New("list Deployments: forbidden")
		if err := h.Report(t.Context()); err == nil {
			t.Error("no error, want the failure for the log")
		}
		if got := h.stored(t).Status; got.NotRead != "list Deployments: forbidden" || got.Counts.Operators != 2 {
			t.Errorf("status %+v, want what was read before, and why it cannot be read", got)
		}
	})
}
