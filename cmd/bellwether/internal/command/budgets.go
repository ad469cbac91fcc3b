// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/alerts/prometheus"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/explain"
)

// EnvPrometheus is the environment variable with the URL of Prometheus. The flag --prometheus has precedence.
const EnvPrometheus = "BELLWETHER_PROMETHEUS"

// PrometheusFlags are the flags that select the Prometheus to query.
type PrometheusFlags struct{ address, tokenFile, caFile string }

// Add adds the flags to a command.
func (o *PrometheusFlags) Add(c *cobra.Command) {
	c.Flags().StringVar(&o.address, "prometheus", "",
		"The `URL` of Prometheus or of a service with the same API. Default: $"+EnvPrometheus+".")
	c.Flags().StringVar(&o.tokenFile, "prometheus-token-file", "", "The `FILE` with the bearer token for Prometheus.")
	c.Flags().StringVar(&o.caFile, "prometheus-ca-file", "",
		"The `FILE` with the CA certificates for Prometheus.")
	_ = c.MarkFlagFilename("prometheus-token-file")
	_ = c.MarkFlagFilename("prometheus-ca-file")
}

// QueryTimeout limits the total time of all queries of one command to one server. Patience limits the time without any
// response of the server, so one query may take longer than Patience. After a server has not responded to a query in
// time, all later queries to it fail immediately.
const (
	QueryTimeout = 30 * time.Second
	Patience     = 5 * time.Second
)

const prometheusURLHint = "use a URL such as http://localhost:9090"

// readPrometheusAddress returns the URL of Prometheus from the flags or the environment; empty if neither has a URL.
func (a *Env) readPrometheusAddress(o *PrometheusFlags) string {
	return cmp.Or(o.address, a.Getenv(EnvPrometheus))
}

// HasPrometheus reports whether a flag or the environment has the URL of Prometheus.
func (a *Env) HasPrometheus(o *PrometheusFlags) bool { return a.readPrometheusAddress(o) != "" }

// Prometheus returns a client for the Prometheus of the flags or the environment. It does not connect. For the same
// flags it returns the same client each time, so that a command waits only once for a server that does not respond.
func (a *Env) Prometheus(o *PrometheusFlags) (*prometheus.Client, error) {
	address := a.readPrometheusAddress(o)
	if address == "" {
		return nil, exit.Hintf(prometheusURLHint, "no Prometheus address: set --prometheus or %s", EnvPrometheus)
	}
	endpoint := prometheus.Endpoint{URL: address, TokenFile: o.tokenFile, CAFile: o.caFile, Patience: Patience}
	if client, ok := a.clients.Load(endpoint); ok {
		return client.(*prometheus.Client), nil
	}
	client, err := endpoint.Client()
	if errors.Is(err, prometheus.ErrAddress) {
		return nil, exit.Hint(err, prometheusURLHint)
	}
	if err == nil {
		a.clients.Store(endpoint, client)
	}
	return client, err
}

// ReadBudgets queries Prometheus for error budgets, with their trends over the duration since (0: no trends).
// operator is NAME or NAMESPACE/NAME, and adds the budget of each cluster; if it is empty, the report has all
// operators. Errors have a hint for the user.
func (a *Env) ReadBudgets(ctx context.Context, o *PrometheusFlags, operator string,
	since time.Duration) (*budgets.Report, error) {
	client, err := a.Prometheus(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, QueryTimeout, fmt.Errorf("no answer within %s", QueryTimeout))
	defer cancel()
	q := budgets.Query{Now: a.Now(), Since: since, Clusters: operator != ""}
	if operator != "" {
		if q.Operator, err = budgets.Find(ctx, client, q.Now, operator); err != nil {
			return nil, explainOperatorError(ctx, client, q.Now, operator, err)
		}
	}
	report, err := budgets.Read(ctx, client, q)
	if err != nil {
		return report, AddBudgetHint(ctx, err, client.Address)
	}
	a.setNotified(ctx, report)
	return report, nil
}

// ReadRetention returns after how long Prometheus deletes samples; 0 if there is no limit, or if the
// server does not report its limit.
func (a *Env) ReadRetention(ctx context.Context, o *PrometheusFlags) time.Duration {
	client, err := a.Prometheus(o)
	if err != nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, QueryTimeout)
	defer cancel()
	retention, _ := client.Retention(ctx) // other servers with the API of Prometheus do not report it
	return retention
}

// explainOperatorError adds the operators that have objectives to the error of an unknown or ambiguous operator name.
func explainOperatorError(ctx context.Context, client *prometheus.Client, now time.Time, name string, err error) error {
	unknown, ambiguous := errors.Is(err, budgets.ErrUnknownOperator), errors.Is(err, budgets.ErrAmbiguous)
	if !unknown && !ambiguous {
		return AddBudgetHint(ctx, err, client.Address)
	}
	all, _ := budgets.Operators(ctx, client, now) // an error only makes the hint shorter
	var names []string
	for _, o := range all {
		if unknown || o.Name == name {
			names = append(names, o.String())
		}
	}
	if ambiguous {
		return exit.Hintf("use one of "+strings.Join(names, ", "), "operators of %d namespaces have the name %q",
			len(names), name)
	}
	return exit.Hintf(hub.FormatAvailable(names, "no operator has objectives"),
		"Prometheus at %s has no objectives for operator %q",
		client.Address, name)
}

// AddBudgetHint adds to an error of a budget query what the user can do. address is the URL of Prometheus.
func AddBudgetHint(ctx context.Context, err error, address string) error {
	if err == nil {
		return nil
	}
	var unreachable *url.Error
	var refused *promv1.Error
	switch {
	case errors.Is(err, budgets.ErrNoRules):
		return exit.Hintf("check that the rules are loaded with kubectl get operatorslos -A (column LOADED), and "+
			"that Prometheus scrapes the hub and the agents",
			"Prometheus at %s has no objectives", address)
	case context.Cause(ctx) != nil && !errors.Is(err, context.Canceled): // the timeout has passed
		return exit.Hint(fmt.Errorf("query Prometheus at %s: %w", address, context.Cause(ctx)), prometheusURLHint)
	case errors.As(err, &unreachable):
		return exit.Hint(fmt.Errorf("cannot reach Prometheus at %s: %w", address, unreachable.Err),
			prometheusURLHint)
	case errors.As(err, &refused) && refused.Type == promv1.ErrClient:
		return exit.Hint(fmt.Errorf("the Prometheus at %s rejected the request: %w", address, err),
			"if it requires a login, set --prometheus-token-file; the address must not include /api/v1")
	case errors.As(err, &refused):
		return exit.Hint(fmt.Errorf("the Prometheus at %s cannot answer: %w", address, err),
			"try again, or check the logs of Prometheus")
	default:
		return err
	}
}

// ToExplainBudgets converts budgets to the types of package explain. It converts the budgets of the clusters or, if
// there are none, the budgets of the objectives.
func ToExplainBudgets(report *budgets.Report) []explain.Budget {
	list := report.Clusters
	if len(list) == 0 {
		list = report.Objectives
	}
	out := make([]explain.Budget, 0, len(list))
	for _, b := range list {
		e := explain.Budget{SLI: b.SLI, Cluster: b.Cluster, Target: b.Target, Period: b.Period, Left: b.Left,
			LeftExcluding: b.LeftExcluding, Burn: b.Burn}
		for _, alert := range b.Firing {
			e.Firing = append(e.Firing, alert.Name)
		}
		out = append(out, e)
	}
	return out
}
