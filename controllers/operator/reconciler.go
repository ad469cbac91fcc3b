// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator creates OperatorRollouts for each ManagedOperator: it
// resolves the spec to a release of the catalog, starts a rollout if that
// differs from the newest one, and removes the operator from clusters that are
// no longer selected. It admits no clusters.
package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/operator/plan"
	"github.com/bellwether-dev/bellwether/engines/claim"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/audit"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
	"github.com/bellwether-dev/bellwether/rollouts/target"
)

// The last rule lets rollouts block the deletion of their owner where the API
// server enforces that permission.
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=managedoperators,verbs=get;list;watch;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=managedoperators/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorrollouts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorinstalls,verbs=get;list;watch;patch;update;delete
// +kubebuilder:rbac:groups=bellwether.dev,resources=fleetaccesses;fleetclusters;operatorcatalogs,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=bellwether.dev,resources=managedoperators/finalizers,verbs=update

// Packages reads packages of catalogs in a namespace. Reason classifies its errors.
type Packages interface {
	Package(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest, name string) (
		*catalogs.Package, error)
	// Bundles reads a package with the manifests of some bundles, as far as they can be
	// read.
	Bundles(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest, name string,
		bundles ...string) (*catalogs.Package, error)
	// Decode calls decode, which decodes bundles of the catalog with that digest.
	Decode(ctx context.Context, digest string, decode func() error) error
	// Reason returns the API's catalog reason for an error.
	Reason(err error) string
}

// readTimeout bounds reading a package, because a registry may not answer.
const readTimeout = 2 * time.Minute

// Reconciler reconciles ManagedOperators.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache, for reads that must not be stale.
	Live     client.Reader
	Packages Packages
	Events   events.EventRecorder
	// Now is the hub's clock.
	Now func() time.Time
}

// Reconcile reconciles one ManagedOperator.
func (r *Reconciler) Reconcile(ctx context.Context, operator *v1alpha1.ManagedOperator) (ctrl.Result, error) {
	in, err := r.observe(ctx, operator)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe operator: %w", err)
	}
	next := plan.Next(in)
	installErr, applyErr := r.apply(ctx, in, next)
	r.reportLost(operator, next.Lost)
	r.reportDecisions(operator, next.Decided)
	r.announce(operator, next.Announce)
	report(ctx, operator, next, applyErr)
	return kit.Result(next.RecheckAfter, errors.Join(applyErr, installErr))
}

func (r *Reconciler) observe(ctx context.Context, operator *v1alpha1.ManagedOperator) (plan.Input, error) {
	in := plan.Input{Now: r.Now(), Operator: operator}
	for _, gather := range []func(context.Context, *plan.Input) error{
		r.observeCatalog, r.observeClusters, r.observeInstalls, r.observeRollouts, r.observeClaims,
		r.observeAccess,
	} {
		if err := gather(ctx, &in); err != nil {
			return in, err
		}
	}
	return in, nil
}

func (r *Reconciler) observeCatalog(ctx context.Context, in *plan.Input) error {
	spec := in.Operator.Spec
	var catalog v1alpha1.OperatorCatalog
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: in.Operator.Namespace, Name: spec.Catalog.Name}, &catalog)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read OperatorCatalog: %w", err)
	}
	if err != nil {
		return nil
	}
	in.Catalog = &catalog
	if catalog.Status.Digest == "" || in.Operator.DeletionTimestamp != nil {
		return nil
	}
	source := catalog.Spec.Source
	if catalog.Status.Source != nil {
		source = *catalog.Status.Source
	}
	reading, cancel := context.WithTimeoutCause(ctx, readTimeout, errors.New("the registry did not answer in time"))
	defer cancel()
	in.Package, err = r.Packages.Package(reading, catalog.Namespace, source, catalog.Status.Digest, spec.Package)
	if err != nil {
		in.PackageFailure = &plan.Failure{Reason: r.Packages.Reason(err), Cause: err.Error()}
	}
	return ctx.Err()
}

func (r *Reconciler) observeClusters(ctx context.Context, in *plan.Input) error {
	var clusters v1alpha1.FleetClusterList
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list FleetClusters: %w", err)
	}
	for i := range clusters.Items {
		in.Clusters = append(in.Clusters, rollouts.ObserveCluster(&clusters.Items[i]))
	}
	return nil
}

