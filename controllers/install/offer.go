// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/blocks"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/reasons"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/controllers/install/plan"
	"github.com/bellwether-dev/bellwether/explain/remedy"
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
	pkg, err := r.Catalogs.Package(ctx, sourceOf(release.Catalog), release.Catalog.Digest, release.Package)
	if err != nil {
		return err
	}
	s.Offer.Versions = map[string]string{}
	for name, bundle := range pkg.Bundles {
		s.Offer.Versions[name] = bundle.VersionString()
	}
	for name, block := range pkg.Blocks { // it may have left the catalog, and is still this operator
		s.Offer.Versions[name] = block.Version
	}
	from, present, err := s.way(pkg, q)
	if err != nil {
		return err
	}
	return r.offerView(ctx, s, from, present)
}

// sourceOf is the pinned catalog's source, with the signature that it must have.
func sourceOf(pin v1alpha1.CatalogPin) oci.Source {
	s := oci.SourceOf(pin.Source)
	for _, key := range pin.PublicKeys {
		s.Verification.PublicKeys = append(s.Verification.PublicKeys, []byte(key))
	}
	return s
}

// way works out the path, its next hop, what it starts from, and the CSVs that
// are there besides. A hop that is under way is held on to as long as it leads
// to what was admitted, blocked or not: OLM cannot be called back from it. No
// other one is to a blocked version.
func (s *seen) way(pkg *catalogs.Package, q question) (from catalogs.Installed, present string, err error) {
	release := s.Install.Spec.Admission.Release
	if q.underWay != "" {
		path, err := pkg.PathFrom(release.Channel, q.before, release.Bundle)
		if err == nil && len(path) > 0 && path[0] == q.underWay {
			s.Offer.Path, s.Offer.Next = path, q.underWay
			return q.before, q.lasting, nil
		}
	}
	good, err := pkg.WithBlocked(blocks.Of(s.Install.Spec.Blocks, release.Package)...)
	if err != nil {
		s.Offer.Blocked = fmt.Sprintf("The blocks on package %s leave nothing to install: %v.", release.Package, err)
		return q.installed, q.present, nil
	}
	if s.Offer.Blocked = blockedTarget(good, release, q.installed); s.Offer.Blocked != "" {
		return q.installed, q.present, nil
	}
	if s.Offer.Path, err = good.PathFrom(release.Channel, q.installed, release.Bundle); err != nil {
		s.Offer.Blocked = blockedOrigin(good, release, q.installed)
		if s.Offer.Blocked != "" {
			return q.installed, q.present, nil
		}
		return q.installed, q.present, err
	}
	if len(s.Offer.Path) > 0 && q.advance {
		s.Offer.Next = s.Offer.Path[0]
	}
	return q.installed, q.present, nil
}

// blockedTarget says why what was admitted is blocked; empty where it is not.
func blockedTarget(good *catalogs.Package, release v1alpha1.Release, installed catalogs.Installed) string {
	b, blocked := good.Blocked(release.Bundle)
	switch {
	case !blocked:
		return ""
	case installed.Name == release.Bundle:
		return fmt.Sprintf("Version %s is blocked: %s. It stays until another version is admitted.", release.Version,
			reasonOf(b))
	default:
		return fmt.Sprintf("Version %s, which was admitted, is blocked: %s. Nothing is changed until another version "+
			"is admitted, or the block is lifted.",
			release.Version, reasonOf(b))
	}
}

// blockedOrigin says why what runs is blocked, for where nothing leads on from
// it; empty where it is not.
func blockedOrigin(good *catalogs.Package, release v1alpha1.Release, installed catalogs.Installed) string {
	b, blocked := good.Blocked(installed.Name)
	if !blocked {
		return ""
	}
	return fmt.Sprintf("Version %s, which runs, is blocked: %s. Nothing leads from it to %s: publish a newer "+
		"version, or go back by hand.",
		cmp.Or(installed.Version, installed.Name), reasonOf(b), release.Version)
}

func reasonOf(b catalogs.Block) string {
	reason := strings.TrimSuffix(b.Reason, ".")
	if b.Instead != "" {
		reason += " (go to " + b.Instead + " instead)"
	}
	return reason
}

// question is all that an offer depends on. The catalog is pinned by digest, so
// the same question has the same answer.
type question struct {
	release string
	digest  string
	// keys that the catalog must be signed with, and blocks in force.
	keys, blocks string
	installed    catalogs.Installed
	advance      bool
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
	q := question{release: release.Hash(), digest: release.Catalog.Digest,
		advance: s.Cluster.MayAdvance(s.Now, revision)}
	q.keys, q.blocks = strings.Join(release.Catalog.PublicKeys, "\n"), fmt.Sprintf("%q", s.Install.Spec.Blocks)
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
	if s.Offer.Blocked != "" && installed.Name == "" {
		return nil // there is nothing to show
	}
	release := s.Install.Spec.Admission.Release
	s.view, err = r.Catalogs.View(ctx, load.Request{
		Source: sourceOf(release.Catalog), Digest: release.Catalog.Digest, PullBundles: true,
		Package: release.Package, Channel: release.Channel, Installed: installed, Next: s.Offer.Next,
		Present: strings.Fields(present),
		Blocks:  blocksByPackage(s.Install.Spec.Blocks),
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

func blocksByPackage(list []v1alpha1.VersionBlock) map[string][]catalogs.Block {
	out := map[string][]catalogs.Block{}
	for _, b := range list {
		if _, done := out[b.Package]; !done {
			out[b.Package] = blocks.Of(list, b.Package)
		}
	}
	return out
}

// problem words what went wrong, and what a person can do about it.
func problem(err error) *plan.Problem {
	reason := reasons.For(err)
	advice := remedy.Advice(reason, remedy.Agent, remedy.Names{})
	return &plan.Problem{Reason: reason, Message: strings.TrimSpace(err.Error() + ". " + advice)}
}
