// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func TestWebhookCA(t *testing.T) {
	of := func(service string, port int32, bundle string) Webhook {
		return Webhook{Namespace: "ns", Service: service, Port: port, CABundle: bundle}
	}
	elsewhere := Webhook{Namespace: "other", Service: "echo", Port: 443, CABundle: "A"}
	for name, tc := range map[string]struct {
		webhooks []Webhook
		want     string
	}{
		"one":                                  {[]Webhook{of("echo", 443, "A\n")}, "A"},
		"several with one CA":                  {[]Webhook{of("echo", 443, "A\n"), of("echo", 443, "A")}, "A"},
		"several with two CAs":                 {[]Webhook{of("echo", 443, "B\n"), of("echo", 443, "A\n")}, "A\nB"},
		"of another Service":                   {[]Webhook{of("other", 443, "A")}, ""},
		"of another port":                      {[]Webhook{of("echo", 9443, "A")}, ""},
		"of another namespace":                 {[]Webhook{elsewhere}, ""},
		"without a CA":                         {[]Webhook{of("echo", 443, "\n")}, ""},
		"without a CA, beside one that has it": {[]Webhook{of("echo", 443, ""), of("echo", 443, "A")}, "A"},
	} {
		got, failure := WebhookCA("ns", &v1alpha1.ServiceTarget{Name: "echo", Port: 443}, tc.webhooks)
		if got != tc.want || (failure == nil) != (tc.want != "") {
			t.Errorf("%s: %q, %+v", name, got, failure)
		}
		if failure != nil && (failure.Reason != v1alpha1.ReasonWebhookCAUnavailable ||
			!strings.Contains(failure.Message, "calls port 443 of the Service ns/echo")) {
			t.Errorf("%s: %+v", name, failure)
		}
	}
}
