// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"slices"

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

// secretFile is the name of the file with the secret of a receiver, or of the
// heartbeat. Names of objects have no underscores, so that no two are the same.
func (p Policy) secretFile(receiver string) string {
	name := "secret_" + p.Namespace + "_" + p.Name
	if receiver == "" {
		return name
	}
	return name + "_" + receiver
}
