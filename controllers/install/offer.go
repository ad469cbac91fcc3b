// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/controllers/install/plan"
)

// offer works out the way to the admitted release and the view of its next hop.
// What keeps it from that becomes the offer's problem, not an error: it is for
// a person, or time, to put right.
func (r *Reconciler) offer(ctx context.Context, s *seen) error {
	if s.Offer.Problem != nil {
		return nil
	}
	q := ask(s)
	if offer, ok := r.offers.recall(s.key, q); ok && offer.ViewHash == s.View.Hash {
		s.Offer = offer
		return r.observeElsewhere(ctx, s)
	}
	if err := r.offerNext(ctx, s, q); err != nil {
		s.Offer.Problem = problem(err)
		return nil
	}
	r.offers.keep(s.key, q, s.Offer)
	return r.observeElsewhere(ctx, s)
}

func (r *Reconciler) offerNext(ctx context.Context, s *seen, q question) error {
	release := s.Install.Spec.Admission.Release
	pkg, err := r.Catalogs.Package(ctx, oci.SourceOf(release.Catalog.Source), release.Catalog.Digest, release.Package)
	if err != nil {
		return err
	}
	s.Offer.Versions = map[string]string{}
	for name, bundle := range pkg.Bundles {
		s.Offer.Versions[name] = bundle.VersionString()
	}
	from, present, err := s.way(pkg, q)
	if err != nil {
		return err
	}
	return r.offerView(ctx, s, from, present)
}

// way works out the path, its next hop, what it starts from, and the CSVs that
// are there besides. A hop that is under way is held on to as long as it leads
// to what was admitted.
func (s *seen) way(pkg *catalogs.Package, q question) (from catalogs.Installed, present string, err error) {
	release := s.Install.Spec.Admission.Release
	if q.underWay != "" {
		path, err := pkg.PathFrom(release.Channel, q.before, release.Bundle)
		if err == nil && len(path) > 0 && path[0] == q.underWay {
			s.Offer.Path, s.Offer.Next = path, q.underWay
			return q.before, q.lasting, nil
		}
	}
	if s.Offer.Path, err = pkg.PathFrom(release.Channel, q.installed, release.Bundle); err != nil {
		return q.installed, q.present, err
	}
	if len(s.Offer.Path) > 0 && q.advance {
		s.Offer.Next = s.Offer.Path[0]
	}
	return q.installed, q.present, nil
}

// question is all that an offer depends on. The catalog is pinned by digest, so
// the same question has the same answer.
type question struct {
	release   string
	digest    string
	installed catalogs.Installed
	advance   bool
	// present are the CSVs in the namespace.
	present string
	// underWay is the bundle that takes the place of before right now; empty
	// where none does. lasting are the CSVs that were there before that.
	underWay string
	before   catalogs.Installed
	lasting  string
}

func ask(s *seen) question {
	release := s.Install.Spec.Admission.Release
	revision := s.Install.Spec.Admission.Revision
	q := question{release: release.Hash(), digest: release.Catalog.Digest, advance: s.Cluster.MayAdvance(s.Now, revision)}
	if csv, ok := s.Cluster.Installed(); ok {
		q.installed = catalogs.Installed{Name: csv.Name, Version: csv.Version}
	}
	if from, to, ok := s.Cluster.UnderWay(s.Now, revision); ok {
		q.underWay, q.before = to.Name, catalogs.Installed{Name: from.Name, Version: from.Version}
	}
	q.present, q.lasting = strings.Join(s.Cluster.Lasting(""), " "), strings.Join(s.Cluster.Lasting(q.underWay), " ")
	return q
}

// offers remembers the last offer of each install, without the view's content,
// so that a pass in which nothing changed reads no catalog.
type offers struct {
	mu   sync.Mutex
	last map[string]answered
}

type answered struct {
	question
	plan.Offer
}

func (o *offers) recall(key string, q question) (plan.Offer, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, ok := o.last[key]
	return last.Offer, ok && last.question == q
}

