// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oncall

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/alerts/incidents"
	"github.com/bellwether-dev/bellwether/alerts/prometheus"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/explain/handover"
)

// observe reads everything that the report is made of, from all servers at the same
// time. What cannot be read is noted in the input. It returns the names of the servers
// that were to be read and failed.
func (a *app) observe(ctx context.Context, o *handoverOptions, in *handover.Input) (failed []string) {
	var wg sync.WaitGroup
	results := make([]string, 3)
	for i, read := range []func(context.Context, *handoverOptions, *handover.Input) string{a.readHub, a.readPrometheus,
		a.readAlertmanager} {
		wg.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, command.QueryTimeout,
				fmt.Errorf("no answer within %s", command.QueryTimeout))
			defer cancel()
			results[i] = read(ctx, o, in) // each fills in fields of its own
		})
	}
	wg.Wait()
	for _, name := range results {
		if name != "" {
			failed = append(failed, name)
		}
	}
	return failed
}

// note notes in what could not be read why; it returns whether there is an error.
func (a *app) note(err error, unknown ...*string) bool {
	if err == nil {
		return false
	}
	for _, u := range unknown {
		*u = a.Sentence(err)
	}
	return true
}

const nameOfHub = "the hub"

// readHub reads the hub's objects. It returns the hub's name if some cannot be read.
func (a *app) readHub(ctx context.Context, _ *handoverOptions, in *handover.Input) string {
	h, err := a.Hub()
	if a.note(err, &in.Operators.Unknown, &in.Rollouts.Unknown, &in.Clusters.Unknown, &in.Windows.Unknown,
		&in.Policies.Unknown) {
		return nameOfHub
	}
	var operators v1alpha1.ManagedOperatorList
	var rollouts v1alpha1.OperatorRolloutList
	var clusters v1alpha1.FleetClusterList
	var windows v1alpha1.ChangeWindowList
	var policies v1alpha1.RolloutPolicyList
	failed := ""
	list := func(what string, list client.ObjectList, unknown *string, options ...client.ListOption) {
		if err := h.List(ctx, list, options...); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			a.note(fmt.Errorf("list %s: %w", what, err), unknown)
			failed = nameOfHub
		}
	}
	scope := client.InNamespace(in.Namespace) // empty: all
	list("ManagedOperators", &operators, &in.Operators.Unknown, scope)
	list("OperatorRollouts", &rollouts, &in.Rollouts.Unknown, scope)
	list("FleetClusters", &clusters, &in.Clusters.Unknown)
	list("ChangeWindows", &windows, &in.Windows.Unknown)
	list("RolloutPolicies", &policies, &in.Policies.Unknown)
	in.Operators.Items, in.Rollouts.Items, in.Clusters.Items = operators.Items, rollouts.Items, clusters.Items
	in.Windows.Items, in.Policies.Items = windows.Items, policies.Items
	in.Members = map[types.UID][]v1alpha1.OperatorInstall{}
	for i := range rollouts.Items {
		r := &rollouts.Items[i]
		if r.Status.Phase.Ended() {
			continue
		}
		members, err := hub.Members(ctx, h, r)
		if err != nil {
			failed = nameOfHub
			continue
		}
		in.Members[r.UID] = members
	}
	return failed
}

// readPrometheus reads alerts and error budgets. It returns the server's name if that
// fails.
func (a *app) readPrometheus(ctx context.Context, o *handoverOptions, in *handover.Input) string {
	p, err := a.Prometheus(&o.prometheus)
	if a.note(err, &in.Incidents.Unknown, &in.Low.Unknown, &in.Lost.Unknown) {
		if a.HasPrometheus(&o.prometheus) {
			return "Prometheus"
		}
		return ""
	}
	failed := a.note(a.readIncidents(ctx, p, in), &in.Incidents.Unknown)
	in.Low.Items, err = budgets.Low(ctx, p, in.Namespace, in.Now, budgets.ReportBelow)
	failed = a.note(command.BudgetError(ctx, err, p.Address), &in.Low.Unknown) || failed
	in.Lost.Items, err = budgets.Lost(ctx, p, in.Namespace, in.To, in.To.Sub(in.From), handover.LostBudget)
	failed = a.note(command.BudgetError(ctx, err, p.Address), &in.Lost.Unknown) || failed
	if failed {
		return sourceOf("Prometheus", p.Address)
	}
	return ""
}

func (a *app) readIncidents(ctx context.Context, p *prometheus.Client, in *handover.Input) error {
	report, err := incidents.Read(ctx, p, incidents.Query{From: in.From, To: in.To, Now: in.Now,
		Namespace: in.Namespace, Notified: a.Notified(ctx)})
	switch {
	case errors.Is(err, incidents.ErrNoRules):
		return exit.Hintf("check that the rules are loaded with kubectl get operatorslos -A (column LOADED)",
			"Prometheus at %s did not evaluate Bellwether's rules in this time", p.Address)
	case err != nil:
		return command.BudgetError(ctx, err, p.Address)
	}
	in.Incidents.Items, in.Gaps = report.Incidents, report.Gaps
	return nil
}

// readAlertmanager reads silences, and the alerts that they hide. It returns the
// server's name if that fails.
func (a *app) readAlertmanager(ctx context.Context, o *handoverOptions, in *handover.Input) string {
	am, err := a.Alertmanager(&o.alertmanager)
	if a.note(err, &in.Silences.Unknown, &in.Alerts.Unknown) {
		if a.HasAlertmanager(&o.alertmanager) {
			return "Alertmanager"
		}
		return ""
	}
	silences, err := am.Silences(ctx)
	failed := a.note(err, &in.Silences.Unknown)
	alerts, err := am.Alerts(ctx, `alertname=~"Bellwether.+"`)
	failed = a.note(err, &in.Alerts.Unknown) || failed
	for _, s := range silences {
		in.Silences.Items = append(in.Silences.Items, silenceOf(s))
	}
	for _, one := range alerts {
		in.Alerts.Items = append(in.Alerts.Items, handover.Alert{Labels: one.Labels,
			SilencedBy: one.SilencedBy})
	}
	if failed {
		return sourceOf("Alertmanager", am.Address)
	}
	return ""
}

func silenceOf(s alertmanager.Silence) handover.Silence {
	out := handover.Silence{ID: s.ID, By: s.By, Comment: s.Comment, Starts: s.Starts, Ends: s.Ends}
	for _, m := range s.Matchers {
		out.Matchers = append(out.Matchers, handover.Matcher(m))
	}
	return out
}
