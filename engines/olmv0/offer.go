// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/reasons"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
	"github.com/bellwether-dev/bellwether/engines/olmv0/drift"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/phrase"
)

const (
	// maxReads bounds how many catalogs are read at a time, since each takes
	// memory, and maxReadsOfHost how many of them from one registry, so that a slow
	// registry leaves room for the others.
	maxReads       = 4
	maxReadsOfHost = 2
	// retryAfter is how long a catalog that could not be read is left alone.
	retryAfter = 30 * time.Second
	// pendingGrace is how long a catalog may be read before the status tells of it.
	pendingGrace = 2 * time.Second
)

// offers reads catalogs in goroutines of its own, at most maxReads at a time, and
// keeps the last offer of each install. A reconcile never waits for a registry:
// it takes what is there, and the install is reconciled again once a read ended.
type offers struct {
	catalogs Catalogs
	notify   func(client.ObjectKey)
	now      func() time.Time
	// pullSecret returns the login that a catalog names.
	pullSecret func(ctx context.Context, name string) ([]byte, error)

	mu      sync.Mutex
	entries map[client.ObjectKey]*entry
	// all and hosts hold a value for each read under way.
	all   chan struct{}
	hosts map[string]chan struct{}
}

// entry is the last request of an install, and its answer.
type entry struct {
	request string
	// since is when the read that is under way was asked for; zero if none is.
	since time.Time
	stop  context.CancelFunc
	// answered says that offer and view hold an answer, from answeredAt.
	answered   bool
	answeredAt time.Time
	offer      plan.Offer
	view       view.View
}

// answer is what is known of a request.
type answer struct {
	// pending says that the catalog is being read, since the given time.
	pending bool
	since   time.Time
	offer   plan.Offer
	// view is the content of the offered view. It is kept until that is served.
	view view.View
}

func newOffers(c Catalogs, notify func(client.ObjectKey), now func() time.Time) *offers {
	return &offers{catalogs: c, notify: notify, now: now, entries: map[client.ObjectKey]*entry{},
		all: make(chan struct{}, maxReads), hosts: map[string]chan struct{}{}}
}

// get returns the answer to a request, or starts to read the catalog for it. A
// read for another request of the same install is stopped. served is the hash of
// the view that is served for the install.
func (o *offers) get(key client.ObjectKey, r request, served string) answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	identity := r.identity()
	e, ok := o.entries[key]
	if !ok || e.request != identity {
		if ok {
			e.stop()
		}
		e = &entry{request: identity, stop: func() {}}
		o.entries[key] = e
	}
	if e.answered && e.offer.Problem == nil && e.offer.ViewHash == served {
		e.view = view.View{} // it is served, so it is not needed here any more
	}
	if e.since.IsZero() && o.mustRead(e, served) {
		o.start(key, e, r)
	}
	if !e.answered {
		return answer{pending: true, since: e.since}
	}
	return answer{offer: e.offer, view: e.view}
}

// mustRead tells whether an entry has no answer that is still good. The answer to
// a view whose content was dropped is good only while that view is served.
func (o *offers) mustRead(e *entry, served string) bool {
	switch {
	case !e.answered:
		return true
	case e.offer.Problem != nil:
		return o.now().Sub(e.answeredAt) >= retryAfter
	case e.offer.ViewHash != served && e.offer.ViewHash != e.view.Hash:
		e.answered = false
		return true
	}
	return false
}

func (o *offers) start(key client.ObjectKey, e *entry, r request) {
	ctx, cancel := context.WithCancel(context.Background())
	e.since, e.stop = o.now(), cancel
	host, _, _ := strings.Cut(r.Release.Catalog.Source.Image, "/")
	limit, ok := o.hosts[host]
	if !ok {
		limit = make(chan struct{}, maxReadsOfHost)
		o.hosts[host] = limit
	}
	go func() {
		defer cancel()
		for _, slots := range []chan struct{}{limit, o.all} {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
				return
			}
		}
		offer, content, err := o.read(ctx, r)
		if err != nil {
			offer, content = plan.Offer{Problem: problemOf(err, r), Package: offer.Package}, view.View{}
		}
		if o.keep(key, e, offer, content) {
			o.notify(key)
		}
	}()
}

