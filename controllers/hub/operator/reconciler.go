// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator creates the OperatorRollouts of each ManagedOperator. It resolves the
// spec to a release of the catalog, starts a rollout if that release differs from the
// release of the newest rollout, and removes the operator from clusters that are not
// selected. It admits no clusters.
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
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
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

// Packages reads packages of catalogs. namespace is the namespace of the catalog.
type Packages interface {
	Package(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest, name string) (
		*catalogs.Package, error)
	// Bundles reads a package with the manifests of the named bundles. Manifests that
	// cannot be read are left out.
	Bundles(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest, name string,
		bundles ...string) (*catalogs.Package, error)
	// RunDecoding calls decode. decode must decode only bundles of the catalog with that digest.
	RunDecoding(ctx context.Context, digest string, decode func() error) error
	// ReasonFor returns the API's catalog reason for an error.
	ReasonFor(err error) string
}

// readTimeout limits how long a package is read, because a registry might never answer.
const readTimeout = 2 * time.Minute

// Reconciler reconciles ManagedOperators.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server, without the cache. It is used where
	// stale data would be wrong.
	Live     client.Reader
	Packages Packages
	Events   events.EventRecorder
	// Now is the hub's clock.
	Now func() time.Time
}

// Reconcile reconciles one ManagedOperator: it observes, decides with operators.Next, applies
// the decision and updates the status in memory.
func (r *Reconciler) Reconcile(ctx context.Context, operator *v1alpha1.ManagedOperator) (ctrl.Result, error) {
	in, err := r.observe(ctx, operator)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe operator: %w", err)
	}
	next := operators.Next(in)
	installErr, applyErr := r.apply(ctx, in, next)
	r.reportDeletedRollouts(operator, next.Lost)
	r.reportDecisions(operator, next.Decided)
	r.reportAvailableUpdate(operator, next.Announce)
	updateStatus(ctx, operator, next, applyErr)
	return kit.NewResult(next.RecheckAfter, errors.Join(applyErr, installErr))
}

// observe gathers the input of operators.Next.
func (r *Reconciler) observe(ctx context.Context, operator *v1alpha1.ManagedOperator) (operators.Input, error) {
	in := operators.Input{Now: r.Now(), Operator: operator}
	for _, gather := range []func(context.Context, *operators.Input) error{
		r.observeCatalog, r.observeClusters, r.observeInstalls, r.observeRollouts, r.observeClaims,
		r.observeAccess,
	} {
		if err := gather(ctx, &in); err != nil {
			return in, err
		}
	}
	return in, nil
}

// observeCatalog reads the operator's catalog, and the operator's package in the catalog unless
// the operator is being deleted. A missing catalog, and a package that cannot be read, are
// recorded in the input and are not errors.
func (r *Reconciler) observeCatalog(ctx context.Context, in *operators.Input) error {
	spec := in.Operator.Spec
	var catalog v1alpha1.OperatorCatalog
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: in.Operator.Namespace, Name: spec.Catalog.Name}, &catalog)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read OperatorCatalog: %w", err)
	}
	if err != nil { // there is no catalog
		return nil
	}
	in.Catalog = &catalog
	if catalog.Status.Digest == "" || in.Operator.DeletionTimestamp != nil {
		return nil
	}
	source := catalog.Spec.Source
	if catalog.Status.Source != nil { // the source that has the digest; the spec can have a newer source
		source = *catalog.Status.Source
	}
	readCtx, cancel := context.WithTimeoutCause(ctx, readTimeout, errors.New("the registry did not answer in time"))
	defer cancel()
	in.Package, err = r.Packages.Package(readCtx, catalog.Namespace, source, catalog.Status.Digest, spec.Package)
	if err != nil {
		in.PackageFailure = &operators.Failure{Reason: r.Packages.ReasonFor(err), Cause: err.Error()}
	}
	return ctx.Err()
}

// observeClusters adds all FleetClusters to the input.
func (r *Reconciler) observeClusters(ctx context.Context, in *operators.Input) error {
	var clusters v1alpha1.FleetClusterList
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list FleetClusters: %w", err)
	}
	for i := range clusters.Items {
		in.Clusters = append(in.Clusters, rollouts.ObserveCluster(&clusters.Items[i]))
	}
	return nil
}

