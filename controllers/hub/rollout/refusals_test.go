// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// TestRefusals plays failures of writes to one cluster, each with the time since the first.
func TestRefusals(t *testing.T) {
	installs := schema.GroupResource{Resource: "operatorinstalls"}
	quota := fmt.Errorf("admit a: %w", apierrors.NewForbidden(installs, "echo", errors.New("exceeded quota")))
	webhook := apierrors.NewInternalError(errors.New("failed calling webhook"))
	type attempt struct {
		after time.Duration
		err   error
	}
	tests := map[string]struct {
		attempts []attempt
		// want is how long the cluster is held back, since the first attempt;
		// zero: it is not held back.
		want time.Duration
	}{
		"written": {[]attempt{{0, nil}}, 0},
		"refused": {[]attempt{{0, quota}}, time.Minute},
		"refused again and again": {[]attempt{{0, quota}, {time.Minute, quota}, {3 * time.Minute, quota}},
			7 * time.Minute},
		"written in the end":       {[]attempt{{0, quota}, {time.Minute, nil}}, 0},
		"somebody else was faster": {[]attempt{{0, apierrors.NewConflict(installs, "echo", errors.New("changed"))}}, 0},
		"the API server is away": {[]attempt{{0, errors.New("connection refused")},
			{time.Hour, errors.New("no route")}}, 0},
		"it is overloaded": {[]attempt{{0, apierrors.NewTooManyRequests("later", 1)}}, 0},
		"a failure inside": {[]attempt{{0, webhook}, {10 * time.Second, webhook}}, 0},
		"one that lasts":   {[]attempt{{0, webhook}, {20 * time.Second, webhook}}, 80 * time.Second},
	}
	start := time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var r writeFailures
			now := start
			for _, a := range test.attempts {
				now = start.Add(a.after)
				r.record("uid", "a", a.err, now)
			}
			busy := rollouts.Hold{Reason: v1alpha1.ReasonClusterBusy}
			clusters := []rollouts.Cluster{{Name: "a", Holds: []rollouts.Hold{busy}}, {Name: "b"}}
			r.addHolds("another rollout", clusters, now)
			r.addHolds("uid", clusters, now)
			var until time.Duration
			if h := clusters[0].Holds[0]; h.Reason == v1alpha1.ReasonClusterNotWritable && h.Defers && h.Message != "" {
				until = h.Until.Sub(start)
			}
			if until != test.want || len(clusters[1].Holds) > 0 {
				t.Errorf("held back until %s, want %s; %+v", until, test.want, clusters)
			}
			r.addHolds("uid", clusters[1:], now.Add(time.Hour))
			if diff := cmp.Diff([]rollouts.Hold(nil), clusters[1].Holds); diff != "" {
				t.Error(diff)
			}
		})
	}
}