// keep stores an answer, unless another request was made meanwhile.
func (o *offers) keep(key client.ObjectKey, e *entry, offer plan.Offer, content view.View) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entries[key] != e {
		return false
	}
	e.since, e.answered, e.answeredAt = time.Time{}, true, o.now()
	e.offer, e.view = offer, content
	return true
}

// forget drops what is known of an install.
func (o *offers) forget(key client.ObjectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e, ok := o.entries[key]; ok {
		e.stop()
		delete(o.entries, key)
	}
}

// source is where the catalog is read from, with the login that it names.
func (o *offers) source(ctx context.Context, r request) (oci.Source, error) {
	s, err := r.source()
	if name := r.Release.Catalog.Source.PullSecret; err == nil && name != "" {
		s.Access.DockerConfig, err = o.pullSecret(ctx, name)
	}
	return s, err
}

// read works out an offer: the upgrade path to the release, and the view of the
// next hop, or of what is installed where there is none.
func (o *offers) read(ctx context.Context, r request) (plan.Offer, view.View, error) {
	var offer plan.Offer
	source, err := o.source(ctx, r)
	if err != nil {
		return offer, view.View{}, err
	}
	pkg, err := o.catalogs.Package(ctx, source, r.Release.Catalog.Digest, r.Release.Package)
	if err != nil {
		return offer, view.View{}, err
	}
	describe(&offer, pkg, r)
	if r.Release.AsInstalled {
		if offer.Problem = r.notInCatalog(*offer.Package); offer.Problem != nil || r.Installed.Name == "" {
			return offer, view.View{}, nil // there is nothing to serve
		}
	}
	found, err := findRoute(pkg, r)
	if err != nil {
		return offer, view.View{}, err
	}
	offer.Path, offer.Next, offer.Blocked = found.path, found.next, found.blocked
	offer.Rollback = rollbackClass(pkg, found.from.Name, found.next)
	if offer.Blocked != "" && found.from.Name == "" {
		return offer, view.View{}, nil // there is nothing to serve
	}
	var claims []*localpolicy.Claims
	content, err := o.catalogs.View(ctx, load.Request{
		Source: source, Digest: r.Release.Catalog.Digest, PullBundles: true,
		Package: r.Release.Package, Channel: r.Release.Channel, Installed: found.from, Next: found.next,
		Present: found.present, Blocks: blocksByPackage(r.Blocks), Back: found.wayBack(r.Stored),
		Permit: r.permit(&claims),
	})
	if err == nil {
		err = r.claimed.judge(ctx, claims)
	}
	if err != nil {
		return offer, view.View{}, err
	}
	if offer.Problem = refuseWayBack(r, found.from, content.Rollback); offer.Problem != nil {
		return offer, view.View{}, nil
	}
	offer.ViewHash, offer.Admitted = content.Hash, content.Admitted
	offer.Route = routeOf(content, r.Release.Package)
	err = o.catalogs.Decode(ctx, r.Release.Catalog.Digest, func() error {
		return addContent(&offer, content, r.Release)
	})
	return offer, content, err
}

// routeOf is how OLM gets the bundle of a package that a view offers; empty where it offers none.
func routeOf(content view.View, pkg string) v1alpha1.BundleRoute {
	var route v1alpha1.BundleRoute
	for _, bundle := range content.Bundles {
		if bundle.Package == pkg && bundle.Route != view.Stub {
			route = v1alpha1.BundleRoute(bundle.Route)
		}
	}
	return route
}

