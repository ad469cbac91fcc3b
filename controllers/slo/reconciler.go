// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slo makes one set of rules for Prometheus of all OperatorSLOs of the
// hub, gives operators without one the default, tells agents what to probe and
// to monitor, and says on each object whether its rules are evaluated. It
// evaluates nothing itself and touches no fleet cluster.
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

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/slo/plan"
)

// Rules may be written in one namespace only; the chart binds that Role.
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorslos,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorslos/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=managedoperators,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorinstalls,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",namespace=rules,resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",namespace=rules,resources=configmaps,resourceNames=bellwether-slo,verbs=get;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,namespace=rules,resources=prometheusrules,verbs=get;list;create;patch;delete

// Evaluator knows the rules that Prometheus evaluates.
type Evaluator interface {
	// Groups returns all rule groups of ours.
	Groups(ctx context.Context) ([]plan.Group, error)
	// Retention returns after how long it deletes samples; 0 is no limit.
	Retention(ctx context.Context) (time.Duration, error)
}

// Kinds knows what the hub's cluster serves.
type Kinds interface {
	// HasPrometheusRules tells whether it serves prometheus-operator's kind.
	HasPrometheusRules(ctx context.Context) (bool, error)
}

// Reconciler reconciles all OperatorSLOs at once: their rules are one set.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Evaluator is nil if the hub knows no Prometheus.
	Evaluator Evaluator
	Kinds     Kinds
	Events    events.EventRecorder
	Options   Options
	Now       func() time.Time
}

// Reconcile looks at everything; the request says nothing.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	in, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe objectives: %w", err)
	}
	next, err := plan.Next(in)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("plan rules: %w", err)
	}
	writeErr, applyErr := r.apply(ctx, in, next)
	reportErr := r.report(ctx, in, next, writeErr)
	return kit.Result(next.RecheckAfter, errors.Join(writeErr, applyErr, reportErr))
}

func (r *Reconciler) observe(ctx context.Context) (plan.Input, error) {
	in := plan.Input{
		Now: r.Now(), Namespace: r.Options.Namespace, Kind: plan.KindConfigMap,
		RunbookURL: r.Options.RunbookURL, DashboardURL: r.Options.DashboardURL, Part: r.Options.Part,
		WithoutAlerts: r.Options.WithoutAlerts,
	}
	// All OperatorInstalls are compared with what their agents have to be told: an index finds
	// those that are like something, not those that differ from it. A pass is made only when an
	// object of these kinds was made or changed in what matters here, and to query Prometheus.
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
		return in, fmt.Errorf("ask for the kind PrometheusRule: %w", err)
	}
	if served {
		in.Kind = plan.KindPrometheusRule
	}
	in.Prometheus = r.evaluated(ctx)
	return in, ctx.Err()
}

// askTimeout bounds a question to Prometheus.
const askTimeout = 10 * time.Second

// evaluated takes a Prometheus that does not answer for an observation.
func (r *Reconciler) evaluated(ctx context.Context) plan.Prometheus {
	if r.Evaluator == nil {
		return plan.Prometheus{Trouble: &plan.Trouble{Reason: v1alpha1.ReasonNoPrometheus,
			Message: "the hub was started without --prometheus-url, so it cannot query whether these rules " +
				"are evaluated"}}
	}
	asking, cancel := context.WithTimeoutCause(ctx, askTimeout, errors.New("no answer in time"))
	defer cancel()
	groups, err := r.Evaluator.Groups(asking)
	if err != nil {
		return plan.Prometheus{Trouble: &plan.Trouble{Reason: v1alpha1.ReasonPrometheusUnreachable,
			Message: err.Error()}}
	}
	out := plan.Prometheus{Groups: groups}
	// Other servers with the API of Prometheus do not say.
	if retention, err := r.Evaluator.Retention(asking); err == nil {
		out.Retention = &retention
	}
	return out
}

// report patches the statuses that changed. An object that was changed meanwhile
// is looked at again.
func (r *Reconciler) report(ctx context.Context, in plan.Input, next plan.Decision, writeErr error) error {
	var errs []error
	for i := range in.SLOs {
		before := &in.SLOs[i]
		status, known := next.Statuses[client.ObjectKeyFromObject(before)]
		if !known {
			continue
		}
		after := before.DeepCopy()
		after.Status = status
		if writeErr != nil && !conditions.IsTrue(status.Conditions, v1alpha1.ConditionStalled) {
			conditions.Summarize(&after.Status.Conditions, after.Generation, conditions.Summary{
				State: conditions.InProgress, Reason: v1alpha1.ReasonProgressing,
				Message: "the rules are not written yet: " + writeErr.Error()})
		}
		written, err := kit.PatchStatus(ctx, r.Client, before, after)
		errs = append(errs, err)
		if written {
			r.tell(ctx, before, after, next)
		}
	}
	return errors.Join(errs...)
}

// tell emits events of what a person would ask about.
func (r *Reconciler) tell(ctx context.Context, before, after *v1alpha1.OperatorSLO, next plan.Decision) {
	for _, e := range next.Events {
		if e.SLO == client.ObjectKeyFromObject(after) {
			kit.Emit(r.Events, after, e.Reason, "Edit",
				"What is left of budgets jumps with their objectives: %s", e.Message)
			log.FromContext(ctx).Info("Objectives edited", "slo", e.SLO, "edits", e.Message)
		}
	}
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionFeasible, v1alpha1.ConditionRulesLoaded} {
		was, is := conditions.Get(before.Status.Conditions, kind), conditions.Get(after.Status.Conditions, kind)
		if is.Type == "" || was.Status == is.Status && was.Reason == is.Reason {
			continue
		}
		kit.Emit(r.Events, after, is.Reason, kind, "%s", is.Message)
	}
}
