// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

// TestAgentsLookForFreezes verifies that an agent changes nothing before it has read the
// freezes, and after it has lost the permission to read them. If the hub cannot be reached, the
// last known freezes stay valid.
func TestAgentsLookForFreezes(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupResource{Group: "bellwether.dev", Resource: "fleetfreezes"}
	forbidden := apierrors.NewForbidden(resource, "", errors.New("no role"))
	absent := &apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Group: resource.Group, Kind: "FleetFreeze"}}
	away := errors.New("connection refused")
	freeze := &v1alpha1.FleetFreeze{ObjectMeta: metav1.ObjectMeta{Name: "incident"},
		Spec: v1alpha1.FleetFreezeSpec{Clusters: []string{"a"}, Reason: "the registry is hostile"}}
	for name, test := range map[string]struct {
		answers []error
		freezes []client.Object
		// known is true if the agent has read the freezes, and stops is
		// true if it changes nothing.
		known, stops bool
	}{
		"not asked yet":                    {stops: true},
		"no freeze":                        {answers: []error{nil}, known: true},
		"a freeze":                         {answers: []error{nil}, freezes: []client.Object{freeze}, known: true, stops: true},
		"a hub of an earlier version":      {answers: []error{absent}, known: true},
		"a hub that is upgraded":           {answers: []error{absent, nil}, freezes: []client.Object{freeze}, known: true, stops: true},
		"a hub that cannot be reached":     {answers: []error{away}, stops: true},
		"a hub that cannot be reached now": {answers: []error{nil, away}, known: true},
		"no role":                          {answers: []error{forbidden}, stops: true},
		"the role is gone":                 {answers: []error{nil, forbidden}, stops: true},
		"the role is back":                 {answers: []error{nil, forbidden, nil}, known: true},
		"the role is gone, and cannot ask": {answers: []error{nil, forbidden, away}, stops: true},
	} {
		t.Run(name, func(t *testing.T) {
			var answer error
			objects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.freezes...).Build()
			hub := interceptor.NewClient(objects,
				interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
					o ...client.ListOption) error {
					if answer != nil {
						return answer
					}
					return c.List(ctx, list, o...)
				}})
			f := &freezeReader{live: hub, cached: hub, cluster: "a", watch: func() error { return nil }}
			for _, answer = range test.answers {
				if err := f.check(t.Context()); err != nil && answer == nil {
					t.Error(err)
				}
			}
			answer = nil // the cache answers
			found, err := f.readFreeze(t.Context())
			if (err == nil) != test.known || f.isFrozen(t.Context()) != test.stops {
				t.Errorf("%v, %v, stops: %t", found, err, f.isFrozen(t.Context()))
			}
			if len(test.answers) == 0 && !errors.Is(err, engines.ErrNotReady) {
				t.Errorf("before it has asked: %v", err)
			}
		})
	}
}
