// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Finding is an error of policies, or a warning.
type Finding struct {
	// Severity is FindingError or FindingWarning.
	Severity string `json:"severity"`
	// Policy is NAMESPACE/NAME; empty if the finding is not about one policy.
	Policy  string `json:"policy,omitempty"`
	Message string `json:"message"`
}

// Severities of findings.
const (
	FindingError   = "error"
	FindingWarning = "warning"
)

// PolicySet contains the PagingPolicies and the operators of a hub. Invalid policies may be among them.
type PolicySet struct {
	Policies  []v1alpha1.PagingPolicy
	Operators []Operator
}

// WithPolicies returns a copy of the set with added policies. An added policy replaces the policy with the
// same namespace and name, and gets its status.
func (s PolicySet) WithPolicies(added []v1alpha1.PagingPolicy) PolicySet {
	out := PolicySet{Operators: s.Operators, Policies: slices.Clone(added)}
	for i := range s.Policies {
		old := &s.Policies[i]
		replacement := slices.IndexFunc(added, func(p v1alpha1.PagingPolicy) bool {
			return toObjectKey(&p) == toObjectKey(old)
		})
		if replacement < 0 {
			out.Policies = append(out.Policies, *old)
		} else {
			out.Policies[replacement].Status = old.Status
		}
	}
	return out
}

// toHub returns the operators, and the properties of the hub that it takes from the policies in force: whether they
// are AlertmanagerConfig objects, and the namespace of the fleet policy.
func (s PolicySet) toHub() Hub {
	out := Hub{Operators: s.Operators}
	for i := range s.Policies {
		policy := &s.Policies[i]
		if policy.Status.Configuration == nil {
			continue
		}
		out.Objects = out.Objects || policy.Status.Configuration.Kind == monitoring.AlertmanagerConfigKind
		if policy.Spec.Scope == v1alpha1.PagingFleet {
			out.Namespace = policy.Namespace
		}
	}
	return out
}

// ListProblems returns an error for each invalid policy, sorted by the policies' NAMESPACE/NAME.
func (s PolicySet) ListProblems() []Finding {
	var out []Finding
	for key, problem := range Check(s.Policies, s.toHub()) {
		out = append(out, Finding{Severity: FindingError, Policy: key.String(), Message: problem.Message})
	}
	slices.SortFunc(out, func(a, b Finding) int { return cmp.Compare(a.Policy, b.Policy) })
	return out
}

// uncheckedFolder is the folder of the secrets in a configuration that is only checked, and never loaded.
const uncheckedFolder = "/etc/alertmanager/config"

// BuildConfig returns the Alertmanager configuration of the valid policies, for NewRouter: the files of
// its secrets do not exist. It returns ErrNoFleetPolicy if no valid policy has the scope Fleet.
func (s PolicySet) BuildConfig() ([]byte, error) {
	problems := Check(s.Policies, s.toHub())
	var all []Policy
	for i := range s.Policies {
		if _, isInvalid := problems[toObjectKey(&s.Policies[i])]; !isInvalid {
			all = append(all, ToPolicy(&s.Policies[i]))
		}
	}
	Assign(s.Operators, all) // sets the operators of each policy
	return BuildConfig(all, uncheckedFolder)
}

// Lint returns the findings about the valid policies together: a configuration that cannot be built, alerts that
// reach no user, and warnings. alerts are those of Alerts with the operators of the set. before is the set that
// this one is to replace: Lint then warns of incidents that get another key; nil: no set is replaced. Problems
// of single policies are not among the findings: see ListProblems.
func (s PolicySet) Lint(before *PolicySet, alerts []Alert) ([]Finding, error) {
	text, problem := s.BuildConfig()
	if problem != nil {
		//nolint:nilerr // the error is a finding
		return []Finding{{Severity: FindingError, Message: problem.Error()}}, nil
	}
	router, err := NewRouter(text)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, unrouted := range router.Unrouted(alerts) {
		out = append(out, Finding{Severity: FindingError, Message: fmt.Sprintf("alert %s (%s) about %s reaches nobody",
			unrouted.Name, unrouted.Severity, describeSubject(unrouted.Labels))})
	}
	out = append(out, s.listWarnings()...)
	if before != nil {
		out = append(out, before.listChangedKeys(router, alerts)...)
	}
	return out, nil
}

// listWarnings returns a warning for each policy that names an operator that does not exist, and for a
// fleet policy without a heartbeat.
func (s PolicySet) listWarnings() []Finding {
	var out []Finding
	for i := range s.Policies {
		policy := ToPolicy(&s.Policies[i])
		for _, name := range policy.Spec.Operators {
			if !slices.ContainsFunc(s.Operators, func(op Operator) bool {
				return op.Namespace == policy.Namespace && op.Name == name
			}) {
				out = append(out, Finding{Severity: FindingWarning, Policy: policy.id(),
					Message: fmt.Sprintf("there is no operator %s in namespace %s", name, policy.Namespace)})
			}
		}
		if policy.IsFleet() && policy.Spec.Heartbeat == nil {
			out = append(out, Finding{Severity: FindingWarning, Policy: policy.id(),
				Message: "it has no heartbeat: no person is notified when alerts stop arriving"})
		}
	}
	return out
}

// listChangedKeys returns a warning for each subject whose incidents get another key in PagerDuty
// if the configuration of the set is replaced by the configuration of a router.
func (s PolicySet) listChangedKeys(after *Router, alerts []Alert) []Finding {
	text, err := s.BuildConfig()
	if err != nil {
		return nil // without a valid configuration there are no open incidents
	}
	before, err := NewRouter(text)
	if err != nil {
		return nil
	}
	changed := map[string]bool{}
	for _, alert := range alerts {
		if !slices.Equal(before.listKeys(alert), after.listKeys(alert)) {
			changed[describeSubject(alert.Labels)] = true
		}
	}
	var out []Finding
	for subject := range changed {
		out = append(out, Finding{Severity: FindingWarning, Message: fmt.Sprintf("incidents about %s get another key: "+
			"one that is open meanwhile stays open in PagerDuty, and another one begins", subject)})
	}
	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.Message, b.Message) })
	return out
}

// listKeys returns the receivers and keys of the alert's incidents in PagerDuty.
func (r *Router) listKeys(alert Alert) []string {
	var out []string
	for _, incident := range r.Incidents(alert.Labels) {
		if slices.Contains(incident.Notifies, "pagerduty") {
			out = append(out, incident.Receiver+" "+incident.DedupKey)
		}
	}
	return out
}

// describeSubject returns what an alert is about, as text for the user.
func describeSubject(labels map[string]string) string {
	switch {
	case labels[series.Operator] != "":
		return "operator " + labels[series.OperatorNamespace] + "/" + labels[series.Operator]
	case labels[series.Cluster] != "":
		return "a cluster"
	}
	return "the fleet"
}
