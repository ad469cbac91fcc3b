// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/runbooks"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/phrase"
)

const lintLong = `Check the PagingPolicies of the hub: that none is wrong or contradicts another,
that Alertmanager accepts what is made of them, that each alert about each operator
reaches somebody, and that it has a runbook.

With files, their PagingPolicies are checked as if they were applied to the hub.
The command also says of which operators they change the key of incidents: an
incident that is open meanwhile would stay open, and be opened again.

The values of Secrets are not read; the condition Ready of a PagingPolicy says
whether they are right.`

// Finding is something that is wrong, or that a person should know.
type Finding struct {
	// Severity is error or warning.
	Severity string `json:"severity"`
	// Policy is NAMESPACE/NAME; empty where it is about all.
	Policy  string `json:"policy,omitempty"`
	Message string `json:"message"`
}

func (a *app) lintCommand() *cobra.Command {
	var out command.Output
	c := &cobra.Command{
		Use: "lint [FILE...]", Short: "Check that each alert reaches somebody, and has a runbook", Long: lintLong,
		Example: "  bellwether page lint\n  bellwether page lint policy.yaml\n" +
			"  kustomize build . | bellwether page lint -",
		ValidArgsFunction: command.CompleteFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			findings, checked, err := a.lint(c.Context(), args)
			if err != nil {
				return err
			}
			if !out.Table() {
				if err := out.Value(a.Streams.Out, findings); err != nil {
					return err
				}
			} else {
				a.showFindings(findings, checked)
			}
			return verdict(findings)
		},
	}
	out.Add(c, command.OutputJSON, command.OutputYAML)
	return c
}

func (a *app) showFindings(findings []Finding, checked string) {
	for _, f := range findings {
		of := ""
		if f.Policy != "" {
			of = f.Policy + ": "
		}
		a.Say("%s: %s%s\n", f.Severity, of, f.Message)
	}
	if len(findings) == 0 {
		a.Say("No findings. %s\n", checked)
	}
}

// verdict fails if there is an error.
func verdict(findings []Finding) error {
	n := 0
	for _, f := range findings {
		if f.Severity == severityError {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return exit.Hintf("correct it", "1 error")
	}
	return exit.Hintf("correct them", "%d errors", n)
}

// Severities of findings.
const (
	severityError   = "error"
	severityWarning = "warning"
)

// lint returns what it found, and what it checked.
func (a *app) lint(ctx context.Context, files []string) (findings []Finding, checked string, err error) {
	findings = []Finding{} // an empty list in JSON, too
	before, err := a.read(ctx)
	if err != nil {
		return nil, "", err
	}
	now := before
	if len(files) > 0 {
		changed, err := a.readFiles(files)
		if err != nil {
			return nil, "", err
		}
		now = before.with(changed)
	}
	problems, names := now.problems()
	for _, name := range names {
		findings = append(findings, Finding{Severity: severityError, Policy: name, Message: problems[name]})
	}
	rules, err := allRules()
	if err != nil {
		return nil, "", err
	}
	if err := runbooks.Check(rules.All()); err != nil {
		findings = append(findings, Finding{Severity: severityError, Message: err.Error()})
	}
	alerts := paging.Alerts(rules.All(), now.operators)
	text, problem := now.config()
	if problem != nil {
		findings = append(findings, Finding{Severity: severityError, Message: problem.Error()})
		return findings, "", nil //nolint:nilerr // it is what was looked for
	}
	router, err := paging.NewRouter(text)
	if err != nil {
		return nil, "", err
	}
	for _, lost := range router.Unrouted(alerts) {
		findings = append(findings, Finding{Severity: severityError, Message: fmt.Sprintf(
			"alert %s (%s) about %s reaches nobody", lost.Name, lost.Severity, subject(lost.Labels))})
	}
	findings = append(findings, now.unheard()...)
	if len(files) > 0 {
		findings = append(findings, changedKeys(before, router, alerts)...)
	}
	return findings, fmt.Sprintf("%s, %s and %s were checked.", phrase.Count(len(now.policies), "PagingPolicy object"),
		phrase.Count(len(now.operators), "operator"), phrase.Count(len(alerts), "alert")), nil
}

// unheard are policies that name operators which do not exist, and a fleet policy without
// a heartbeat.
func (p hubPaging) unheard() []Finding {
	var out []Finding
	for i := range p.policies {
		policy := paging.PolicyOf(&p.policies[i])
		of := client.ObjectKeyFromObject(&p.policies[i]).String()
		for _, name := range policy.Spec.Operators {
			if !slices.ContainsFunc(p.operators, func(op paging.Operator) bool {
				return op.Namespace == policy.Namespace && op.Name == name
			}) {
				out = append(
					out,
					Finding{severityWarning, of, fmt.Sprintf("there is no operator %s in namespace %s", name,
						policy.Namespace)},
				)
			}
		}
		if policy.IsFleet() && policy.Spec.Heartbeat == nil {
			out = append(
				out,
				Finding{severityWarning, of, "it has no heartbeat: nobody hears when alerts stop to come"},
			)
		}
	}
	return out
}

// changedKeys are operators whose incidents get another key at a service of PagerDuty.
func changedKeys(before hubPaging, after *paging.Router, alerts []paging.Alert) []Finding {
	text, err := before.config()
	if err != nil {
		return nil // nothing was in force, so that nothing is open
	}
	router, err := paging.NewRouter(text)
	if err != nil {
		return nil
	}
	changed := map[string]bool{}
	for _, alert := range alerts {
		if !slices.Equal(keys(router, alert), keys(after, alert)) {
			changed[subject(alert.Labels)] = true
		}
	}
	var out []Finding
	for of := range changed {
		out = append(
			out,
			Finding{Severity: severityWarning, Message: fmt.Sprintf("incidents about %s get another key: "+
				"one that is open meanwhile stays open in PagerDuty, and another one begins", of)},
		)
	}
	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.Message, b.Message) })
	return out
}

// keys are those of an alert's incidents in PagerDuty, with their receivers.
func keys(r *paging.Router, alert paging.Alert) []string {
	var out []string
	for _, in := range r.Incidents(alert.Labels) {
		if slices.Contains(in.Notifies, "pagerduty") {
			out = append(out, in.Receiver+" "+in.DedupKey)
		}
	}
	return out
}

// subject is what an alert is about, for a person.
func subject(labels map[string]string) string {
	switch {
	case labels["operator"] != "":
		return "operator " + labels["operator_namespace"] + "/" + labels["operator"]
	case labels["cluster"] != "":
		return "a cluster"
	}
	return "the fleet"
}
