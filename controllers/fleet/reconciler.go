// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet keeps each FleetCluster's namespace and least-privilege access
// on the hub, tells whether its agent is alive, and takes it out of the fleet
// when it is deleted. It never connects to a cluster.
package fleet

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/fleet/plan"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts/freeze"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
	"github.com/bellwether-dev/bellwether/rollouts/veto"
)

// The hub grants agents their Roles, so it must itself hold every permission in
// AgentRules: that is why it may write the status of operatorinstalls and request
// tokens of agents, which it never does. The admission policy bellwether-hub refuses
// it to use such rights anywhere but in the namespaces of clusters. Watches by name are
// authorised by resourceNames because the cache asks with a field selector (see
// CacheByObject).
//
// +kubebuilder:rbac:groups=bellwether.dev,resources=fleetclusters,verbs=get;list;watch;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=fleetclusters/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorinstalls,verbs=get;list;watch;patch;update;delete
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorinstalls/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorbackups,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorbackups/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorscans,verbs=create
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorscans,resourceNames=bellwether-agent,verbs=get;list;watch
// +kubebuilder:rbac:groups=bellwether.dev,resources=operatorscans/status,resourceNames=bellwether-agent,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",namespace=rules,resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=create
// +kubebuilder:rbac:groups="",resources=serviceaccounts,resourceNames=bellwether-agent,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,resourceNames=bellwether-agent,verbs=create
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=kube-root-ca.crt,verbs=get
// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=create
// +kubebuilder:rbac:groups="",resources=resourcequotas,resourceNames=bellwether-agent,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,resourceNames=bellwether-agent,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=bellwether-agent,verbs=get;list;watch;patch;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles FleetClusters.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache, where a stale answer would do harm.
	Live client.Reader
	// Events reports what was left behind, and agents of other versions.
	Events events.EventRecorder
	// Namespace is the hub's own, where it records what was left behind.
	Namespace string
	// Version of the hub.
	Version string
	// Grace is added to what a Lease says of its own duration.
	Grace time.Duration
	// Now is the hub's clock.
	Now func() time.Time

	alive liveness
	gone  absences
}

// Reconcile keeps one FleetCluster.
func (r *Reconciler) Reconcile(ctx context.Context, cluster *v1alpha1.FleetCluster) (ctrl.Result, error) {
	seen, err := r.observe(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe cluster: %w", err)
	}
	next := plan.Next(seen.input)
	applyErr := r.apply(ctx, cluster, seen, next)
	r.report(ctx, cluster, next)
	return kit.Result(next.RecheckAfter, applyErr)
}

type observation struct {
	input  plan.Input
	access access
}

func (r *Reconciler) observe(ctx context.Context, cluster *v1alpha1.FleetCluster) (observation, error) {
	namespace := v1alpha1.ClusterNamespace(cluster.Name)
	state, remaining, err := r.observeNamespace(ctx, cluster.Name)
	if err != nil {
		return observation{}, err
	}
	seen, err := r.observeAccess(ctx, namespace)
	if err != nil {
		return observation{}, err
	}
	operators, err := r.observeOperators(ctx, cluster, namespace)
	if err != nil {
		return observation{}, err
	}
	lease, err := r.observeLease(ctx, cluster)
	if err != nil {
		return observation{}, err
	}
	var freezes v1alpha1.FleetFreezeList
	if err := r.Client.List(ctx, &freezes); err != nil {
		return observation{}, fmt.Errorf("list FleetFreezes: %w", err)
	}
	return observation{access: seen, input: plan.Input{
		Now: r.Now(), Cluster: cluster, Namespace: state, Remaining: remaining, AccessInSync: seen.inSync(cluster.Name),
		Account: seen.uid(), AccountGoneAt: r.accountGoneAt(cluster, state, seen), Lease: lease,
		Operators: operators, HubVersion: r.Version, Freeze: freeze.Of(freezes.Items, cluster.Name),
	}}, nil
}

