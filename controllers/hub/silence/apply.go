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

// stateName is the ConfigMap with the incidents that were resolved, in the namespace of the
// rules. stateKey is the key of the incidents in it.
const (
	stateName = "bellwether-silences"
	stateKey  = "incidents.json"
)

// result is the result of executing a decision.
type result struct {
	// after is the observation with the changes that were made.
	after silences.Input
	// failed has the reasons why silences could not be created, by AlertSilence.
	failed map[types.NamespacedName]silences.Problem
	// changed is true if the decision had any action.
	changed bool
}

// apply executes a decision in a fixed order. If Alertmanager or PagerDuty refuses an action,
// the other actions still run, and the next pass tries the refused action again.
func (r *Reconciler) apply(ctx context.Context, in observation, next silences.Decision) (result, error) {
	out := result{after: in.Input, failed: map[types.NamespacedName]silences.Problem{},
		changed: len(next.Resolve)+len(next.Start)+len(next.End)+len(next.Reopen) > 0}
	if err := r.writeRecords(ctx, in.Records, next.Records); err != nil {
		return out, err
	}
	records := slices.Clone(next.Records)
	for _, incident := range next.Resolve {
		if err := r.resolveIncident(ctx, in, incident.Record); err != nil {
			log.FromContext(ctx).
				Info("Cannot resolve a silenced incident", "incident", incident.DedupKey, "error", err.Error())
			continue
		}
		records = replaceRecord(records, incident.Record, incident.Forget)
	}
	for _, start := range next.Start {
		silence, problem := r.startSilence(ctx, in, start)
		if problem.Reason != "" {
			out.failed[start.Object] = problem
			continue
		}
		out.after.Present = append(slices.Clone(out.after.Present), silence)
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
	for _, incident := range next.Reopen {
		if err := r.reopenIncident(ctx, in, incident); err != nil {
			log.FromContext(ctx).Info("Cannot open an incident again", "incident", incident.DedupKey,
				"error", err.Error())
			continue
		}
		now := r.Now().UTC()
		incident.Reopened = &now
		records = replaceRecord(records, incident.Record, false)
	}
	out.after.Records = records
	return out, r.writeRecords(ctx, next.Records, records)
}

// replaceRecord replaces the record of the same incident, or removes it if forget is set.
// Without a record of that incident, the records stay unchanged.
func replaceRecord(records []silences.Record, record silences.Record, forget bool) []silences.Record {
	i := slices.IndexFunc(records, func(r silences.Record) bool { return r.Key() == record.Key() })
	switch {
	case i < 0:
		return records
	case forget:
		return slices.Delete(records, i, i+1)
	}
	records[i] = record
	return records
}

// startSilence creates a silence, after it has resolved the incidents that the silence hides. If
// an incident cannot be resolved, no silence is created.
func (r *Reconciler) startSilence(ctx context.Context, in observation, s silences.Start) (alertmanager.Silence,
	silences.Problem) {
	for _, incident := range s.Resolve {
		if err := r.resolveIncident(ctx, in, incident); err != nil {
			return s.Silence, silences.Problem{Reason: v1alpha1.ReasonIncidentUnresolved, Message: fmt.Sprintf(
				"an incident that the silence would hide is open and cannot be resolved: %v. Until then people are "+
					"notified", err)}
		}
	}
	requestCtx, cancel := context.WithTimeoutCause(ctx, requestTimeout,
		fmt.Errorf("no answer within %s", requestTimeout))
	defer cancel()
	id, err := r.Alertmanager.SetSilence(requestCtx, s.Silence)
	if err != nil {
		return s.Silence, silences.Problem{Reason: v1alpha1.ReasonAlertmanagerUnreachable, Message: err.Error()}
	}
	log.FromContext(ctx).Info("Silence began", "namespace", s.Object.Namespace, "silence", s.Object.Name, "id", id,
		"ends", s.Silence.Ends, "resolved", len(s.Resolve))
	s.Silence.ID = id
	return s.Silence, silences.Problem{}
}

// resolveIncident resolves an incident in each PagerDuty service that its receiver notifies.
func (r *Reconciler) resolveIncident(ctx context.Context, in observation, incident silences.Record) error {
	return r.forEachService(ctx, in, incident.Receiver, func(to PagerDuty, routingKey string) error {
		return to.Resolve(ctx, routingKey, incident.DedupKey)
	})
}

// reopenIncident opens an incident again, with the event that Alertmanager would send.
func (r *Reconciler) reopenIncident(ctx context.Context, in observation, incident silences.Reopen) error {
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
	event := toEvent(previews[i])
	return r.forEachService(ctx, in, incident.Receiver, func(to PagerDuty, routingKey string) error {
		return to.Trigger(ctx, routingKey, event)
	})
}

// toEvent converts the preview of an event to an event for PagerDuty, and adds the information
// that a silence has ended.
func toEvent(e paging.Event) pagerduty.Event {
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

// forEachService calls send for each PagerDuty service that a receiver notifies. An error for
// one service does not stop the other services; the errors are joined.
func (r *Reconciler) forEachService(ctx context.Context, in observation, receiver string,
	send func(to PagerDuty, routingKey string) error) error {
	var errs []error
	for _, use := range paging.ListPagerDutyUses(in.Policies, receiver) {
		key, err := r.readRoutingKey(ctx, in, use)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		service, err := r.PagerDuty(use.URL)
		if err == nil {
			err = send(service, key)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// readRoutingKey returns the routing key from Alertmanager's configuration. If the configuration
// does not have the key, it is read from the policy's Secret, which must have the label of Secrets
// for paging. No error contains the key.
func (r *Reconciler) readRoutingKey(ctx context.Context, in observation, use paging.PagerDutyUse) (string, error) {
	if value, known := in.written[use.File]; known {
		return strings.TrimSpace(string(value)), nil
	}
	var s corev1.Secret
	key := client.ObjectKey{Namespace: use.Namespace, Name: use.Name}
	if err := r.Live.Get(ctx, key, &s); err != nil {
		return "", fmt.Errorf("read the routing key of %s: %w", use.Field, err)
	}
	value := strings.TrimSpace(string(s.Data[use.Key]))
	if s.Labels[v1alpha1.LabelPagingSecret] != "true" || value == "" {
		return "", fmt.Errorf(
			"read the routing key of %s: Secret %s has no key %s, or lacks the label %s=true",
			use.Field,
			key,
			use.Key,
			v1alpha1.LabelPagingSecret,
		)
	}
	return value, nil
}

// readRecords returns the incidents in the hub's ConfigMap; nil if there is no ConfigMap.
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
	// The encodings of a nil slice and of an empty slice differ.
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
