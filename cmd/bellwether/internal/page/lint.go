// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/runbooks"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const lintLong = `Check the PagingPolicies of the hub: that none is wrong or contradicts another,
that Alertmanager accepts what is made of them, that each alert about each operator
reaches somebody, and that it has a runbook.

With files, their PagingPolicies are checked as if they were applied to the hub.
The command also says of which operators they change the key of incidents: an
incident that is open meanwhile would stay open, and be opened again.

The values of Secrets are not read; the condition Ready of a PagingPolicy says
whether they are right.`

func (a *app) newLintCommand() *cobra.Command {
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
			findings, checked, err := a.checkPolicies(c.Context(), args)
			if err != nil {
				return err
			}
			if !out.Table() {
				if err := out.Value(a.Streams.Out, findings); err != nil {
					return err
				}
			} else {
				a.printFindings(findings, checked)
			}
			return checkFindings(findings)
		},
	}
	out.Add(c, command.OutputJSON, command.OutputYAML)
	return c
}

// printFindings prints each finding. Without findings, it prints checked, which says what was checked.
func (a *app) printFindings(findings []paging.Finding, checked string) {
	for _, f := range findings {
		prefix := ""
		if f.Policy != "" {
			prefix = f.Policy + ": "
		}
		a.Say("%s: %s%s\n", f.Severity, prefix, f.Message)
	}
	if len(findings) == 0 {
		a.Say("No findings. %s\n", checked)
	}
}

// checkFindings returns an error if a finding has the severity error.
func checkFindings(findings []paging.Finding) error {
	n := 0
	for _, f := range findings {
		if f.Severity == paging.FindingError {
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

// checkPolicies returns the findings about the policies of the hub and the files. checked is a sentence with the
// numbers of checked objects.
func (a *app) checkPolicies(ctx context.Context, files []string) (findings []paging.Finding, checked string,
	err error) {
	set, err := a.readHub(ctx)
	if err != nil {
		return nil, "", err
	}
	var before *paging.PolicySet
	if len(files) > 0 {
		changed, err := a.readFiles(files)
		if err != nil {
			return nil, "", err
		}
		current := set
		before, set = &current, current.WithPolicies(changed)
	}
	rules, err := buildAllRules()
	if err != nil {
		return nil, "", err
	}
	findings = append([]paging.Finding{}, set.ListProblems()...) // not nil, so that JSON has an empty list
	if err := runbooks.Check(rules.All()); err != nil {
		findings = append(findings, paging.Finding{Severity: paging.FindingError, Message: err.Error()})
	}
	alerts := paging.Alerts(rules.All(), set.Operators)
	found, err := set.Lint(before, alerts)
	if err != nil {
		return nil, "", err
	}
	return append(findings, found...), fmt.Sprintf("%s, %s and %s were checked.",
		phrase.Count(len(set.Policies), "PagingPolicy object"),
		phrase.Count(len(set.Operators), "operator"), phrase.Count(len(alerts), "alert")), nil
}
