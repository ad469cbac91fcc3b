// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestEachPage lists two pages. The object of the first page has a field that the object of the
// second page does not have.
func TestEachPage(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next, item := "more", `{"metadata":{"name":"one","labels":{"ring":"canary"}},"spec":{"paused":true}}`
		if r.URL.Query().Get("continue") == next {
			next, item = "", `{"metadata":{"name":"two","labels":{"tier":"prod"}},"spec":{}}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"apiVersion":"bellwether.dev/v1alpha1","kind":"FleetClusterList",`+
			`"metadata":{"continue":%q,"resourceVersion":"7"},"items":[%s]}`, next, item)
	}))
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1alpha1.SchemeGroupVersion.WithKind("FleetCluster"), meta.RESTScopeRoot)
	from, err := client.New(&rest.Config{Host: server.URL}, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	var seen []v1alpha1.FleetCluster
	err = EachPage(t.Context(), from, func(page *v1alpha1.FleetClusterList) { seen = append(seen, page.Items...) })
	if err != nil || len(seen) != 2 {
		t.Fatalf("%d clusters, %v", len(seen), err)
	}
	for i, want := range []struct {
		name   string
		paused bool
		labels map[string]string
	}{{"one", true, map[string]string{"ring": "canary"}}, {"two", false, map[string]string{"tier": "prod"}}} {
		if c := seen[i]; c.Name != want.name || c.Spec.Paused != want.paused || !maps.Equal(c.Labels, want.labels) {
			t.Errorf("page %d has %s with labels %v, paused %t", i+1, c.Name, c.Labels, c.Spec.Paused)
		}
	}
}
