// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/probes"
)

// TestConversionWebhook reads a conversion webhook from a
// CustomResourceDefinition as it is cached.
func TestConversionWebhook(t *testing.T) {
	for name, tc := range map[string]struct {
		conversion string
		want       *probes.Webhook
	}{
		"none":    {conversion: `{strategy: None}`},
		"a URL":   {conversion: `{strategy: Webhook, webhook: {clientConfig: {url: "https://a.example/"}}}`},
		"missing": {conversion: `null`},
		"a Service": {conversion: `{webhook: {clientConfig: {caBundle: Q0E=, ` +
			`service: {namespace: ns, name: hook}}}}`,
			want: &probes.Webhook{Namespace: "ns", Service: "hook", Port: 443, CABundle: "CA"}},
		"a Service with a port, without a CA": {
			conversion: `{webhook: {clientConfig: {service: {namespace: ns, name: hook, port: 9443}}}}`,
			want:       &probes.Webhook{Namespace: "ns", Service: "hook", Port: 9443}},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &unstructured.Unstructured{}
			text := `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a, uid: u}, ` +
				`spec: {versions: [{name: v1}], conversion: ` + tc.conversion + `}}`
			asJSON, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := crd.UnmarshalJSON(asJSON); err != nil {
				t.Fatal(err)
			}
			slim, err := trimCRD(crd)
			if err != nil {
				t.Fatal(err)
			}
			kept := slim.(*unstructured.Unstructured)
			_, found, _ := unstructured.NestedSlice(kept.Object, "spec", "versions")
			if found || kept.GetName() != "a" {
				t.Errorf("the cache keeps %v", kept.Object)
			}
			got, ok := readConversionWebhook(kept.Object)
			if ok != (tc.want != nil) {
				t.Fatalf("got %+v, %v", got, ok)
			}
			if tc.want != nil {
				if diff := cmp.Diff(*tc.want, got); diff != "" {
					t.Errorf("webhook (-want +got):\n%s", diff)
				}
			}
		})
	}
}
