// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe runs EndpointProbes. An agent runs the probes of its cluster, and the hub runs
// the probes in the clusters' namespaces. The package passes probes to the engine (package
// run), resolves their targets, and writes changed results into their status. It does not
// judge results: alert rules do.
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

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/probe/run"
)

// Values of the label vantage.
const (
	VantageCluster = "cluster"
	VantageHub     = "hub"
)

// Reconciler passes EndpointProbes to the engine, and writes the results into their status.
type Reconciler struct {
	// Client reads and writes EndpointProbes, and reads their targets.
	Client client.Client
	Engine *run.Engine
	// Cluster is the name of the FleetCluster. It is empty on the hub, where the namespace of a
	// probe determines the cluster.
	Cluster string
	// secrets reads the Secrets of probes.
	secrets *secretCache
	watch   *targetWatch
	now     func() time.Time
}

// Reconcile implements reconcile.ObjectReconciler. It passes one probe to the engine and updates
// the probe's status in memory. It removes a probe that is being deleted from the engine, and
// tries a refused probe again after probes.RetryRefused.
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
	probe.Status = probes.Status(probes.Input{Probe: probe, Refused: refused, Selected: selected,
		Verdicts: r.Engine.Verdicts(key)})
	switch {
	case refused != nil:
		return kit.NewResult(probes.RetryRefused, nil)
	case selected != nil:
		return kit.NewResult(selected.RecheckAfter, nil)
	}
	return ctrl.Result{}, nil
}

// setProbe passes a probe to the engine, or returns why the probe is not run. It also returns
// the targets that the target's selector matches; nil if the probe has no selector or is
// refused before its targets are selected.
func (r *Reconciler) setProbe(ctx context.Context, key types.NamespacedName, probe *v1alpha1.EndpointProbe) (
	*probes.Selected, *probes.Failure, error) {
	cluster, vantage := r.Cluster, VantageCluster
	if cluster == "" {
		vantage = VantageHub
		var err error
		if cluster, err = r.findCluster(ctx, probe.Namespace); err != nil {
			return nil, nil, err
		}
		if refused := probes.CheckOnHub(probe, cluster); refused != nil {
			r.Engine.Remove(key)
			return nil, refused, nil
		}
	}
	selection, refused := probes.ReadSelection(probe.Spec.Target)
	if refused != nil {
		r.Engine.Remove(key)
		return nil, refused, nil
	}
	spec := *probe.Spec.DeepCopy()
	toRun := run.Probe{Cluster: cluster, Name: probe.ProbeName(), Vantage: vantage, Spec: spec, Targets: []string{""},
		Resolve: func(ctx context.Context, _ string) (probes.Target, *probes.Failure) {
			return r.resolve(ctx, key.Namespace, spec)
		}}
	if selection == nil {
		return nil, explainRefusal(r.Engine.Set(key, toRun)), nil
	}
	selected, err := r.selectTargets(ctx, key.Namespace, *selection)
	if err != nil {
		return nil, nil, err // the engine continues with the previous targets
	}
	toRun.Targets = selected.Targets()
	toRun.Resolve = func(ctx context.Context, name string) (probes.Target, *probes.Failure) {
		if name == "" { // the endpoint that fails if too few objects match
			return probes.Target{}, selected.TooFew
		}
		namedSpec := spec
		namedSpec.Target = probes.NameTarget(spec.Target, name)
		return r.resolve(ctx, key.Namespace, namedSpec)
	}
	return &selected, explainRefusal(r.Engine.Set(key, toRun)), nil
}

// resolve returns the target of a probe with its credentials. It is called before each run.
func (r *Reconciler) resolve(ctx context.Context, namespace string, spec v1alpha1.EndpointProbeSpec) (probes.Target,
	*probes.Failure) {
	target, failure := probes.ResolveTarget(namespace, spec.Target, r.readTarget(ctx, namespace, spec.Target))
	secrets, configMaps := probes.SecretNames(spec), probes.ConfigMapNames(spec)
	fromWebhooks := spec.TLS != nil && spec.TLS.CAFromWebhooks
	needsCredentials := len(secrets)+len(configMaps) > 0 || fromWebhooks
	if failure != nil || !needsCredentials {
		return target, failure
	}
	target.Credentials, failure = probes.ReadCredentials(spec,
		r.secrets.readObjects(ctx, kindSecret, namespace, secrets),
		r.secrets.readObjects(ctx, kindConfigMap, namespace, configMaps))
	if failure == nil && fromWebhooks {
		target.Credentials.CA, failure = r.readWebhookCA(ctx, namespace, spec.Target.Service)
	}
	return target, failure
}

// explainRefusal converts an error of Engine.Set, which is a mistake in the spec, to a
// failure; nil for no error.
func explainRefusal(err error) *probes.Failure {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, run.ErrDuplicate):
		return &probes.Failure{Reason: v1alpha1.ReasonDuplicate, Message: err.Error() +
			"; give one of them another spec.name"}
	}
	return &probes.Failure{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
}

// findCluster returns the FleetCluster that a namespace of the hub belongs to;
// empty if it belongs to none.
func (r *Reconciler) findCluster(ctx context.Context, namespace string) (string, error) {
	var ns corev1.Namespace
	if err := r.Client.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	cluster := ns.Labels[v1alpha1.LabelCluster]
	if v1alpha1.ClusterNamespace(cluster) != namespace { // the label is not sufficient
		return "", nil
	}
	return cluster, nil
}

// removalReconciler removes deleted EndpointProbes from the engine. It calls next for all other
// objects, because next is not called for deleted objects.
type removalReconciler struct {
	client client.Reader
	engine *run.Engine
	next   interface {
		Reconcile(context.Context, ctrl.Request) (ctrl.Result, error)
	}
}

func (r removalReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var probe v1alpha1.EndpointProbe
	if err := r.client.Get(ctx, request.NamespacedName, &probe); apierrors.IsNotFound(err) {
		r.engine.Remove(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	return r.next.Reconcile(ctx, request)
}
