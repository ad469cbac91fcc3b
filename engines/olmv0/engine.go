// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olmv0 is the engine that installs operators with OLM v0. It serves OLM a catalog view that has the next
// version of an operator and nothing newer, and drives OLM through OLM's objects: Subscription, InstallPlan and
// ClusterServiceVersion. The facts about OLM that it uses are in docs/olm.md.
//
// The decisions are in package plan. Observe reads the cluster. A plan requests further data with actions. The engine
// reads catalogs in separate goroutines.
package olmv0

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/engines/olmv0/templates"
)

// Catalogs reads published catalogs; load.Loader implements it.
type Catalogs interface {
	Package(ctx context.Context, s oci.Source, digest, name string, bundles ...string) (*catalogs.Package, error)
	View(ctx context.Context, r load.Request) (view.View, error)
	// RunDecoding runs decode, which decodes bundles of the catalog with that digest, while no other decoding runs.
	RunDecoding(ctx context.Context, digest string, decode func() error) error
}

// Views serves catalog views to OLM; serve.Server implements it.
type Views interface {
	Set(key string, v view.View, preferredPort int) (address string, changed bool, err error)
	State(key string) (serve.State, bool)
	CSV(key, pkg, bundle string) []byte
	Remove(key string)
}

// Options configure an Engine.
type Options struct {
	// Local reads the fleet cluster through a cache, and writes to it. Live reads from the API server.
	Local client.Client
	Live  client.Reader

	Catalogs  Catalogs
	Views     Views
	Templates *templates.Set
	// Hub reads the OperatorBackups of the cluster; nil if there are none.
	Hub client.Reader
	// Policy returns what the owner of the cluster permits; nil if everything is permitted. A nil function means that
	// the cluster has no policy.
	Policy func(ctx context.Context) (*localpolicy.Policy, error)
	// PullSecret returns the Docker configuration of a Secret in the agent's namespace that a catalog names. Its
	// errors are reported unchanged.
	PullSecret func(ctx context.Context, name string) ([]byte, error)
	// OLM reports whether the cluster serves OLM's API. known is false until the cluster was checked.
	OLM func() (served, known bool)
	Now func() time.Time
}

// Engine installs operators with OLM v0. Its methods may be called concurrently for different installs.
type Engine struct {
	Options
	offers     *offers
	driftCache *driftCache
	stepsCache *stepsCache
}

var _ engines.Engine[*Observation, plan.Action] = (*Engine)(nil)

// New returns an engine. The engine calls notify with an install after it has read a catalog for it.
func New(o Options, notify func(client.ObjectKey)) *Engine {
	offers := newOffers(o.Catalogs, notify, o.Now)
	offers.pullSecret = o.PullSecret
	return &Engine{Options: o, offers: offers, driftCache: newDriftCache(), stepsCache: newStepsCache()}
}

// Plan decides what to do next. If it needs data that was not read, the plan has actions that read the data.
func (e *Engine) Plan(install *v1alpha1.OperatorInstall, o *Observation, now time.Time) engines.Plan[plan.Action] {
	o.facts = plan.NewFacts(install, &o.Observed, e.Templates, now)
	return o.facts.Decide()
}