// describe adds to an offer what is in the package.
func describe(offer *plan.Offer, pkg *catalogs.Package, r request) {
	offer.Versions = map[string]string{}
	for name, bundle := range pkg.Bundles {
		offer.Versions[name] = bundle.VersionString()
	}
	for name, block := range pkg.Blocks { // a blocked bundle may be gone from the catalog, and be installed
		offer.Versions[name] = block.Version
	}
	if adopts(r.Release) {
		known := adoption.Of(cmp.Or(r.Release.Catalog.Source.Image, r.Release.Catalog.Source.Directory), pkg)
		known.Admitted = true
		offer.Package = &known
	}
}

// notInCatalog says that the catalog lacks the version that is to be adopted; nil where it does not.
func (r request) notInCatalog(p adoption.Package) *plan.Problem {
	if r.Installed.Name == "" || p.Has(r.Installed.Name) {
		return nil
	}
	return &plan.Problem{Reason: v1alpha1.ReasonNotAdoptable, Message: fmt.Sprintf("%s is installed, and package %s "+
		"in %s does not have it. Add version %s to the ladder file of the package, and publish the catalog: "+
		"`bellwether catalog add ./ladders BUNDLE`.", r.Installed.Name, p.Name, p.Catalog,
		cmp.Or(r.Installed.Version, "of that bundle"))}
}

// addContent adds to an offer what is to be known of the manifests that a view serves.
func addContent(offer *plan.Offer, v view.View, release v1alpha1.Release) (err error) {
	if offer.Content, err = contentsOf(v); err == nil {
		offer.Expected, err = expected(v, release)
	}
	return err
}

// expected returns what the bundle that a view serves in full sets; nil where the
// view does not have its manifests, since OLM unpacks them from an image.
func expected(v view.View, release v1alpha1.Release) (*drift.Expected, error) {
	for _, pkg := range v.Packages {
		bundle, ok := pkg.Bundles[cmp.Or(v.Next, v.Installed)]
		if pkg.Name != release.Package || !ok {
			continue
		}
		csv, err := decodeCSV(bundle)
		if csv == nil || err != nil {
			return nil, err
		}
		return drift.Read(csv, release.Install.Config)
	}
	return nil, nil
}

// decodeCSV returns the ClusterServiceVersion of a bundle; nil where its manifests are not there.
func decodeCSV(b *catalogs.Bundle) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	for _, object := range b.Objects {
		if !bundles.IsCSV(object) {
			continue
		}
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := bundles.CheckCSV(object); err != nil {
			return nil, fmt.Errorf("%w: bundle %q: %w", catalogs.ErrInvalidPackage, b.Name, err)
		}
		if err := json.Unmarshal(object, csv); err != nil {
			return nil, fmt.Errorf("%w: decode ClusterServiceVersion of bundle %q: %w", catalogs.ErrInvalidPackage,
				b.Name, err)
		}
		return csv, nil
	}
	return nil, nil
}

func pendingMessage(pin v1alpha1.CatalogPin, since time.Time) string {
	return fmt.Sprintf("Reading catalog %s since %s. If this lasts, check that this cluster reaches the registry.",
		cmp.Or(pin.Source.Image, pin.Source.Directory), phrase.Time(since))
}

// problemOf says what went wrong, and what a person can do about it.
func problemOf(err error, r request) *plan.Problem {
	reason := reasons.For(err)
	if reason == v1alpha1.ReasonSignatureMissing || reason == v1alpha1.ReasonSignatureInvalid {
		if refused := r.Policy.Unsigned(err); refused != nil {
			err = refused
		}
	}
	if errors.Is(err, oci.ErrNotBundle) && r.Policy.JudgesBundles(r.Release.TargetNamespace()) {
		err = localpolicy.Unreadable(r.Release.Bundle, err)
	}
	if refusal := (*localpolicy.RefusalError)(nil); errors.As(err, &refusal) {
		return &plan.Problem{Reason: refusal.Reason, Message: refusal.Message}
	}
	advice := remedy.Advice(reason, remedy.Agent, remedy.Names{})
	return &plan.Problem{Reason: reason, Message: strings.TrimSpace(err.Error() + ". " + advice)}
}
