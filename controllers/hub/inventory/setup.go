// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory records what the hub observes, so that the fleet's history can be queried. It changes no object.
// Rollouts do not wait for it.
package inventory

import (
	"fmt"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bellwether-dev/bellwether/inventory/serve"
	"github.com/bellwether-dev/bellwether/inventory/store"
)

// +kubebuilder:rbac:groups=bellwether.dev,resources=fleetclusters;managedoperators,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorinstalls;operatorcatalogs,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorrollouts;fleetaccesses,verbs=get;list;watch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Options configure the inventory.
type Options struct {
	// File is the database. Empty: there is no inventory.
	File string
	// Retention is how much of the past is kept.
	Retention store.Retention
	// NewServer returns the server that passes requests to a handler. It runs in all replicas: one that does not lead
	// says so. Nil: queries are not served.
	NewServer func(http.Handler) manager.Runnable
}

// Add adds the recorder and the server to a manager.
func Add(mgr ctrl.Manager, o Options) error {
	if o.File == "" {
		return nil
	}
	r := &recorder{cache: mgr.GetCache(), file: o.File, now: time.Now, retention: o.Retention}
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("add inventory: %w", err)
	}
	if o.NewServer == nil {
		return nil
	}
	users := &serve.Reviewer{Client: mgr.GetClient(), Now: time.Now}
	if err := mgr.Add(o.NewServer(&serve.Handler{Inventory: r, Users: users, Now: time.Now})); err != nil {
		return fmt.Errorf("add server of the inventory: %w", err)
	}
	return nil
}
