// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestReadinessKnowsTheLeader plays a replica that waits to take over.
func TestReadinessKnowsTheLeader(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	now, elected := noon, make(chan struct{})
	var lease coordinationv1.Lease
	var readErr error
	l := &leaderCheck{elected: elected, now: func() time.Time { return now },
		read: func(context.Context) (*coordinationv1.Lease, error) { return &lease, readErr }}
	renew := func(at time.Time) {
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To("hub-1"), LeaseDurationSeconds: ptr.To[int32](15),
			RenewTime: ptr.To(metav1.NewMicroTime(at))}
	}
	for _, step := range []struct {
		name string
		do   func()
		want string // empty: ready
	}{
		{"nobody has led yet", func() {}, "no replica holds"},
		{"another one leads, whose clock is an hour behind", func() { renew(noon.Add(-time.Hour)) }, ""},
		{"it is silent for a while", func() { now = now.Add(40 * time.Second) }, ""},
		{"it is silent for too long", func() { now = now.Add(10 * time.Second) },
			"no replica leads: hub-1 has not renewed Lease / since 2026-01-01T12:00:00Z"},
		{"it renews", func() { renew(noon.Add(-time.Minute)) }, ""},
		{"the API server refuses the credentials", func() { readErr = errors.New("Unauthorized") }, "Unauthorized"},
		{"this one leads", func() { close(elected) }, ""},
	} {
		step.do()
		err := l.Check(httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("%s: %v, want %q", step.name, err, step.want)
		}
	}
}

// TestLeaderEndsBeforeItsLease adds up the times of a leader that cannot reach its Lease.
// TestActiveAndPassive tests the same with real hubs.
func TestLeaderEndsBeforeItsLease(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{minLeaseDuration, 15 * time.Second, time.Minute, time.Hour} {
		renew, retry, err := computeElectionTimes(lease)
		if err != nil {
			t.Fatal(err)
		}
		// Requests to the Lease, and so that which gives it back, end after half of renew and not before a second:
		// NewResourceLock of controller-runtime.
		if end := retry + renew + max(renew/2, time.Second); end > lease*7/10 {
			t.Errorf("a leader with a Lease of %s ends after %s", lease, end)
		}
	}
	if _, _, err := computeElectionTimes(minLeaseDuration - 1); err == nil {
		t.Error("a Lease that is too short for the requests to it is accepted")
	}
}