func (o *offers) keep(key string, q question, offer plan.Offer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = map[string]answered{}
	}
	o.last[key] = answered{q, offer}
}

func (o *offers) forget(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.last, key)
}

// offerView builds the view of the next hop, or of what is installed where
// there is none.
func (r *Reconciler) offerView(ctx context.Context, s *seen, installed catalogs.Installed, present string) (err error) {
	release := s.Install.Spec.Admission.Release
	s.view, err = r.Catalogs.View(ctx, load.Request{
		Source: oci.SourceOf(release.Catalog.Source), Digest: release.Catalog.Digest, PullBundles: true,
		Package: release.Package, Channel: release.Channel, Installed: installed, Next: s.Offer.Next, Present: strings.Fields(present),
	})
	if err != nil {
		return err
	}
	s.Offer.ViewHash, s.Offer.Admitted = s.view.Hash, s.view.Admitted
	for _, bundle := range s.view.Bundles {
		if bundle.Package == release.Package && bundle.Route != view.Stub {
			s.Offer.Route = v1alpha1.BundleRoute(bundle.Route)
		}
	}
	return nil
}

// observeElsewhere looks for the package's CSVs in other namespaces.
func (r *Reconciler) observeElsewhere(ctx context.Context, s *seen) error {
	if s.data.Mode == v1alpha1.InstallOwnNamespace {
		return nil
	}
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := r.Local.List(ctx, &list); err != nil {
		return fmt.Errorf("list ClusterServiceVersions: %w", err)
	}
	for _, csv := range list.Items {
		if _, ours := s.Offer.Versions[csv.Name]; ours && csv.Namespace != s.data.Namespace {
			s.Cluster.Elsewhere = append(s.Cluster.Elsewhere, csv.Namespace+"/"+csv.Name)
		}
	}
	return nil
}

// reasons maps what can be wrong with a catalog to a condition's reason and to
// what a person can do about it.
var reasons = []struct {
	err    error
	reason string
	advice string
}{
	{oci.ErrDigestMismatch, v1alpha1.ReasonDigestMismatch, "The catalog's content is not what the hub admitted: a registry or a proxy between changes it."},
	{oci.ErrUnreachable, v1alpha1.ReasonCatalogUnreachable, "Check that this cluster can reach the registry, and its credentials."},
	{catalogs.ErrNotCatalog, v1alpha1.ReasonNotACatalog, "Publish a file-based catalog there."},
	{catalogs.ErrInvalidPackage, v1alpha1.ReasonCatalogInvalid, "Publish a corrected catalog."},
	{catalogs.ErrNoPackage, v1alpha1.ReasonUnknownPackage, "Correct the ManagedOperator, or publish the package."},
	{catalogs.ErrNoChannel, v1alpha1.ReasonUnknownChannel, "Correct the ManagedOperator, or publish the channel."},
	{catalogs.ErrNoVersion, v1alpha1.ReasonUnknownVersion, "Correct the ManagedOperator, or publish the version."},
	{catalogs.ErrNoPath, v1alpha1.ReasonNoUpgradePath, "Publish an edge from what is installed, or choose another version."},
	{view.ErrBundleTooLarge, v1alpha1.ReasonBundleTooLarge, ""}, // its text says what to do
	{view.ErrNoContent, v1alpha1.ReasonCatalogInvalid, "Publish the bundle with its manifests or its image."},
	{view.ErrWrongCSV, v1alpha1.ReasonCatalogInvalid, "Publish a corrected bundle."},
}

func problem(err error) *plan.Problem {
	for _, known := range reasons {
		if errors.Is(err, known.err) {
			return &plan.Problem{Reason: known.reason, Message: strings.TrimSpace(err.Error() + ". " + known.advice)}
		}
	}
	return &plan.Problem{Reason: v1alpha1.ReasonCatalogUnreachable, Message: err.Error() + ". It is tried again."}
}
