// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/vitals/plan"
	olmv0 "github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// Bounds of what one operator can add to the number of series.
const (
	maxDeployments = 50
	maxWebhooks    = 50
	maxConditions  = 20
	maxClaims      = 50
)

// reader reads the caches. It returns objects that are shared with the caches
// and must not be changed.
type reader struct {
	hub, local client.Reader
	now        func() time.Time
}

// observation is what was read about one operator.
type observation struct {
	operator v1alpha1.OperatorReference
	// namespace that it runs in.
	namespace string
	// release is the hash of the release that is installed; empty if it is not known.
	release string
	// csv is what is installed; nil if nothing is.
	csv                                *operatorsv1alpha1.ClusterServiceVersion
	succeeded, upgrading, catalogReady bool
	// installing says that objects may not exist yet.
	installing  bool
	deployments []replicas
	// claims are the names of the PersistentVolumeClaims of the Deployments.
	claims     []string
	conditions []metav1.Condition
}

// replicas of a Deployment.
type replicas struct {
	deployment         string
	selector           *metav1.LabelSelector
	desired, available int32
}

// expected returns the installs whose operators should run here, ordered by
// operator: those that were admitted to a release and are not being removed.
func (r *reader) expected(ctx context.Context) ([]*v1alpha1.OperatorInstall, error) {
	var list v1alpha1.OperatorInstallList
	if err := r.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list OperatorInstalls: %w", err)
	}
	var all []*v1alpha1.OperatorInstall
	for i := range list.Items {
		if oi := &list.Items[i]; oi.Spec.Admission != nil && oi.DeletionTimestamp.IsZero() {
			all = append(all, oi)
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.OperatorInstall) int {
		return cmp.Or(cmp.Compare(a.Spec.Operator.Name, b.Spec.Operator.Name),
			cmp.Compare(a.Spec.Operator.Namespace, b.Spec.Operator.Namespace))
	})
	return all, nil
}

// observe reads what the cluster has of an operator.
func (r *reader) observe(ctx context.Context, oi *v1alpha1.OperatorInstall, visible Visibility) (observation, error) {
	v := observation{operator: oi.Spec.Operator, namespace: oi.Spec.Admission.Release.TargetNamespace()}
	hop := plan.Observation{Install: oi}
	if visible.OLM {
		if err := r.observeOLM(ctx, oi, &v, &hop); err != nil {
			return v, err
		}
	}
	if visible.Conditions && v.csv != nil {
		if err := r.conditions(ctx, &v); err != nil {
			return v, err
		}
	}
	if v.csv != nil {
		v.release = plan.InstalledRelease(oi, v.csv.Spec.Version.String())
	}
	v.upgrading = plan.IsUpgrading(hop, r.now())
	if v.installing = plan.IsInstalling(hop, r.now()); v.installing {
		v.deployments = nil
	}
	return v, nil
}

// observeOLM reads OLM's objects of an operator, and the Deployments that OLM made.
func (r *reader) observeOLM(ctx context.Context, oi *v1alpha1.OperatorInstall, v *observation,
	hop *plan.Observation) error {
	if err := r.subscription(ctx, oi, hop); err != nil {
		return err
	}
	if err := r.csvs(ctx, v, hop); err != nil {
		return err
	}
	if err := r.catalogSource(ctx, oi, v, *hop); err != nil {
		return err
	}
	return r.deployments(ctx, oi, v, *hop)
}

func (r *reader) list(ctx context.Context, like *unstructured.Unstructured,
	namespace string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	kind := like.GroupVersionKind()
	kind.Kind += "List"
	list.SetGroupVersionKind(kind)
	if err := r.local.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list %ss: %w", like.GetKind(), err)
	}
	return list.Items, nil
}

// subscription reads the one that the agent says is the operator's: one that it made has the package's name, one that
// it has taken over keeps its own.
func (r *reader) subscription(ctx context.Context, oi *v1alpha1.OperatorInstall, hop *plan.Observation) error {
	release := oi.Spec.Admission.Release
	items, err := r.list(ctx, subscription(), release.TargetNamespace())
	if err != nil {
		return err
	}
	name := cmp.Or(oi.Status.OLMDetails().Subscription, release.Package)
	for i := range items {
		if items[i].GetName() == name {
			hop.Subscribed = items[i].GetCreationTimestamp().Time
			hop.Installed, _, _ = unstructured.NestedString(items[i].Object, "status", "installedCSV")
			hop.Current, _, _ = unstructured.NestedString(items[i].Object, "status", "currentCSV")
		}
	}
	return nil
}

