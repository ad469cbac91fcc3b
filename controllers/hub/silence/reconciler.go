// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package silence executes AlertSilences: it creates silences in Alertmanager, resolves the
// incidents in PagerDuty that the silences hide, and opens the incidents again. It also creates
// the hub's own AlertSilences. Package alerts/silences decides.
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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Roles that the owners of namespaces bind allow the hub to read the Secrets of PagingPolicies.
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=alertsilences,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=bellwether.dev,resources=alertsilences/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=fleetclusters;operatorinstalls;operatorrollouts,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",namespace=rules,resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",namespace=rules,resources=configmaps,resourceNames=bellwether-silences,verbs=get;patch
// +kubebuilder:rbac:groups="",namespace=rules,resources=secrets,resourceNames=bellwether-alertmanager,verbs=get

// Alertmanager is a server that notifies about the fleet's alerts. Package
// alerts/alertmanager has a client.
type Alertmanager interface {
	Silences(ctx context.Context) ([]alertmanager.Silence, error)
	Alerts(ctx context.Context, matchers ...string) ([]alertmanager.Alert, error)
	Configuration(ctx context.Context) (string, error)
	SetSilence(ctx context.Context, s alertmanager.Silence) (string, error)
	EndSilence(ctx context.Context, id string) error
}

// PagerDuty receives events. Package alerts/pagerduty has a client.
type PagerDuty interface {
	Trigger(ctx context.Context, routingKey string, e pagerduty.Event) error
	Resolve(ctx context.Context, routingKey, dedupKey string) error
}

// Reconciler reconciles all AlertSilences together, because several silences
// can hide the same incident.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server, without the cache.
	Live client.Reader
	// Alertmanager is nil if no Alertmanager is configured.
	Alertmanager Alertmanager
	// PagerDuty returns the client for the URL of an Events API.
	PagerDuty func(url string) (PagerDuty, error)
	Events    events.EventRecorder
	Options   Options
	Now       func() time.Time
}

// observation is the input of a pass.
type observation struct {
	silences.Input
	fleet silences.Fleet
	// written is the data of the Secret with the configuration of Alertmanager.
	written map[string][]byte
	// problem is why Alertmanager could not be read; its Reason is empty if there is no problem.
	problem silences.Problem
}

// Reconcile handles all AlertSilences. The request has no information.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	in, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe silences: %w", err)
	}
	// An automatic silence that cannot be written, for example in a namespace that is being
	// deleted, does not block other silences.
	automatic := r.applyAutomatic(ctx, in)
	if in.problem.Reason != "" {
		err := r.patchStatuses(ctx, in, func(s *v1alpha1.AlertSilence) v1alpha1.AlertSilenceStatus {
			return silences.Unreachable(in.Input, s, in.problem)
		})
		return kit.NewResult(r.Options.Recheck, errors.Join(automatic, err))
	}
	done, err := r.apply(ctx, in, silences.Next(in.Input))
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("carry out silences: %w", err)
	}
	err = errors.Join(automatic, r.patchStatuses(ctx, in, func(s *v1alpha1.AlertSilence) v1alpha1.AlertSilenceStatus {
		return silences.Report(done.after, s, done.failed[client.ObjectKeyFromObject(s)])
	}))
	if done.changed {
		return kit.NewResult(recheckAfterChange, err)
	}
	return kit.NewResult(r.Options.Recheck, err)
}

// recheckAfterChange is the delay before the effects of a change are observed.
const recheckAfterChange = 2 * time.Second

// observe gathers the input of a pass. Trouble with Alertmanager is recorded as a
// problem and is not an error.
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

// readState reads what the hub has written: the policies in force and the records of incidents.
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

// readAlertmanager reads the configuration, the silences and the alerts of Alertmanager.
func (r *Reconciler) readAlertmanager(ctx context.Context, in *observation) error {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("no answer within %s", requestTimeout))
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
	// The alerts are read after the silences. An alert can then have a silence that was not
	// read, but each silence that was read has taken effect in the alerts.
	in.Alerts, err = r.Alertmanager.Alerts(ctx)
	return err
}

// requestTimeout limits the requests to Alertmanager and to PagerDuty.
const requestTimeout = 15 * time.Second

// patchStatuses patches the statuses that changed, and emits Events about them. status returns
// the new status of a silence.
func (r *Reconciler) patchStatuses(ctx context.Context, in observation,
	status func(*v1alpha1.AlertSilence) v1alpha1.AlertSilenceStatus) error {
	var errs []error
	for i := range in.Silences {
		before := &in.Silences[i]
		after := before.DeepCopy()
		after.Status = status(before)
		written, err := kit.PatchStatus(ctx, r.Client, before, after)
		errs = append(errs, err)
		if written {
			r.emitEvents(before, after)
		}
	}
	return errors.Join(errs...)
}

// emitEvents emits an Event if the state of a silence changed, and if the silence started or
// stopped to exclude time from error budgets.
func (r *Reconciler) emitEvents(before, after *v1alpha1.AlertSilence) {
	getCondition := func(s *v1alpha1.AlertSilence, conditionType string) metav1.Condition {
		return conditions.Get(s.Status.Conditions, conditionType)
	}
	newReady := getCondition(after, v1alpha1.ConditionReady)
	if newReady.Reason != getCondition(before, v1alpha1.ConditionReady).Reason {
		kit.Emit(r.Events, after, newReady.Reason, "Silence", "%s", newReady.Message)
	}
	const budgets = v1alpha1.ConditionBudgetsExcluded
	if newBudgets := getCondition(after, budgets); newBudgets.Reason != getCondition(before, budgets).Reason {
		kit.Emit(r.Events, after, newBudgets.Reason, "ExcludeFromBudgets", "%s: %s",
			phrase.OneLine(after.Spec.Owner), newBudgets.Message)
	}
}

// singleRequest is the only request that the controller uses: one pass handles all silences.
var singleRequest = reconcile.Request{NamespacedName: types.NamespacedName{Name: "silences"}}
