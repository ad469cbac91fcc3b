// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// leaseReader is an API server that holds one Lease, or a cache of it.
type leaseReader struct {
	client.Client
	lease *coordinationv1.Lease
	err   error
	reads int
}

func (l *leaseReader) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	l.reads++
	if l.err != nil {
		return l.err
	}
	l.lease.DeepCopyInto(obj.(*coordinationv1.Lease))
	return nil
}

// TestObserveLease plays a cluster that was online and whose Lease, as the
// cache has it, has expired.
func TestObserveLease(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	seconds := int32(40)
	leaseAt := func(at time.Time) *coordinationv1.Lease {
		version := strconv.FormatInt(at.Unix(), 10)
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version},
			Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: at}, LeaseDurationSeconds: &seconds}}
	}
	online := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	conditions.Set(&online.Status.Conditions, 1, v1alpha1.ConditionOnline, true, v1alpha1.ReasonLeaseFresh, "")
	offline := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}

	now := start
	cached, live := &leaseReader{lease: leaseAt(start)}, &leaseReader{lease: leaseAt(start)}
	r := &Reconciler{Client: cached, Live: live, Now: func() time.Time { return now }}
	look := func(cluster *v1alpha1.FleetCluster) (bool, error) {
		t.Helper()
		seen, err := r.observeLease(t.Context(), cluster)
		return seen.IsOnline(now), err
	}
	steps := []struct {
		name      string
		at        time.Duration
		change    func()
		cluster   *v1alpha1.FleetCluster
		online    bool
		wantErr   bool
		liveReads int
	}{
		{"fresh: the cache will do", 0, func() {}, online, true, false, 0},
		{"expired, but only in the cache", 50 * time.Second,
			func() { live.lease = leaseAt(start.Add(45 * time.Second)) }, online, true, false, 1},
		{"the hub is blind", 100 * time.Second, func() { live.err = errors.New("no answer") }, online, false, true, 1},
		{"and sees again: the agent has a whole period", 130 * time.Second, func() { live.err = nil }, online, true,
			false, 0},
		{"and another one from its first live read", 141 * time.Second, func() {}, online, true, false, 1},
		{"which it lets pass", 182 * time.Second, func() {}, online, false, false, 1},
		{"an offline cluster costs no live read", 250 * time.Second, func() {}, offline, false, false, 0},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			now = start.Add(step.at)
			step.change()
			live.reads = 0
			got, err := look(step.cluster)
			if got != step.online || (err != nil) != step.wantErr || live.reads != step.liveReads {
				t.Errorf("online %v, error %v, %d live reads; want %v, %v, %d", got, err, live.reads, step.online,
					step.wantErr, step.liveReads)
			}
		})
	}
}
