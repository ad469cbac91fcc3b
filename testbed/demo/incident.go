// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

const (
	hubNamespace = "bellwether-system"
	policyName   = "platform"
	// resolveLimit is how long the demo waits for the end of the incident: most of it are the minutes after the last
	// bad slice in which the alert goes on.
	resolveLimit = 12 * time.Minute
	// progress is how often the demo says that it waits.
	progress = 15 * time.Second
)

// shown are the details of the incident that the demo shows; there are more.
var shown = []string{"operator", "version", "clusters", "wave", "rollout", "change", "firing_since", "budget_left",
	"description", "look", "rollback", "runbook"}

// errLedger says that the Events API saw something else than one incident.
var errLedger = errors.New("the ledger is not that of one incident")

// Where the tracker and the service of the heartbeat are on the demo's server.
const (
	toTracker   = "/tracker"
	toHeartbeat = "/heartbeat"
)

// errSilent says that the dead man's switch would have notified somebody.
var errSilent = errors.New("no heartbeat arrived")

// route has pages go to the Events API, tickets to a tracker, and the heartbeat to a service that would notify somebody
// if it stopped, as the guide says it.
func (d *demo) route(ctx context.Context) error {
	d.webhooks = alertmanager.NewWebhooks()
	policy, secrets, err := d.policy()
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		if err := d.hub.Create(ctx, secret); err != nil {
			return fmt.Errorf("create Secret: %w", err)
		}
	}
	if err := d.lint(ctx, policy); err != nil {
		return err
	}
	if err := d.hub.Create(ctx, policy); err != nil {
		return fmt.Errorf("create PagingPolicy: %w", err)
	}
	return d.routed(ctx, policy)
}

// policy is that of the platform team, with the Secrets that it refers to.
func (d *demo) policy() (*v1alpha1.PagingPolicy, []*corev1.Secret, error) {
	key, err := d.platform.Events().RoutingKey(platform.PagingService)
	if err != nil {
		return nil, nil, err
	}
	secret := func(name, key, value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: name,
			Labels: map[string]string{v1alpha1.LabelPagingSecret: "true"}}, StringData: map[string]string{key: value}}
	}
	of := func(name, key string) v1alpha1.SecretKey { return v1alpha1.SecretKey{Name: name, Key: key} }
	secrets := []*corev1.Secret{secret(platform.PagingSecret, "routing-key", key),
		secret(platform.TicketSecret, "url", d.webhooks.URL()+toTracker),
		secret(platform.HeartbeatSecret, "url", d.webhooks.URL()+toHeartbeat)}
	return &v1alpha1.PagingPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "PagingPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: policyName},
		Spec: v1alpha1.PagingPolicySpec{
			Scope:     v1alpha1.PagingFleet,
			Pages:     v1alpha1.PageTarget{Receivers: []string{"oncall"}},
			Tickets:   &v1alpha1.TicketTarget{Receivers: []string{"tracker"}},
			Heartbeat: &v1alpha1.HeartbeatTarget{URL: of(platform.HeartbeatSecret, "url")},
			Receivers: []v1alpha1.PagingReceiver{
				{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{
					RoutingKey: of(platform.PagingSecret, "routing-key"),
					URL:        d.platform.Events().URL() + pagerduty.EnqueuePath}},
				{Name: "tracker", Webhook: &v1alpha1.WebhookReceiver{URL: of(platform.TicketSecret, "url")}},
			},
		},
	}, secrets, nil
}

// lint writes the policy into a file and has the command line check it.
func (d *demo) lint(ctx context.Context, policy *v1alpha1.PagingPolicy) error {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": policy.APIVersion, "kind": policy.Kind, "spec": policy.Spec,
		"metadata": map[string]string{"namespace": policy.Namespace, "name": policy.Name},
	})
	if err != nil {
		return fmt.Errorf("encode PagingPolicy: %w", err)
	}
	const file = "policy.yaml"
	if err := os.WriteFile(filepath.Join(d.platform.Fleet.Dir(), file), text, 0o600); err != nil {
		return fmt.Errorf("write PagingPolicy: %w", err)
	}
	d.say("%s", text)
	return d.showIn(ctx, d.platform.Fleet.Dir(), "page", "lint", file)
}

// routed waits until the policy is in force and Alertmanager has the configuration.
func (d *demo) routed(ctx context.Context, policy *v1alpha1.PagingPolicy) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ready := metav1.Condition{}
	err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		if err := d.hub.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return false, err
		}
		ready = conditions.Get(policy.Status.Conditions, v1alpha1.ConditionReady)
		return ready.Status == metav1.ConditionTrue && d.platform.Alertmanager() != nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for PagingPolicy %s: %w (%s: %s)", policy.Name, err, ready.Reason, ready.Message)
	}
	d.say("PagingPolicy %s is in force: %s", policy.Name, ready.Message)
	return d.show(ctx, "page", "explain")
}

