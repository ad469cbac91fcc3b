// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slo generates one set of Prometheus rules for all OperatorSLOs of the hub, creates
// default OperatorSLOs for operators that have none, writes into OperatorInstalls what agents
// must probe and monitor, and reports on each OperatorSLO whether its rules are evaluated. It
// evaluates no rules itself and does not connect to fleet clusters.
package slo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/alerts/slo/ruleset"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// The hub can write rules in one namespace only; the chart binds that Role.
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorslos,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorslos/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=managedoperators,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorinstalls,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",namespace=rules,resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",namespace=rules,resources=configmaps,resourceNames=bellwether-slo,verbs=get;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,namespace=rules,resources=prometheusrules,verbs=get;list;create;patch;delete

// Evaluator reads from Prometheus which rules it evaluates.
type Evaluator interface {
	// Groups returns all rule groups of Bellwether.
	Groups(ctx context.Context) ([]ruleset.Group, error)
	// Retention returns how long Prometheus keeps samples; 0 means no limit.
	Retention(ctx context.Context) (time.Duration, error)
}

// Kinds reports which kinds the API server of the hub's cluster serves.
type Kinds interface {
	// HasPrometheusRules reports whether prometheus-operator's kind PrometheusRule is served.
	HasPrometheusRules(ctx context.Context) (bool, error)
}

// Reconciler reconciles all OperatorSLOs together, because their rules are one set.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server, without the cache.
	Live client.Reader
	// Evaluator is nil if no Prometheus is configured.
	Evaluator Evaluator
	Kinds     Kinds
	Events    events.EventRecorder
	Options   Options
	Now       func() time.Time
}

// Reconcile handles all OperatorSLOs. The request has no information.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	in, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe objectives: %w", err)
	}
	next, err := ruleset.Next(in)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("plan rules: %w", err)
	}
	writeErr, applyErr := r.apply(ctx, in, next)
	reportErr := r.patchStatuses(ctx, in, next, writeErr)
	return kit.NewResult(next.RecheckAfter, errors.Join(writeErr, applyErr, reportErr))
}

// observe gathers the input of ruleset.Next: operators, objectives, installs, the kind of object
// for rules, and the rules that Prometheus evaluates.
func (r *Reconciler) observe(ctx context.Context) (ruleset.Input, error) {
	in := ruleset.Input{
		Now: r.Now(), Namespace: r.Options.Namespace, Kind: ruleset.KindConfigMap,
		RunbookURL: r.Options.RunbookURL, DashboardURL: r.Options.DashboardURL, Part: r.Options.Part,
		WithoutAlerts: r.Options.WithoutAlerts,
	}
	// All OperatorInstalls are compared with the desired content. An index cannot be
	// used: it finds objects that match a value, not objects that differ from it. A
	// pass runs only when an object of these kinds is created or changed in a relevant
	// field, and to query Prometheus.
	var operators v1alpha1.ManagedOperatorList
	var slos v1alpha1.OperatorSLOList
	var installs v1alpha1.OperatorInstallList
	for _, list := range []client.ObjectList{&operators, &slos, &installs} {
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return in, fmt.Errorf("list %T: %w", list, err)
		}
	}
	in.Operators, in.SLOs, in.Installs = operators.Items, slos.Items, installs.Items
	served, err := r.Kinds.HasPrometheusRules(ctx)
	if err != nil {
		return in, fmt.Errorf("discover the kind PrometheusRule: %w", err)
	}
	if served {
		in.Kind = ruleset.KindPrometheusRule
	}
	in.Prometheus = r.queryPrometheus(ctx)
	return in, ctx.Err()
}

// queryTimeout limits the queries to Prometheus in one pass.
const queryTimeout = 10 * time.Second

// queryPrometheus returns the rule groups and the retention of Prometheus. If Prometheus is not
// configured or does not answer, the result has the trouble and there is no error.
func (r *Reconciler) queryPrometheus(ctx context.Context) ruleset.Prometheus {
	if r.Evaluator == nil {
		return ruleset.Prometheus{Trouble: &ruleset.Trouble{Reason: v1alpha1.ReasonNoPrometheus,
			Message: "the hub was started without --prometheus-url, so it cannot query whether these rules " +
				"are evaluated"}}
	}
	queryCtx, cancel := context.WithTimeoutCause(ctx, queryTimeout, errors.New("no answer in time"))
	defer cancel()
	groups, err := r.Evaluator.Groups(queryCtx)
	if err != nil {
		return ruleset.Prometheus{Trouble: &ruleset.Trouble{Reason: v1alpha1.ReasonPrometheusUnreachable,
			Message: err.Error()}}
	}
	out := ruleset.Prometheus{Groups: groups}
	// Servers with a compatible API might not report the retention.
	if retention, err := r.Evaluator.Retention(queryCtx); err == nil {
		out.Retention = &retention
	}
	return out
}

// patchStatuses patches the statuses that changed, and emits Events about them. If the rules were not
// written, the statuses have that error.
func (r *Reconciler) patchStatuses(ctx context.Context, in ruleset.Input, next ruleset.Decision, writeErr error) error {
	var errs []error
	for i := range in.SLOs {
		before := &in.SLOs[i]
		status, known := next.Statuses[client.ObjectKeyFromObject(before)]
		if !known {
			continue
		}
		after := before.DeepCopy()
		after.Status = status
		// A stalled OperatorSLO keeps its own reason.
		if writeErr != nil && !conditions.IsTrue(status.Conditions, v1alpha1.ConditionStalled) {
			conditions.Summarize(&after.Status.Conditions, after.Generation, conditions.Summary{
				State: conditions.InProgress, Reason: v1alpha1.ReasonProgressing,
				Message: "the rules are not written yet: " + writeErr.Error()})
		}
		written, err := kit.PatchStatus(ctx, r.Client, before, after)
		errs = append(errs, err)
		if written {
			r.emitEvents(ctx, before, after, next)
		}
	}
	return errors.Join(errs...)
}

// emitEvents emits Events about edits of objectives and about changed conditions.
func (r *Reconciler) emitEvents(ctx context.Context, before, after *v1alpha1.OperatorSLO, next ruleset.Decision) {
	for _, e := range next.Events {
		if e.SLO == client.ObjectKeyFromObject(after) {
			kit.Emit(r.Events, after, e.Reason, "Edit",
				"The remaining budgets change at once with their objectives: %s", e.Message)
			log.FromContext(ctx).Info("Objectives edited", "slo", e.SLO, "edits", e.Message)
		}
	}
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionFeasible, v1alpha1.ConditionRulesLoaded} {
		oldCondition := conditions.Get(before.Status.Conditions, kind)
		newCondition := conditions.Get(after.Status.Conditions, kind)
		isUnchanged := oldCondition.Status == newCondition.Status && oldCondition.Reason == newCondition.Reason
		if newCondition.Type == "" || isUnchanged {
			continue
		}
		kit.Emit(r.Events, after, newCondition.Reason, kind, "%s", newCondition.Message)
	}
}
