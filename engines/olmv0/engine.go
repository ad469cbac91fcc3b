// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olmv0 is the engine that installs operators with OLM v0. It serves OLM
// a catalog view that holds the next version of an operator and nothing newer,
// and drives OLM by its own objects: Subscription, InstallPlan and
// ClusterServiceVersion. What it knows of OLM is in docs/olm.md.
//
// The decisions are in package plan. Catalogs are read outside of Observe, by
// the engine's own goroutines.
package olmv0

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Catalogs reads published catalogs; load.Loader does.
type Catalogs interface {
	Package(ctx context.Context, s oci.Source, digest, name string, bundles ...string) (*catalogs.Package, error)
	View(ctx context.Context, r load.Request) (view.View, error)
	// Decode calls decode, which decodes bundles of a catalog with that digest, and waits until nobody else does.
	Decode(ctx context.Context, digest string, decode func() error) error
}

// Views serves catalog views to OLM; serve.Server does.
type Views interface {
	Set(key string, v view.View, preferredPort int) (address string, changed bool, err error)
	State(key string) (serve.State, bool)
	CSV(key, pkg, bundle string) []byte
	Remove(key string)
}

// Options configure an Engine.
type Options struct {
	// Local reads the fleet cluster through a cache, and writes to it; Live reads
	// it directly.
	Local client.Client
	Live  client.Reader

	Catalogs  Catalogs
	Views     Views
	Templates *templates.Set
	// Hub reads the OperatorBackups of the cluster; nil where there are none.
	Hub client.Reader
	// Policy returns what the owner of the cluster permits; nil where that is
	// everything. A nil function says that there is no such policy.
	Policy func(ctx context.Context) (*localpolicy.Policy, error)
	// PullSecret returns the Docker configuration of a Secret in the agent's
	// namespace that a catalog names. Its errors are told as they are.
	PullSecret func(ctx context.Context, name string) ([]byte, error)
	// OLM tells whether the cluster serves OLM's API, if that is known already.
	OLM func() (served, known bool)
	Now func() time.Time
}

// Engine installs operators with OLM v0. Its methods may be called at the same
// time for different installs.
type Engine struct {
	Options
	offers      *offers
	comparisons *comparisons
	compared    *compared
}

var _ engines.Engine[*Observation, plan.Action] = (*Engine)(nil)

// New returns an engine. It calls notify for an install when a catalog was read
// for it.
func New(o Options, notify func(client.ObjectKey)) *Engine {
	offers := newOffers(o.Catalogs, notify, o.Now)
	offers.pullSecret = o.PullSecret
	return &Engine{Options: o, offers: offers, comparisons: newComparisons(), compared: newCompared()}
}

// Observation is what was read for one install. It does not change after
// Observe.
type Observation struct {
	View    plan.View
	Offer   plan.Offer
	Cluster plan.Cluster

	// view is the content for Offer.ViewHash, unless it is served already.
	view view.View
	// rendered has the objects of the templates by kind.
	rendered map[string]*unstructured.Unstructured
	// subscriptions are those of the operator's namespace as they were read, by name.
	subscriptions map[string]*unstructured.Unstructured
	// deployments are those of the installed CSV.
	deployments []*appsv1.Deployment
	// backups are those of the cluster, read only where the policy asks for some.
	backups []v1alpha1.OperatorBackup
	// ownedKinds are the kinds of custom resources that the CSVs own.
	ownedKinds []schema.GroupVersionKind
	// owned are the names of the CustomResourceDefinitions that CSVs own, by the name of the CSV.
	owned map[string][]string
}

// Plan decides what to do next.
func (e *Engine) Plan(install *v1alpha1.OperatorInstall, o *Observation, now time.Time) engines.Plan[plan.Action] {
	return plan.Next(plan.Input{Now: now, Install: install, Offer: o.Offer, View: o.View, Cluster: o.Cluster,
		Backups: o.backups})
}

// viewKey names the view of an install.
func viewKey(install *v1alpha1.OperatorInstall) string { return install.Name }

