// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog reads each OperatorCatalog's source and records by digest
// what it offers, which of its versions clusters run, and which are blocked. It
// starts no rollouts: the operator controller reacts to the digest and the
// blocks.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/controllers/catalog/plan"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorcatalogs,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorcatalogs/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=managedoperators;operatorinstalls,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Source reads catalogs. Reason classifies its errors.
type Source interface {
	// Resolve returns the current digest of the source of a catalog in a namespace.
	// If public keys are given, it verifies that one of them signed it.
	Resolve(ctx context.Context, namespace string, source v1alpha1.CatalogSource, publicKeys []string) (digest string,
		err error)
	// Summary reads the packages and channels of the catalog with that digest.
	Summary(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest string) (catalogs.Summary,
		error)
	// Package reads one package of the catalog with that digest; the error
	// wraps catalogs.ErrNoPackage if there is none of that name.
	Package(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest, name string) (
		*catalogs.Package, error)
	// Reason returns the API's catalog reason for an error.
	Reason(err error) string
}

// readTimeout bounds reading a source, because a registry may not answer.
const readTimeout = 2 * time.Minute

// Reconciler reconciles OperatorCatalogs.
type Reconciler struct {
	Client client.Reader
	Source Source
	Events events.EventRecorder
	Now    func() time.Time
}

// Reconcile reads one catalog's source and its users.
func (r *Reconciler) Reconcile(ctx context.Context, catalog *v1alpha1.OperatorCatalog) (ctrl.Result, error) {
	if catalog.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	in, err := r.observe(ctx, catalog)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe catalog: %w", err)
	}
	next := plan.Next(in)
	if next.Status.Digest != catalog.Status.Digest {
		log.FromContext(ctx).Info("Catalog changed", "digest", next.Status.Digest, "packages", next.Status.PackageCount)
	}
	catalog.Status = next.Status
	for _, e := range next.Events {
		kit.Emit(r.Events, catalog, e.Reason, "Block", "%s", e.Message)
	}
	return kit.Result(next.RecheckAfter, nil)
}

// observe reports a source that cannot be read as an observation, not as an
// error.
func (r *Reconciler) observe(ctx context.Context, catalog *v1alpha1.OperatorCatalog) (plan.Input, error) {
	in := plan.Input{Now: r.Now(), Catalog: catalog}
	var err error
	if in.Users, err = r.users(ctx, catalog); err != nil {
		return in, err
	}
	reading, cancel := context.WithTimeoutCause(ctx, readTimeout, errors.New("the registry did not answer in time"))
	defer cancel()
	r.readSource(reading, &in)
	if catalog.Status.Digest != "" {
		// A package that can no longer be read is missing; the status keeps its
		// versions.
		in.InUse, _ = r.packages(reading, &in, inUse(catalog), catalog.Status.Digest)
	}
	return in, ctx.Err()
}

// readSource resolves the source, and reads it if its digest has changed.
func (r *Reconciler) readSource(ctx context.Context, in *plan.Input) {
	spec := in.Catalog.Spec
	var keys []string
	if spec.Verification != nil {
		keys = spec.Verification.PublicKeys
	}
	digest, err := r.Source.Resolve(ctx, in.Catalog.Namespace, spec.Source, keys)
	if err != nil {
		in.Failure = r.failure(err)
		return
	}
	in.Digest = digest
	if !plan.NeedsRead(in.Catalog, digest) {
		return
	}
	summary, err := r.Source.Summary(ctx, in.Catalog.Namespace, spec.Source, digest)
	if err != nil {
		in.Failure = r.failure(err)
		return
	}
	in.Summary = &summary
	if in.Candidate, err = r.packages(ctx, in, spec.Source, digest); err != nil {
		in.Failure = r.failure(err)
	}
}

func inUse(catalog *v1alpha1.OperatorCatalog) v1alpha1.CatalogSource {
	if catalog.Status.Source != nil {
		return *catalog.Status.Source
	}
	return catalog.Spec.Source
}

// packages reads the packages that are used. A missing or invalid package is
// left out, because the summary reports it. The error is the first of the
// others.
func (r *Reconciler) packages(ctx context.Context, in *plan.Input, source v1alpha1.CatalogSource,
	digest string) (map[string]*catalogs.Package, error) {
	out := map[string]*catalogs.Package{}
	var first error
	for _, u := range in.Users {
		if _, read := out[u.Package]; read {
			continue
		}
		p, err := r.Source.Package(ctx, in.Catalog.Namespace, source, digest, u.Package)
		switch {
		case err == nil:
			out[u.Package] = p
		case errors.Is(err, catalogs.ErrNoPackage), errors.Is(err, catalogs.ErrInvalidPackage), first != nil:
		default:
			first = err
		}
	}
	return out, first
}

// users are the ManagedOperators of the catalog, with what their clusters run.
func (r *Reconciler) users(ctx context.Context, catalog *v1alpha1.OperatorCatalog) ([]plan.User, error) {
	var operators v1alpha1.ManagedOperatorList
	if err := r.Client.List(ctx, &operators, client.InNamespace(catalog.Namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ManagedOperators: %w", err)
	}
	// users returns the ManagedOperators of the catalog with what their
	// clusters run.
	var users []plan.User
	for i := range operators.Items {
		o := &operators.Items[i]
		if o.Spec.Catalog.Name != catalog.Name {
			continue
		}
		var installs v1alpha1.OperatorInstallList
		of := kit.OfOperator(v1alpha1.OperatorReference{Namespace: o.Namespace, Name: o.Name})
		if err := r.Client.List(ctx, &installs, of, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list OperatorInstalls: %w", err)
		}
		user := plan.User{Package: o.Spec.Package, Channel: o.Spec.Channel}
		for j := range installs.Items {
			user.Installs = append(user.Installs, plan.Install{Cluster: installs.Items[j].Spec.Cluster,
				Installed: installed(&installs.Items[j])})
		}
		users = append(users, user)
	}
	return users, nil
}

func installed(o *v1alpha1.OperatorInstall) catalogs.Installed {
	if o.Status.Installed == nil {
		return catalogs.Installed{}
	}
	return catalogs.Installed{Name: o.Status.Installed.Bundle, Version: o.Status.Installed.Version}
}

func (r *Reconciler) failure(err error) *plan.Failure {
	return &plan.Failure{Reason: r.Source.Reason(err), Cause: err.Error()}
}
