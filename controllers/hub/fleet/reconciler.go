// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet creates the namespace and the least-privilege access of each FleetCluster on the
// hub, determines whether its agent is alive, and removes the cluster from the fleet when it is
// deleted. It never connects to a cluster.
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
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/fleet"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// The hub grants agents their Roles, so it must itself have every permission in AgentRules. For
// that reason only, it may write the status of operatorinstalls and request tokens of agents.
// The admission policy bellwether-hub refuses the use of these permissions outside the
// namespaces of clusters. Watches by name are authorized by resourceNames, because the cache
// sends a field selector (see CacheByObject).
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
	// Live reads from the API server, without the cache. It is used where
	// stale data would be harmful.
	Live client.Reader
	// Events reports operators that were left behind, and agents of other versions.
	Events events.EventRecorder
	// Namespace is the hub's namespace, where it records operators that were left behind.
	Namespace string
	// Version is the version of the hub.
	Version string
	// Grace is added to the duration in a Lease.
	Grace time.Duration
	// Now is the hub's clock.
	Now func() time.Time

	liveness liveness
	absences absences
}

// Reconcile observes one FleetCluster, applies the decision of fleet.Next and
// updates the status in memory.
func (r *Reconciler) Reconcile(ctx context.Context, cluster *v1alpha1.FleetCluster) (ctrl.Result, error) {
	observed, err := r.observe(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe cluster: %w", err)
	}
	next := fleet.Next(observed.input)
	applyErr := r.apply(ctx, cluster, observed, next)
	r.updateStatus(ctx, cluster, next)
	return kit.NewResult(next.RecheckAfter, applyErr)
}

// observation is the input of a decision, and the observed access for applying it.
type observation struct {
	input  fleet.Input
	access access
}

// observe gathers the input of fleet.Next, and the agent's access as it is on the hub.
func (r *Reconciler) observe(ctx context.Context, cluster *v1alpha1.FleetCluster) (observation, error) {
	namespace := v1alpha1.ClusterNamespace(cluster.Name)
	state, remaining, err := r.observeNamespace(ctx, cluster.Name)
	if err != nil {
		return observation{}, err
	}
	agentAccess, err := r.observeAccess(ctx, namespace)
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
	return observation{access: agentAccess, input: fleet.Input{
		Now: r.Now(), Cluster: cluster, Namespace: state, Remaining: remaining,
		AccessInSync: agentAccess.isInSync(cluster.Name), Account: agentAccess.accountUID(),
		AccountGoneAt: r.observeMissingAccount(cluster, state, agentAccess), Lease: lease,
		Operators: operators, HubVersion: r.Version, Freeze: holds.FreezeOf(freezes.Items, cluster.Name),
	}}, nil
}

// observeNamespace returns the state of a cluster's namespace. If the namespace is being
// deleted, it also returns what blocks the deletion.
func (r *Reconciler) observeNamespace(ctx context.Context, cluster string) (fleet.NamespaceState, string, error) {
	var namespace metav1.PartialObjectMetadata
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterNamespace(cluster)}, &namespace)
	switch {
	case apierrors.IsNotFound(err):
		return fleet.NamespaceAbsent, "", nil
	case err != nil:
		return 0, "", fmt.Errorf("read namespace: %w", err)
	case namespace.Labels[v1alpha1.LabelCluster] != cluster:
		return fleet.NamespaceForeign, "", nil
	case namespace.DeletionTimestamp != nil:
		remaining, err := r.observeRemaining(ctx, namespace.Name)
		return fleet.NamespaceTerminating, remaining, err
	default:
		return fleet.NamespaceOurs, "", nil
	}
}

// observeRemaining returns the API server's message about what blocks the deletion of a
// namespace; empty if there is none. The cache has only the metadata of namespaces.
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

