// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// electionLock is the location of the Lease for the leader election of hubs.
type electionLock struct {
	// config is the configuration of a lock cluster; nil for the hub's own cluster.
	config    *rest.Config
	namespace string
}

// readLock returns the location of the Lease according to the flags.
func readLock(f flags) (electionLock, error) {
	if f.electionKubeconfig == "" {
		return electionLock{namespace: f.electionNamespace}, nil
	}
	if !f.leaderElect {
		return electionLock{}, errors.New(
			"--leader-election-kubeconfig needs --leader-elect: without it every hub is active")
	}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: f.electionKubeconfig}, nil)
	config, err := loaded.ClientConfig()
	if err != nil {
		return electionLock{}, fmt.Errorf("read --leader-election-kubeconfig: %w", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return electionLock{}, fmt.Errorf("read namespace of --leader-election-kubeconfig: %w", err)
	}
	return electionLock{config: config, namespace: namespace}, nil
}

// electionLease is the name of the Lease for the leader election of replicas.
const electionLease = v1alpha1.HubLeaseName

// minLeaseDuration is the minimum of --leader-election-lease-duration.
const minLeaseDuration = 5 * time.Second

// computeElectionTimes returns, for the duration of a Lease, how long a leader tries to renew
// the Lease before it gives up, and how long it waits between two attempts.
//
// A leader must end before another replica may take over its Lease. After the last renewal, it
// waits for retry and tries for renew. Then client-go tries to release the Lease before it stops
// the leader: one request, which controller-runtime limits to half of renew, but at least a
// second. The rest of the Lease is for the end of the process.
func computeElectionTimes(lease time.Duration) (renew, retry time.Duration, err error) {
	if lease < minLeaseDuration {
		return 0, 0, fmt.Errorf("--leader-election-lease-duration is %s: it must be at least %s", lease,
			minLeaseDuration)
	}
	return lease * 2 / 5, lease / 10, nil
}

var errPassive = errors.New(
	"passive: another hub holds the Lease in the lock cluster, or the lock cluster cannot be reached")

// newActiveCheck returns a health check that fails in a passive hub. The pod's readiness probe
// does not use it, because a passive hub is not a failure.
func newActiveCheck(mgr ctrl.Manager) healthz.Checker {
	return func(*http.Request) error {
		select {
		case <-mgr.Elected():
			return nil
		default:
			return errPassive
		}
	}
}

// leaderCheck is a health check of a replica that does not lead. It fails while no replica
// leads, and if the hub's cluster does not answer or refuses the hub's credentials. A leader
// that cannot renew its Lease ends by itself.
type leaderCheck struct {
	elected <-chan struct{}
	read    func(ctx context.Context) (*coordinationv1.Lease, error)
	now     func() time.Time

	mu sync.Mutex
	// renewTime is the last observed renewal, and seenAt is when it was observed, by
	// the clock of this replica.
	renewTime metav1.MicroTime
	seenAt    time.Time
}

// newLeaderCheck returns the check for a manager. It reads the Lease without the cache.
func newLeaderCheck(mgr ctrl.Manager, namespace string) *leaderCheck {
	return &leaderCheck{elected: mgr.Elected(), now: time.Now, read: func(ctx context.Context) (*coordinationv1.Lease,
		error) {
		lease := &coordinationv1.Lease{}
		err := mgr.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: namespace, Name: electionLease}, lease)
		return lease, err
	}}
}

// leaderGrace is how long after the end of the Lease the check still succeeds, because another
// replica needs some time to take over.
const leaderGrace = 30 * time.Second

var errNoLeader = errors.New("no replica leads")

// Check implements healthz.Checker. It always succeeds in the replica that leads.
func (l *leaderCheck) Check(r *http.Request) error {
	select {
	case <-l.elected:
		return nil
	default:
	}
	lease, err := l.read(r.Context())
	if err != nil {
		return fmt.Errorf("read who leads: %w", err)
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil {
		return fmt.Errorf("%w: no replica holds Lease %s/%s", errNoLeader, lease.Namespace, lease.Name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.seenAt.IsZero() || !lease.Spec.RenewTime.Equal(&l.renewTime) {
		l.renewTime, l.seenAt = *lease.Spec.RenewTime, now
	}
	valid := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	if now.Sub(l.seenAt) > valid+leaderGrace {
		return fmt.Errorf("%w: %s has not renewed Lease %s/%s since %s", errNoLeader, *lease.Spec.HolderIdentity,
			lease.Namespace, lease.Name, l.seenAt.UTC().Format(time.RFC3339))
	}
	return nil
}