// Observe reads what a decision rests on. It reads the operator's namespace from
// the API server directly, so it fails if that cannot be reached.
func (e *Engine) Observe(ctx context.Context, install *v1alpha1.OperatorInstall) (*Observation, error) {
	served, known := e.OLM()
	if !known {
		// The agent has just started. That OLM has not been looked for must not be
		// taken for an OLM that is gone, least of all while an operator is removed.
		return nil, engines.ErrNotReady
	}
	r := e.reader(install)
	if install.Spec.Admission == nil {
		return r.observation, nil
	}
	r.observation.Cluster.OLM = served
	if err := r.readNamespace(ctx); err != nil {
		return nil, err
	}
	if !served {
		return r.observation, nil
	}
	for _, read := range []func(context.Context) error{
		r.readOperatorGroups, r.readCatalogSource, r.readSubscriptions, r.readInstallPlans, r.readCSVs,
		r.readUndefined, r.readUnserved, r.readDeployments,
	} {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	if !install.DeletionTimestamp.IsZero() {
		r.readOccupants(ctx)
		return r.observation, nil
	}
	if err := e.find(ctx, r.observation, install.Spec.Admission.Release); err != nil {
		return nil, err
	}
	return r.observation, e.addOffer(ctx, r, install)
}

// find adds everything that OLM has on the cluster, where an operator of somebody else may be adopted.
func (e *Engine) find(ctx context.Context, o *Observation, release v1alpha1.Release) error {
	isOurs := func(s plan.Subscription) bool { return s.Ours }
	if !adopts(release) || slices.ContainsFunc(o.Cluster.Subscriptions, isOurs) {
		return nil
	}
	found, err := (&Finder{Local: e.Local, OLM: e.OLM}).Find(ctx)
	o.Cluster.Found = &found
	return err
}

func (e *Engine) reader(install *v1alpha1.OperatorInstall) *reader {
	o := &Observation{rendered: map[string]*unstructured.Unstructured{}, owned: map[string][]string{},
		subscriptions: map[string]*unstructured.Unstructured{}}
	if state, ok := e.Views.State(viewKey(install)); ok {
		o.View = plan.View{Hash: state.Hash, Address: state.Addr, Idle: state.Idle}
	}
	r := &reader{local: e.Local, live: e.Live, templates: e.Templates, install: install, observation: o}
	if install.Spec.Admission != nil {
		r.data = dataFor(install, o.View.Address)
	}
	return r
}

// addOffer adds what the catalog says, unless a template is invalid: then that
// is the problem.
func (e *Engine) addOffer(ctx context.Context, r *reader, install *v1alpha1.OperatorInstall) error {
	o := r.observation
	if o.Offer.Problem != nil {
		return nil
	}
	if err := e.readBackups(ctx, o, install); err != nil {
		return err
	}
	now := e.Now()
	request := requestFor(install, o.Cluster, o.backups, now)
	var err error
	if request.Stored, err = e.readStored(ctx, o, install); err != nil {
		return err
	}
	if request.Policy, err = e.readPolicy(ctx); err != nil {
		return err
	}
	request.claimed = claimed{live: e.Live, source: o.rendered[plan.KindCatalogSource].GetName()}
	answer := e.offers.get(client.ObjectKeyFromObject(install), request, o.View.Hash)
	switch {
	case answer.pending && now.Sub(answer.since) < pendingGrace:
		return fmt.Errorf("read catalog: %w", engines.ErrNotReady)
	case answer.pending:
		o.Offer.Pending = pendingMessage(install.Spec.Admission.Release.Catalog, answer.since)
		return nil
	}
	o.Offer, o.view = answer.offer, answer.view
	if err := r.readOtherNamespaces(ctx); err != nil {
		return err
	}
	if err := e.compared.add(ctx, r, client.ObjectKeyFromObject(install)); err != nil {
		return err
	}
	return e.comparisons.add(ctx, r, client.ObjectKeyFromObject(install))
}

// readPolicy returns what the owner of the cluster permits.
func (e *Engine) readPolicy(ctx context.Context) (*localpolicy.Policy, error) {
	if e.Policy == nil {
		return nil, nil
	}
	policy, err := e.Policy(ctx)
	if err != nil {
		return nil, fmt.Errorf("read policy of the cluster's owner: %w", err)
	}
	return policy, nil
}

func dataFor(install *v1alpha1.OperatorInstall, address string) templates.Data {
	release := install.Spec.Admission.Release
	return templates.Data{
		Cluster: install.Spec.Cluster, Operator: install.Spec.Operator.Name,
		OperatorNamespace: install.Spec.Operator.Namespace,
		Namespace:         release.TargetNamespace(), Package: release.Package, Channel: release.Channel,
		Version: release.Version, Subscription: release.Package,
		Mode: release.Install.Mode, Config: release.Install.Config, ViewAddress: address,
	}
}
