// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// registries are catalogs that answer when their host is released.
type registries struct {
	mu sync.Mutex
	// blocked holds, by host, what a read waits for; failing is returned by every
	// read.
	blocked map[string]chan struct{}
	failing error
	reads   int
	// started and stopped receive a value for each read.
	started, stopped chan struct{}
}

func (r *registries) Package(ctx context.Context, s oci.Source, _, name string, _ ...string) (*catalogs.Package,
	error) {
	host, _, _ := strings.Cut(s.Image, "/")
	r.mu.Lock()
	r.reads++
	wait, err := r.blocked[host], r.failing
	r.mu.Unlock()
	r.started <- struct{}{}
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			r.stopped <- struct{}{}
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	return catalogs.ReadPackage(catalogs.SingleFile("test",
		strings.NewReader(catalogtest.Graph(name, "1.0.0\n1.1.0 replaces 1.0.0"))), name)
}

func (r *registries) RunDecoding(_ context.Context, _ string, decode func() error) error {
	return decode()
}

func (r *registries) View(_ context.Context, request load.Request) (view.View, error) {
	return view.View{Hash: "view of " + request.Next, Admitted: []string{request.Next}}, nil
}

func (r *registries) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads
}

// fixture is offers with a registry and a clock of the test's.
type fixture struct {
	t *testing.T
	*registries
	*offers
	notified chan client.ObjectKey
	clock    time.Time
}

func newFixture(t *testing.T, blocked ...string) *fixture {
	f := &fixture{t: t, notified: make(chan client.ObjectKey, 100), clock: now,
		registries: &registries{blocked: map[string]chan struct{}{}, started: make(chan struct{}, 10),
			stopped: make(chan struct{}, 10)}}
	for _, host := range blocked {
		f.blocked[host] = make(chan struct{})
	}
	f.offers = newOffers(f.registries, func(key client.ObjectKey) { f.notified <- key },
		func() time.Time { return f.clock })
	return f
}

func keyOf(name string) client.ObjectKey { return client.ObjectKey{Namespace: "cluster", Name: name} }

func requestOf(host, version string) catalogQuestion {
	return catalogQuestion{Request: plan.Request{CanAdvance: true, Release: v1alpha1.Release{Package: "echo",
		Channel: "stable", Version: version,
		Bundle:  "echo.v" + version,
		Catalog: v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Image: host + "/catalogs/main"}}}}}
}

// waitFor waits until an install is to be reconciled.
func (f *fixture) waitFor(key client.ObjectKey) {
	f.t.Helper()
	select {
	case got := <-f.notified:
		if got != key {
			f.t.Fatalf("notified of %s, want %s", got, key)
		}
	case <-time.After(time.Minute):
		f.t.Fatalf("not notified of %s", key)
	}
}

// TestPullSecretOfARelease: a catalog is read with the login that it names, and without it not at all.
func TestPullSecretOfARelease(t *testing.T) {
	f := newFixture(t)
	f.pullSecret = func(_ context.Context, name string) ([]byte, error) {
		if name != "login" {
			return nil, fmt.Errorf("%w: there is no Secret bellwether-system/%s", oci.ErrDenied, name)
		}
		return []byte("a login"), nil
	}
	r := requestOf("registry.example.com", "1.0.0")
	r.Release.Catalog.Source.PullSecret = "login"
	if s, err := f.findSource(t.Context(), r); err != nil || string(s.Access.DockerConfig) != "a login" {
		t.Errorf("the source is %+v, %v", s, err)
	}
	r.Release.Catalog.Source.PullSecret = "other"
	f.getOrRead(keyOf("a"), r, "")
	f.waitFor(keyOf("a"))
	problem := f.getOrRead(keyOf("a"), r, "").offer.Problem
	if problem == nil || problem.Reason != v1alpha1.ReasonAccessDenied ||
		!strings.Contains(problem.Message, "there is no Secret bellwether-system/other") || f.count() != 0 {
		t.Errorf("%d reads and %+v, want no read and what is missing", f.count(), problem)
	}
}

// More installs than there are readers wait for a registry that does not answer,
// and one of another registry has its offer all the same.
func TestASlowRegistryDelaysNoOther(t *testing.T) {
	f := newFixture(t, "slow.example.com")
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		a := f.getOrRead(keyOf(name), requestOf("slow.example.com", "1.0.0"), "")
		if !a.pending || !a.since.Equal(now) {
			t.Fatalf("an answer without a read: %+v", a)
		}
	}
	quick := requestOf("quick.example.com", "1.0.0")
	if a := f.getOrRead(keyOf("quick"), quick, ""); !a.pending {
		t.Fatalf("an answer without a read: %+v", a)
	}
	f.waitFor(keyOf("quick"))
	if a := f.getOrRead(keyOf("quick"), quick, ""); a.pending || a.offer.Next != "echo.v1.0.0" {
		t.Errorf("%+v, want an offer of echo.v1.0.0", a)
	}
	close(f.blocked["slow.example.com"])
	for range 6 {
		<-f.notified
	}
}

