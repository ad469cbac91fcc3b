// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
)

const explainLong = `Show the incidents that Alertmanager has open, by the key that PagerDuty knows them
by (dedup_key). With a key, or the beginning of one, show what the incident is about:
the alerts that fire, the clusters, the change before it, and the commands to look at
it and to roll back.

The configuration and the alerts are those of Alertmanager. An incident whose alerts
have ended is not there any more.`

// open is an incident with the alerts that fire.
type open struct {
	paging.Incident
	Since    time.Time `json:"since"`
	Silenced int       `json:"silenced,omitempty"`
	alerts   []paging.Firing
	Alerts   int    `json:"alerts"`
	Summary  string `json:"summary"`
	// Silences are those because of which nobody is notified of some of the alerts.
	Silences []hiding `json:"silences,omitempty"`
	ids      map[string]bool
}

// hiding is a silence that hides alerts.
type hiding struct {
	By      string    `json:"by"`
	Comment string    `json:"comment"`
	Ends    time.Time `json:"ends"`
}

func (a *app) explainCommand() *cobra.Command {
	var out command.Output
	var from command.AlertmanagerFlags
	c := &cobra.Command{
		Use: "explain [DEDUP_KEY]", Short: "Show open incidents, or what one is about", Long: explainLong,
		Example: "  bellwether page explain --alertmanager http://localhost:9093\n  bellwether page explain 3f2a9c",
		Args:    command.AtMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			router, incidents, err := a.incidents(c.Context(), &from)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.listIncidents(&out, incidents)
			}
			one, err := find(incidents, args[0])
			if err != nil {
				return err
			}
			if err := a.showIncidents(&out, router, one.alerts); err != nil {
				return err
			}
			if out.Table() {
				a.saySilences(one)
			}
			return nil
		},
	}
	out.Add(c, command.OutputJSON, command.OutputYAML)
	from.Add(c)
	return c
}

// incidents are those that are open, the newest first.
func (a *app) incidents(ctx context.Context, from *command.AlertmanagerFlags) (*paging.Router, []open, error) {
	server, err := a.Alertmanager(from)
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
	by := byIncident(router, alerts)
	if err := addSilences(ctx, server, by); err != nil {
		return nil, nil, err
	}
	var out []open
	for _, one := range by {
		out = append(out, *one)
	}
	slices.SortFunc(out, func(a, b open) int {
		return cmp.Or(
			b.Since.Compare(a.Since),
			cmp.Compare(a.Receiver, b.Receiver),
			cmp.Compare(a.DedupKey, b.DedupKey),
		)
	})
	return router, out, nil
}

// byIncident are the incidents that firing alerts make, by receiver and key.
func byIncident(router *paging.Router, alerts []alertmanager.Alert) map[string]*open {
	by := map[string]*open{}
	for _, alert := range alerts {
		firing := paging.Firing{Labels: alert.Labels, Annotations: alert.Annotations, Since: alert.Since}
		for _, in := range router.Incidents(alert.Labels) {
			if len(in.Notifies) == 0 || alert.Labels["severity"] == "heartbeat" {
				continue
			}
			id := in.Receiver + in.DedupKey
			if by[id] == nil {
				by[id] = &open{
					Incident: in,
					Since:    alert.Since,
					Summary:  alert.Annotations["summary"],
					ids:      map[string]bool{},
				}
			}
			by[id].add(firing, alert.SilencedBy)
		}
	}
	return by
}

// addSilences says which silences hide alerts of the incidents.
func addSilences(ctx context.Context, server *alertmanager.Client, incidents map[string]*open) error {
	if !slices.ContainsFunc(slices.Collect(maps.Values(incidents)), func(o *open) bool { return o.Silenced > 0 }) {
		return nil
	}
	all, err := server.Silences(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		for _, o := range incidents {
			if o.ids[s.ID] {
				o.Silences = append(o.Silences, hiding{phrase.OneLine(s.By), phrase.OneLine(s.Comment), s.Ends.UTC()})
			}
		}
	}
	return nil
}

// saySilences says who silenced an incident.
func (a *app) saySilences(o open) {
	if o.Silenced == 0 {
		return
	}
	a.Say("\nNobody is notified of %d of its %s:\n", o.Silenced, phrase.Count(o.Alerts, "alert"))
	for _, s := range o.Silences {
		a.Say("  silenced by %s until %s: %s\n", s.By, term.Instant(s.Ends), s.Comment)
	}
}

func (o *open) add(alert paging.Firing, silencedBy []string) {
	o.alerts = append(o.alerts, alert)
	o.Alerts++
	if len(silencedBy) > 0 {
		o.Silenced++
	}
	for _, id := range silencedBy {
		o.ids[id] = true
	}
	if alert.Since.Before(o.Since) {
		o.Since = alert.Since
	}
}

// find is the incident whose key begins so.
func find(all []open, key string) (open, error) {
	var found []open
	for _, one := range all {
		if strings.HasPrefix(one.DedupKey, key) {
			found = append(found, one)
		}
	}
	switch {
	case len(found) == 0:
		return open{}, exit.Hintf(
			"list those that are open: `bellwether page explain`; one whose alerts have ended is "+
				"not there any more",
			"no open incident has a key that begins with %s",
			key,
		)
	case slices.ContainsFunc(found, func(o open) bool { return o.DedupKey != found[0].DedupKey }):
		return open{}, exit.Hintf(
			"give more of the key",
			"%d open incidents have a key that begins with %s",
			len(found),
			key,
		)
	}
	return found[0], nil
}

// shortKey is how much of a key is shown: enough to tell incidents apart.
const shortKey = 12

func (a *app) listIncidents(out *command.Output, all []open) error {
	if !out.Table() {
		return out.Value(a.Streams.Out, all)
	}
	if len(all) == 0 {
		a.Say("No incident is open.\n")
		return nil
	}
	t := &term.Table{Header: []string{"KEY", "NOTIFIES", "ALERTS", "SILENCED", "SINCE", "SUMMARY"}, Wrap: true}
	for _, one := range all {
		since := metav1.NewTime(one.Since)
		t.Add(term.Cell{Text: one.DedupKey[:shortKey]}, term.Cell{Text: strings.Join(one.Notifies, ", ")},
			term.Cell{Text: term.Count(one.Alerts)}, term.Cell{Text: term.Count(one.Silenced)},
			term.Cell{Text: term.Clock(a.Now(), &since)}, term.Cell{Text: one.Summary})
	}
	a.Table(out, t)
	return nil
}
