// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/pagetest"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

const testLong = `Page somebody to see whether it works: send a test alert to Alertmanager, which goes
where the pages of a PagingPolicy go, or its tickets. The command waits until each
notification was accepted, ends the alert, and waits until that was accepted too.

This notifies people. The notification says that it is a test and that nothing is
wrong. The command needs no hub. Of several replicas of Alertmanager, each must be
tested at its own address.

What it does not test is the way from Prometheus to Alertmanager, which the heartbeat
of the policy with the scope Fleet is for, and what PagerDuty, Slack or the mail
server do with what they accepted: look there, for PagerDuty by the key that is shown.`

const defaultPatience = 2 * time.Minute

func (a *app) newTestCommand() *cobra.Command {
	var out command.Output
	var alertmanagerFlags command.AlertmanagerFlags
	test := pagetest.Test{}
	c := &cobra.Command{
		Use: "test POLICY", Short: "Notify the people whom a PagingPolicy pages, to see whether it works",
		Long: testLong,
		Example: "  bellwether page test platform -n bellwether-system --alertmanager http://localhost:9093\n" +
			"  bellwether page test team -n payments --severity ticket",
		Args: command.OneArg("the PagingPolicy's name"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(out.Check(), checkTest(&test)); err != nil {
				return err
			}
			return a.sendTest(c.Context(), &out, &alertmanagerFlags, test, args[0])
		},
	}
	out.Add(c, command.OutputJSON, command.OutputYAML)
	alertmanagerFlags.Add(c)
	c.Flags().StringVar(&test.Severity, "severity", series.Page, "What to send: page or ticket.")
	c.Flags().StringVar(&test.By, "by", "", "Your `NAME`, for the people who are notified.")
	command.AddTimeout(c, &test.Patience, defaultPatience, "For how long to wait for each notification.")
	return c
}

// checkTest checks the flags of a test, and sets the default of By.
func checkTest(t *pagetest.Test) error {
	if !slices.Contains(pagetest.Severities, t.Severity) {
		return exit.Hintf("use page or ticket", "there is no severity %q", t.Severity)
	}
	if t.Patience <= 0 {
		return exit.Hintf("use a duration such as 2m", "--timeout must be more than 0")
	}
	if t.By == "" {
		t.By = "Somebody"
	}
	return nil
}

// sendTest sends a test alert for a policy, and prints the result. It returns an error if not
// every notification was accepted.
func (a *app) sendTest(ctx context.Context, out *command.Output, flags *command.AlertmanagerFlags, test pagetest.Test,
	policy string) error {
	namespace, err := a.Namespace()
	if err != nil {
		return err
	}
	server, err := a.Alertmanager(flags)
	if err != nil {
		return err
	}
	test.Policy = types.NamespacedName{Namespace: namespace, Name: policy}
	test.Progress = func(text string) { a.Warn("%s ...\n", text) }
	result, err := pagetest.Run(ctx, server, test)
	if err != nil {
		return explainTestError(err, result, test)
	}
	if !out.Table() {
		err = out.Value(a.Streams.Out, result)
	} else {
		a.printTestResult(out, result)
	}
	if err == nil && result.Problem() != "" {
		err = exit.Hintf("the log of Alertmanager says why: keys, addresses and rate limits are the usual causes",
			"not every notification was accepted")
	}
	return err
}

// explainTestError adds what the user can do to the error of a test that could not run.
func explainTestError(err error, result *pagetest.Result, test pagetest.Test) error {
	switch {
	case errors.Is(err, pagetest.ErrNotRouted):
		return exit.Hint(
			err,
			fmt.Sprintf("look at `kubectl get pagingpolicy %s -n %s -o wide`; Alertmanager may need a "+
				"minute to load a changed Secret", test.Policy.Name, test.Policy.Namespace),
		)
	case errors.Is(err, pagetest.ErrNotSent) && len(result.Hours) > 0:
		return exit.Hint(err, "tickets of this policy are sent in its hours only, which may be another time of the day")
	case errors.Is(err, pagetest.ErrNotSent):
		return exit.Hint(err, "look whether a silence is about alertname=BellwetherPagingTest, and at the log of "+
			"Alertmanager")
	}
	return err
}

// printTestResult prints which notifications were accepted at the begin and at the end of the test alert.
func (a *app) printTestResult(out *command.Output, r *pagetest.Result) {
	t := &term.Table{Header: []string{"NOTIFICATION", "BEGIN", "END"}, Wrap: true}
	for _, kind := range slices.Sorted(maps.Keys(r.Notified)) {
		endCell := term.Cell{Text: "not sent"}
		if ended, sent := r.Resolved[kind]; sent {
			endCell = formatDelivery(ended)
		}
		t.Add(term.Cell{Text: kind}, formatDelivery(r.Notified[kind]), endCell)
	}
	a.Table(out, t)
	a.Say("\nReceiver: %s\n", r.Receiver)
	if slices.Contains(r.Notifies, "pagerduty") {
		a.Say("Key in PagerDuty: %s\n", r.DedupKey)
	}
}

// formatDelivery returns how many notifications were accepted, and how many attempts failed.
func formatDelivery(d pagetest.Delivery) term.Cell {
	text := []string{"accepted"}
	if d.Accepted < d.Expected {
		text[0] = fmt.Sprintf("%d of %d accepted", d.Accepted, d.Expected)
	}
	if d.Failed > 0 {
		text = append(text, fmt.Sprintf("%d attempts failed", d.Failed))
	}
	return term.Cell{Text: strings.Join(text, ", ")}
}
