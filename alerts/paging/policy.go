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

// Operator is what routes depend on of an operator.
type Operator struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Team of its OperatorSLO.
	Team string `json:"team,omitempty"`
	// Critical tells that its OperatorSLO has criticality Critical.
	Critical bool `json:"critical,omitempty"`
}

// Policy is a PagingPolicy with the operators whose alerts it routes.
type Policy struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Generation of the PagingPolicy that this is.
	Generation int64                     `json:"generation"`
	Spec       v1alpha1.PagingPolicySpec `json:"spec"`
	// Operators are sorted by namespace and name; nil before they were assigned.
	Operators []Operator `json:"operators"`
}

// IsFleet tells whether the policy routes what no other one does.
func (p Policy) IsFleet() bool { return p.Spec.Scope == v1alpha1.PagingFleet }

// Selects tells whether a policy with the scope Namespace names an operator.
func (p Policy) Selects(op Operator) bool {
	s := p.Spec
	return !p.IsFleet() && op.Namespace == p.Namespace &&
		(len(s.Operators) == 0 || slices.Contains(s.Operators, op.Name)) &&
		(len(s.Teams) == 0 || slices.Contains(s.Teams, op.Team))
}

// pagesAlone tells whether an operator pages for a failure on one cluster.
func (p Policy) pagesAlone(op Operator) bool {
	switch p.Spec.SingleCluster {
	case v1alpha1.SingleClusterAll:
		return true
	case v1alpha1.SingleClusterNone:
		return false
	}
	return op.Critical
}

// SecretFormat is what the value of a Secret has to look like.
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
	// Of is the field that refers to it, such as receivers[oncall].
	Of string
	v1alpha1.SecretKey
	Format SecretFormat
	// File is its name beside a plain configuration.
	File string
}

// Secrets are those that a policy refers to.
func (p Policy) Secrets() []SecretUse {
	var out []SecretUse
	for _, r := range p.Spec.Receivers {
		use := SecretUse{Of: "receivers[" + r.Name + "]", File: p.secretFile(r.Name)}
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
		out = append(out, SecretUse{Of: "heartbeat", SecretKey: h.URL, Format: FormatURL, File: p.secretFile("")})
	}
	return out
}

// PagerDutyUse is a service of PagerDuty that a receiver of a configuration notifies.
type PagerDutyUse struct {
	// Namespace of the Secret with the routing key.
	Namespace string
	SecretUse
	// URL of the Events API. Empty: PagerDuty's.
	URL string
}

// PagerDuty are the services that a receiver notifies, by the receiver's name in a
// configuration that was made of the policies. prometheus-operator puts a namespace and
// the name of an object before it.
func PagerDuty(policies []Policy, receiver string) []PagerDutyUse {
	var out []PagerDutyUse
	for _, p := range policies {
		for _, t := range p.targets() {
			if t.name != receiver && !strings.HasSuffix(receiver, "/"+t.name) {
				continue
			}
			for _, use := range p.Secrets() {
				i := slices.IndexFunc(t.receivers, func(r v1alpha1.PagingReceiver) bool {
					return r.PagerDuty != nil && p.secretFile(r.Name) == use.File
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

// What the hub keeps of the policies that are in force, beside the configuration that it
// makes of them.
const (
	// SecretName is the Secret with the configuration, the secrets that it reads, and
	// the policies that are in force.
	SecretName = "bellwether-alertmanager"
	// PoliciesFile is its key of the policies that are in force.
	PoliciesFile = "policies.json"
)

// InForce are the policies that were in force when the Secret was written; none if it has
// never been.
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

// secretFile is the name of the file with the secret of a receiver, or of the
// heartbeat. Names of objects have no underscores, so that no two are the same.
func (p Policy) secretFile(receiver string) string {
	name := "secret_" + p.Namespace + "_" + p.Name
	if receiver == "" {
		return name
	}
	return name + "_" + receiver
}
