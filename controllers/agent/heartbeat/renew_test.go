// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// hub is an API server that counts requests, and that can be away.
type hub struct {
	client.Client
	mu       sync.Mutex
	requests map[string]int
	updated  []time.Time
	away     error
}

func newHub() *hub {
	h := &hub{requests: map[string]int{}}
	count := func(verb string) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.requests[verb]++
		if verb == "update" {
			h.updated = append(h.updated, time.Now())
		}
		return h.away
	}
	h.Client = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			return errors.Join(count("get"), c.Get(ctx, k, o, opts...))
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := count("create"); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := count("update"); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
	}).Build()
	return h
}

// take returns the requests since it was called last.
func (h *hub) take() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := maps.Clone(h.requests)
	clear(h.requests)
	return taken
}

func (h *hub) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = err
}

// fixed is a cluster whose API server answers, or does not.
type fixed struct {
	mu  sync.Mutex
	err error
}

func (f *fixed) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fixed) Check(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *fixed) Version(context.Context) (string, error) { return "v1.34.1", nil }

// beat runs an agent's heartbeat in the test's own time.
func beat(t *testing.T, h *hub, cluster Cluster, holder string) {
	t.Helper()
	l := &Lease{
		Hub: h, Namespace: "bellwether-a", Holder: holder, RenewInterval: 30 * time.Second, Validity: 90 * time.Second,
		AgentVersion: "1", Cluster: cluster, Now: time.Now,
		Veto:    func(context.Context) (*v1alpha1.ClusterVeto, error) { return nil, nil },
		OLM:     func() (served, known bool) { return false, true },
		Account: func() types.UID { return "account" }, Refused: func(string) {},
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
}

func pass(d time.Duration) {
	time.Sleep(d) // impatient: it is the time of synctest
	synctest.Wait()
}

// TestIdleAgentAsksOnceEachPeriod counts the requests of a heartbeat in an hour in which
// nothing happens.
func TestIdleAgentAsksOnceEachPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		beat(t, h, &fixed{}, "one")
		if diff := cmp.Diff(map[string]int{"get": 1, "create": 1}, h.take()); diff != "" {
			t.Errorf("requests of a first renewal (-want +got):\n%s", diff)
		}
		pass(time.Hour)
		got := h.take()
		if n := got["update"]; len(got) != 1 || n < 119 || n > 122 {
			t.Errorf("requests in an hour: %v, want one update each 30s", got)
		}
		for i := 2; i < len(h.updated); i++ { // the first one comes earlier
			if gap := h.updated[i].Sub(h.updated[i-1]); gap < 28*time.Second || gap > 32*time.Second {
				t.Fatalf("renewal %d comes %s after the one before", i, gap)
			}
		}
	})
}

// TestAgentsThatStartTogether checks when a hundred agents renew that one process has
// started at the same time.
func TestAgentsThatStartTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		perSecond := map[int]int{}
		var hubs []*hub
		begin := time.Now()
		for range 100 {
			h := newHub()
			hubs = append(hubs, h)
			beat(t, h, &fixed{}, "one")
		}
		pass(31 * time.Second)
		for _, h := range hubs {
			perSecond[int(h.updated[0].Sub(begin)/time.Second)]++
		}
		for second, n := range perSecond {
			if n > 20 {
				t.Errorf("%d of 100 agents renew %ds after the start", n, second)
			}
		}
	})
}

// TestNewsAreReportedAtOnce takes the API server of the cluster away.
func TestNewsAreReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, cluster := newHub(), &fixed{}
		beat(t, h, cluster, "one")
		pass(time.Minute)
		cluster.set(errors.New("connection refused"))
		pass(22 * time.Second) // two checks
		since := h.lease(t).Annotations[v1alpha1.AnnotationAPIServerUnreachableSince]
		if since == "" {
			t.Errorf("the outage is not reported: %v", h.lease(t).Annotations)
		}
		h.take()
		pass(10 * time.Minute)
		if n := h.take()["update"]; n > 21 {
			t.Errorf("%d renewals in 10m of an outage, want one each 30s", n)
		}
		cluster.set(nil)
		pass(11 * time.Second)
		if got := h.lease(t).Annotations[v1alpha1.AnnotationAPIServerUnreachableSince]; got != "" {
			t.Errorf("the end of the outage is not reported: since %s", got)
		}
	})
}

// TestAnotherWriter changes the Lease under an agent, deletes it, and starts another
// process.
func TestAnotherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, cluster := newHub(), &fixed{}
		beat(t, h, cluster, "one")
		lease := h.lease(t)
		lease.Labels = map[string]string{"team": "a"}
		if err := h.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		pass(32 * time.Second)
		if at := h.lease(t).Spec.RenewTime; time.Since(at.Time) > 32*time.Second || h.lease(t).Labels["team"] != "a" {
			t.Errorf("after another's write: renewed at %s, labels %v", at, h.lease(t).Labels)
		}
		if err := h.Delete(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		pass(64 * time.Second)
		h.take()
		if uid := h.lease(t).Name; uid == "" {
			t.Error("the Lease was not made again")
		}
		beat(t, h, cluster, "two")
		if got := h.lease(t).Spec; *got.HolderIdentity != "two" || *got.LeaseTransitions != 2 {
			t.Errorf("after another process: holder %s, %d transitions", *got.HolderIdentity, *got.LeaseTransitions)
		}
	})
}

// TestHubAway has renewals fail for a while: they are tried again soon, and no more often
// than each ten seconds.
func TestHubAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		beat(t, h, &fixed{}, "one")
		h.fail(errors.New("connection refused"))
		pass(31 * time.Second)
		h.take()
		pass(10 * time.Minute)
		if n := h.take()["update"]; n < 55 || n > 65 {
			t.Errorf("%d attempts in 10m, want one each 10s", n)
		}
		h.fail(nil)
		pass(11 * time.Second)
		if at := h.lease(t).Spec.RenewTime; time.Since(at.Time) > 11*time.Second {
			t.Errorf("the Lease was renewed last at %s", at)
		}
	})
}

func (h *hub) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	var lease coordinationv1.Lease
	if err := h.Get(t.Context(), client.ObjectKey{Namespace: "bellwether-a", Name: v1alpha1.LeaseName},
		&lease); err != nil {
		t.Fatal(err)
	}
	return &lease
}
