// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
)

// decoding judges its bundle as the loader does: while no other code in the process may decode a bundle.
type decoding struct {
	*registries
	bundle string
	busy   atomic.Bool
}

func (d *decoding) View(ctx context.Context, r load.Request) (view.View, error) {
	d.busy.Store(true)
	err := r.Permit("echo.v1.0.0", "", [][]byte{[]byte(d.bundle)})
	d.busy.Store(false)
	if err != nil {
		return view.View{}, err
	}
	return d.registries.View(ctx, r)
}

// watched fails the test on reads while the bundle is decoded.
type watched struct {
	client.Reader
	t    *testing.T
	busy *atomic.Bool
}

func (w watched) check() {
	if w.busy.Load() {
		w.t.Error("the cluster is read while nobody else can decode a bundle")
	}
}

func (w watched) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	w.check()
	return w.Reader.Get(ctx, key, o, opts...)
}

func (w watched) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	w.check()
	return w.Reader.List(ctx, list, opts...)
}

// TestSlowClusterHoldsUpNoDecoding: an agent that serves several clusters decodes bundles of all of them, one after
// the other. The claims of a bundle are judged, but the cluster is read after the decoding.
func TestSlowClusterHoldsUpNoDecoding(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f := newFixture(t)
	d := &decoding{registries: f.registries, bundle: `{"apiVersion":"operators.coreos.com/v1alpha1",
		"kind":"ClusterServiceVersion","metadata":{"name":"echo.v1.0.0"},"spec":{"version":"1.0.0","install":{
		"strategy":"deployment","spec":{"deployments":[],"permissions":[{"serviceAccountName":"theirs","rules":[]}]}}}}`}
	f.catalogs = d
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: "echo", Name: "theirs"}}).Build()
	r := requestOf("good", "1.0.0")
	r.Policy = &localpolicy.Policy{Spec: localpolicy.Spec{
		Permissions: localpolicy.Permissions{DenyClusterWildcards: true}}}
	r.claimReader = claimReader{live: watched{live, t, &d.busy}, source: "echo"}
	_, _, err := f.readOffer(t.Context(), r)
	if refusal := (*localpolicy.RefusalError)(nil); !errors.As(err, &refusal) ||
		!strings.Contains(refusal.Message, "service account echo/theirs, which is there already") {
		t.Errorf("got %v", err)
	}
}
