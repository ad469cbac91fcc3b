// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	benchslo "github.com/bellwether-dev/bellwether/testbed/bench/slo"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
)

// peer is another tool that makes rules of an objective, and how its alerts are used.
type peer struct {
	name, version string
	// rules are those of one objective of an operator, in which the objective's SLI has this name.
	rules func(operator, sli string) ([]monitoringv1.RuleGroup, error)
	// page selects the alerts that page somebody.
	page string
	// objective is the label that tells objectives apart, and component the one that has the operator's name.
	objective, component string
	// ratio selects the share of errors in six hours of each cluster, which is recorded.
	ratio string
}

var peers = []peer{
	{name: "sloth", version: benchslo.SlothVersion, rules: benchslo.SlothRules, page: `sloth_severity="page"`,
		objective: "sloth_id", component: "sloth_service", ratio: "slo:sli_error:ratio_rate6h"},
	{name: "pyrra", version: benchslo.PyrraVersion, rules: benchslo.PyrraRules, page: `severity="critical"`,
		objective: "slo", component: "operator", ratio: fmt.Sprintf(`{__name__=~"(%s|%s):burnrate6h26m"}`,
			available.metric, succeeded.metric)},
}

// byCluster is the service of the routing that Alertmanager's documentation shows.
func (p peer) byCluster() string { return p.name + "-by-cluster" }

// byObjective is the service of the routing that makes one incident of each of the peer's objectives.
func (p peer) byObjective() string { return p.name + "-by-objective" }

func (p peer) String() string { return p.name + " " + p.version }

// ours is the service that our routing notifies.
const ours = "bellwether"

// services are those of PagerDuty, one for each way of routing.
func services() []string {
	all := []string{ours}
	for _, p := range peers {
		all = append(all, p.byCluster(), p.byObjective())
	}
	return all
}

// names are what reports call the ways of routing, by their services.
func names() map[string]string {
	all := map[string]string{ours: "Bellwether"}
	for _, p := range peers {
		all[p.byCluster()] = p.name + ", `group_by: [alertname, cluster]`"
		all[p.byObjective()] = fmt.Sprintf("%s, `group_by: [%s]`", p.name, p.objective)
	}
	return all
}

// incidents is how many of a release are open at a time, by a way of routing.
func incidents(service string, r *release) int {
	if slices.ContainsFunc(peers, func(p peer) bool { return service == p.byCluster() }) {
		return r.clusters
	}
	return 1
}

// plainRouting routes a peer's pages with the times and, at first, the labels of the example in Alertmanager's
// documentation of its configuration. The component tells the benchmark which operator it is.
const plainRouting = `
route:
  receiver: nobody
  group_wait: 30s
  group_interval: 5m
  repeat_interval: 4h
  routes:
  - {matchers: ['{{page}}'], receiver: by-cluster, group_by: [alertname, cluster], continue: true}
  - {matchers: ['{{page}}'], receiver: by-objective, group_by: [{{objective}}]}
receivers:
- name: nobody
- name: by-cluster
  pagerduty_configs: [{url: '{{url}}', routing_key: '{{by-cluster}}', component: '{{component}}'}]
- name: by-objective
  pagerduty_configs: [{url: '{{url}}', routing_key: '{{by-objective}}', component: '{{component}}'}]
`

// routing is the configuration of Alertmanager.
func (p peer) routing(events *pagerduty.Server) (string, error) {
	byCluster, err := events.RoutingKey(p.byCluster())
	if err != nil {
		return "", err
	}
	byObjective, err := events.RoutingKey(p.byObjective())
	if err != nil {
		return "", err
	}
	return strings.NewReplacer("{{page}}", p.page, "{{objective}}", p.objective,
		"{{url}}", events.URL()+pagerduty.EnqueuePath, "{{by-cluster}}", byCluster, "{{by-objective}}", byObjective,
		"{{component}}", "{{ .CommonLabels."+p.component+" }}").Replace(plainRouting), nil
}

// startPeer has a peer's rules of one objective for each operator, a history in which all was well, and plain routing.
func (s *starter) startPeer(ctx context.Context, p peer) (side, error) {
	var groups []monitoringv1.RuleGroup
	for _, r := range s.fleet.releases {
		of, err := p.rules(r.operator, r.sli)
		if err != nil {
			return side{}, err
		}
		groups = append(groups, of...)
	}
	config, err := p.routing(s.events)
	if err != nil {
		return side{}, err
	}
	end := time.Now()
	past := s.fleet.past(end.Add(-s.quick(history)), end, s.quick(scrape))
	if err := os.MkdirAll(s.folder(p.name), 0o700); err != nil {
		return side{}, fmt.Errorf("create folder: %w", err)
	}
	if err := prometheus.Backfill(ctx, s.paths[build.Promtool], s.folder(p.name), past); err != nil {
		return side{}, err
	}
	// Nearly all of the hour that the first window looks back at has to be there.
	const hour = time.Hour
	out := side{name: p.name, page: p.page, readiness: fmt.Sprintf("count((%s == 0) and on (cluster) "+
		"(count_over_time({__name__=~\"%s|%s\"}[%s]) >= %d))", p.ratio, available.metric, succeeded.metric,
		milliseconds(s.quick(hour)), hour/scrape*9/10)}
	return s.run(ctx, out, groups, config)
}
