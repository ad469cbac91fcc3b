// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog reads the source of each OperatorCatalog. It records in the status the digest
// of the content, its packages, the versions that clusters run, and the blocked versions. It
// starts no rollouts: the operator controller reacts to the digest and to the blocks.
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
	"github.com/bellwether-dev/bellwether/catalogs/pin"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorcatalogs,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorcatalogs/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=managedoperators;operatorinstalls,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Source reads catalogs. Reason classifies its errors.
type Source interface {
	// Resolve returns the current digest of a catalog's source. namespace is the
	// namespace of the catalog. If public keys are given, Resolve verifies that one of
	// the keys signed the content.
	Resolve(ctx context.Context, namespace string, source v1alpha1.CatalogSource, publicKeys []string) (digest string,
		err error)
	// Summary reads the packages and channels of the catalog with that digest.
	Summary(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest string) (catalogs.Summary,
		error)
	// Package reads one package of the catalog with that digest. The error wraps
	// catalogs.ErrNoPackage if the catalog has no package with that name.
	Package(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest, name string) (
		*catalogs.Package, error)
	// ReasonFor returns the API's catalog reason for an error.
	ReasonFor(err error) string
}

// readTimeout limits how long one pass reads from the registry, because a
// registry might never answer.
const readTimeout = 2 * time.Minute

// Reconciler reconciles OperatorCatalogs.
type Reconciler struct {
	Client client.Reader
	Source Source
	Events events.EventRecorder
	Now    func() time.Time
}

// Reconcile reads the source of one catalog and the ManagedOperators that use the catalog, and
// updates the catalog's status in memory.
func (r *Reconciler) Reconcile(ctx context.Context, catalog *v1alpha1.OperatorCatalog) (ctrl.Result, error) {
	if catalog.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	in, err := r.observe(ctx, catalog)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe catalog: %w", err)
	}
	next := pin.Decide(in)
	if next.Status.Digest != catalog.Status.Digest {
		log.FromContext(ctx).Info("Catalog changed", "digest", next.Status.Digest, "packages", next.Status.PackageCount)
	}
	catalog.Status = next.Status
	for _, e := range next.Events {
		kit.Emit(r.Events, catalog, e.Reason, "Block", "%s", e.Message)
	}
	return kit.NewResult(next.RecheckAfter, nil)
}

// observe gathers the input of pin.Decide. If the source cannot be read, that is recorded in the
// input and is not an error.
func (r *Reconciler) observe(ctx context.Context, catalog *v1alpha1.OperatorCatalog) (pin.Input, error) {
	in := pin.Input{Now: r.Now(), Catalog: catalog}
	var err error
	if in.Users, err = r.listUsers(ctx, catalog); err != nil {
		return in, err
	}
	readCtx, cancel := context.WithTimeoutCause(ctx, readTimeout, errors.New("the registry did not answer in time"))
	defer cancel()
	r.readSource(readCtx, &in)
	if catalog.Status.Digest != "" {
		// A package that cannot be read is left out of the result. The status then
		// keeps the package's versions.
		in.InUse, _ = r.readPackages(readCtx, &in, getSourceInUse(catalog), catalog.Status.Digest)
	}
	return in, ctx.Err()
}

// readSource resolves the source to a digest. If the digest changed, it also reads the summary
// and the used packages. It records the result, or the failure, in the input.
func (r *Reconciler) readSource(ctx context.Context, in *pin.Input) {
	spec := in.Catalog.Spec
	var keys []string
	if spec.Verification != nil {
		keys = spec.Verification.PublicKeys
	}
	digest, err := r.Source.Resolve(ctx, in.Catalog.Namespace, spec.Source, keys)
	if err != nil {
		in.Failure = r.newFailure(err)
		return
	}
	in.Digest = digest
	if !pin.NeedsRead(in.Catalog, digest) {
		return
	}
	summary, err := r.Source.Summary(ctx, in.Catalog.Namespace, spec.Source, digest)
	if err != nil {
		in.Failure = r.newFailure(err)
		return
	}
	in.Summary = &summary
	if in.Candidate, err = r.readPackages(ctx, in, spec.Source, digest); err != nil {
		in.Failure = r.newFailure(err)
	}
}

// getSourceInUse returns the source that the status was read from. If the status names no
// source, it returns the source in the spec.
func getSourceInUse(catalog *v1alpha1.OperatorCatalog) v1alpha1.CatalogSource {
	if catalog.Status.Source != nil {
		return *catalog.Status.Source
	}
	return catalog.Spec.Source
}

// readPackages reads the packages that ManagedOperators use, by name. Missing and invalid
// packages are left out without an error, because the summary reports them. The error is the
// first error of any other kind; the other packages are returned all the same.
func (r *Reconciler) readPackages(ctx context.Context, in *pin.Input, source v1alpha1.CatalogSource,
	digest string) (map[string]*catalogs.Package, error) {
	out := map[string]*catalogs.Package{}
	var firstErr error
	for _, u := range in.Users {
		if _, read := out[u.Package]; read {
			continue
		}
		p, err := r.Source.Package(ctx, in.Catalog.Namespace, source, digest, u.Package)
		switch {
		case err == nil:
			out[u.Package] = p
		case errors.Is(err, catalogs.ErrNoPackage), errors.Is(err, catalogs.ErrInvalidPackage):
			// the summary reports the problem
		case firstErr != nil: // a later error is not returned
		default:
			firstErr = err
		}
	}
	return out, firstErr
}

// listUsers returns the ManagedOperators that use the catalog, each with the
// versions that its clusters run.
func (r *Reconciler) listUsers(ctx context.Context, catalog *v1alpha1.OperatorCatalog) ([]pin.User, error) {
	var operators v1alpha1.ManagedOperatorList
	if err := r.Client.List(ctx, &operators, client.InNamespace(catalog.Namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ManagedOperators: %w", err)
	}
	var users []pin.User
	for i := range operators.Items {
		o := &operators.Items[i]
		if o.Spec.Catalog.Name != catalog.Name {
			continue
		}
		var installs v1alpha1.OperatorInstallList
		ofOperator := kit.MatchOperator(v1alpha1.OperatorReference{Namespace: o.Namespace, Name: o.Name})
		if err := r.Client.List(ctx, &installs, ofOperator, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list OperatorInstalls: %w", err)
		}
		user := pin.User{Package: o.Spec.Package, Channel: o.Spec.Channel}
		for j := range installs.Items {
			user.Installs = append(user.Installs, pin.Install{Cluster: installs.Items[j].Spec.Cluster,
				Installed: readInstalled(&installs.Items[j])})
		}
		users = append(users, user)
	}
	return users, nil
}

// readInstalled returns the bundle and version that an OperatorInstall reports. The result is
// empty if no version is installed.
func readInstalled(o *v1alpha1.OperatorInstall) catalogs.Installed {
	if o.Status.Installed == nil {
		return catalogs.Installed{}
	}
	return catalogs.Installed{Name: o.Status.Installed.Bundle, Version: o.Status.Installed.Version}
}

// newFailure returns the API's reason and the text for an error of the source.
func (r *Reconciler) newFailure(err error) *pin.Failure {
	return &pin.Failure{Reason: r.Source.ReasonFor(err), Cause: err.Error()}
}
