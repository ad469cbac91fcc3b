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

// readInput reads the data for the report from all servers at the same time. The reasons for missing data are
// recorded in the input. It returns the names of the servers that failed.
func (a *app) readInput(ctx context.Context, o *handoverOptions, in *handover.Input) (failed []string) {
	var wg sync.WaitGroup
	results := make([]string, 3)
	for i, read := range []func(context.Context, *handoverOptions, *handover.Input) string{a.readHub, a.readPrometheus,
		a.readAlertmanager} {
		wg.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, command.QueryTimeout,
				fmt.Errorf("no answer within %s", command.QueryTimeout))
			defer cancel()
			results[i] = read(ctx, o, in) // each function sets different fields of in
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

// recordError sets each of unknown to the message of err. It reports whether err is not nil.
func (a *app) recordError(err error, unknown ...*string) bool {
	if err == nil {
		return false
	}
	for _, u := range unknown {
		*u = a.FormatSentence(err)
	}
	return true
}

const hubName = "the hub"

// readHub reads the objects of the hub. It returns the name of the hub if some objects cannot be read.
func (a *app) readHub(ctx context.Context, _ *handoverOptions, in *handover.Input) string {
	h, err := a.Hub()
	if a.recordError(err, &in.Operators.Unknown, &in.Rollouts.Unknown, &in.Clusters.Unknown, &in.Windows.Unknown,
		&in.Policies.Unknown) {
		return hubName
	}
	var operators v1alpha1.ManagedOperatorList
	var rollouts v1alpha1.OperatorRolloutList
	var clusters v1alpha1.FleetClusterList
	var windows v1alpha1.ChangeWindowList
	var policies v1alpha1.RolloutPolicyList
	failedServer := ""
	list := func(kind string, list client.ObjectList, unknown *string, options ...client.ListOption) {
		if err := h.List(ctx, list, options...); err != nil {
			if cause := context.Cause(ctx); cause != nil { // names the timeout
				err = cause
			}
			a.recordError(fmt.Errorf("list %s: %w", kind, err), unknown)
			failedServer = hubName
		}
	}
	scope := client.InNamespace(in.Namespace) // an empty namespace means all namespaces
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
		members, err := hub.ListMembers(ctx, h, r)
		if err != nil {
			failedServer = hubName
			continue
		}
		in.Members[r.UID] = members
	}
	return failedServer
}

// readPrometheus reads alerts and error budgets. It returns the name of the server if some of them cannot be read.
func (a *app) readPrometheus(ctx context.Context, o *handoverOptions, in *handover.Input) string {
	p, err := a.Prometheus(&o.prometheus)
	if a.recordError(err, &in.Incidents.Unknown, &in.Low.Unknown, &in.Lost.Unknown) {
		if a.HasPrometheus(&o.prometheus) {
			return "Prometheus"
		}
		return "" // a server without an address is no failure
	}
	failed := a.recordError(a.readIncidents(ctx, p, in), &in.Incidents.Unknown)
	in.Low.Items, err = budgets.ReadLow(ctx, p, in.Namespace, in.Now, budgets.ReportBelow)
	failed = a.recordError(command.AddBudgetHint(ctx, err, p.Address), &in.Low.Unknown) || failed
	in.Lost.Items, err = budgets.ReadLost(ctx, p, in.Namespace, in.To, in.To.Sub(in.From), handover.LostBudget)
	failed = a.recordError(command.AddBudgetHint(ctx, err, p.Address), &in.Lost.Unknown) || failed
	if failed {
		return formatSource("Prometheus", p.Address)
	}
	return ""
}

// readIncidents reads the incidents of the shift from the alerts in Prometheus.
func (a *app) readIncidents(ctx context.Context, p *prometheus.Client, in *handover.Input) error {
	report, err := incidents.Read(ctx, p, incidents.Query{From: in.From, To: in.To, Now: in.Now,
		Namespace: in.Namespace, Notified: a.NewNotifiedFunc(ctx)})
	switch {
	case errors.Is(err, incidents.ErrNoRules):
		return exit.Hintf("check that the rules are loaded with kubectl get operatorslos -A (column LOADED)",
			"Prometheus at %s did not evaluate Bellwether's rules in this time", p.Address)
	case err != nil:
		return command.AddBudgetHint(ctx, err, p.Address)
	}
	in.Incidents.Items, in.Gaps = report.Incidents, report.Gaps
	return nil
}

// readAlertmanager reads silences, and the alerts that they suppress. It returns the name of the server
// if some of them cannot be read.
func (a *app) readAlertmanager(ctx context.Context, o *handoverOptions, in *handover.Input) string {
	am, err := a.Alertmanager(&o.alertmanager)
	if a.recordError(err, &in.Silences.Unknown, &in.Alerts.Unknown) {
		if a.HasAlertmanager(&o.alertmanager) {
			return "Alertmanager"
		}
		return "" // a server without an address is no failure
	}
	silences, err := am.Silences(ctx)
	failed := a.recordError(err, &in.Silences.Unknown)
	alerts, err := am.Alerts(ctx, `alertname=~"Bellwether.+"`)
	failed = a.recordError(err, &in.Alerts.Unknown) || failed
	for _, s := range silences {
		in.Silences.Items = append(in.Silences.Items, toSilence(s))
	}
	for _, alert := range alerts {
		in.Alerts.Items = append(in.Alerts.Items, handover.Alert{Labels: alert.Labels,
			SilencedBy: alert.SilencedBy})
	}
	if failed {
		return formatSource("Alertmanager", am.Address)
	}
	return ""
}

// toSilence converts a silence of Alertmanager to the type of the report.
func toSilence(s alertmanager.Silence) handover.Silence {
	out := handover.Silence{ID: s.ID, By: s.By, Comment: s.Comment, Starts: s.Starts, Ends: s.Ends}
	for _, m := range s.Matchers {
		out.Matchers = append(out.Matchers, handover.Matcher(m))
	}
	return out
}