// paged waits for the page about the bad version, and shows the incident as the command line knows it.
func (d *demo) paged(ctx context.Context) error {
	err := d.waitForLedger(ctx, patience, "nobody is paged yet", func(l pagerduty.Ledger) bool { return l.Pages() > 0 })
	if err != nil {
		return err
	}
	if err := d.show(ctx, "page", "explain"); err != nil {
		return err
	}
	key := d.platform.Events().Ledger().Incidents[0].DedupKey
	return d.show(ctx, "page", "explain", key)
}

// resolved waits until the incident is resolved, shows the ledger, and holds it to one incident.
func (d *demo) resolved(ctx context.Context) error {
	err := d.waitForLedger(ctx, resolveLimit, "the incident is open", func(l pagerduty.Ledger) bool {
		for _, i := range l.Incidents {
			if i.State != pagerduty.Resolved {
				return false
			}
		}
		return true
	})
	ledger := d.platform.Events().Ledger()
	d.say("")
	err = errors.Join(err, ledger.PrintIncidents(d.Out, shown...))
	d.say("\nPages: %d. Notifications to the tracker of tickets: %d. %s", ledger.Pages(),
		len(d.webhooks.At(toTracker)), d.heartbeats())
	if err == nil {
		err = checkLedger(ledger)
	}
	if err == nil && len(d.webhooks.At(toHeartbeat)) == 0 {
		err = errSilent
	}
	if err == nil {
		timeline := ledger.Incidents[0].Timeline
		d.opened, d.ended = timeline[0].At, timeline[len(timeline)-1].At
	}
	return err
}

// heartbeats says how many came, and the longest time without one.
func (d *demo) heartbeats() string {
	all := d.webhooks.At(toHeartbeat)
	var longest time.Duration
	for i := 1; i < len(all); i++ {
		longest = max(longest, all[i].At.Sub(all[i-1].At))
	}
	return fmt.Sprintf("Heartbeats: %d, at most %s apart.", len(all), longest.Round(time.Second))
}

// checkLedger wants one incident about the bad version, triggered once and resolved once, that says what to do.
func checkLedger(l pagerduty.Ledger) error {
	if len(l.Incidents) != 1 || len(l.Anomalies) != 0 {
		return fmt.Errorf("%w: %d incidents, %d anomalies", errLedger, len(l.Incidents), len(l.Anomalies))
	}
	i := l.Incidents[0]
	if i.Opened != 1 || i.Resolved != 1 || i.State != pagerduty.Resolved {
		return fmt.Errorf("%w: triggered %d times, resolved %d times, %s now", errLedger, i.Opened, i.Resolved, i.State)
	}
	said := i.Last.Payload.Summary + fmt.Sprint(i.Last.Payload.CustomDetails)
	for _, want := range []string{bad, after + " -> " + bad, "/runbooks/", "bellwether rollout get " + operatorName} {
		if !strings.Contains(said, want) {
			return fmt.Errorf("%w: it does not say %q", errLedger, want)
		}
	}
	return nil
}

// waitForLedger waits until something is in the ledger, and says now and then what it waits for and how many alerts
// page.
func (d *demo) waitForLedger(ctx context.Context, limit time.Duration, waiting string,
	done func(pagerduty.Ledger) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var said time.Time
	err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		if done(d.platform.Events().Ledger()) {
			return true, nil
		}
		if time.Since(said) >= progress {
			said = time.Now()
			d.say("%s  %s; %s", said.Format(time.TimeOnly), waiting, d.pagingAlerts(ctx))
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("%s after %s: %w", waiting, limit, err)
	}
	return nil
}

// pagingAlerts says how many alerts page, and when a slice of the bad version was bad last.
func (d *demo) pagingAlerts(ctx context.Context) string {
	firing, err := d.platform.Prometheus().Query(ctx, `count(ALERTS{severity="page",alertstate="firing"}) or vector(0)`,
		time.Time{})
	if err != nil || len(firing) != 1 {
		return "Prometheus does not answer"
	}
	text := fmt.Sprintf("alerts that fire: %v", firing[0].Value)
	last, err := d.platform.Prometheus().Query(ctx, fmt.Sprintf("time() - max(max_over_time(timestamp(%s{version=%q})"+
		"[15m:15s]))", "bellwether:sli_bad_version:slice", bad), time.Time{})
	if err == nil && len(last) == 1 {
		text += fmt.Sprintf(", the last bad minute of %s was %s ago", bad,
			(time.Duration(last[0].Value) * time.Second).Round(time.Second))
	}
	return text
}