// observeOperators returns the operators on a cluster. For a cluster that is being deleted,
// it does not use the cache, because the record of operators that are left behind is written
// once and must be complete.
func (r *Reconciler) observeOperators(ctx context.Context, cluster *v1alpha1.FleetCluster, namespace string) (
	[]fleet.Operator, error) {
	reader := client.Reader(r.Client)
	if cluster.DeletionTimestamp != nil {
		reader = r.Live
	}
	var installs v1alpha1.OperatorInstallList
	if err := reader.List(ctx, &installs, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list OperatorInstalls: %w", err)
	}
	operators := make([]fleet.Operator, 0, len(installs.Items))
	for i := range installs.Items {
		operators = append(operators, observeOperator(&installs.Items[i]))
	}
	return operators, nil
}

// observeOperator returns the part of an OperatorInstall that fleet.Next uses.
func observeOperator(install *v1alpha1.OperatorInstall) fleet.Operator {
	o := fleet.Operator{
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

// observeLease returns the agent's Lease. Before a cluster becomes offline, it reads the Lease
// without the cache. If that read fails, the agent gets a whole new period, because a hub
// without access to Leases must not treat the fleet as offline.
func (r *Reconciler) observeLease(ctx context.Context, cluster *v1alpha1.FleetCluster) (fleet.Lease, error) {
	wasOnline := conditions.IsTrue(cluster.Status.Conditions, v1alpha1.ConditionOnline)
	cached, err := r.readLease(ctx, r.Client, cluster.Name, wasOnline)
	if err != nil || !wasOnline || cached.IsOnline(r.Now()) {
		return cached, err
	}
	live, err := r.readLease(ctx, r.Live, cluster.Name, wasOnline)
	r.liveness.recordLiveRead(cluster.Name, r.Now(), err != nil)
	if live.Found {
		live.ValidFrom = r.liveness.periodStart(cluster.Name)
	}
	return live, err
}

// readLease reads the Lease from the reader and records its renewal. If there is no Lease, the
// recorded renewals are removed, and Found is false.
func (r *Reconciler) readLease(ctx context.Context, reader client.Reader, cluster string, wasOnline bool) (fleet.Lease,
	error) {
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster), Name: v1alpha1.LeaseName}
	switch err := reader.Get(ctx, key, &lease); {
	case apierrors.IsNotFound(err):
		r.liveness.forget(cluster)
		return fleet.Lease{}, nil
	case err != nil:
		return fleet.Lease{}, fmt.Errorf("read Lease: %w", err)
	}
	olm, olmChecked := lease.Annotations[v1alpha1.AnnotationOLMVersion]
	seenAt, periodStart := r.liveness.observe(cluster, &lease, r.Now(), wasOnline)
	return fleet.Lease{
		Found: true, SeenAt: seenAt, ValidFrom: periodStart,
		Duration: readLeaseDuration(&lease) + r.Grace,
		Versions: v1alpha1.ClusterVersions{
			Agent:      lease.Annotations[v1alpha1.AnnotationAgentVersion],
			Kubernetes: lease.Annotations[v1alpha1.AnnotationKubernetesVersion],
			OLM:        olm,
		},
		Account:    types.UID(lease.Annotations[v1alpha1.AnnotationAgentAccount]),
		OLMChecked: olmChecked,
		APIServer:  observeAPIServer(&lease),
		Veto:       holds.DecodeVeto(lease.Annotations[v1alpha1.AnnotationVeto]),
	}, nil
}

// observeAPIServer returns what the agent reports in its Lease about the
// API server of its cluster.
func observeAPIServer(lease *coordinationv1.Lease) fleet.APIServer {
	since, checked := lease.Annotations[v1alpha1.AnnotationAPIServerUnreachableSince]
	return fleet.APIServer{Checked: checked, UnreachableSince: since,
		Error: lease.Annotations[v1alpha1.AnnotationAPIServerError]}
}

// The agent sets the duration of its Lease. The limits prevent that a wrong duration floods
// the hub or never expires.
const (
	defaultLeaseDuration = 90 * time.Second
	minLeaseDuration     = 2 * time.Second
	maxLeaseDuration     = 10 * time.Minute
)

// readLeaseDuration returns the duration of a Lease within the limits.
func readLeaseDuration(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return defaultLeaseDuration
	}
	return min(max(time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second, minLeaseDuration), maxLeaseDuration)
}

