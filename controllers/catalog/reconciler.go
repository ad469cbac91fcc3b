// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog looks at each OperatorCatalog's source and records by digest
// what it offers. It starts nothing: operators react to the digest.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/controllers/catalog/plan"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorcatalogs,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorcatalogs/status,verbs=get;patch;update

// Source reads catalogs. Its errors say what is wrong in the terms of Reason.
type Source interface {
	// Resolve returns the digest that the source has now.
	Resolve(ctx context.Context, source v1alpha1.CatalogSource) (digest string, err error)
	// Summary reads what the catalog with that digest offers.
	Summary(ctx context.Context, source v1alpha1.CatalogSource, digest string) (catalogs.Summary, error)
	// Reason names what is wrong: one of the API's catalog reasons.
	Reason(err error) string
}

// readTimeout bounds one look at a source: a registry may hang.
const readTimeout = 2 * time.Minute

// Reconciler reconciles OperatorCatalogs.
type Reconciler struct {
	Source Source
	Now    func() time.Time
}

// Reconcile looks at one catalog's source.
func (r *Reconciler) Reconcile(ctx context.Context, catalog *v1alpha1.OperatorCatalog) (ctrl.Result, error) {
	if catalog.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	in := r.observe(ctx, catalog)
	if ctx.Err() != nil {
		return ctrl.Result{}, fmt.Errorf("observe catalog: %w", ctx.Err())
	}
	next := plan.Next(in)
	if next.Status.Digest != catalog.Status.Digest {
		log.FromContext(ctx).Info("Catalog changed", "digest", next.Status.Digest, "packages", next.Status.PackageCount)
	}
	catalog.Status = next.Status
	return kit.Result(next.RecheckAfter, nil)
}

// observe never fails: a source that cannot be read is an observation.
func (r *Reconciler) observe(ctx context.Context, catalog *v1alpha1.OperatorCatalog) plan.Input {
	ctx, cancel := context.WithTimeoutCause(ctx, readTimeout, errors.New("the registry did not answer in time"))
	defer cancel()
	in := plan.Input{Now: r.Now(), Catalog: catalog}
	source := catalog.Spec.Source
	digest, err := r.Source.Resolve(ctx, source)
	if err != nil {
		in.Failure = r.failure(err)
		return in
	}
	in.Digest = digest
	if !plan.NeedsRead(catalog, digest) {
		return in
	}
	summary, err := r.Source.Summary(ctx, source, digest)
	if err != nil {
		in.Failure = r.failure(err)
		return in
	}
	in.Summary = &summary
	return in
}

func (r *Reconciler) failure(err error) *plan.Failure {
	return &plan.Failure{Reason: r.Source.Reason(err), Cause: err.Error()}
}

// Add adds the controller to a manager. concurrency is how many sources are
// looked at at a time.
func Add(mgr ctrl.Manager, source Source, concurrency int) error {
	r := &Reconciler{Source: source, Now: time.Now}
	err := ctrl.NewControllerManagedBy(mgr).Named("catalog").
		For(&v1alpha1.OperatorCatalog{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WithOptions(controller.Options{MaxConcurrentReconciles: max(concurrency, 1)}).
		Complete(kit.Shell(mgr.GetClient(), mgr.GetEventRecorder("bellwether-catalog"), r))
	if err != nil {
		return fmt.Errorf("build catalog controller: %w", err)
	}
	return nil
}
