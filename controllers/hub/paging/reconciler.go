// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package paging writes the configuration of Alertmanager for all PagingPolicies of the
// hub, and reports the result in the status of each policy. Package alerts/paging decides
// and builds the configuration. This package sends no notifications, except for the
// self-tests that policies request.
package paging

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	alerts "github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// The hub can write the configuration in one namespace only: the namespace of the rules. Roles
// that the owners of namespaces bind allow the hub to read the Secrets of policies.
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=pagingpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=pagingpolicies/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=alertmanagerconfigs,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups="",namespace=rules,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=rules,resources=secrets,resourceNames=bellwether-alertmanager,verbs=get;patch

// Kinds reports which kinds the API server of the hub's cluster serves.
type Kinds interface {
	// HasAlertmanagerConfigs reports whether prometheus-operator's kind
	// AlertmanagerConfig is served.
	HasAlertmanagerConfigs(ctx context.Context) (bool, error)
}

// Reconciler reconciles all PagingPolicies together, because they share one configuration.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server, without the cache.
	Live    client.Reader
	Kinds   Kinds
	Events  events.EventRecorder
	Options Options
	// Rules produce all alerts of Bellwether.
	Rules *slo.Rules
	// Tester carries out the self-tests of policies.
	Tester *Tester
	// Now is the hub's clock.
	Now func() time.Time
}

// Reconcile handles all policies. The request has no information.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	in, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe paging: %w", err)
	}
	next, refused, err := r.apply(ctx, in)
	if err != nil {
		// The statuses describe what is written, so they stay unchanged.
		return ctrl.Result{}, fmt.Errorf("write configuration of Alertmanager: %w", err)
	}
	r.Tester.RequestTests(next.Tests)
	recheck := r.Options.Recheck
	if len(in.Policies) == 0 { // no Secret must be read again
		recheck = 0
	}
	return kit.NewResult(recheck, errors.Join(r.patchStatuses(ctx, in, next), joinErrors(refused)))
}

// observe gathers the input of alerts.Next: policies, operators, objectives, the written Secret
// and the Secrets that policies refer to.
func (r *Reconciler) observe(ctx context.Context) (alerts.Input, error) {
	in := alerts.Input{Kind: alerts.KindSecret, Namespace: r.Options.Namespace, Folder: r.Options.Folder,
		PagerDuty: r.Options.PagerDuty, Rules: r.Rules, Tests: r.Tester.Results(), Now: r.Now()}
	var policies v1alpha1.PagingPolicyList
	var operators v1alpha1.ManagedOperatorList
	var slos v1alpha1.OperatorSLOList
	for _, list := range []client.ObjectList{&policies, &operators, &slos} {
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return in, fmt.Errorf("list %T: %w", list, err)
		}
	}
	in.Policies, in.Operators, in.SLOs = policies.Items, operators.Items, slos.Items
	served, err := r.Kinds.HasAlertmanagerConfigs(ctx)
	if err != nil {
		return in, fmt.Errorf("discover the kind AlertmanagerConfig: %w", err)
	}
	if served {
		in.Kind = alerts.KindObject
	}
	var written corev1.Secret
	key := client.ObjectKey{Namespace: r.Options.Namespace, Name: alerts.SecretName}
	if err := r.Live.Get(ctx, key, &written); client.IgnoreNotFound(err) != nil {
		return in, fmt.Errorf("get Secret %s: %w", key, err)
	}
	in.Written = written.Data
	in.Secrets = r.readSecrets(ctx, in.Policies)
	return in, ctx.Err()
}

// readSecrets reads the Secrets that the policies refer to. If a Secret cannot be read, the
// result has a problem for it and no value.
func (r *Reconciler) readSecrets(ctx context.Context,
	policies []v1alpha1.PagingPolicy) map[alerts.SecretRef]alerts.Secret {
	out := map[alerts.SecretRef]alerts.Secret{}
	for i := range policies {
		p := alerts.ToPolicy(&policies[i])
		for _, use := range p.Secrets() {
			ref := alerts.SecretRef{Namespace: p.Namespace, Name: use.Name, Key: use.Key}
			if _, known := out[ref]; !known {
				out[ref] = r.readSecret(ctx, ref)
			}
		}
	}
	return out
}

// readSecret reads one key of a Secret; see readSecrets.
func (r *Reconciler) readSecret(ctx context.Context, ref alerts.SecretRef) alerts.Secret {
	reader := kit.PagingSecrets{Live: r.Live, ServiceAccount: r.Options.ServiceAccount}
	value, problem := reader.Read(ctx, ref.Namespace, v1alpha1.SecretKey{Name: ref.Name, Key: ref.Key})
	return alerts.Secret{Value: value, Problem: problem}
}

// patchStatuses patches the statuses that changed, and emits Events about them.
func (r *Reconciler) patchStatuses(ctx context.Context, in alerts.Input, next alerts.Decision) error {
	var errs []error
	for i := range in.Policies {
		before := &in.Policies[i]
		after := before.DeepCopy()
		after.Status = next.Statuses[client.ObjectKeyFromObject(before)]
		written, err := kit.PatchStatus(ctx, r.Client, before, after)
		errs = append(errs, err)
		if written {
			r.emitReadyEvent(ctx, before, after)
		}
	}
	return errors.Join(errs...)
}

// emitReadyEvent emits an Event if the status or the reason of the condition Ready changed.
func (r *Reconciler) emitReadyEvent(ctx context.Context, before, after *v1alpha1.PagingPolicy) {
	oldReady := conditions.Get(before.Status.Conditions, v1alpha1.ConditionReady)
	newReady := conditions.Get(after.Status.Conditions, v1alpha1.ConditionReady)
	if oldReady.Status == newReady.Status && oldReady.Reason == newReady.Reason {
		return
	}
	kit.Emit(r.Events, after, newReady.Reason, "Apply", "%s", newReady.Message)
	log.FromContext(ctx).Info("Paging policy changed", "namespace", after.Namespace, "policy", after.Name, "ready",
		newReady.Status, "reason", newReady.Reason)
}