// apply executes a decision: the actions, the record of operators that are left
// behind, and the removals.
func (r *Reconciler) apply(ctx context.Context, cluster *v1alpha1.FleetCluster, observed observation,
	next fleet.Decision) error {
	for _, action := range next.Actions {
		if err := r.executeAction(ctx, cluster, observed, action); err != nil {
			return fmt.Errorf("carry out %s: %w", action, err)
		}
	}
	if next.LeftBehind != nil {
		if err := r.recordLeftBehind(ctx, cluster, next.LeftBehind); err != nil {
			return err
		}
	}
	return kit.RunRemovalSteps(ctx, r.Client, next.Removals)
}

// executeAction executes one action of a decision.
func (r *Reconciler) executeAction(ctx context.Context, cluster *v1alpha1.FleetCluster, observed observation,
	action fleet.Action) error {
	switch action {
	case fleet.AddFinalizer:
		return kit.AddFinalizer(ctx, r.Client, cluster, v1alpha1.FinalizerHub)
	case fleet.RemoveFinalizer:
		r.liveness.forget(cluster.Name)
		r.absences.release(cluster.Name, r.Now())
		return kit.RemoveFinalizer(ctx, r.Client, cluster, v1alpha1.FinalizerHub)
	case fleet.CreateNamespace:
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: v1alpha1.ClusterNamespace(cluster.Name), Labels: buildLabels(cluster.Name),
		}}
		return r.Client.Create(ctx, namespace, kit.FleetManager)
	case fleet.ApplyAccess:
		return r.applyAccess(ctx, cluster.Name, observed.access)
	case fleet.CreateAccount:
		return r.createAccount(ctx, cluster.Name)
	case fleet.DeleteNamespace:
		return r.deleteNamespace(ctx, cluster.Name)
	}
	return nil
}

// deleteNamespace deletes the namespace of a cluster, unless it has OperatorInstalls. It reads
// without the cache: a new OperatorInstall would be deleted with the namespace, together with
// the access of the agent that must remove the operator. A namespace without the cluster's label
// stays.
func (r *Reconciler) deleteNamespace(ctx context.Context, cluster string) error {
	name := v1alpha1.ClusterNamespace(cluster)
	var remaining v1alpha1.OperatorInstallList
	if err := r.Live.List(ctx, &remaining, client.InNamespace(name), client.Limit(1)); err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	if len(remaining.Items) > 0 {
		return nil // the watch of OperatorInstalls triggers another reconcile
	}
	var namespace corev1.Namespace
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.Labels[v1alpha1.LabelCluster] != cluster {
		return nil
	}
	preconditions := client.Preconditions{UID: &namespace.UID, ResourceVersion: &namespace.ResourceVersion}
	return client.IgnoreNotFound(r.Client.Delete(ctx, &namespace, preconditions))
}

// updateStatus puts the decided status into the cluster, logs a change of the condition Ready,
// and emits an Event about an unsupported version of the agent.
func (r *Reconciler) updateStatus(ctx context.Context, cluster *v1alpha1.FleetCluster, next fleet.Decision) {
	oldReady := conditions.Get(cluster.Status.Conditions, v1alpha1.ConditionReady)
	newReady := conditions.Get(next.Status.Conditions, v1alpha1.ConditionReady)
	if oldReady.Reason != newReady.Reason {
		log.FromContext(ctx).Info("Cluster changed state", "from", oldReady.Reason, "to", newReady.Reason, "message",
			newReady.Message)
	}
	oldSkew := conditions.Get(cluster.Status.Conditions, v1alpha1.ConditionVersionSupported)
	skew := conditions.Get(next.Status.Conditions, v1alpha1.ConditionVersionSupported)
	if skew.Status == metav1.ConditionFalse && skew.Message != oldSkew.Message {
		kit.Emit(r.Events, cluster, skew.Reason, "Reconcile", "%s", skew.Message)
	}
	cluster.Status = next.Status
}
