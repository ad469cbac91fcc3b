// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install is the agent's executor: it brings one operator on its own
// cluster to the release that the hub admitted, by way of the cluster's OLM. It
// reads OperatorInstalls from its namespace on the hub and writes their status
// there; everything else that it touches is on its own cluster.
//
// The decisions are in package plan.
package install

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/controllers/install/plan"
	"github.com/bellwether-dev/bellwether/controllers/install/templates"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// Catalogs reads published catalogs; load.Loader does.
type Catalogs interface {
	Package(ctx context.Context, s oci.Source, digest, name string, bundles ...string) (*catalogs.Package, error)
	View(ctx context.Context, r load.Request) (view.View, error)
}

// Views serves catalog views to OLM; serve.Server does.
type Views interface {
	Set(key string, v view.View, preferredPort int) (address string, changed bool, err error)
	State(key string) (serve.State, bool)
	Remove(key string)
}

// Reconciler executes OperatorInstalls.
type Reconciler struct {
	// Hub reads and writes the cluster's namespace on the hub.
	Hub client.Client
	// Local reads the fleet cluster through a cache; Live reads it directly.
	Local client.Client
	Live  client.Reader

	Catalogs  Catalogs
	Views     Views
	Templates *templates.Set
	// OLM tells whether the cluster serves OLM's API, if that is known already.
	OLM func() (served, known bool)
	Now func() time.Time

	offers offers
}

// Reconcile brings one OperatorInstall a step further.
func (r *Reconciler) Reconcile(ctx context.Context, oi *v1alpha1.OperatorInstall) (ctrl.Result, error) {
	if _, known := r.OLM(); !known {
		// The agent has just started. An OLM that was not looked for must not be
		// taken for one that is gone, least of all while an operator is removed.
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	seen, err := r.observe(ctx, oi)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe install: %w", err)
	}
	next := plan.Next(seen.Input)
	if len(next.Actions) > 0 {
		log.FromContext(ctx).V(1).Info("Acting", "actions", next.Actions)
	}
	applyErr := r.apply(ctx, oi, seen, next.Actions)
	oi.Status = next.Status
	return kit.Result(next.RecheckAfter, applyErr)
}

// seen is what was observed, with the objects that actions refer to.
type seen struct {
	plan.Input
	key      string
	view     view.View
	data     templates.Data
	rendered map[string]client.Object
	live     map[plan.Action]client.Object
}
