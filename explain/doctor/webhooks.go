// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// ListWebhooks returns the webhooks of the configurations that lead to a Service, the validating ones first. A webhook
// with a URL is left out: it can be reachable only for the API server. Missing is not set.
func ListWebhooks(validating []admissionv1.ValidatingWebhookConfiguration,
	mutating []admissionv1.MutatingWebhookConfiguration) []Webhook {
	var out []Webhook
	add := func(service *admissionv1.ServiceReference, w Webhook) {
		if service != nil {
			w.Service = service.Namespace + "/" + service.Name
			out = append(out, w)
		}
	}
	for _, c := range validating {
		for _, w := range c.Webhooks {
			add(w.ClientConfig.Service, Webhook{Kind: "ValidatingWebhookConfiguration", Configuration: c.Name,
				Name: w.Name, Fails: hasFailPolicy(w.FailurePolicy), Groups: listGroups(w.Rules)})
		}
	}
	for _, c := range mutating {
		for _, w := range c.Webhooks {
			add(w.ClientConfig.Service, Webhook{Kind: "MutatingWebhookConfiguration", Configuration: c.Name,
				Name: w.Name, Fails: hasFailPolicy(w.FailurePolicy), Groups: listGroups(w.Rules)})
		}
	}
	return out
}

// hasFailPolicy reports whether a request is rejected if the webhook does not answer.
func hasFailPolicy(p *admissionv1.FailurePolicyType) bool {
	return ptr.Deref(p, admissionv1.Fail) == admissionv1.Fail
}

// listGroups returns the API groups in the rules, sorted.
func listGroups(rules []admissionv1.RuleWithOperations) []string {
	groups := map[string]bool{}
	for _, r := range rules {
		for _, g := range r.APIGroups {
			groups[g] = true
		}
	}
	return slices.Sorted(maps.Keys(groups))
}

// HasReadyEndpoint reports whether a Service has a ready endpoint. endpointSlices are all of the Service.
func HasReadyEndpoint(endpointSlices []discoveryv1.EndpointSlice) bool {
	for _, slice := range endpointSlices {
		for _, e := range slice.Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) { // nil means unknown, which the API treats as ready
				return true
			}
		}
	}
	return false
}