func TestAnOfferIsReadOnce(t *testing.T) {
	f := newFixture(t)
	r := requestOf("quick.example.com", "1.0.0")
	f.getOrRead(keyOf("a"), r, "")
	f.waitFor(keyOf("a"))
	a := f.getOrRead(keyOf("a"), r, "")
	if a.view.Hash != a.offer.ViewHash || a.view.Hash == "" {
		t.Errorf("the view %q is not there to be served", a.offer.ViewHash)
	}
	if a = f.getOrRead(keyOf("a"), r, a.offer.ViewHash); a.pending || a.view.Hash != "" {
		t.Errorf("what is served is kept: %+v", a)
	}
	if got := f.count(); got != 1 {
		t.Errorf("read %d times, want once", got)
	}
	if a = f.getOrRead(keyOf("a"), r, "another"); !a.pending {
		t.Error("the view is not read again although it is not served any more")
	}
	f.waitFor(keyOf("a"))
}

func TestANewRequestStopsTheReadForTheOld(t *testing.T) {
	f := newFixture(t, "slow.example.com")
	f.getOrRead(keyOf("a"), requestOf("slow.example.com", "1.0.0"), "")
	<-f.started
	f.getOrRead(keyOf("a"), requestOf("quick.example.com", "1.1.0"), "")
	select {
	case <-f.stopped:
	case <-time.After(time.Minute):
		t.Fatal("the read for the old request goes on")
	}
	f.waitFor(keyOf("a"))
	if a := f.getOrRead(keyOf("a"), requestOf("quick.example.com", "1.1.0"), ""); a.offer.Next != "echo.v1.1.0" {
		t.Errorf("%+v, want an offer of echo.v1.1.0", a)
	}
	if len(f.notified) != 0 {
		t.Error("notified of the old request")
	}
}

func TestAFailedReadIsRepeatedLater(t *testing.T) {
	f := newFixture(t)
	f.failing = oci.ErrUnreachable
	r := requestOf("gone.example.com", "1.0.0")
	f.getOrRead(keyOf("a"), r, "")
	f.waitFor(keyOf("a"))
	for range 3 {
		a := f.getOrRead(keyOf("a"), r, "")
		if a.pending || a.offer.Problem == nil || a.offer.Problem.Reason != v1alpha1.ReasonCatalogUnreachable {
			t.Fatalf("%+v, want the problem", a)
		}
	}
	if got := f.count(); got != 1 {
		t.Errorf("read %d times, want once", got)
	}
	f.recover()
	f.clock = now.Add(problemRetryDelay)
	if a := f.getOrRead(keyOf("a"), r, ""); a.offer.Problem == nil {
		t.Error("the problem is forgotten before the catalog was read")
	}
	f.waitFor(keyOf("a"))
	if a := f.getOrRead(keyOf("a"), r, ""); a.offer.Next != "echo.v1.0.0" {
		t.Errorf("%+v, want an offer", a)
	}
}

// recover makes the registries answer.
func (r *registries) recover() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = nil
}

func TestProblemsSayWhatToDo(t *testing.T) {
	for reason, err := range map[string]error{
		v1alpha1.ReasonSignatureMissing:   oci.ErrUnsigned,
		v1alpha1.ReasonSignatureInvalid:   oci.ErrBadSignature,
		v1alpha1.ReasonAccessDenied:       oci.ErrDenied,
		v1alpha1.ReasonNoUpgradePath:      catalogs.ErrNoPath,
		v1alpha1.ReasonCatalogUnreachable: oci.ErrUnreachable,
	} {
		p := newProblem(fmt.Errorf("read package: %w", err), plan.Request{})
		advice := remedy.Advice(reason, remedy.Agent, remedy.Names{})
		if p.Reason != reason || !strings.HasPrefix(p.Message, "read package: ") ||
			!strings.HasSuffix(p.Message, advice) || advice == "" {
			t.Errorf("%v: %s %q", err, p.Reason, p.Message)
		}
	}
}

// An image of which it cannot be told what OLM installs is refused, whatever it is.
func TestAmbiguousImagesAreRefused(t *testing.T) {
	r := plan.Request{Release: v1alpha1.Release{Bundle: "echo.v1", Package: "echo"},
		Policy: &localpolicy.Policy{Spec: localpolicy.Spec{AllowedRegistries: []string{"registry.example.com"}}}}
	p := newProblem(fmt.Errorf("read image: %w: it has 2 files annotations.yaml", oci.ErrNotBundle), r)
	if p.Reason != v1alpha1.ReasonLocalPolicy || !strings.Contains(p.Message, "bundle echo.v1 cannot be judged") ||
		!strings.Contains(p.Message, "2 files annotations.yaml") {
		t.Errorf("%s %q", p.Reason, p.Message)
	}
}
