// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
)

// hostedHarness reconciles one Secret, and reports with which tokens its cluster is served.
type hostedHarness struct {
	*hostedReconciler
	t        *testing.T
	recorder *events.FakeRecorder
	tokens   chan string
}

func newHostedHarness(t *testing.T, serves func(ctx context.Context, t target) error) *hostedHarness {
	t.Helper()
	h := &hostedHarness{t: t, recorder: events.NewFakeRecorder(100), tokens: make(chan string, 100)}
	super := newSupervisor(func(ctx context.Context, t target, started func()) error {
		started()
		h.tokens <- t.local.BearerToken
		return serves(ctx, t)
	})
	t.Cleanup(super.stopAll)
	h.hostedReconciler = &hostedReconciler{client: fake.NewClientBuilder().WithObjects(
		secretWith(func(*corev1.Secret) {})).Build(), events: h.recorder, clusters: super,
		ports: serve.Ports{First: 50100, Last: 50999}}
	return h
}

// change changes the Secret and reconciles it.
func (h *hostedHarness) change(change func(*corev1.Secret)) {
	h.t.Helper()
	key := client.ObjectKey{Name: "s"}
	secret := &corev1.Secret{}
	if err := h.client.Get(h.t.Context(), key, secret); err != nil {
		h.t.Fatal(err)
	}
	change(secret)
	if err := h.client.Update(h.t.Context(), secret); err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		h.t.Fatal(err)
	}
}

// TestChangedKubeconfigIsTakenOver rotates the kubeconfig of a cluster. The process continues,
// and serves the cluster with the new token.
func TestChangedKubeconfigIsTakenOver(t *testing.T) {
	t.Parallel()
	h := newHostedHarness(t, func(ctx context.Context, _ target) error {
		<-ctx.Done()
		return nil
	})
	config := func(token string) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			hub := string(s.Data[v1alpha1.HostedHubKey])
			s.Data[v1alpha1.HostedClusterKey] = []byte(strings.ReplaceAll(hub, "secret", token))
		}
	}
	h.change(func(*corev1.Secret) {})
	if got := next(t, h.tokens); got != "secret" {
		t.Errorf("token %q, want that of the Secret", got)
	}
	h.change(config("rotated"))
	if got := next(t, h.tokens); got != "rotated" {
		t.Errorf("token %q, want the rotated one", got)
	}
	h.change(func(s *corev1.Secret) { s.Data[v1alpha1.HostedClusterKey] = []byte("{half") })
	if event := next(t, h.recorder.Events); !strings.Contains(event, "HostedClusterRefused key cluster: ") {
		t.Errorf("Event %s", event)
	}
	h.change(config("rotated"))
	if len(h.tokens) > 0 {
		t.Error("a Secret that could not be used, and is as before again, restarted the agent")
	}
}

// TestFailedClusterIsReported verifies that an agent that ends, because its cluster refuses the
// token or does not answer, is started again, and that an Event has the reason.
func TestFailedClusterIsReported(t *testing.T) {
	t.Parallel()
	h := newHostedHarness(t, func(context.Context, target) error {
		return errors.New("reach the fleet cluster: Unauthorized")
	})
	h.change(func(*corev1.Secret) {})
	event := next(t, h.recorder.Events)
	if !strings.Contains(event, "HostedClusterFailed") || !strings.Contains(event, "Unauthorized") {
		t.Errorf("Event %s", event)
	}
	err := h.clusters.connections.Check(nil)
	if err == nil || !strings.Contains(err.Error(), "cluster prod: reach the fleet cluster: Unauthorized") {
		t.Errorf("health check: %v", err)
	}
}

func TestConnections(t *testing.T) {
	t.Parallel()
	c := &connections{}
	c.set("b", func() error { return errors.New("refused") })
	c.set("a", func() error { return errors.New("silent") })
	c.set("c", func() error { return nil })
	if err := c.Check(nil); err == nil || err.Error() != "cluster a: silent\ncluster b: refused" {
		t.Errorf("got %v", err)
	}
	c.set("a", nil)
	c.set("b", func() error { return nil })
	if err := c.Check(nil); err != nil {
		t.Errorf("all are connected, but: %v", err)
	}
}
