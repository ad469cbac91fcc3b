// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package changeevents

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/alerts/pagerduty"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fixture is a hub with a rollout whose start must be sent to a PagerDuty.
type fixture struct {
	*Reconciler
	// accepted are the change events that PagerDuty has.
	accepted atomic.Int32
	// writes are the statuses that the API server was sent.
	writes atomic.Int32
	// whileWriting is called after the API server has applied a status, and before the hub gets the answer.
	whileWriting func(write int32)
}

func newFixture(t *testing.T, ro *v1alpha1.OperatorRollout) *fixture {
	t.Helper()
	f := &fixture{whileWriting: func(int32) {}}
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		f.accepted.Add(1)
		answer.WriteHeader(http.StatusAccepted)
		_, _ = answer.Write([]byte(`{"status":"success"}`))
	}))
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.OperatorRollout{}).
		WithObjects(append(policyFor(server.URL), ro)...).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceApply: f.write})
	for _, index := range kit.Indexes() {
		builder.WithIndex(index.Object, index.Field, index.Keys)
	}
	c := builder.Build()
	f.Reconciler = &Reconciler{Client: c, Live: c, Secrets: kit.PagingSecrets{Live: c},
		PagerDuty: pagerduty.Hosts{strings.TrimPrefix(server.URL, "http://")},
		Events:    events.NewFakeRecorder(10), Now: func() time.Time { return noon }}
	return f
}

// write simulates a write by a real client: a write that the API server has applied stays, and a
// client whose context has ended gets no answer.
func (f *fixture) write(ctx context.Context, c client.Client, subResource string, obj runtime.ApplyConfiguration,
	opts ...client.SubResourceApplyOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := c.SubResource(subResource).Apply(ctx, obj, opts...)
	f.whileWriting(f.writes.Add(1))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// policyFor sends the change events of the fleet to a PagerDuty.
func policyFor(pagerDuty string) []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "bellwether-system", Name: name}
	}
	secret := &corev1.Secret{ObjectMeta: meta("pagerduty"), Data: map[string][]byte{
		"key": []byte(strings.Repeat("k", 32))}}
	secret.Labels = map[string]string{v1alpha1.LabelPagingSecret: "true"}
	policy := &v1alpha1.PagingPolicy{ObjectMeta: meta("platform"), Spec: v1alpha1.PagingPolicySpec{
		Scope: v1alpha1.PagingFleet, ChangeEvents: &v1alpha1.ChangeEventTarget{Receivers: []string{"oncall"}},
		Receivers: []v1alpha1.PagingReceiver{{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{
			RoutingKey: v1alpha1.SecretKey{Name: "pagerduty", Key: "key"}, URL: pagerDuty + "/v2/enqueue"}}},
	}}
	policy.Status.Configuration = &v1alpha1.PagingConfiguration{}
	policy.Status.ChangeEvents = []v1alpha1.ChangeEventReceiver{{Receiver: "oncall",
		Since: metav1.NewTime(noon.Add(-time.Hour))}}
	return []client.Object{secret, policy}
}

// started is a rollout that has just started.
func started() *v1alpha1.OperatorRollout {
	ro := rollout("echo-1")
	ro.UID = "a"
	ro.Status.StartedAt = &metav1.Time{Time: noon}
	return ro
}

// pass reconciles the rollout as it is.
func (f *fixture) pass(ctx context.Context, t *testing.T) {
	t.Helper()
	if _, err := f.Reconcile(ctx, f.read(t)); err != nil {
		t.Errorf("reconcile: %v", err)
	}
}

func (f *fixture) read(t *testing.T) *v1alpha1.OperatorRollout {
	t.Helper()
	ro := &v1alpha1.OperatorRollout{}
	if err := f.Client.Get(t.Context(), client.ObjectKey{Namespace: "tools", Name: "echo-1"}, ro); err != nil {
		t.Fatal(err)
	}
	return ro
}

// state returns the state of the rollout's change event; empty if there is none.
func (f *fixture) state(t *testing.T) v1alpha1.ChangeEventState {
	t.Helper()
	all := f.read(t).Status.ChangeEvents
	if len(all) == 0 {
		return ""
	}
	return all[0].State
}

// TestHubThatIsToldToEndFinishesWhatItClaimed stops a hub after the API server has applied a
// status and before the hub has the answer: for the claim of the event, and for its result.
func TestHubThatIsToldToEndFinishesWhatItClaimed(t *testing.T) {
	for name, moment := range map[string]int32{"claim": 1, "result": 2} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, started())
			ctx, end := context.WithCancel(t.Context())
			f.whileWriting = func(write int32) {
				if write == moment {
					end()
				}
			}
			f.pass(ctx, t)
			if ctx.Err() == nil {
				t.Fatal("the hub was not told to end")
			}
			f.pass(t.Context(), t) // the next hub
			if state, sent := f.state(t), f.accepted.Load(); state != v1alpha1.ChangeEventSent || sent != 1 {
				t.Errorf("the change event is %q and was sent %d times, want it Sent, once", state, sent)
			}
		})
	}
}

// TestHubThatEndsClaimsNothing stops a hub before it has claimed the event
// that it is about to send.
func TestHubThatEndsClaimsNothing(t *testing.T) {
	f := newFixture(t, started())
	ctx, end := context.WithCancel(t.Context())
	end()
	f.pass(ctx, t)
	if state, sent := f.state(t), f.accepted.Load(); f.writes.Load() != 0 || state != "" || sent != 0 {
		t.Errorf("%d writes, the change event is %q and was sent %d times, want nothing", f.writes.Load(), state, sent)
	}
	f.pass(t.Context(), t) // the next hub
	if state, sent := f.state(t), f.accepted.Load(); state != v1alpha1.ChangeEventSent || sent != 1 {
		t.Errorf("the next hub has it %q and sent it %d times, want it Sent, once", state, sent)
	}
}