// observeNamespace returns also what keeps the namespace, if it is being deleted.
func (r *Reconciler) observeNamespace(ctx context.Context, cluster string) (plan.NamespaceState, string, error) {
	var namespace metav1.PartialObjectMetadata
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterNamespace(cluster)}, &namespace)
	switch {
	case apierrors.IsNotFound(err):
		return plan.NamespaceAbsent, "", nil
	case err != nil:
		return 0, "", fmt.Errorf("read namespace: %w", err)
	case namespace.Labels[v1alpha1.LabelCluster] != cluster:
		return plan.NamespaceForeign, "", nil
	case namespace.DeletionTimestamp != nil:
		remaining, err := r.observeRemaining(ctx, namespace.Name)
		return plan.NamespaceTerminating, remaining, err
	default:
		return plan.NamespaceOurs, "", nil
	}
}

// observeRemaining returns what the API server says keeps a namespace that is being
// deleted. The cache has its metadata only.
func (r *Reconciler) observeRemaining(ctx context.Context, name string) (string, error) {
	var namespace corev1.Namespace
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &namespace); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read what keeps the namespace: %w", err)
	}
	for _, c := range namespace.Status.Conditions {
		if c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue {
			return c.Message, nil
		}
	}
	return "", nil
}

// observeOperators reads past the cache for a cluster that leaves: what is left
// behind is recorded once, and has to be complete.
func (r *Reconciler) observeOperators(ctx context.Context, cluster *v1alpha1.FleetCluster, namespace string) (
	[]plan.Operator, error) {
	from := client.Reader(r.Client)
	if cluster.DeletionTimestamp != nil {
		from = r.Live
	}
	var installs v1alpha1.OperatorInstallList
	if err := from.List(ctx, &installs, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list OperatorInstalls: %w", err)
	}
	operators := make([]plan.Operator, 0, len(installs.Items))
	for i := range installs.Items {
		operators = append(operators, observeOperator(&installs.Items[i]))
	}
	return operators, nil
}

func observeOperator(install *v1alpha1.OperatorInstall) plan.Operator {
	o := plan.Operator{
		Install: removal.Observe(install), Ready: conditions.IsTrue(install.Status.Conditions, v1alpha1.ConditionReady),
	}
	for _, finalizer := range install.Finalizers {
		if finalizer != v1alpha1.FinalizerAgent {
			o.Finalizers = append(o.Finalizers, finalizer)
		}
	}
	if install.Status.Installed != nil {
		o.Bundle = install.Status.Installed.Bundle
	}
	if install.Spec.Admission != nil {
		o.Package, o.Target = install.Spec.Admission.Release.Package, install.Spec.Admission.Release.TargetNamespace()
	}
	return o
}

// observeLease reads past the cache before it lets a cluster go offline, and
// gives agents a whole period again if that fails: a hub that was blind must not
// take the fleet for dead.
func (r *Reconciler) observeLease(ctx context.Context, cluster *v1alpha1.FleetCluster) (plan.Lease, error) {
	wasOnline := conditions.IsTrue(cluster.Status.Conditions, v1alpha1.ConditionOnline)
	seen, err := r.readLease(ctx, r.Client, cluster.Name, wasOnline)
	if err != nil || !wasOnline || seen.IsOnline(r.Now()) {
		return seen, err
	}
	live, err := r.readLease(ctx, r.Live, cluster.Name, wasOnline)
	r.alive.looked(cluster.Name, r.Now(), err != nil)
	if live.Found {
		live.ValidFrom = r.alive.validFrom(cluster.Name)
	}
	return live, err
}

func (r *Reconciler) readLease(ctx context.Context, from client.Reader, cluster string, wasOnline bool) (plan.Lease,
	error) {
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster), Name: v1alpha1.LeaseName}
	switch err := from.Get(ctx, key, &lease); {
	case apierrors.IsNotFound(err):
		r.alive.forget(cluster)
		return plan.Lease{}, nil
	case err != nil:
		return plan.Lease{}, fmt.Errorf("read Lease: %w", err)
	}
	olm, olmChecked := lease.Annotations[v1alpha1.AnnotationOLMVersion]
	seen, validFrom := r.alive.observe(cluster, &lease, r.Now(), wasOnline)
	return plan.Lease{
		Found: true, SeenAt: seen, ValidFrom: validFrom,
		Duration: leaseDuration(&lease) + r.Grace,
		Versions: v1alpha1.ClusterVersions{
			Agent:      lease.Annotations[v1alpha1.AnnotationAgentVersion],
			Kubernetes: lease.Annotations[v1alpha1.AnnotationKubernetesVersion],
			OLM:        olm,
		},
		Account:    types.UID(lease.Annotations[v1alpha1.AnnotationAgentAccount]),
		OLMChecked: olmChecked,
		APIServer:  observeAPIServer(&lease),
		Veto:       veto.Decode(lease.Annotations[v1alpha1.AnnotationVeto]),
	}, nil
}

