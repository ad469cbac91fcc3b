// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/pagerduty"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// stateName is the ConfigMap with the incidents that were resolved, beside the rules, and
// stateKey its key.
const (
	stateName = "bellwether-silences"
	stateKey  = "incidents.json"
)

// result is what was done.
type result struct {
	// after is the observation as it is after what was done.
	after silences.Input
	// failed has why a silence could not be made, by its AlertSilence.
	failed map[types.NamespacedName]silences.Problem
	// changed says that something was done.
	changed bool
}

// apply carries out a decision in its order. What Alertmanager or PagerDuty refuse holds up
// nothing else, and is tried again the next time.
func (r *Reconciler) apply(ctx context.Context, in observation, next silences.Decision) (result, error) {
	out := result{after: in.Input, failed: map[types.NamespacedName]silences.Problem{},
		changed: len(next.Resolve)+len(next.Start)+len(next.End)+len(next.Reopen) > 0}
	if err := r.writeRecords(ctx, in.Records, next.Records); err != nil {
		return out, err
	}
	records := slices.Clone(next.Records)
	for _, one := range next.Resolve {
		if err := r.resolve(ctx, in, one.Record); err != nil {
			log.FromContext(ctx).
				Info("Cannot resolve a silenced incident", "incident", one.DedupKey, "error", err.Error())
			continue
		}
		records = replace(records, one.Record, one.Forget)
	}
	for _, start := range next.Start {
		made, problem := r.start(ctx, in, start)
		if problem.Reason != "" {
			out.failed[start.Object] = problem
			continue
		}
		out.after.Present = append(slices.Clone(out.after.Present), made)
	}
	for _, id := range next.End {
		if err := r.Alertmanager.EndSilence(ctx, id); err != nil {
			log.FromContext(ctx).Info("Cannot end a silence", "silence", id, "error", err.Error())
			continue
		}
		out.after.Present = slices.DeleteFunc(slices.Clone(out.after.Present), func(s alertmanager.Silence) bool {
			return s.ID == id
		})
	}
	for _, one := range next.Reopen {
		if err := r.reopen(ctx, in, one); err != nil {
			log.FromContext(ctx).Info("Cannot open an incident again", "incident", one.DedupKey, "error", err.Error())
			continue
		}
		now := r.Now().UTC()
		one.Reopened = &now
		records = replace(records, one.Record, false)
	}
	out.after.Records = records
	return out, r.writeRecords(ctx, next.Records, records)
}

// replace puts a record in the place of that of the same incident.
func replace(records []silences.Record, by silences.Record, forget bool) []silences.Record {
	i := slices.IndexFunc(records, func(r silences.Record) bool { return r.Key() == by.Key() })
	switch {
	case i < 0:
		return records
	case forget:
		return slices.Delete(records, i, i+1)
	}
	records[i] = by
	return records
}

