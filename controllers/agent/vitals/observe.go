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

	"github.com/bellwether-dev/bellwether/alerts/vitals"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Limits of the series that one operator can add.
const (
	maxDeployments = 50
	maxWebhooks    = 50
	maxConditions  = 20
	maxClaims      = 50
)

// reader reads the caches. The objects that it returns are shared with the
// caches and must not be changed.
type reader struct {
	hub, local client.Reader
	engine     Engine
	now        func() time.Time
}

// observation is the data that was read about one operator.
type observation struct {
	operator v1alpha1.OperatorReference
	// namespace is where the operator runs.
	namespace string
	// release is the hash of the release that is installed; empty if it is not known.
	release string
	// csv is the installed ClusterServiceVersion; nil if none is installed.
	csv                                *operatorsv1alpha1.ClusterServiceVersion
	succeeded, upgrading, catalogReady bool
	// installing is true if objects of the operator might not exist yet.
	installing  bool
	deployments []replicas
	// claims are the names of the PersistentVolumeClaims of the Deployments.
	claims     []string
	conditions []metav1.Condition
}

// replicas are the replica counts of a Deployment.
type replicas struct {
	deployment         string
	selector           *metav1.LabelSelector
	desired, available int32
}

// listExpected returns the installs whose operators should run on the cluster, sorted by
// operator: the installs that have an admission and are not being deleted.
func (r *reader) listExpected(ctx context.Context) ([]*v1alpha1.OperatorInstall, error) {
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

// observe reads the cluster's objects of an operator, as far as they are visible. While the
// operator is being installed, the result has no Deployments.
func (r *reader) observe(ctx context.Context, oi *v1alpha1.OperatorInstall, visible Visibility) (observation, error) {
	v := observation{operator: oi.Spec.Operator, namespace: oi.Spec.Admission.Release.TargetNamespace()}
	input := vitals.Observation{Install: oi}
	if visible.OLM {
		if err := r.observeOLM(ctx, oi, &v, &input); err != nil {
			return v, err
		}
	}
	if visible.Conditions && v.csv != nil {
		if err := r.readConditions(ctx, &v); err != nil {
			return v, err
		}
	}
	if v.csv != nil {
		v.release = vitals.InstalledRelease(oi, v.csv.Spec.Version.String())
	}
	v.upgrading = vitals.IsUpgrading(input, r.now())
	if v.installing = vitals.IsInstalling(input, r.now()); v.installing {
		v.deployments = nil
	}
	return v, nil
}

// observeOLM reads an operator's OLM objects, and the Deployments that OLM created.
func (r *reader) observeOLM(ctx context.Context, oi *v1alpha1.OperatorInstall, v *observation,
	input *vitals.Observation) error {
	if err := r.readSubscription(ctx, oi, input); err != nil {
		return err
	}
	if err := r.readCSVs(ctx, v, input); err != nil {
		return err
	}
	if err := r.readCatalogSource(ctx, oi, v, *input); err != nil {
		return err
	}
	return r.readDeployments(ctx, oi, v, *input)
}

// listObjects lists the objects in a namespace that have the kind of the example.
func (r *reader) listObjects(ctx context.Context, example *unstructured.Unstructured,
	namespace string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	kind := example.GroupVersionKind()
	kind.Kind += "List"
	list.SetGroupVersionKind(kind)
	if err := r.local.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list %ss: %w", example.GetKind(), err)
	}
	return list.Items, nil
}

// readSubscription reads the operator's Subscription into input. The agent reports the name of a
// Subscription that it has adopted; a Subscription that it created has the name of the package.
func (r *reader) readSubscription(ctx context.Context, oi *v1alpha1.OperatorInstall, input *vitals.Observation) error {
	release := oi.Spec.Admission.Release
	items, err := r.listObjects(ctx, newSubscription(), release.TargetNamespace())
	if err != nil {
		return err
	}
	name := cmp.Or(oi.Status.OLMDetails().Subscription, release.Package)
	for i := range items {
		if items[i].GetName() == name {
			input.Subscribed = items[i].GetCreationTimestamp().Time
			input.Installed, _, _ = unstructured.NestedString(items[i].Object, "status", "installedCSV")
			input.Current, _, _ = unstructured.NestedString(items[i].Object, "status", "currentCSV")
		}
	}
	return nil
}

// readCSVs adds the ClusterServiceVersions of the namespace to input, and
// stores the installed one in v.
func (r *reader) readCSVs(ctx context.Context, v *observation, input *vitals.Observation) error {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := r.local.List(ctx, &list, client.InNamespace(v.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ClusterServiceVersions: %w", err)
	}
	for i := range list.Items {
		csv := &list.Items[i]
		input.CSVs = append(input.CSVs, vitals.CSV{Name: csv.Name, Replaces: csv.Spec.Replaces,
			Created: csv.CreationTimestamp.Time})
		if csv.Name == input.Installed {
			v.csv, v.succeeded = csv, csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
		}
	}
	return nil
}

// readCatalogSource records whether OLM is connected to the CatalogSource that the
// agent reports as its own.
func (r *reader) readCatalogSource(ctx context.Context, oi *v1alpha1.OperatorInstall, v *observation,
	_ vitals.Observation) error {
	items, err := r.listObjects(ctx, newCatalogSource(), v.namespace)
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
		v.catalogReady = r.engine.IsConnected(&source)
	}
	return nil
}

// readDeployments stores in v the replicas and the claims of the Deployments that OLM created for
// the operator, sorted and limited. During an upgrade, the owner of a Deployment changes from one
// of the operator's CSVs to the next CSV.
func (r *reader) readDeployments(ctx context.Context, _ *v1alpha1.OperatorInstall, v *observation,
	input vitals.Observation) error {
	var list appsv1.DeploymentList
	if err := r.local.List(ctx, &list, client.InNamespace(v.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	ownCSVs := input.OwnCSVs()
	for i := range list.Items {
		d := &list.Items[i]
		if !slices.Contains(ownCSVs, r.engine.BundleOf(d)) {
			continue
		}
		v.claims = append(v.claims, listClaims(d)...)
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

// listClaims returns the names of the PersistentVolumeClaims of a Deployment.
func listClaims(d *appsv1.Deployment) []string {
	var names []string
	for _, volume := range d.Spec.Template.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// readConditions reads the conditions that the operator reports. The operator writes them to the
// spec, and OLM copies them to the status; the spec is preferred.
func (r *reader) readConditions(ctx context.Context, v *observation) error {
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
	// OLM allows a type twice, but Prometheus allows each label value only once.
	v.conditions = slices.CompactFunc(v.conditions, func(a, b metav1.Condition) bool { return a.Type == b.Type })
	v.conditions = v.conditions[:min(len(v.conditions), maxConditions)]
	return nil
}

// listWebhooks returns the names of a CSV's admission webhooks. OLM uses the name
// in the definition for the webhook without a change; it adds a suffix only to the
// name of the configuration.
func listWebhooks(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	var names []string
	for _, w := range csv.Spec.WebhookDefinitions {
		if w.Type == operatorsv1alpha1.ValidatingAdmissionWebhook ||
			w.Type == operatorsv1alpha1.MutatingAdmissionWebhook {
			names = append(names, w.GenerateName)
		}
	}
	slices.Sort(names)
	// A validating and a mutating webhook can have the same name.
	names = slices.Compact(names)
	return names[:min(len(names), maxWebhooks)]
}
