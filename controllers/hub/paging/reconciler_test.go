// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// objects implements Kinds for a cluster with prometheus-operator.
type objects struct{}

func (objects) HasAlertmanagerConfigs(context.Context) (bool, error) { return true, nil }

func policyIn(namespace string, scope v1alpha1.PagingScope) []client.Object {
	return []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pagerduty",
			Labels: map[string]string{v1alpha1.LabelPagingSecret: "true"}},
			Data: map[string][]byte{"key": []byte(strings.Repeat("k", 32))}},
		&v1alpha1.PagingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "policy", Generation: 1},
			Spec: v1alpha1.PagingPolicySpec{Scope: scope, Pages: v1alpha1.PageTarget{Receivers: []string{"oncall"}},
				Receivers: []v1alpha1.PagingReceiver{{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{
					RoutingKey: v1alpha1.SecretKey{Name: "pagerduty", Key: "key"}}}}}},
	}
}

// newHub is a hub with its configuration in a namespace.
func newHub(t *testing.T, namespace string, c client.Client) *Reconciler {
	t.Helper()
	rules, err := slo.Build(slo.Set{Default: slo.DefaultProfile()})
	if err != nil {
		t.Fatal(err)
	}
	return &Reconciler{Client: c, Live: c, Kinds: objects{}, Events: events.NewFakeRecorder(1000), Rules: rules,
		Now: time.Now, Options: Options{Namespace: namespace, Folder: DefaultFolder}, Tester: NewTester(nil)}
}

func newScheme(t *testing.T, further ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range append(further, clientgoscheme.AddToScheme, v1alpha1.AddToScheme) {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// TestRefusedObjectHoldsUpNoOther has the API server refuse the AlertmanagerConfig of one policy.
func TestRefusedObjectHoldsUpNoOther(t *testing.T) {
	applied := map[string]bool{}
	c := fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(&v1alpha1.PagingPolicy{}).
		WithObjects(policyIn("bellwether-system", v1alpha1.PagingFleet)...).
		WithObjects(policyIn("payments", v1alpha1.PagingNamespace)...).
		WithObjects(policyIn("tools", v1alpha1.PagingNamespace)...).
		WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration,
				_ ...client.ApplyOption) error {
				o, isConfig := obj.(interface{ GetNamespace() string })
				if !isConfig {
					return nil // the Secret
				}
				applied[o.GetNamespace()] = true
				if o.GetNamespace() == "payments" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "alertmanagerconfigs"}, "x", nil)
				}
				return nil
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
				opts ...client.ListOption) error {
				if _, metadata := list.(*metav1.PartialObjectMetadataList); metadata {
					return nil // there is none yet
				}
				return c.List(ctx, list, opts...)
			},
		}).Build()
	r := newHub(t, "bellwether-system", c)
	if _, err := r.Reconcile(t.Context(), reconcile.Request{}); !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want Forbidden, so that it is tried again", err)
	}
	for namespace, want := range map[string]string{"bellwether-system": v1alpha1.ReasonSucceeded,
		"payments": v1alpha1.ReasonConfigurationInvalid, "tools": v1alpha1.ReasonSucceeded} {
		p := &v1alpha1.PagingPolicy{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "policy"}, p); err != nil {
			t.Fatal(err)
		}
		if ready := conditions.Get(p.Status.Conditions, v1alpha1.ConditionReady); ready.Reason != want {
			t.Errorf("policy of %s is %s (%s), want %s", namespace, ready.Reason, ready.Message, want)
		}
		if !applied[namespace] {
			t.Errorf("nothing is written in %s", namespace)
		}
	}
}

// TestTwoHubsLeaveEachOtherAlone has two hubs of one cluster, each with a policy for the fleet, and a policy of a team.
func TestTwoHubsLeaveEachOtherAlone(t *testing.T) {
	const mine, other = "bellwether-system", "staging"
	team := policyIn("payments", v1alpha1.PagingNamespace)
	c := fake.NewClientBuilder().WithScheme(newScheme(t, monitoring.AddToScheme)).
		WithStatusSubresource(&v1alpha1.PagingPolicy{}).WithObjects(policyIn(mine, v1alpha1.PagingFleet)...).
		WithObjects(policyIn(other, v1alpha1.PagingFleet)...).WithObjects(team...).Build()
	hubs := []*Reconciler{newHub(t, mine, c), newHub(t, other, c)}
	configs := func(when string, want ...string) {
		t.Helper()
		for range 2 {
			for _, hub := range hubs {
				if _, err := hub.Reconcile(t.Context(), reconcile.Request{}); err != nil {
					t.Fatal(err)
				}
				var list monitoring.AlertmanagerConfigList
				if err := c.List(t.Context(), &list); err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, one := range list.Items {
					got = append(got, one.Namespace)
				}
				if diff := cmp.Diff(want, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
					t.Errorf("%s, AlertmanagerConfigs after the hub in %s (-want +got):\n%s", when,
						hub.Options.Namespace, diff)
				}
			}
		}
	}
	for _, hub := range hubs { // each writes its own first
		if _, err := hub.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	configs("with three policies", mine, other, "payments")
	for _, o := range team {
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, hub := range hubs { // the hub that wrote the object last deletes it
		if _, err := hub.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	configs("without the team's", mine, other)
}
