// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

const (
	// maxReads limits the number of concurrent reads of catalogs, because each read needs memory. maxReadsOfHost
	// limits the reads from one registry, so that a slow registry does not block the others.
	maxReads       = 4
	maxReadsOfHost = 2
	// problemRetryDelay is the time until a catalog that could not be read is read again.
	problemRetryDelay = 30 * time.Second
)

// offers reads catalogs in its own goroutines, at most maxReads at a time, and keeps the last offer of each
// install. A reconcile never waits for a registry: it uses the existing answer, and the install is reconciled again
// after a read.
type offers struct {
	catalogs Catalogs
	notify   func(client.ObjectKey)
	now      func() time.Time
	// pullSecret returns the login that a catalog names.
	pullSecret func(ctx context.Context, name string) ([]byte, error)

	mu      sync.Mutex
	entries map[client.ObjectKey]*offerEntry
	// slots and slotsByHost limit the reads: each running read has sent one value to each.
	slots       chan struct{}
	slotsByHost map[string]chan struct{}
}

// offerEntry is the last request of an install, and its answer.
type offerEntry struct {
	// identity is the text of the request (plan.Request.Identity).
	identity string
	// since is when the running read was requested; zero if no read is running.
	since time.Time
	stop  context.CancelFunc
	// answered is set if offer and view have an answer, which was read at answeredAt.
	answered   bool
	answeredAt time.Time
	offer      plan.Offer
	view       view.View
}

// catalogQuestion is a request with what the read needs in addition.
type catalogQuestion struct {
	plan.Request
	// claimReader reads the objects of the cluster that a bundle claims. The objects are not part of the request: they
	// are read when a bundle is to be offered, and again after a refusal.
	claimReader claimReader
}

// catalogAnswer is the answer to a request.
type catalogAnswer struct {
	// pending is set while the catalog is being read, since the given time.
	pending bool
	since   time.Time
	offer   plan.Offer
	// view is the content of the offered view. It is kept until the view is served.
	view view.View
}

func newOffers(c Catalogs, notify func(client.ObjectKey), now func() time.Time) *offers {
	return &offers{catalogs: c, notify: notify, now: now, entries: map[client.ObjectKey]*offerEntry{},
		slots: make(chan struct{}, maxReads), slotsByHost: map[string]chan struct{}{}}
}

// getOrRead returns the answer to a request, or starts to read the catalog for it. It stops a read for another
// request of the same install. served is the hash of the view that is served for the install.
func (o *offers) getOrRead(key client.ObjectKey, q catalogQuestion, servedHash string) catalogAnswer {
	o.mu.Lock()
	defer o.mu.Unlock()
	identity := q.Identity()
	e, ok := o.entries[key]
	if !ok || e.identity != identity {
		if ok {
			e.stop()
		}
		e = &offerEntry{identity: identity, stop: func() {}}
		o.entries[key] = e
	}
	if e.answered && e.offer.Problem == nil && e.offer.ViewHash == servedHash {
		e.view = view.View{} // the view is served, so its content is not needed here
	}
	if e.since.IsZero() && o.needsRead(e, servedHash) {
		o.startRead(key, e, q)
	}
	if !e.answered {
		return catalogAnswer{pending: true, since: e.since}
	}
	return catalogAnswer{offer: e.offer, view: e.view}
}

// needsRead reports whether an entry has no valid answer: the catalog was never read, the last read failed some time
// ago, or the content of the view was dropped and the view is not served. In the last case, it also removes the
// answer, so that the install waits for the read.
func (o *offers) needsRead(e *offerEntry, servedHash string) bool {
	switch {
	case !e.answered:
		return true
	case e.offer.Problem != nil:
		return o.now().Sub(e.answeredAt) >= problemRetryDelay
	case e.offer.ViewHash != servedHash && e.offer.ViewHash != e.view.Hash:
		e.answered = false
		return true
	}
	return false
}

// startRead starts to read the catalog for an entry, and notifies the install after the read. An error becomes the
// problem of the offer.
func (o *offers) startRead(key client.ObjectKey, e *offerEntry, q catalogQuestion) {
	ctx, cancel := context.WithCancel(context.Background())
	e.since, e.stop = o.now(), cancel
	host, _, _ := strings.Cut(q.Release.Catalog.Source.Image, "/")
	limit, ok := o.slotsByHost[host]
	if !ok {
		limit = make(chan struct{}, maxReadsOfHost)
		o.slotsByHost[host] = limit
	}
	go func() {
		defer cancel()
		// The slot of the host comes first: a read that waits for its host must not hold a slot for all hosts.
		for _, slots := range []chan struct{}{limit, o.slots} {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
				return
			}
		}
		offer, content, err := o.readOffer(ctx, q)
		if err != nil {
			offer, content = plan.Offer{Problem: newProblem(err, q.Request), Package: offer.Package}, view.View{}
		}
		if o.storeAnswer(key, e, offer, content) {
			o.notify(key)
		}
	}()
}