func (r *reader) csvs(ctx context.Context, v *observation, hop *plan.Observation) error {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := r.local.List(ctx, &list, client.InNamespace(v.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ClusterServiceVersions: %w", err)
	}
	for i := range list.Items {
		csv := &list.Items[i]
		hop.CSVs = append(hop.CSVs, plan.CSV{Name: csv.Name, Replaces: csv.Spec.Replaces,
			Created: csv.CreationTimestamp.Time})
		if csv.Name == hop.Installed {
			v.csv, v.succeeded = csv, csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
		}
	}
	return nil
}

// catalogSource reads the one that the agent says it made.
func (r *reader) catalogSource(ctx context.Context, oi *v1alpha1.OperatorInstall, v *observation,
	_ plan.Observation) error {
	items, err := r.list(ctx, catalogSource(), v.namespace)
	if err != nil {
		return err
	}
	for i := range items {
		if items[i].GetName() != oi.Status.OLMDetails().CatalogSource {
			continue
		}
		source := operatorsv1alpha1.CatalogSource{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(items[i].Object, &source); err != nil {
			return fmt.Errorf("read CatalogSource: %w", err)
		}
		state := source.Status.GRPCConnectionState
		v.catalogReady = state != nil && state.Address == source.Spec.Address &&
			state.LastObservedState == olmv0.ConnectionReady
	}
	return nil
}

// deployments reads those that OLM made for the operator. In an upgrade they
// pass from one of its CSVs to the next.
func (r *reader) deployments(ctx context.Context, _ *v1alpha1.OperatorInstall, v *observation,
	hop plan.Observation) error {
	var list appsv1.DeploymentList
	if err := r.local.List(ctx, &list, client.InNamespace(v.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	own := hop.OwnCSVs()
	for i := range list.Items {
		d := &list.Items[i]
		if !slices.Contains(own, d.Labels[olmv0.LabelOwner]) {
			continue
		}
		v.claims = append(v.claims, claims(d)...)
		desired := int32(1)
		if d.Spec.Replicas != nil {
			desired = *d.Spec.Replicas
		}
		v.deployments = append(v.deployments, replicas{deployment: d.Name, selector: d.Spec.Selector,
			desired: desired, available: d.Status.AvailableReplicas})
	}
	slices.SortFunc(v.deployments, func(a, b replicas) int { return cmp.Compare(a.deployment, b.deployment) })
	v.deployments = v.deployments[:min(len(v.deployments), maxDeployments)]
	slices.Sort(v.claims)
	v.claims = slices.Compact(v.claims)
	v.claims = v.claims[:min(len(v.claims), maxClaims)]
	return nil
}

// claims returns the names of the PersistentVolumeClaims of a Deployment.
func claims(d *appsv1.Deployment) []string {
	var names []string
	for _, volume := range d.Spec.Template.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// conditions reads what the operator says of itself. OLM copies its spec, which
// the operator writes, to the status.
func (r *reader) conditions(ctx context.Context, v *observation) error {
	var list operatorsv2.OperatorConditionList
	if err := r.local.List(ctx, &list, client.InNamespace(v.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorConditions: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Name != v.csv.Name {
			continue
		}
		v.conditions = slices.Clone(list.Items[i].Spec.Conditions)
		for _, c := range list.Items[i].Status.Conditions {
			if meta.FindStatusCondition(v.conditions, c.Type) == nil {
				v.conditions = append(v.conditions, c)
			}
		}
	}
	slices.SortStableFunc(v.conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	// OLM lets an operator name a type twice; Prometheus does not.
	v.conditions = slices.CompactFunc(v.conditions, func(a, b metav1.Condition) bool { return a.Type == b.Type })
	v.conditions = v.conditions[:min(len(v.conditions), maxConditions)]
	return nil
}

// webhooks returns the names of a CSV's admission webhooks. OLM takes the name of
// a definition for the webhook as it is, and adds to the configuration's only.
func webhooks(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	var names []string
	for _, w := range csv.Spec.WebhookDefinitions {
		if w.Type == operatorsv1alpha1.ValidatingAdmissionWebhook ||
			w.Type == operatorsv1alpha1.MutatingAdmissionWebhook {
			names = append(names, w.GenerateName)
		}
	}
	slices.Sort(names)
	// One name may be both a validating and a mutating webhook's.
	names = slices.Compact(names)
	return names[:min(len(names), maxWebhooks)]
}