func (r *Reconciler) observeInstalls(ctx context.Context, in *plan.Input) error {
	var installs v1alpha1.OperatorInstallList
	if err := r.Client.List(ctx, &installs, kit.OfOperator(reference(in.Operator)),
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	for i := range installs.Items {
		in.Installs = append(in.Installs, observeInstall(&installs.Items[i]))
	}
	return nil
}

func observeInstall(o *v1alpha1.OperatorInstall) plan.Install {
	install := plan.Install{
		Install: removal.Observe(o), SucceededHash: o.Status.SucceededHash,
		Rollout: o.Labels[v1alpha1.LabelRollout], Observed: o.Status.ObservedRevision,
		Admitted: rollouts.ObserveInstall(o),
		Ready:    conditions.IsTrue(o.Status.Conditions, v1alpha1.ConditionReady),
		Blocks:   plan.Encode(o.Spec.Blocks), Drift: plan.DriftPolicy(o.Spec.Drift), Backup: o.Spec.Backup,
		StorageMigration: o.Spec.StorageMigration, Holds: o.Spec.Holds,
	}
	if kept := o.Status.Kept; kept != nil && !o.Spec.Admission.Covers(kept.Admission) {
		install.Kept = kept
	}
	if o.Spec.Admission != nil {
		install.Release = &o.Spec.Admission.Release
		install.Revision = o.Spec.Admission.Revision
	}
	if o.Status.Installed != nil {
		install.Installed = catalogs.Installed{Name: o.Status.Installed.Bundle, Version: o.Status.Installed.Version}
	}
	if conditions.IsTrue(o.Status.Conditions, v1alpha1.ConditionStalled) {
		install.StalledReason = conditions.Get(o.Status.Conditions, v1alpha1.ConditionStalled).Reason
	}
	return install
}

func (r *Reconciler) observeRollouts(ctx context.Context, in *plan.Input) error {
	var list v1alpha1.OperatorRolloutList
	if err := r.Client.List(ctx, &list, client.InNamespace(in.Operator.Namespace),
		kit.OfOperator(reference(in.Operator))); err != nil {
		return fmt.Errorf("list OperatorRollouts: %w", err)
	}
	in.Rollouts = list.Items
	return nil
}

func (r *Reconciler) observeAccess(ctx context.Context, in *plan.Input) error {
	var all v1alpha1.FleetAccessList
	if err := r.Client.List(ctx, &all); err != nil {
		return fmt.Errorf("list FleetAccess objects: %w", err)
	}
	var freezes v1alpha1.FleetFreezeList
	if err := r.Client.List(ctx, &freezes); err != nil {
		return fmt.Errorf("list FleetFreezes: %w", err)
	}
	in.Access, in.Freezes = all.Items, freezes.Items
	return nil
}

func (r *Reconciler) observeClaims(ctx context.Context, in *plan.Input) error {
	var operators v1alpha1.ManagedOperatorList
	if err := r.Client.List(ctx, &operators, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ManagedOperators: %w", err)
	}
	in.Cycle = cycle(in.Operator, operators.Items)
	for i := range operators.Items {
		if o := &operators.Items[i]; o.UID != in.Operator.UID {
			in.Claims = append(in.Claims, claim.Of(o))
		}
	}
	return nil
}

// cycle looks for a way by which an operator depends on itself.
func cycle(o *v1alpha1.ManagedOperator, all []v1alpha1.ManagedOperator) string {
	if len(o.Spec.DependsOn) == 0 {
		return ""
	}
	var neighbours []v1alpha1.ManagedOperator
	for i := range all {
		if all[i].Namespace == o.Namespace {
			neighbours = append(neighbours, all[i])
		}
	}
	return holds.Cycle(o.Name, neighbours)
}

func reference(o *v1alpha1.ManagedOperator) v1alpha1.OperatorReference {
	return v1alpha1.OperatorReference{Namespace: o.Namespace, Name: o.Name}
}

// reportLost emits Events for deleted rollouts. Only the audit log of the API
// server shows who deleted them.
func (r *Reconciler) reportLost(operator *v1alpha1.ManagedOperator, lost []v1alpha1.RolloutOutcome) {
	for _, o := range lost {
		kit.Emit(r.Events, operator, "RolloutDeleted", "Reconcile",
			"OperatorRollout %s to %s was deleted while %s: %s updated, %d failed, %d deferred; its outcome stays "+
				"in status.history", o.Name, o.Version, o.Phase, phrase.Part(o.Clusters.Succeeded,
				o.Clusters.Total-o.Clusters.Removed, "cluster"), o.Clusters.Failed, o.Clusters.Deferred)
	}
}

// reportDecisions emits an Event for each decision that is new in the trail.
func (r *Reconciler) reportDecisions(operator *v1alpha1.ManagedOperator, decided []v1alpha1.Decision) {
	for _, d := range decided {
		kit.Emit(r.Events, operator, string(d.What), "Reconcile", "%s", audit.Text(d))
	}
}

// announce emits an Event for a version that begins to wait for an approval.
func (r *Reconciler) announce(operator *v1alpha1.ManagedOperator, waits *v1alpha1.AvailableVersion) {
	if waits != nil {
		kit.Emit(r.Events, operator, "UpdateAvailable", "Reconcile", "version %s waits for an approval: %s; approve "+
			"it with `%s`", waits.Version, waits.Reason, target.ApproveCommand(operator.Name, waits.Version))
	}
}

func report(ctx context.Context, operator *v1alpha1.ManagedOperator, next plan.Decision, applyErr error) {
	if applyErr != nil {
		next.Status.Rollout = operator.Status.Rollout // the next rollout may not have been created
	}
	before := conditions.Get(operator.Status.Conditions, v1alpha1.ConditionReady)
	after := conditions.Get(next.Status.Conditions, v1alpha1.ConditionReady)
	if before.Reason != after.Reason {
		log.FromContext(ctx).Info("Operator changed state", "from", before.Reason, "to", after.Reason, "message",
			after.Message)
	}
	operator.Status = next.Status
}
