// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Webhook describes how an API server calls one webhook of a Service.
type Webhook struct {
	Namespace, Service string
	Port               int32
	// CABundle is PEM.
	CABundle string
}

// DefaultWebhookPort is the port that API servers call if a configuration has no port.
const DefaultWebhookPort = 443

// WebhookCA returns the CAs with which API servers verify the webhooks of
// a Service, without duplicates. If there are none, it returns a failure.
func WebhookCA(namespace string, target *v1alpha1.ServiceTarget, webhooks []Webhook) (string, *Failure) {
	var bundles []string
	for _, w := range webhooks {
		bundle := strings.TrimSpace(w.CABundle)
		if w.Namespace == namespace && w.Service == target.Name && w.Port == target.Port && bundle != "" {
			bundles = append(bundles, bundle)
		}
	}
	if len(bundles) == 0 {
		return "", &Failure{Reason: v1alpha1.ReasonWebhookCAUnavailable, Message: fmt.Sprintf(
			"no webhook with a caBundle calls port %d of the Service %s/%s", target.Port, namespace, target.Name)}
	}
	slices.Sort(bundles)
	return strings.Join(slices.Compact(bundles), "\n"), nil
}
