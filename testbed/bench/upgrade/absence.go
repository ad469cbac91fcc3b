// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/testbed/bench/lab"
	"github.com/bellwether-dev/bellwether/testbed/echo"
	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
)

const (
	lookAtService   = 100 * time.Millisecond
	serverNamespace = "default"
)

// absence is how long an operator had no ready pod, and how long its operands did not answer.
type absence struct {
	operator, operands time.Duration
	// succeeded is the time until the CSV was Succeeded, and recovered until an operand answered with the version.
	succeeded, recovered time.Duration
}

func (a absence) String() string {
	return fmt.Sprintf("CSV Succeeded after %d ms, operands after %d ms, operator away for %d ms, operands for %d ms",
		a.succeeded.Milliseconds(), a.recovered.Milliseconds(), a.operator.Milliseconds(), a.operands.Milliseconds())
}

// absenceWatch looks again and again.
type absenceWatch struct {
	mu      sync.Mutex
	start   time.Time
	seen    absence
	version string
	// since is when the version answered first.
	since time.Time
}

// watchAbsence looks until ctx ends.
func watchAbsence(ctx context.Context, c client.Client, namespace string) *absenceWatch {
	w := &absenceWatch{start: time.Now()}
	go func() {
		ticker := time.NewTicker(lookAtService)
		defer ticker.Stop()
		for last := w.start; ; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			answer, err := echo.Ask(ctx, c, serverNamespace)
			w.note(time.Since(last), isReady(ctx, c, namespace), err == nil, answer.Version)
			last = time.Now()
		}
	}()
	return w
}

// isReady tells whether the operator has a ready pod.
func isReady(ctx context.Context, c client.Client, namespace string) bool {
	var d appsv1.Deployment
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: bundle.Package}, &d)
	return err == nil && d.DeletionTimestamp.IsZero() && d.Status.AvailableReplicas > 0
}

func (w *absenceWatch) note(passed time.Duration, operator, operands bool, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !operator {
		w.seen.operator += passed
	}
	if !operands {
		w.seen.operands += passed
		return
	}
	if version != w.version {
		w.version, w.since = version, time.Now()
	}
}

// until waits until the operands answer with a version.
func (w *absenceWatch) until(ctx context.Context, version string) (absence, error) {
	err := lab.Until(ctx, func(context.Context) (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.version == version, nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		return absence{}, fmt.Errorf("wait for an answer of version %s, last of %q: %w", version, w.version, err)
	}
	w.seen.recovered = w.since.Sub(w.start)
	return w.seen, nil
}

func echoServer() *echov1alpha1.EchoServer {
	return &echov1alpha1.EchoServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: serverNamespace, Name: "bench"},
		Spec:       echov1alpha1.EchoServerSpec{Message: "hello", Replicas: ptr.To(int32(1))},
	}
}

// createServer creates an EchoServer and waits until it answers with a version.
func createServer(ctx context.Context, c client.Client, version string) error {
	if err := c.Create(ctx, echoServer()); err != nil {
		return fmt.Errorf("create EchoServer: %w", err)
	}
	if err := lab.Until(ctx, func(ctx context.Context) (bool, error) {
		answer, err := echo.Ask(ctx, c, serverNamespace)
		return err == nil && answer.Version == version, nil
	}); err != nil {
		return fmt.Errorf("wait for the EchoServer to answer: %w", err)
	}
	return nil
}

func removeServer(ctx context.Context, c client.Client) error {
	if err := lab.Removed(ctx, c, echoServer()); err != nil {
		return err
	}
	return lab.Until(ctx, func(ctx context.Context) (bool, error) {
		var list appsv1.DeploymentList
		err := c.List(ctx, &list, client.InNamespace(serverNamespace))
		return len(list.Items) == 0, err
	})
}
