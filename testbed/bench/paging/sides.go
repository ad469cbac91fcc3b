// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/alerts"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
)

// side is a Prometheus with rules, and an Alertmanager.
type side struct {
	name string
	// readiness gives as many as there are clusters once rules can judge them.
	readiness string
	// page selects the alerts that page somebody.
	page     string
	clusters int
	server   *prometheus.Server
	manager  *alertmanager.Server
}

// ready fails while a rule was not evaluated, or a cluster cannot be judged.
func (s side) ready(ctx context.Context) error {
	if _, err := s.server.Evaluated(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	found, err := s.server.Query(ctx, s.readiness, time.Time{})
	if err != nil {
		return err
	}
	if len(found) != 1 || int(found[0].Value) != s.clusters {
		return fmt.Errorf("%s: clusters that can be judged: %v, want %d", s.name, found, s.clusters)
	}
	return nil
}

// rests fails while an alert that pages somebody waits until it fires.
func (s side) rests(ctx context.Context) error {
	found, err := s.server.Query(ctx, `count(ALERTS{alertstate="pending",`+s.page+`})`, time.Time{})
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%s: %d pages wait until they fire", s.name, int(found[0].Value))
	}
	return nil
}

// starter starts sides, and stops what it has started.
type starter struct {
	*measurement
	dir     string
	paths   map[string]string
	started []func(context.Context)
	tickets *alertmanager.Webhooks
}

func (s *starter) stop(ctx context.Context) {
	for _, stop := range s.started {
		stop(ctx)
	}
}

func (s *starter) start(ctx context.Context) ([]side, error) {
	s.tickets = alertmanager.NewWebhooks()
	s.started = append(s.started, func(context.Context) { s.tickets.Close() })
	one, err := s.startOurs(ctx)
	if err != nil {
		return nil, err
	}
	out := []side{one}
	for _, p := range peers {
		if one, err = s.startPeer(ctx, p); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// startOurs has the rules and the routing that the hub makes of the default profile and of a policy that pages one
// service.
func (s *starter) startOurs(ctx context.Context) (side, error) {
	rules, err := slo.Build(slo.Set{Default: slo.DefaultProfile()})
	if err != nil {
		return side{}, fmt.Errorf("build rules: %w", err)
	}
	config, err := s.policy()
	if err != nil {
		return side{}, err
	}
	out := side{name: ours, page: `severity="page"`, readiness: fmt.Sprintf(`count(
	  (bellwether:sli_bad:bool{sli=%[1]q} == 0) and on (cluster) (bellwether:sli_bad:bool{sli=%[2]q} == 0))
	* count(count by (sli) (bellwether:slo_threshold:ratio{sli=~"%[1]s|%[2]s",tier="1h"})) / 2
	* count(count by (sli) (bellwether:slo_guard:slices{sli=~"%[1]s|%[2]s"})) / 2`, available.sli, succeeded.sli)}
	return s.run(ctx, out, rules.All(), config)
}

// policy is the configuration of a policy that pages one service, with its secrets as files.
func (s *starter) policy() (string, error) {
	policy := paging.Policy{Namespace: "bellwether-system", Name: "platform", Spec: v1alpha1.PagingPolicySpec{
		Scope: v1alpha1.PagingFleet, SingleCluster: v1alpha1.SingleClusterCritical,
		Pages:   v1alpha1.PageTarget{Receivers: []string{"oncall"}},
		Tickets: &v1alpha1.TicketTarget{Receivers: []string{"tracker"}},
		Receivers: []v1alpha1.PagingReceiver{
			{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{URL: s.events.URL() + pagerduty.EnqueuePath}},
			{Name: "tracker", Webhook: &v1alpha1.WebhookReceiver{}}}}}
	for _, r := range s.fleet.releases {
		policy.Operators = append(policy.Operators, paging.Operator{Namespace: namespace, Name: r.operator})
	}
	key, err := s.events.RoutingKey(ours)
	if err != nil {
		return "", err
	}
	for _, use := range policy.Secrets() {
		value := s.tickets.URL()
		if use.Format == paging.FormatRoutingKey {
			value = key
		}
		if err := os.WriteFile(filepath.Join(s.dir, use.File), []byte(value), 0o600); err != nil {
			return "", fmt.Errorf("write secret: %w", err)
		}
	}
	text, err := paging.BuildConfig([]paging.Policy{policy}, s.dir)
	if err != nil {
		return "", fmt.Errorf("build configuration: %w", err)
	}
	return string(text), nil
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

func (s *starter) folder(name string) string { return filepath.Join(s.dir, name) }

// run starts both servers of a side.
func (s *starter) run(ctx context.Context, out side, groups []monitoringv1.RuleGroup, config string) (side, error) {
	out.clusters = len(s.fleet.members)
	groups, err := alerts.Compress(groups, s.Faster)
	if err != nil {
		return out, err
	}
	rules, err := slo.RuleFile(groups)
	if err != nil {
		return out, err
	}
	if config, err = alerts.CompressConfig(config, s.Faster); err != nil {
		return out, err
	}
	if out.manager, err = alertmanager.Start(ctx, alertmanager.Options{Dir: s.folder(out.name + "-alertmanager"),
		Binary: s.paths[build.Alertmanager], Config: []byte(config)}); err != nil {
		return out, err
	}
	s.started = append(s.started, out.manager.Stop)
	out.server, err = prometheus.Start(ctx, prometheus.Options{
		Dir: s.folder(out.name), Binary: s.paths[build.Prometheus], Rules: map[string][]byte{"slo.yaml": rules},
		Jobs: s.fleet.jobs(), Interval: s.quick(scrape), Lookback: s.quick(5 * time.Minute),
		Alertmanagers: []string{out.manager.Address()},
		// A minute is Prometheus's default.
		Args: []string{"--rules.alert.resend-delay=" + milliseconds(s.quick(time.Minute))},
	})
	if err != nil {
		return out, err
	}
	s.started = append(s.started, out.server.Stop)
	return out, nil
}
