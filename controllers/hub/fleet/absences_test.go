// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet"
)

// revocation is a hub with one cluster and a clock that the test sets.
type revocation struct {
	*testing.T
	client.Client
	hub *Reconciler
	now time.Time
}

func newRevocation(t *testing.T) *revocation {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	r := &revocation{T: t, now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	made := 0
	r.Client = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration,
			options ...client.ApplyOption) error {
			if err := c.Apply(ctx, object, options...); err != nil {
				return err
			}
			account := agentAccount()
			err := c.Get(ctx, client.ObjectKeyFromObject(account), account)
			if err != nil || account.UID != "" {
				return client.IgnoreNotFound(err)
			}
			made++ // an API server gives each object another UID
			account.UID = types.UID(fmt.Sprint("account-", made))
			return c.Update(ctx, account)
		},
	}).Build()
	r.startHub()
	r.join()
	return r
}

func agentAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace("prod"),
		Name: v1alpha1.AgentServiceAccount}}
}

// startHub starts the hub without any recorded state.
func (r *revocation) startHub() {
	r.hub = &Reconciler{Client: r.Client, Live: r.Client, Events: events.NewFakeRecorder(10), Namespace: "hub",
		Now: func() time.Time { return r.now }}
}

func (r *revocation) join() {
	r.Helper()
	if err := r.Create(r.Context(), &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}); err != nil {
		r.Fatal(err)
	}
}

func (r *revocation) revoke() {
	r.Helper()
	if err := r.Delete(r.Context(), agentAccount()); err != nil {
		r.Fatal(err)
	}
}

// remove deletes the cluster. The test itself deletes the content of its namespace.
func (r *revocation) remove() {
	r.Helper()
	for _, object := range []client.Object{&v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}},
		agentAccount()} {
		if err := r.Delete(r.Context(), object); err != nil {
			r.Fatal(err)
		}
	}
	for range 2 {
		r.reconcile()
	}
	if err := r.Get(r.Context(), client.ObjectKey{Name: "prod"}, &v1alpha1.FleetCluster{}); err == nil {
		r.Fatal("the cluster is still there")
	}
}

func (r *revocation) reconcile() {
	r.Helper()
	cluster := &v1alpha1.FleetCluster{}
	if err := r.Get(r.Context(), client.ObjectKey{Name: "prod"}, cluster); err != nil {
		r.Fatal(err)
	}
	if _, err := r.hub.Reconcile(r.Context(), cluster); err != nil {
		r.Fatal(err)
	}
}

// account reconciles twice and returns the UID of the ServiceAccount; empty if there is none.
func (r *revocation) account() types.UID {
	r.Helper()
	for range 2 {
		r.reconcile()
	}
	account := agentAccount()
	if err := r.Get(r.Context(), client.ObjectKeyFromObject(account), account); client.IgnoreNotFound(err) != nil {
		r.Fatal(err)
	}
	return account.UID
}

// TestRevokedAccessEnds deletes the ServiceAccount of an agent in several ways. No new account
// is created while the API server accepts tokens of the old account, because the agent could use
// them to request tokens of the new account.
func TestRevokedAccessEnds(t *testing.T) {
	for name, revoke := range map[string]func(*revocation){
		"revoked": (*revocation).revoke,
		"revoked, and the Role is changed": func(r *revocation) {
			r.revoke()
			err := r.Delete(r.Context(), &rbacv1.Role{ObjectMeta: agentAccount().ObjectMeta})
			if err != nil {
				r.Fatal(err)
			}
		},
		"revoked, and the hub starts again at once": func(r *revocation) {
			r.revoke()
			r.reconcile()
			r.startHub()
		},
		"revoked while the hub is away": func(r *revocation) {
			r.revoke()
			r.now = r.now.Add(time.Hour)
			r.startHub()
		},
		"removed from the fleet, and joined again": func(r *revocation) {
			r.remove()
			r.join()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRevocation(t)
			if got := r.account(); got != "account-1" {
				t.Fatalf("the ServiceAccount of a new cluster is %q", got)
			}
			r.now = r.now.Add(time.Hour)
			revoke(r)
			for _, wait := range []time.Duration{0, fleet.AccountPause / 2, fleet.AccountPause/2 - time.Second} {
				r.now = r.now.Add(wait)
				if got := r.account(); got != "" {
					t.Fatalf("ServiceAccount %s is made again %s later", got, wait)
				}
			}
			r.now = r.now.Add(time.Second)
			if got := r.account(); got != "account-2" {
				t.Errorf("the ServiceAccount is %q after the pause", got)
			}
		})
	}
}