func observeAPIServer(lease *coordinationv1.Lease) plan.APIServer {
	since, checked := lease.Annotations[v1alpha1.AnnotationAPIServerUnreachableSince]
	return plan.APIServer{Checked: checked, UnreachableSince: since,
		Error: lease.Annotations[v1alpha1.AnnotationAPIServerError]}
}

// The agent names its Lease's duration; the bounds keep a strange one from
// flooding the hub or from never expiring.
const (
	defaultLease = 90 * time.Second
	minLease     = 2 * time.Second
	maxLease     = 10 * time.Minute
)

func leaseDuration(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return defaultLease
	}
	return min(max(time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second, minLease), maxLease)
}

func (r *Reconciler) apply(ctx context.Context, cluster *v1alpha1.FleetCluster, seen observation,
	next plan.Decision) error {
	for _, action := range next.Actions {
		if err := r.act(ctx, cluster, seen, action); err != nil {
			return fmt.Errorf("carry out %s: %w", action, err)
		}
	}
	if next.LeftBehind != nil {
		if err := r.record(ctx, cluster, next.LeftBehind); err != nil {
			return err
		}
	}
	return kit.Remove(ctx, r.Client, next.Removals)
}

func (r *Reconciler) act(ctx context.Context, cluster *v1alpha1.FleetCluster, seen observation,
	action plan.Action) error {
	switch action {
	case plan.AddFinalizer:
		return kit.AddFinalizer(ctx, r.Client, cluster, v1alpha1.FinalizerHub)
	case plan.RemoveFinalizer:
		r.alive.forget(cluster.Name)
		r.gone.release(cluster.Name, r.Now())
		return kit.RemoveFinalizer(ctx, r.Client, cluster, v1alpha1.FinalizerHub)
	case plan.CreateNamespace:
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: v1alpha1.ClusterNamespace(cluster.Name), Labels: labelsOf(cluster.Name),
		}}
		return r.Client.Create(ctx, namespace, kit.FleetManager)
	case plan.ApplyAccess:
		return r.applyAccess(ctx, cluster.Name, seen.access)
	case plan.CreateAccount:
		return r.createAccount(ctx, cluster.Name)
	case plan.DeleteNamespace:
		return r.deleteNamespace(ctx, cluster.Name)
	}
	return nil
}

// deleteNamespace looks past the cache first: an OperatorInstall that was made a
// moment ago would be taken down with the namespace, together with the access of
// the agent that has to remove it.
func (r *Reconciler) deleteNamespace(ctx context.Context, cluster string) error {
	name := v1alpha1.ClusterNamespace(cluster)
	var left v1alpha1.OperatorInstallList
	if err := r.Live.List(ctx, &left, client.InNamespace(name), client.Limit(1)); err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	if len(left.Items) > 0 {
		return nil // the watch brings the cluster back here
	}
	var namespace corev1.Namespace
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.Labels[v1alpha1.LabelCluster] != cluster {
		return nil
	}
	only := client.Preconditions{UID: &namespace.UID, ResourceVersion: &namespace.ResourceVersion}
	return client.IgnoreNotFound(r.Client.Delete(ctx, &namespace, only))
}

func (r *Reconciler) report(ctx context.Context, cluster *v1alpha1.FleetCluster, next plan.Decision) {
	was := conditions.Get(cluster.Status.Conditions, v1alpha1.ConditionReady)
	is := conditions.Get(next.Status.Conditions, v1alpha1.ConditionReady)
	if was.Reason != is.Reason {
		log.FromContext(ctx).Info("Cluster changed state", "from", was.Reason, "to", is.Reason, "message", is.Message)
	}
	old := conditions.Get(cluster.Status.Conditions, v1alpha1.ConditionVersionSupported)
	skew := conditions.Get(next.Status.Conditions, v1alpha1.ConditionVersionSupported)
	if skew.Status == metav1.ConditionFalse && skew.Message != old.Message {
		kit.Emit(r.Events, cluster, skew.Reason, "Reconcile", "%s", skew.Message)
	}
	cluster.Status = next.Status
}
