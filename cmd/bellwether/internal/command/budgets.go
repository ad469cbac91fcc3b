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

// EnvPrometheus is where Prometheus is, unless a flag says so.
const EnvPrometheus = "BELLWETHER_PROMETHEUS"

// PrometheusFlags say which Prometheus to query.
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

// QueryTimeout bounds all queries of one command to one server, and Patience the time without a sign of life of the
// server, so that a query may take longer than that. After a server has not answered
// one in time, the others fail at once.
const (
	QueryTimeout = 30 * time.Second
	Patience     = 5 * time.Second
)

const howToName = "use a URL such as http://localhost:9090"

// prometheusAddress is empty if neither a flag nor the environment has one.
func (a *Env) prometheusAddress(o *PrometheusFlags) string {
	return cmp.Or(o.address, a.Getenv(EnvPrometheus))
}

// HasPrometheus is true if a flag or the environment says which Prometheus to query.
func (a *Env) HasPrometheus(o *PrometheusFlags) bool { return a.prometheusAddress(o) != "" }

// Prometheus makes a client of the Prometheus that a flag or the environment names.
// It does not connect yet. A command gets the same client each time, so that it waits once for a server that hangs.
func (a *Env) Prometheus(o *PrometheusFlags) (*prometheus.Client, error) {
	address := a.prometheusAddress(o)
	if address == "" {
		return nil, exit.Hintf(howToName, "no Prometheus address: set --prometheus or %s", EnvPrometheus)
	}
	endpoint := prometheus.Endpoint{URL: address, TokenFile: o.tokenFile, CAFile: o.caFile, Patience: Patience}
	if known, ok := a.clients.Load(endpoint); ok {
		return known.(*prometheus.Client), nil
	}
	client, err := endpoint.Client()
	if errors.Is(err, prometheus.ErrAddress) {
		return nil, exit.Hint(err, howToName)
	}
	if err == nil {
		a.clients.Store(endpoint, client)
	}
	return client, err
}

// ReadBudgets queries Prometheus for error budgets, with their trends over the time
// since (0: without), and says what to do if that fails. The operator is NAME or NAMESPACE/NAME, and
// has the budget of each cluster; empty: all operators.
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
			return nil, operatorError(ctx, client, q.Now, operator, err)
		}
	}
	report, err := budgets.Read(ctx, client, q)
	if err != nil {
		return report, BudgetError(ctx, err, client.Address)
	}
	a.asNotified(ctx, report)
	return report, nil
}

// Retention returns after how long Prometheus deletes samples; 0 if there is no
// limit, or if the server does not say.
func (a *Env) Retention(ctx context.Context, o *PrometheusFlags) time.Duration {
	client, err := a.Prometheus(o)
	if err != nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, QueryTimeout)
	defer cancel()
	retention, _ := client.Retention(ctx) // other servers with the API of Prometheus do not say
	return retention
}

// operatorError says which operators there are instead.
func operatorError(ctx context.Context, client *prometheus.Client, now time.Time, name string, err error) error {
	unknown, ambiguous := errors.Is(err, budgets.ErrUnknownOperator), errors.Is(err, budgets.ErrAmbiguous)
	if !unknown && !ambiguous {
		return BudgetError(ctx, err, client.Address)
	}
	all, _ := budgets.Operators(ctx, client, now) // only for the hint
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
	return exit.Hintf(hub.Offer(names, "no operator has objectives"),
		"Prometheus at %s has no objectives for operator %q",
		client.Address, name)
}

// BudgetError adds to an error of reading budgets what to do about it.
func BudgetError(ctx context.Context, err error, address string) error {
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
	case context.Cause(ctx) != nil && !errors.Is(err, context.Canceled):
		return exit.Hint(fmt.Errorf("query Prometheus at %s: %w", address, context.Cause(ctx)), howToName)
	case errors.As(err, &unreachable):
		return exit.Hint(fmt.Errorf("cannot reach Prometheus at %s: %w", address, unreachable.Err),
			howToName)
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

// ExplainedBudgets returns the budgets in the terms of package explain: those of
// each cluster, or those of the objectives if no cluster reports.
func ExplainedBudgets(answer *budgets.Report) []explain.Budget {
	list := answer.Clusters
	if len(list) == 0 {
		list = answer.Objectives
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
