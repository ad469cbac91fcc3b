// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/bellwether-dev/bellwether/fleet/discovery"
)

// TestPreferredVersionIsRead plays an API server that serves an older version of a new definition first.
func TestPreferredVersionIsRead(t *testing.T) {
	kind, _ := discovery.FindKind("clusterapi")
	served := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	w := &watch{kind: kind, served: served}
	for _, c := range []struct {
		serves []string
		want   string
	}{
		{nil, ""},
		{[]string{"v1beta1"}, "v1beta1"},
		{[]string{"v1beta1", "v1beta2"}, "v1beta2"},
		{[]string{"v1beta1"}, "v1beta1"},
		{nil, ""},
	} {
		served.Resources = nil
		for _, version := range c.serves {
			served.Resources = append(served.Resources, &metav1.APIResourceList{
				GroupVersion: kind.Group + "/" + version, APIResources: []metav1.APIResource{{Kind: kind.Kind}}})
		}
		got, err := w.findServedVersion(t.Context())
		if err != nil || got != c.want {
			t.Errorf("of %v, version %q is read (%v), want %q", c.serves, got, err, c.want)
		}
		w.view.Store(&view{kind: kind, version: got, stop: func() {}})
	}
}