// start makes a silence, after the incidents that it hides were resolved.
func (r *Reconciler) start(ctx context.Context, in observation, s silences.Start) (alertmanager.Silence,
	silences.Problem) {
	for _, incident := range s.Resolve {
		if err := r.resolve(ctx, in, incident); err != nil {
			return s.Silence, silences.Problem{Reason: v1alpha1.ReasonIncidentUnresolved, Message: fmt.Sprintf(
				"an incident that the silence would hide is open and cannot be resolved: %v. Until then people are "+
					"notified", err)}
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	id, err := r.Alertmanager.SetSilence(limited, s.Silence)
	if err != nil {
		return s.Silence, silences.Problem{Reason: v1alpha1.ReasonAlertmanagerUnreachable, Message: err.Error()}
	}
	log.FromContext(ctx).Info("Silence began", "namespace", s.Object.Namespace, "silence", s.Object.Name, "id", id,
		"ends", s.Silence.Ends, "resolved", len(s.Resolve))
	s.Silence.ID = id
	return s.Silence, silences.Problem{}
}

// resolve resolves an incident in each service of PagerDuty that its receiver notifies.
func (r *Reconciler) resolve(ctx context.Context, in observation, incident silences.Record) error {
	return r.services(ctx, in, incident.Receiver, func(to PagerDuty, routingKey string) error {
		return to.Resolve(ctx, routingKey, incident.DedupKey)
	})
}

// reopen opens an incident again with what Alertmanager would say of it.
func (r *Reconciler) reopen(ctx context.Context, in observation, incident silences.Reopen) error {
	previews, err := in.Router.Preview(incident.Alerts)
	if err != nil {
		return fmt.Errorf("make event: %w", err)
	}
	i := slices.IndexFunc(previews, func(e paging.Event) bool {
		return e.Receiver == incident.Receiver && e.DedupKey == incident.DedupKey
	})
	if i < 0 {
		return fmt.Errorf("receiver %s notifies no service of PagerDuty", incident.Receiver)
	}
	event := eventOf(previews[i])
	return r.services(ctx, in, incident.Receiver, func(to PagerDuty, routingKey string) error {
		return to.Trigger(ctx, routingKey, event)
	})
}

func eventOf(e paging.Event) pagerduty.Event {
	out := pagerduty.Event{DedupKey: e.DedupKey, Summary: e.Summary, Source: e.Source, Severity: e.Severity,
		Details: map[string]any{"silence": "A silence that hid this has ended."}}
	for name, value := range e.Details {
		out.Details[name] = value
	}
	for text, url := range e.Links {
		out.Links = append(out.Links, pagerduty.Link{URL: url, Text: text})
	}
	slices.SortFunc(out.Links, func(a, b pagerduty.Link) int { return strings.Compare(a.Text, b.Text) })
	return out
}

// services calls send for each service of PagerDuty that a receiver notifies.
func (r *Reconciler) services(ctx context.Context, in observation, receiver string,
	send func(to PagerDuty, routingKey string) error) error {
	var errs []error
	for _, use := range paging.PagerDuty(in.Policies, receiver) {
		key, err := r.routingKey(ctx, in, use)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		to, err := r.PagerDuty(use.URL)
		if err == nil {
			err = send(to, key)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// routingKey is the key that Alertmanager has, or else that of the policy's Secret. No error
// has it.
func (r *Reconciler) routingKey(ctx context.Context, in observation, use paging.PagerDutyUse) (string, error) {
	if value, known := in.written[use.File]; known {
		return strings.TrimSpace(string(value)), nil
	}
	var s corev1.Secret
	key := client.ObjectKey{Namespace: use.Namespace, Name: use.Name}
	if err := r.Live.Get(ctx, key, &s); err != nil {
		return "", fmt.Errorf("read the routing key of %s: %w", use.Of, err)
	}
	value := strings.TrimSpace(string(s.Data[use.Key]))
	if s.Labels[v1alpha1.LabelPagingSecret] != "true" || value == "" {
		return "", fmt.Errorf(
			"read the routing key of %s: Secret %s has no key %s, or lacks the label %s=true",
			use.Of,
			key,
			use.Key,
			v1alpha1.LabelPagingSecret,
		)
	}
	return value, nil
}

func (r *Reconciler) readRecords(ctx context.Context) ([]silences.Record, error) {
	var state corev1.ConfigMap
	key := client.ObjectKey{Namespace: r.Options.Namespace, Name: stateName}
	if err := r.Live.Get(ctx, key, &state); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("get ConfigMap %s: %w", key, err)
	}
	var out []silences.Record
	if err := json.Unmarshal([]byte(state.Data[stateKey]), &out); err != nil {
		return nil, fmt.Errorf("read %s of ConfigMap %s: %w", stateKey, key, err)
	}
	return out, nil
}

// writeRecords writes the records if they changed.
func (r *Reconciler) writeRecords(ctx context.Context, before, after []silences.Record) error {
	old, err := json.Marshal(before)
	if err != nil {
		return fmt.Errorf("encode incidents: %w", err)
	}
	text, err := json.Marshal(after)
	if err != nil {
		return fmt.Errorf("encode incidents: %w", err)
	}
	if string(old) == string(text) || len(before)+len(after) == 0 {
		return nil
	}
	state := corev1ac.ConfigMap(stateName, r.Options.Namespace).
		WithLabels(map[string]string{"app.kubernetes.io/managed-by": "bellwether"}).
		WithData(map[string]string{stateKey: string(text)})
	if err := r.Client.Apply(ctx, state, kit.SilenceManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ConfigMap %s/%s: %w", r.Options.Namespace, stateName, err)
	}
	return nil
}
