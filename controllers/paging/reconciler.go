// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package paging writes Alertmanager's configuration of all PagingPolicies of the
// hub, and says on each policy what became of it. Package plan decides; package
// alerts/paging makes the configuration. It sends nothing to anybody.
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
	"github.com/bellwether-dev/bellwether/controllers/paging/plan"
)

// The configuration may be written in one namespace only, with the rules. Secrets of
// policies are read with Roles that the owners of namespaces bind.
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=pagingpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=pagingpolicies/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=alertmanagerconfigs,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups="",namespace=rules,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=rules,resources=secrets,resourceNames=bellwether-alertmanager,verbs=get;patch

// Kinds knows what the hub's cluster serves.
type Kinds interface {
	// HasAlertmanagerConfigs tells whether it serves prometheus-operator's kind.
	HasAlertmanagerConfigs(ctx context.Context) (bool, error)
}

// Reconciler reconciles all PagingPolicies at once: their configuration is one.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache.
	Live    client.Reader
	Kinds   Kinds
	Events  events.EventRecorder
	Options Options
	// Rules make every alert there is.
	Rules *slo.Rules
	// Tester carries out the self-tests of policies.
	Tester *Tester
	// Now is the hub's clock.
	Now func() time.Time
}

// Reconcile looks at everything; the request says nothing.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	in, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe paging: %w", err)
	}
	next, refused, err := r.apply(ctx, in)
	if err != nil {
		// The statuses say what is written, so they stay as they were.
		return ctrl.Result{}, fmt.Errorf("write configuration of Alertmanager: %w", err)
	}
	r.Tester.Ask(next.Tests)
	recheck := r.Options.Recheck
	if len(in.Policies) == 0 {
		recheck = 0
	}
	return kit.Result(recheck, errors.Join(r.report(ctx, in, next), joined(refused)))
}

func (r *Reconciler) observe(ctx context.Context) (plan.Input, error) {
	in := plan.Input{Kind: plan.KindSecret, Namespace: r.Options.Namespace, Folder: r.Options.Folder,
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
		in.Kind = plan.KindObject
	}
	var written corev1.Secret
	key := client.ObjectKey{Namespace: r.Options.Namespace, Name: plan.SecretName}
	if err := r.Live.Get(ctx, key, &written); client.IgnoreNotFound(err) != nil {
		return in, fmt.Errorf("get Secret %s: %w", key, err)
	}
	in.Written = written.Data
	in.Secrets = r.secrets(ctx, in.Policies)
	return in, ctx.Err()
}

// secrets reads what policies refer to. A Secret that cannot be read is an observation.
func (r *Reconciler) secrets(ctx context.Context, policies []v1alpha1.PagingPolicy) map[plan.SecretRef]plan.Secret {
	out := map[plan.SecretRef]plan.Secret{}
	for i := range policies {
		p := alerts.PolicyOf(&policies[i])
		for _, use := range p.Secrets() {
			ref := plan.SecretRef{Namespace: p.Namespace, Name: use.Name, Key: use.Key}
			if _, known := out[ref]; !known {
				out[ref] = r.secret(ctx, ref)
			}
		}
	}
	return out
}

func (r *Reconciler) secret(ctx context.Context, ref plan.SecretRef) plan.Secret {
	reader := kit.PagingSecrets{Live: r.Live, ServiceAccount: r.Options.ServiceAccount}
	value, problem := reader.Read(ctx, ref.Namespace, v1alpha1.SecretKey{Name: ref.Name, Key: ref.Key})
	return plan.Secret{Value: value, Problem: problem}
}

// report patches the statuses that changed.
func (r *Reconciler) report(ctx context.Context, in plan.Input, next plan.Decision) error {
	var errs []error
	for i := range in.Policies {
		before := &in.Policies[i]
		after := before.DeepCopy()
		after.Status = next.Statuses[client.ObjectKeyFromObject(before)]
		written, err := kit.PatchStatus(ctx, r.Client, before, after)
		errs = append(errs, err)
		if written {
			r.notify(ctx, before, after)
		}
	}
	return errors.Join(errs...)
}

// notify emits an event where a policy became good or bad.
func (r *Reconciler) notify(ctx context.Context, before, after *v1alpha1.PagingPolicy) {
	was := conditions.Get(before.Status.Conditions, v1alpha1.ConditionReady)
	is := conditions.Get(after.Status.Conditions, v1alpha1.ConditionReady)
	if was.Status == is.Status && was.Reason == is.Reason {
		return
	}
	kit.Emit(r.Events, after, is.Reason, "Apply", "%s", is.Message)
	log.FromContext(ctx).Info("Paging policy changed", "namespace", after.Namespace, "policy", after.Name, "ready",
		is.Status, "reason", is.Reason)
}
