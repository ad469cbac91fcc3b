// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
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