// observeInstalls adds the operator's OperatorInstalls to the input.
func (r *Reconciler) observeInstalls(ctx context.Context, in *operators.Input) error {
	var installs v1alpha1.OperatorInstallList
	if err := r.Client.List(ctx, &installs, kit.MatchOperator(newOperatorReference(in.Operator)),
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	for i := range installs.Items {
		in.Installs = append(in.Installs, observeInstall(&installs.Items[i]))
	}
	return nil
}

// observeInstall returns the part of an OperatorInstall that this controller uses.
func observeInstall(o *v1alpha1.OperatorInstall) operators.Install {
	install := operators.Install{
		Install: removal.Observe(o), SucceededHash: o.Status.SucceededHash,
		Rollout: o.Labels[v1alpha1.LabelRollout], Observed: o.Status.ObservedRevision,
		Admitted: rollouts.ObserveInstall(o),
		Ready:    conditions.IsTrue(o.Status.Conditions, v1alpha1.ConditionReady),
		Blocks:   operators.Encode(o.Spec.Blocks), Drift: operators.DriftPolicy(o.Spec.Drift), Backup: o.Spec.Backup,
		StorageMigration: o.Spec.StorageMigration, Holds: o.Spec.Holds,
	}
	if kept := o.Status.Kept; kept != nil && !o.Spec.Admission.Covers(kept.Admission) {
		install.Kept = kept // the hub does not have the admission that the cluster stores
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

// observeRollouts adds the operator's rollouts to the input.
func (r *Reconciler) observeRollouts(ctx context.Context, in *operators.Input) error {
	var list v1alpha1.OperatorRolloutList
	if err := r.Client.List(ctx, &list, client.InNamespace(in.Operator.Namespace),
		kit.MatchOperator(newOperatorReference(in.Operator))); err != nil {
		return fmt.Errorf("list OperatorRollouts: %w", err)
	}
	in.Rollouts = list.Items
	return nil
}

// observeAccess adds all FleetAccess objects and FleetFreezes to the input.
func (r *Reconciler) observeAccess(ctx context.Context, in *operators.Input) error {
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

// observeClaims adds the claims of all other operators to the input, and the dependency cycle of
// this operator if it has one.
func (r *Reconciler) observeClaims(ctx context.Context, in *operators.Input) error {
	var operators v1alpha1.ManagedOperatorList
	if err := r.Client.List(ctx, &operators, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ManagedOperators: %w", err)
	}
	in.Cycle = findDependencyCycle(in.Operator, operators.Items)
	for i := range operators.Items {
		if o := &operators.Items[i]; o.UID != in.Operator.UID {
			in.Claims = append(in.Claims, engines.NewClaim(o))
		}
	}
	return nil
}

// findDependencyCycle returns the description of a cycle by which the operator depends on
// itself; empty if it has none. An operator can depend only on operators in its namespace.
func findDependencyCycle(o *v1alpha1.ManagedOperator, all []v1alpha1.ManagedOperator) string {
	if len(o.Spec.DependsOn) == 0 {
		return ""
	}
	var neighbours []v1alpha1.ManagedOperator
	for i := range all {
		if all[i].Namespace == o.Namespace {
			neighbours = append(neighbours, all[i])
		}
	}
	return holds.FindCycle(o.Name, neighbours)
}

// newOperatorReference returns the reference that OperatorInstalls use for the operator.
func newOperatorReference(o *v1alpha1.ManagedOperator) v1alpha1.OperatorReference {
	return v1alpha1.OperatorReference{Namespace: o.Namespace, Name: o.Name}
}

// reportDeletedRollouts emits an Event for each rollout that was deleted before it ended. The
// audit log of the API server is the only record of the user who deleted it.
func (r *Reconciler) reportDeletedRollouts(operator *v1alpha1.ManagedOperator, lost []v1alpha1.RolloutOutcome) {
	for _, o := range lost {
		kit.Emit(r.Events, operator, "RolloutDeleted", "Reconcile",
			"OperatorRollout %s to %s was deleted while %s: %s updated, %d failed, %d deferred; its outcome stays "+
				"in status.history", o.Name, o.Version, o.Phase, phrase.Part(o.Clusters.Succeeded,
				o.Clusters.Total-o.Clusters.Removed, "cluster"), o.Clusters.Failed, o.Clusters.Deferred)
	}
}

// reportDecisions emits an Event for each decision that was added to the status.
func (r *Reconciler) reportDecisions(operator *v1alpha1.ManagedOperator, decided []v1alpha1.Decision) {
	for _, d := range decided {
		kit.Emit(r.Events, operator, string(d.What), "Reconcile", "%s", operators.FormatLoggedDecision(d))
	}
}

// reportAvailableUpdate emits an Event for a version that starts to wait for an approval. It
// does nothing if version is nil.
func (r *Reconciler) reportAvailableUpdate(operator *v1alpha1.ManagedOperator, version *v1alpha1.AvailableVersion) {
	if version != nil {
		kit.Emit(r.Events, operator, "UpdateAvailable", "Reconcile", "version %s waits for an approval: %s; approve "+
			"it with `%s`", version.Version, version.Reason, operators.ApproveCommand(operator.Name, version.Version))
	}
}

// updateStatus puts the decided status into the operator and logs a change of the condition
// Ready. If the decision was not applied, the status keeps the previous rollout.
func updateStatus(ctx context.Context, operator *v1alpha1.ManagedOperator, next operators.Decision, applyErr error) {
	if applyErr != nil {
		next.Status.Rollout = operator.Status.Rollout // the next rollout might not exist
	}
	before := conditions.Get(operator.Status.Conditions, v1alpha1.ConditionReady)
	after := conditions.Get(next.Status.Conditions, v1alpha1.ConditionReady)
	if before.Reason != after.Reason {
		log.FromContext(ctx).Info("Operator changed state", "from", before.Reason, "to", after.Reason, "message",
			after.Message)
	}
	operator.Status = next.Status
}
