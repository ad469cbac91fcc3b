// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package silence carries out AlertSilences: it makes silences in Alertmanager, resolves
// the incidents in PagerDuty that they hide, and opens them again. It also makes the
// hub's own AlertSilences. Package alerts/silences decides.
package silence

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/pagerduty"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Secrets of PagingPolicies are read with Roles that the owners of namespaces bind.
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=alertsilences,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=bellwether.dev,resources=alertsilences/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=fleetclusters;operatorinstalls;operatorrollouts,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",namespace=rules,resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",namespace=rules,resources=configmaps,resourceNames=bellwether-silences,verbs=get;patch
// +kubebuilder:rbac:groups="",namespace=rules,resources=secrets,resourceNames=bellwether-alertmanager,verbs=get

// Alertmanager is one that notifies of the fleet's alerts. alerts/alertmanager has a client.
type Alertmanager interface {
	Silences(ctx context.Context) ([]alertmanager.Silence, error)
	Alerts(ctx context.Context, matchers ...string) ([]alertmanager.Alert, error)
	Configuration(ctx context.Context) (string, error)
	SetSilence(ctx context.Context, s alertmanager.Silence) (string, error)
	EndSilence(ctx context.Context, id string) error
}

// PagerDuty takes events. alerts/pagerduty has a client.
type PagerDuty interface {
	Trigger(ctx context.Context, routingKey string, e pagerduty.Event) error
	Resolve(ctx context.Context, routingKey, dedupKey string) error
}

// Reconciler reconciles all AlertSilences at once: an incident is hidden by all of them
// together.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Alertmanager is nil where the hub knows none.
	Alertmanager Alertmanager
	// PagerDuty returns the client for the URL of an Events API.
	PagerDuty func(url string) (PagerDuty, error)
	Events    events.EventRecorder
	Options   Options
	Now       func() time.Time
}

// observation is what was seen.
type observation struct {
	silences.Input
	fleet silences.Fleet
	// written is the Secret with the configuration of Alertmanager.
	written map[string][]byte
	// problem says why Alertmanager could not be read.
	problem silences.Problem
}

// Reconcile looks at everything; the request says nothing.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	in, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe silences: %w", err)
	}
	// One that cannot be written, as in a namespace that is being deleted, holds up no other one.
	automatic := r.applyAutomatic(ctx, in)
	if in.problem.Reason != "" {
		err := r.report(ctx, in, func(s *v1alpha1.AlertSilence) v1alpha1.AlertSilenceStatus {
			return silences.Unreachable(in.Input, s, in.problem)
		})
		return kit.Result(r.Options.Recheck, errors.Join(automatic, err))
	}
	done, err := r.apply(ctx, in, silences.Next(in.Input))
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("carry out silences: %w", err)
	}
	err = errors.Join(automatic, r.report(ctx, in, func(s *v1alpha1.AlertSilence) v1alpha1.AlertSilenceStatus {
		return silences.Report(done.after, s, done.failed[client.ObjectKeyFromObject(s)])
	}))
	if done.changed {
		return kit.Result(soon, err)
	}
	return kit.Result(r.Options.Recheck, err)
}

// soon is when to look at what a change has led to.
const soon = 2 * time.Second

func (r *Reconciler) observe(ctx context.Context) (observation, error) {
	in := observation{Input: silences.Input{Now: r.Now(), Namespace: r.Options.Namespace, Max: r.Options.Max}}
	var all v1alpha1.AlertSilenceList
	var clusters v1alpha1.FleetClusterList
	for _, list := range []client.ObjectList{&all, &clusters} {
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return in, fmt.Errorf("list %T: %w", list, err)
		}
	}
	in.Silences, in.Clusters = all.Items, clusters.Items
	var err error
	if in.fleet, err = r.observeFleet(ctx, in); err != nil {
		return in, err
	}
	if r.Alertmanager == nil {
		in.problem = silences.Problem{Reason: v1alpha1.ReasonNoAlertmanager,
			Message: "the hub knows no Alertmanager: set its flag --alertmanager-url"}
		return in, nil
	}
	if err := r.readState(ctx, &in); err != nil {
		return in, err
	}
	if err := r.readAlertmanager(ctx, &in); err != nil {
		in.problem = silences.Problem{Reason: v1alpha1.ReasonAlertmanagerUnreachable, Message: err.Error()}
	}
	return in, ctx.Err()
}

// readState reads what the hub wrote.
func (r *Reconciler) readState(ctx context.Context, in *observation) error {
	var written corev1.Secret
	key := client.ObjectKey{Namespace: r.Options.Namespace, Name: paging.SecretName}
	if err := r.Live.Get(ctx, key, &written); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get Secret %s: %w", key, err)
	}
	in.written = written.Data
	var err error
	if in.Policies, err = paging.InForce(written.Data); err != nil {
		return err
	}
	in.Records, err = r.readRecords(ctx)
	return err
}

func (r *Reconciler) readAlertmanager(ctx context.Context, in *observation) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	text, err := r.Alertmanager.Configuration(ctx)
	if err != nil {
		return err
	}
	if in.Router, err = paging.NewRouter([]byte(text)); err != nil {
		return err
	}
	if in.Present, err = r.Alertmanager.Silences(ctx); err != nil {
		return err
	}
	// After the silences: an alert may be silenced by one that is not known yet, but not
	// the other way round.
	in.Alerts, err = r.Alertmanager.Alerts(ctx)
	return err
}

// limit is how long Alertmanager and PagerDuty may take to answer.
const limit = 15 * time.Second

// report patches the statuses that changed.
func (r *Reconciler) report(ctx context.Context, in observation,
	status func(*v1alpha1.AlertSilence) v1alpha1.AlertSilenceStatus) error {
	var errs []error
	for i := range in.Silences {
		before := &in.Silences[i]
		after := before.DeepCopy()
		after.Status = status(before)
		written, err := kit.PatchStatus(ctx, r.Client, before, after)
		errs = append(errs, err)
		if written {
			r.notify(before, after)
		}
	}
	return errors.Join(errs...)
}

// notify emits an event when the state of a silence changed, and when it begins or ends to
// exclude time from error budgets.
func (r *Reconciler) notify(before, after *v1alpha1.AlertSilence) {
	of := func(s *v1alpha1.AlertSilence, conditionType string) metav1.Condition {
		return conditions.Get(s.Status.Conditions, conditionType)
	}
	if is := of(after, v1alpha1.ConditionReady); is.Reason != of(before, v1alpha1.ConditionReady).Reason {
		kit.Emit(r.Events, after, is.Reason, "Silence", "%s", is.Message)
	}
	const budgets = v1alpha1.ConditionBudgetsExcluded
	if is := of(after, budgets); is.Reason != of(before, budgets).Reason {
		kit.Emit(r.Events, after, is.Reason, "ExcludeFromBudgets", "%s: %s",
			phrase.OneLine(after.Spec.Owner), is.Message)
	}
}

// everything is the one request that there is.
var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "silences"}}
