// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const explainLong = `Show the incidents that Alertmanager has open, by the key that PagerDuty knows them
by (dedup_key). With a key, or the beginning of one, show what the incident is about:
the alerts that fire, the clusters, the change before it, and the commands to look at
it and to roll back.

The configuration and the alerts are those of Alertmanager. An incident whose alerts
have ended is not there any more.`

func (a *app) newExplainCommand() *cobra.Command {
	var out command.Output
	var alertmanagerFlags command.AlertmanagerFlags
	c := &cobra.Command{
		Use: "explain [DEDUP_KEY]", Short: "Show open incidents, or what one is about", Long: explainLong,
		Example: "  bellwether page explain --alertmanager http://localhost:9093\n  bellwether page explain 3f2a9c",
		Args:    command.AtMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			router, incidents, err := a.readIncidents(c.Context(), &alertmanagerFlags)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.printIncidentList(&out, incidents)
			}
			incident, err := findIncident(incidents, args[0])
			if err != nil {
				return err
			}
			if err := a.printIncidents(&out, router, incident.Firing); err != nil {
				return err
			}
			if out.Table() {
				a.printSilences(incident)
			}
			return nil
		},
	}
	out.Add(c, command.OutputJSON, command.OutputYAML)
	alertmanagerFlags.Add(c)
	return c
}

// readIncidents returns the open incidents of Alertmanager, the newest first, and the router with its configuration.
func (a *app) readIncidents(ctx context.Context, flags *command.AlertmanagerFlags) (*paging.Router,
	[]paging.OpenIncident, error) {
	server, err := a.Alertmanager(flags)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, command.QueryTimeout, fmt.Errorf("no answer within %s",
		command.QueryTimeout))
	defer cancel()
	text, err := server.Configuration(ctx)
	if err != nil {
		return nil, nil, err
	}
	router, err := paging.NewRouter([]byte(text))
	if err != nil {
		return nil, nil, err
	}
	alerts, err := server.Alerts(ctx, `alertname=~"Bellwether.+"`)
	if err != nil {
		return nil, nil, err
	}
	incidents := router.OpenIncidents(alerts)
	if slices.ContainsFunc(incidents, func(o paging.OpenIncident) bool { return o.Silenced > 0 }) {
		silences, err := server.Silences(ctx)
		if err != nil {
			return nil, nil, err
		}
		paging.AddSilences(incidents, silences)
	}
	return router, incidents, nil
}

// printSilences prints how many alerts of an incident are silenced, and by whom.
func (a *app) printSilences(o paging.OpenIncident) {
	if o.Silenced == 0 {
		return
	}
	a.Say("\nNobody is notified of %d of its %s:\n", o.Silenced, phrase.Count(o.Alerts, "alert"))
	for _, s := range o.Silences {
		a.Say("  silenced by %s until %s: %s\n", s.By, term.Instant(s.Ends), s.Comment)
	}
}

// findIncident returns the incident whose key begins with the given text. It returns an error if no key, or
// more than one key, begins with it.
func findIncident(all []paging.OpenIncident, key string) (paging.OpenIncident, error) {
	var found []paging.OpenIncident
	for _, incident := range all {
		if strings.HasPrefix(incident.DedupKey, key) {
			found = append(found, incident)
		}
	}
	switch {
	case len(found) == 0:
		return paging.OpenIncident{}, exit.Hintf(
			"list the open incidents with `bellwether page explain`; an incident is closed when its "+
				"alerts have ended",
			"no open incident has a key that begins with %s",
			key,
		)
	// Incidents of several receivers can have the same key.
	case slices.ContainsFunc(found, func(o paging.OpenIncident) bool { return o.DedupKey != found[0].DedupKey }):
		return paging.OpenIncident{}, exit.Hintf(
			"use more characters of the key",
			"%d open incidents have a key that begins with %s",
			len(found),
			key,
		)
	}
	return found[0], nil
}

// shownKeyLength is the number of characters of a key that are shown. It is enough to distinguish incidents.
const shownKeyLength = 12

// printIncidentList prints a table of the open incidents.
func (a *app) printIncidentList(out *command.Output, all []paging.OpenIncident) error {
	if !out.Table() {
		return out.Value(a.Streams.Out, all)
	}
	if len(all) == 0 {
		a.Say("No incident is open.\n")
		return nil
	}
	t := &term.Table{Header: []string{"KEY", "NOTIFIES", "ALERTS", "SILENCED", "SINCE", "SUMMARY"}, Wrap: true}
	for _, incident := range all {
		since := metav1.NewTime(incident.Since)
		t.Add(term.Cell{Text: incident.DedupKey[:shownKeyLength]},
			term.Cell{Text: strings.Join(incident.Notifies, ", ")}, term.Cell{Text: term.Count(incident.Alerts)},
			term.Cell{Text: term.Count(incident.Silenced)},
			term.Cell{Text: term.Clock(a.Now(), &since)}, term.Cell{Text: incident.Summary})
	}
	a.Table(out, t)
	return nil
}
