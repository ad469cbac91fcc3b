// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe runs EndpointProbes: an agent those of its cluster, the hub
// those in the clusters' namespaces. It passes them to the engine (package
// run), resolves their targets, and writes changed results into their status.
// It does not judge results: alerts follow from rules.
package probe

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/probe/plan"
	"github.com/bellwether-dev/bellwether/controllers/probe/run"
)

// Values of the label vantage.
const (
	VantageCluster = "cluster"
	VantageHub     = "hub"
)

// Reconciler passes EndpointProbes to the engine, and writes results into their
// status.
type Reconciler struct {
	// Client reads and writes EndpointProbes, and reads their targets.
	Client client.Client
	Engine *run.Engine
	// Cluster is the name of the FleetCluster. It is empty on the hub, where it
	// follows from the namespace.
	Cluster string
	// secrets reads the Secrets of probes.
	secrets *secretCache
	watch   *targetWatch
	now     func() time.Time
}

// Reconcile implements reconcile.ObjectReconciler.
func (r *Reconciler) Reconcile(ctx context.Context, probe *v1alpha1.EndpointProbe) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(probe)
	if !probe.DeletionTimestamp.IsZero() {
		r.Engine.Remove(key)
		return ctrl.Result{}, nil
	}
	selected, refused, err := r.setProbe(ctx, key, probe)
	if err != nil {
		return ctrl.Result{}, err
	}
	probe.Status = plan.Status(plan.Input{Probe: probe, Refused: refused, Selected: selected,
		Verdicts: r.Engine.Verdicts(key)})
	switch {
	case refused != nil:
		return kit.Result(plan.RetryRefused, nil)
	case selected != nil:
		return kit.Result(selected.RecheckAfter, nil)
	}
	return ctrl.Result{}, nil
}

// setProbe passes a probe to the engine, or returns why it is not run. It returns
// what the target's selector selects; nil if it has none.
func (r *Reconciler) setProbe(ctx context.Context, key types.NamespacedName, probe *v1alpha1.EndpointProbe) (
	*plan.Selected, *plan.Failure, error) {
	cluster, vantage := r.Cluster, VantageCluster
	if cluster == "" {
		vantage = VantageHub
		var err error
		if cluster, err = r.clusterOf(ctx, probe.Namespace); err != nil {
			return nil, nil, err
		}
		if refused := plan.CheckOnHub(probe, cluster); refused != nil {
			r.Engine.Remove(key)
			return nil, refused, nil
		}
	}
	selection, refused := plan.ReadSelection(probe.Spec.Target)
	if refused != nil {
		r.Engine.Remove(key)
		return nil, refused, nil
	}
	spec := *probe.Spec.DeepCopy()
	toRun := run.Probe{Cluster: cluster, Name: probe.ProbeName(), Vantage: vantage, Spec: spec, Targets: []string{""},
		Resolve: func(ctx context.Context, _ string) (plan.Target, *plan.Failure) {
			return r.resolve(ctx, key.Namespace, spec)
		}}
	if selection == nil {
		return nil, explainRefusal(r.Engine.Set(key, toRun)), nil
	}
	selected, err := r.selectTargets(ctx, key.Namespace, *selection)
	if err != nil {
		return nil, nil, err // what was selected before is run on
	}
	toRun.Targets = selected.Targets()
	toRun.Resolve = func(ctx context.Context, name string) (plan.Target, *plan.Failure) {
		if name == "" {
			return plan.Target{}, selected.TooFew
		}
		named := spec
		named.Target = plan.NameTarget(spec.Target, name)
		return r.resolve(ctx, key.Namespace, named)
	}
	return &selected, explainRefusal(r.Engine.Set(key, toRun)), nil
}

// resolve finds the target of a probe and its credentials, before each run.
func (r *Reconciler) resolve(ctx context.Context, namespace string, spec v1alpha1.EndpointProbeSpec) (plan.Target,
	*plan.Failure) {
	target, failure := plan.ResolveTarget(namespace, spec.Target, r.readTarget(ctx, namespace, spec.Target))
	secrets, configMaps := plan.SecretNames(spec), plan.ConfigMapNames(spec)
	fromWebhooks := spec.TLS != nil && spec.TLS.CAFromWebhooks
	if failure != nil || len(secrets)+len(configMaps) == 0 && !fromWebhooks {
		return target, failure
	}
	target.Credentials, failure = plan.ReadCredentials(spec, r.secrets.get(ctx, ofSecret, namespace, secrets),
		r.secrets.get(ctx, ofConfigMap, namespace, configMaps))
	if failure == nil && fromWebhooks {
		target.Credentials.CA, failure = r.caFromWebhooks(ctx, namespace, spec.Target.Service)
	}
	return target, failure
}

// explainRefusal returns the user's mistake that the engine found.
func explainRefusal(err error) *plan.Failure {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, run.ErrDuplicate):
		return &plan.Failure{Reason: v1alpha1.ReasonDuplicate, Message: err.Error() +
			"; give one of them another spec.name"}
	}
	return &plan.Failure{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
}

// clusterOf returns the FleetCluster that a namespace of the hub belongs to;
// empty if none.
func (r *Reconciler) clusterOf(ctx context.Context, namespace string) (string, error) {
	var ns corev1.Namespace
	if err := r.Client.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	cluster := ns.Labels[v1alpha1.LabelCluster]
	if v1alpha1.ClusterNamespace(cluster) != namespace {
		return "", nil
	}
	return cluster, nil
}

// removalReconciler removes deleted EndpointProbes from the engine. The
// reconciler behind it is not called for deleted objects.
type removalReconciler struct {
	client client.Reader
	engine *run.Engine
	next   interface {
		Reconcile(context.Context, ctrl.Request) (ctrl.Result, error)
	}
}

func (f removalReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var probe v1alpha1.EndpointProbe
	if err := f.client.Get(ctx, request.NamespacedName, &probe); apierrors.IsNotFound(err) {
		f.engine.Remove(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	return f.next.Reconcile(ctx, request)
}
