// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	command "github.com/bellwether-dev/bellwether/cmd/bellwether/internal/doctor"
)

// TestNamespacesOfOLM checks that OLM is found in any namespace, because the namespace is a value of OLM's chart.
func TestNamespacesOfOLM(t *testing.T) {
	deployment := func(namespace, name, app string) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{"app": app}}}
	}
	usual := []string{"olm", "openshift-operator-lifecycle-manager"}
	for name, tc := range map[string]struct {
		objects []client.Object
		refused bool
		want    []string
	}{
		"a namespace of its own": {objects: []client.Object{deployment("catalogs", "olm-operator", "olm-operator"),
			deployment("catalogs", "catalog-operator", "catalog-operator")}, want: []string{"catalogs"}},
		"two": {objects: []client.Object{deployment("b", "olm-operator", "olm-operator"),
			deployment("a", "catalog-operator", "catalog-operator")}, want: []string{"a", "b"}},
		"another Deployment with the label": {want: usual,
			objects: []client.Object{deployment("shop", "articles", "catalog-operator")}},
		"no OLM": {want: usual},
		"a user who may not list them": {want: usual, refused: true,
			objects: []client.Object{deployment("catalogs", "olm-operator", "olm-operator")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fake.NewClientBuilder().WithObjects(tc.objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
					if tc.refused {
						return errors.New("forbidden")
					}
					return c.List(ctx, l, o...)
				}}).Build()
			if diff := cmp.Diff(tc.want, command.FindOLMNamespaces(t.Context(), c)); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
		})
	}
}
