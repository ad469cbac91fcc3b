// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Operator contains the properties of an operator that routes depend on.
type Operator struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Team is the team of its OperatorSLO.
	Team string `json:"team,omitempty"`
	// Critical is true if its OperatorSLO has the criticality Critical.
	Critical bool `json:"critical,omitempty"`
}

// Policy is a PagingPolicy with the operators whose alerts it routes.
type Policy struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Generation is the generation of the PagingPolicy.
	Generation int64                     `json:"generation"`
	Spec       v1alpha1.PagingPolicySpec `json:"spec"`
	// Operators are sorted by namespace and name. Nil before Assign.
	Operators []Operator `json:"operators"`
}

// IsFleet reports whether the policy routes all alerts that no other policy routes.
func (p Policy) IsFleet() bool { return p.Spec.Scope == v1alpha1.PagingFleet }

// Selects reports whether a policy with the scope Namespace selects an operator.
func (p Policy) Selects(op Operator) bool {
	s := p.Spec
	return !p.IsFleet() && op.Namespace == p.Namespace &&
		(len(s.Operators) == 0 || slices.Contains(s.Operators, op.Name)) &&
		(len(s.Teams) == 0 || slices.Contains(s.Teams, op.Team))
}

// hasSingleClusterPages reports whether an operator pages for a failure on one cluster.
func (p Policy) hasSingleClusterPages(op Operator) bool {
	switch p.Spec.SingleCluster {
	case v1alpha1.SingleClusterAll:
		return true
	case v1alpha1.SingleClusterNone:
		return false
	}
	return op.Critical // SingleClusterCritical, which is the default
}

// SecretFormat is the required format of a Secret's value.
type SecretFormat string

// Formats of Secrets.
const (
	// FormatRoutingKey is an integration key of PagerDuty: 32 letters and digits.
	FormatRoutingKey SecretFormat = "routing key"
	// FormatURL is an http or https URL.
	FormatURL SecretFormat = "URL"
	// FormatPassword is any text in one line.
	FormatPassword SecretFormat = "password"
)

// SecretUse is a key of a Secret that a policy refers to.
type SecretUse struct {
	// Field is the field that refers to it, such as receivers[oncall].
	Field string
	v1alpha1.SecretKey
	Format SecretFormat
	// File is its file name next to a plain configuration.
	File string
}

// Secrets returns the keys of Secrets that a policy refers to.
func (p Policy) Secrets() []SecretUse {
	var out []SecretUse
	for _, r := range p.Spec.Receivers {
		use := SecretUse{Field: "receivers[" + r.Name + "]", File: p.nameSecretFile(r.Name)}
		switch {
		case r.PagerDuty != nil:
			use.SecretKey, use.Format = r.PagerDuty.RoutingKey, FormatRoutingKey
		case r.Slack != nil:
			use.SecretKey, use.Format = r.Slack.APIURL, FormatURL
		case r.Webhook != nil:
			use.SecretKey, use.Format = r.Webhook.URL, FormatURL
		case r.Email != nil && r.Email.Password != nil:
			use.SecretKey, use.Format = *r.Email.Password, FormatPassword
		default:
			continue
		}
		out = append(out, use)
	}
	if h := p.Spec.Heartbeat; h != nil {
		out = append(out, SecretUse{Field: "heartbeat", SecretKey: h.URL, Format: FormatURL,
			File: p.nameSecretFile("")})
	}
	return out
}

// PagerDutyUse is a service of PagerDuty that a receiver of a configuration notifies.
type PagerDutyUse struct {
	// Namespace is the namespace of the Secret with the routing key.
	Namespace string
	SecretUse
	// URL is the URL of the Events API. Empty: PagerDuty's default.
	URL string
}

// ListPagerDutyUses returns the services that a receiver notifies. receiver is its name in a configuration that
// was made from the policies; prometheus-operator adds a namespace and the name of an object as a prefix.
func ListPagerDutyUses(policies []Policy, receiver string) []PagerDutyUse {
	var out []PagerDutyUse
	for _, p := range policies {
		for _, t := range p.listTargets() {
			if t.name != receiver && !strings.HasSuffix(receiver, "/"+t.name) {
				continue
			}
			for _, use := range p.Secrets() {
				i := slices.IndexFunc(t.receivers, func(r v1alpha1.PagingReceiver) bool {
					return r.PagerDuty != nil && p.nameSecretFile(r.Name) == use.File
				})
				if i >= 0 {
					out = append(out, PagerDutyUse{Namespace: p.Namespace, SecretUse: use,
						URL: t.receivers[i].PagerDuty.URL})
				}
			}
		}
	}
	return out
}

// Names of the data that the hub stores about the policies in force, together with their configuration.
const (
	// SecretName is the Secret with the configuration, the secrets that it reads, and the policies in force.
	SecretName = "bellwether-alertmanager"
	// PoliciesFile is the key of the Secret with the policies in force.
	PoliciesFile = "policies.json"
)

// InForce returns the policies that were in force when the Secret
// was written. It returns nil if the Secret was never written.
func InForce(data map[string][]byte) ([]Policy, error) {
	text, known := data[PoliciesFile]
	if !known {
		return nil, nil
	}
	var out []Policy
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("read %s of Secret %s: %w", PoliciesFile, SecretName, err)
	}
	return out, nil
}

// nameSecretFile returns the name of the file with the secret of a receiver, or of the heartbeat
// if receiver is empty. Names of objects contain no underscores, so the file names are unique.
func (p Policy) nameSecretFile(receiver string) string {
	name := "secret_" + p.Namespace + "_" + p.Name
	if receiver == "" {
		return name
	}
	return name + "_" + receiver
}
