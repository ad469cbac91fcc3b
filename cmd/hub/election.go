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

// lock says where the Lease is that hubs agree through.
type lock struct {
	// config reaches a lock cluster; nil for the hub's own cluster.
	config    *rest.Config
	namespace string
}

func readLock(f flags) (lock, error) {
	if f.electionKubeconfig == "" {
		return lock{namespace: f.electionNamespace}, nil
	}
	if !f.leaderElect {
		return lock{}, errors.New("--leader-election-kubeconfig needs --leader-elect: without it every hub is active")
	}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: f.electionKubeconfig}, nil)
	config, err := loaded.ClientConfig()
	if err != nil {
		return lock{}, fmt.Errorf("read --leader-election-kubeconfig: %w", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return lock{}, fmt.Errorf("read namespace of --leader-election-kubeconfig: %w", err)
	}
	return lock{config: config, namespace: namespace}, nil
}

// electionLease is the name of the Lease that replicas agree through.
const electionLease = v1alpha1.HubLeaseName

// shortestLease is the least that --leader-election-lease-duration can be.
const shortestLease = 5 * time.Second

// electionTimes returns how long a leader tries to renew a Lease of a duration before it gives up, and how long it
// waits between two attempts.
//
// A leader has to end before another replica may take its Lease. Since the last renewal it waits for retry, tries for
// renew, and then client-go tries to give the Lease back before it tells anybody: a request, which controller-runtime
// bounds by half of renew and by a second at least. The rest of the Lease is for the end of the process.
func electionTimes(lease time.Duration) (renew, retry time.Duration, err error) {
	if lease < shortestLease {
		return 0, 0, fmt.Errorf("--leader-election-lease-duration is %s: it must be at least %s", lease, shortestLease)
	}
	return lease * 2 / 5, lease / 10, nil
}

var errPassive = errors.New("passive: another hub holds the Lease in the lock cluster, or that cannot be reached")

// isActive fails in a hub that is passive. It is no failure of the pod, whose readiness
// probe leaves it out.
func isActive(mgr ctrl.Manager) healthz.Checker {
	return func(*http.Request) error {
		select {
		case <-mgr.Elected():
			return nil
		default:
			return errPassive
		}
	}
}

// leader is a health check of a replica that does not lead: it fails while no replica does, or where the hub's cluster
// does not answer, or refuses the hub's credentials. A leader that cannot renew its Lease ends by itself.
type leader struct {
	elected <-chan struct{}
	read    func(ctx context.Context) (*coordinationv1.Lease, error)
	now     func() time.Time

	mu sync.Mutex
	// renewed is the last renewal that was seen, and seen when that was by the clock of this replica.
	renewed metav1.MicroTime
	seen    time.Time
}

func leaderOf(mgr ctrl.Manager, namespace string) *leader {
	return &leader{elected: mgr.Elected(), now: time.Now, read: func(ctx context.Context) (*coordinationv1.Lease,
		error) {
		lease := &coordinationv1.Lease{}
		err := mgr.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: namespace, Name: electionLease}, lease)
		return lease, err
	}}
}

// leaderGrace is how long after the end of its Lease a leader is missed: another replica needs some time to take over.
const leaderGrace = 30 * time.Second

var errNoLeader = errors.New("no replica leads")

// Check implements healthz.Checker.
func (l *leader) Check(r *http.Request) error {
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
		return fmt.Errorf("%w: nobody holds Lease %s/%s", errNoLeader, lease.Namespace, lease.Name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.seen.IsZero() || !lease.Spec.RenewTime.Equal(&l.renewed) {
		l.renewed, l.seen = *lease.Spec.RenewTime, now
	}
	valid := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	if now.Sub(l.seen) > valid+leaderGrace {
		return fmt.Errorf("%w: %s has not renewed Lease %s/%s since %s", errNoLeader, *lease.Spec.HolderIdentity,
			lease.Namespace, lease.Name, l.seen.UTC().Format(time.RFC3339))
	}
	return nil
}