// storeAnswer stores an answer. It returns false, and stores nothing, if the install has another request now.
func (o *offers) storeAnswer(key client.ObjectKey, e *offerEntry, offer plan.Offer, content view.View) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entries[key] != e {
		return false
	}
	e.since, e.answered, e.answeredAt = time.Time{}, true, o.now()
	e.offer, e.view = offer, content
	return true
}

// forget stops the read of an install and removes its entry.
func (o *offers) forget(key client.ObjectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e, ok := o.entries[key]; ok {
		e.stop()
		delete(o.entries, key)
	}
}

// findSource returns where the catalog is read from, with the keys that must have signed it and the login that it
// names. The error means that the owner of the cluster does not permit the release, or that the login cannot be read.
func (o *offers) findSource(ctx context.Context, q catalogQuestion) (oci.Source, error) {
	keys, err := q.Policy.JudgeRelease(q.Release)
	if err != nil {
		return oci.Source{}, err
	}
	s := oci.NewSource(q.Release.Catalog.Source)
	for _, key := range keys {
		s.Verification.PublicKeys = append(s.Verification.PublicKeys, []byte(key))
	}
	if name := q.Release.Catalog.Source.PullSecret; name != "" {
		s.Access.DockerConfig, err = o.pullSecret(ctx, name)
	}
	return s, err
}

// readOffer reads the package of a catalog, and the view of the next hop or, if there is no next hop, of the installed
// bundle. It returns an offer without a view if the offer has a problem or needs no view. The claims of the bundles are
// checked before the content of the view is decoded, so that no refused bundle is decoded.
func (o *offers) readOffer(ctx context.Context, q catalogQuestion) (plan.Offer, view.View, error) {
	source, err := o.findSource(ctx, q)
	if err != nil {
		return plan.Offer{}, view.View{}, err
	}
	pkg, err := o.catalogs.Package(ctx, source, q.Release.Catalog.Digest, q.Release.Package)
	if err != nil {
		return plan.Offer{}, view.View{}, err
	}
	offer, route, err := q.Begin(pkg)
	if err != nil || !route.Serves {
		return offer, view.View{}, err
	}
	var claims []*localpolicy.Claims
	content, err := o.catalogs.View(ctx, load.Request{
		Source: source, Digest: q.Release.Catalog.Digest, PullBundles: true,
		Package: q.Release.Package, Channel: q.Release.Channel, Installed: route.From, Next: route.Next,
		Present: route.Present, Blocks: plan.BlocksByPackage(q.Blocks), Back: route.NewRollbackBuilder(q.Stored),
		Permit: q.NewBundleCheck(&claims),
	})
	if err == nil {
		err = q.claimReader.judgeClaims(ctx, claims)
	}
	if err != nil {
		return offer, view.View{}, err
	}
	if offer.Problem = plan.RefuseRollback(q.Request, route.From, content.Rollback); offer.Problem != nil {
		return offer, view.View{}, nil
	}
	err = o.catalogs.RunDecoding(ctx, q.Release.Catalog.Digest,
		func() error { return offer.SetView(content, q.Release) })
	return offer, content, err
}

// newProblem returns the problem for an error of a read, with advice for a person. If the policy of the cluster's
// owner is the cause, the problem names the policy.
func newProblem(err error, r plan.Request) *plan.Problem {
	reason := load.ReasonFor(err)
	if reason == v1alpha1.ReasonSignatureMissing || reason == v1alpha1.ReasonSignatureInvalid {
		if refused := r.Policy.RefuseUnsigned(err); refused != nil {
			err = refused
		}
	}
	// The policy refuses what it cannot judge.
	if errors.Is(err, oci.ErrNotBundle) && r.Policy.JudgesBundles(r.Release.TargetNamespace()) {
		err = localpolicy.RefuseUnreadable(r.Release.Bundle, err)
	}
	if refusal := (*localpolicy.RefusalError)(nil); errors.As(err, &refusal) {
		return &plan.Problem{Reason: refusal.Reason, Message: refusal.Message}
	}
	advice := remedy.Advice(reason, remedy.Agent, remedy.Names{})
	return &plan.Problem{Reason: reason, Message: strings.TrimSpace(err.Error() + ". " + advice)}
}
