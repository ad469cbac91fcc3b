// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/engines/olmv0/templates"
	"github.com/bellwether-dev/bellwether/engines/workload"
)

// reader fills an Observation.
type reader struct {
	local     client.Client
	live      client.Reader
	templates *templates.Set
	// install is observed, and data is of it.
	install     *v1alpha1.OperatorInstall
	data        templates.Data
	observation *Observation
}

// isInSync renders the template of a kind and tells whether the live object is as
// rendered. A template that does not render becomes the offer's problem.
func (r *reader) isInSync(kind string, live *unstructured.Unstructured) bool {
	rendered, err := r.templates.Render(kind, r.data)
	if err != nil {
		r.observation.Offer.Problem = &plan.Problem{Reason: v1alpha1.ReasonTemplateInvalid, Message: err.Error() +
			". Correct the agent's template."}
		return true
	}
	r.observation.rendered[kind] = rendered
	return live != nil && templates.InSync(rendered, live)
}

func managed(o client.Object) bool { return o.GetLabels()[v1alpha1.LabelManaged] == "true" }

func (r *reader) readNamespace(ctx context.Context) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(plan.KindNamespace))
	err := r.live.Get(ctx, client.ObjectKey{Name: r.data.Namespace}, live)
	switch {
	case apierrors.IsNotFound(err):
		r.isInSync(plan.KindNamespace, nil)
		return nil
	case err != nil:
		return fmt.Errorf("get namespace: %w", err)
	}
	r.observation.Cluster.Namespace = plan.Namespace{
		Object: objectOf(live), Exists: true, Managed: managed(live),
		Terminating: !live.GetDeletionTimestamp().IsZero(),
		InSync:      r.isInSync(plan.KindNamespace, live), Kept: live.GetAnnotations()[annotationKeep] != "",
	}
	return nil
}

func objectOf(o client.Object) plan.Object {
	return plan.Object{UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
}

func (r *reader) list(ctx context.Context, kind string, list *unstructured.UnstructuredList) error {
	version := operatorsv1alpha1.SchemeGroupVersion
	if kind == plan.KindOperatorGroup {
		version = operatorsv1.SchemeGroupVersion
	}
	list.SetGroupVersionKind(version.WithKind(kind + "List"))
	if err := r.local.List(ctx, list, client.InNamespace(r.data.Namespace)); err != nil {
		return fmt.Errorf("list %ss: %w", kind, err)
	}
	return nil
}

func (r *reader) readOperatorGroups(ctx context.Context) error {
	var list unstructured.UnstructuredList
	if err := r.list(ctx, plan.KindOperatorGroup, &list); err != nil {
		return err
	}
	if len(list.Items) == 0 {
		r.isInSync(plan.KindOperatorGroup, nil)
	}
	for i := range list.Items {
		live := &list.Items[i]
		group := operatorsv1.OperatorGroup{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &group); err != nil {
			return fmt.Errorf("read OperatorGroup: %w", err)
		}
		r.observation.Cluster.OperatorGroups = append(r.observation.Cluster.OperatorGroups, plan.OperatorGroup{
			Object: objectOf(live), Name: group.Name, Managed: managed(live),
			InSync:  r.isInSync(plan.KindOperatorGroup, live),
			Targets: group.Spec.TargetNamespaces, Selector: group.Spec.Selector != nil,
		})
	}
	return nil
}

func (r *reader) readCatalogSource(ctx context.Context) error {
	var list unstructured.UnstructuredList
	if err := r.list(ctx, plan.KindCatalogSource, &list); err != nil {
		return err
	}
	r.isInSync(plan.KindCatalogSource, nil)
	rendered := r.observation.rendered[plan.KindCatalogSource]
	for i := range list.Items {
		live := &list.Items[i]
		if rendered == nil || live.GetName() != rendered.GetName() {
			continue
		}
		source := operatorsv1alpha1.CatalogSource{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &source); err != nil {
			return fmt.Errorf("read CatalogSource: %w", err)
		}
		observed := &plan.CatalogSource{Object: objectOf(live), Name: source.Name, Address: source.Spec.Address,
			Managed: managed(live), InSync: r.isInSync(plan.KindCatalogSource, live)}
		if state := source.Status.GRPCConnectionState; state != nil && state.Address == source.Spec.Address {
			observed.State, observed.StateAt = state.LastObservedState, state.LastConnectTime.Time
		}
		r.observation.Cluster.CatalogSource = observed
	}
	return nil
}

func (r *reader) readSubscriptions(ctx context.Context) error {
	var list unstructured.UnstructuredList
	if err := r.list(ctx, plan.KindSubscription, &list); err != nil {
		return err
	}
	ours := r.findOurs(list.Items)
	if ours != nil {
		r.data.Subscription = ours.GetName()
	}
	r.isInSync(plan.KindSubscription, nil)
	for i := range list.Items {
		live := &list.Items[i]
		sub := operatorsv1alpha1.Subscription{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &sub); err != nil {
			return fmt.Errorf("read Subscription: %w", err)
		}
		observed := subscriptionOf(sub)
		observed.Object = objectOf(live)
		r.observation.subscriptions[sub.Name] = live
		if live == ours {
			observed.Ours, observed.InSync = true, r.isInSync(plan.KindSubscription, live)
			r.readKept(live, &observed)
			r.readAdopted(live, &observed)
		}
		r.observation.Cluster.Subscriptions = append(r.observation.Cluster.Subscriptions, observed)
	}
	return r.keep()
}

// conditionMessage is what a condition of a Subscription says while it is true; empty otherwise.
func conditionMessage(sub *operatorsv1alpha1.Subscription,
	condition operatorsv1alpha1.SubscriptionConditionType) string {
	if c := sub.Status.GetCondition(condition); c.Status == corev1.ConditionTrue {
		return cmp.Or(c.Message, c.Reason)
	}
	return ""
}

func subscriptionOf(sub operatorsv1alpha1.Subscription) plan.Subscription {
	observed := plan.Subscription{
		Name: sub.Name, InstalledCSV: sub.Status.InstalledCSV, CurrentCSV: sub.Status.CurrentCSV,
		ResolutionFailed: conditionMessage(&sub, operatorsv1alpha1.SubscriptionResolutionFailed),
		LastUpdated:      sub.Status.LastUpdated.Time,
		UnpackFailed:     conditionMessage(&sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed),
	}
	if sub.Spec != nil {
		observed.Package = sub.Spec.Package
	}
	if sub.Status.InstallPlanRef != nil {
		observed.Plan = sub.Status.InstallPlanRef.UID
	}
	if sub.Status.InstallPlanRef != nil && sub.Status.State == operatorsv1alpha1.SubscriptionStateUpgradePending {
		observed.Awaits = sub.Status.InstallPlanRef.Name
	}
	return observed
}

func (r *reader) readInstallPlans(ctx context.Context) error {
	var list operatorsv1alpha1.InstallPlanList
	if err := r.local.List(ctx, &list, client.InNamespace(r.data.Namespace)); err != nil {
		return fmt.Errorf("list InstallPlans: %w", err)
	}
	for i := range list.Items {
		r.addInstallPlan(&list.Items[i])
	}
	return r.confirmInstallPlans(ctx)
}

// confirmInstallPlans reads those that Subscriptions wait for directly where
// the cache does not have them; see confirmCSV.
func (r *reader) confirmInstallPlans(ctx context.Context) error {
	for _, sub := range r.observation.Cluster.Subscriptions {
		if sub.Awaits == "" || slices.ContainsFunc(r.observation.Cluster.InstallPlans,
			func(p plan.InstallPlan) bool { return p.Name == sub.Awaits }) {
			continue
		}
		live := &operatorsv1alpha1.InstallPlan{}
		err := r.live.Get(ctx, client.ObjectKey{Namespace: r.data.Namespace, Name: sub.Awaits}, live)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get InstallPlan: %w", err)
		}
		if err == nil {
			r.addInstallPlan(live)
		}
	}
	return nil
}

func (r *reader) addInstallPlan(live *operatorsv1alpha1.InstallPlan) {
	r.observation.Cluster.InstallPlans = append(r.observation.Cluster.InstallPlans, installPlanOf(live))
}

func installPlanOf(live *operatorsv1alpha1.InstallPlan) plan.InstallPlan {
	observed := plan.InstallPlan{
		Object: objectOf(live), Name: live.Name, Phase: string(live.Status.Phase), Approved: live.Spec.Approved,
		Message: live.Status.Message, CSVs: live.Spec.ClusterServiceVersionNames,
		Created: live.CreationTimestamp.Time, Subscribes: subscribes(live), Sources: sources(live),
		Services: services(live),
	}
	// One that was approved otherwise has no such annotation, or nonsense.
	observed.Revision, _ = strconv.ParseInt(live.Annotations[v1alpha1.AnnotationRevision], 10, 64)
	if live.Status.StartTime != nil {
		observed.Started = live.Status.StartTime.Time
	}
	done := live.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	if done.Status == corev1.ConditionTrue && done.LastTransitionTime != nil {
		observed.Completed = done.LastTransitionTime.Time
	}
	if live.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed {
		observed.FailedAt, observed.Failure = failure(live)
	}
	return observed
}

// subscribes returns the CSVs for which a plan makes a Subscription.
func subscribes(p *operatorsv1alpha1.InstallPlan) []string {
	var csvs []string
	for _, step := range p.Status.Plan {
		if step != nil && step.Resource.Kind == plan.KindSubscription {
			csvs = append(csvs, step.Resolving)
		}
	}
	return csvs
}

// services returns the Services that a plan makes, by the CSV that they come with.
func services(p *operatorsv1alpha1.InstallPlan) map[string][]string {
	var out map[string][]string
	for _, step := range p.Status.Plan {
		if step != nil && step.Resource.Kind == kindService {
			if out == nil {
				out = map[string][]string{}
			}
			out[step.Resolving] = append(out[step.Resolving], step.Resource.Name)
		}
	}
	return out
}

// sources returns the CatalogSources that a plan's steps come from, each once for each CSV.
func sources(p *operatorsv1alpha1.InstallPlan) []plan.StepSource {
	var out []plan.StepSource
	add := func(s plan.StepSource) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, step := range p.Status.Plan {
		if step != nil {
			add(plan.StepSource{CSV: step.Resolving, Namespace: step.Resource.CatalogSourceNamespace,
				Name: step.Resource.CatalogSource})
		}
	}
	for _, bundle := range p.Status.BundleLookups {
		if bundle.CatalogSourceRef != nil {
			add(plan.StepSource{CSV: bundle.Identifier, Namespace: bundle.CatalogSourceRef.Namespace,
				Name: bundle.CatalogSourceRef.Name})
		}
	}
	return out
}

// failure says when and why a plan failed, and at which step if one is left
// unfinished.
func failure(p *operatorsv1alpha1.InstallPlan) (time.Time, string) {
	at, why := p.CreationTimestamp.Time, p.Status.Message
	for _, condition := range p.Status.Conditions {
		if condition.Status == corev1.ConditionFalse && condition.LastTransitionTime != nil {
			at, why = condition.LastTransitionTime.Time, condition.Message
		}
	}
	for _, step := range p.Status.Plan {
		if step.Status == operatorsv1alpha1.StepStatusPresent || step.Status == operatorsv1alpha1.StepStatusCreated {
			continue
		}
		return at, fmt.Sprintf("at the step %s %s of %s: %s", step.Resource.Kind, step.Resource.Name, step.Resolving,
			why)
	}
	return at, "because " + why
}

func (r *reader) readCSVs(ctx context.Context) error {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := r.local.List(ctx, &list, client.InNamespace(r.data.Namespace)); err != nil {
		return fmt.Errorf("list ClusterServiceVersions: %w", err)
	}
	for i := range list.Items {
		r.addCSV(&list.Items[i])
	}
	return r.confirmCSV(ctx)
}

// confirmCSV reads the installed CSV directly where the cache does not have it:
// the caches of different kinds run ahead of each other, and an operator must
// not be taken for deleted because of that.
func (r *reader) confirmCSV(ctx context.Context) error {
	for _, sub := range r.observation.Cluster.Subscriptions {
		if _, there := r.observation.Cluster.Installed(); !sub.Ours || there || sub.InstalledCSV == "" {
			continue
		}
		live := &operatorsv1alpha1.ClusterServiceVersion{}
		err := r.live.Get(ctx, client.ObjectKey{Namespace: r.data.Namespace, Name: sub.InstalledCSV}, live)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get ClusterServiceVersion: %w", err)
		}
		if err == nil {
			r.addCSV(live)
		}
	}
	return nil
}

func (r *reader) addCSV(live *operatorsv1alpha1.ClusterServiceVersion) {
	_, ours := live.Labels[componentLabel(r.data.Package, r.data.Namespace)]
	observed := plan.CSV{
		Object: objectOf(live), Name: live.Name, Version: live.Spec.Version.String(), Phase: string(live.Status.Phase),
		Reason:  string(live.Status.Reason),
		Message: live.Status.Message, Replaces: live.Spec.Replaces, Created: live.CreationTimestamp.Time,
		Deleting: !live.DeletionTimestamp.IsZero(), Ours: ours,
		Missing: requirements(live, plan.IsUnmet),
		Lost: requirements(live, func(r operatorsv1alpha1.RequirementStatus) bool {
			return plan.IsUnmet(r) && brings(live, r)
		}),
	}
	if live.Status.LastTransitionTime != nil {
		observed.Since = live.Status.LastTransitionTime.Time
	}
	r.observation.Cluster.CSVs = append(r.observation.Cluster.CSVs, observed)
	r.addOwnedKinds(live)
}

// requirements words those requirements of a CSV that are asked for.
func requirements(csv *operatorsv1alpha1.ClusterServiceVersion,
	which func(operatorsv1alpha1.RequirementStatus) bool) []string {
	var all []string
	for _, r := range csv.Status.RequirementStatus {
		if which(r) {
			all = append(all, fmt.Sprintf("%s %s (%s)", r.Kind, r.Name, cmp.Or(r.Message, string(r.Status))))
		}
	}
	slices.Sort(all)
	return all
}

// brings tells whether a requirement is met by what comes with the CSV: its accounts with their rights, and the
// definitions that it owns.
func brings(csv *operatorsv1alpha1.ClusterServiceVersion, r operatorsv1alpha1.RequirementStatus) bool {
	return r.Kind == "ServiceAccount" || slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Owned,
		func(crd operatorsv1alpha1.CRDDescription) bool {
			return r.Kind == kindDefinition && r.Name == crd.Name
		})
}

// componentLabel is the one that OLM puts on everything that belongs to a
// package's Subscription. OLM cuts it at the limit of a label's name.
func componentLabel(pkg, namespace string) string {
	name := pkg + "." + namespace
	if len(name) > maxLabelName {
		name = name[:maxLabelName]
	}
	return "operators.coreos.com/" + name
}

const maxLabelName = 63

// observeDeployments reads those that OLM made for the installed CSV.
func (r *reader) readDeployments(ctx context.Context) error {
	csv, ok := r.observation.Cluster.Installed()
	if !ok {
		return nil
	}
	var list appsv1.DeploymentList
	if err := r.local.List(ctx, &list, client.InNamespace(r.data.Namespace)); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for i := range list.Items {
		live := &list.Items[i]
		if live.Labels[plan.LabelOwner] != csv.Name {
			continue
		}
		wanted := int32(1)
		if live.Spec.Replicas != nil {
			wanted = *live.Spec.Replicas
		}
		r.observation.deployments = append(r.observation.deployments, live)
		observed := plan.Deployment{
			Object: objectOf(live), Name: live.Name, Replicas: wanted,
			Unavailable: max(wanted-live.Status.AvailableReplicas, 0),
			Configured: live.Status.ObservedGeneration >= live.Generation &&
				isConfigured(live.Spec.Template.Spec, r.data.Config),
		}
		if !workload.IsComplete(live) {
			observed.Problems = r.problems(ctx, live)
		}
		r.observation.Cluster.Deployments = append(r.observation.Cluster.Deployments, observed)
	}
	slices.SortFunc(r.observation.Cluster.Deployments,
		func(a, b plan.Deployment) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// maxPods of one Deployment are read to say why they are not available.
const maxPods = 50

// problems says why pods of a Deployment are not available. Pods are not cached: a cluster has many, and those
// of operators have no label in common.
func (r *reader) problems(ctx context.Context, d *appsv1.Deployment) []v1alpha1.WorkloadProblem {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return []v1alpha1.WorkloadProblem{workload.NotRead(d, err)}
	}
	var pods corev1.PodList
	err = r.live.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector},
		client.Limit(maxPods))
	if err != nil {
		return append(workload.Problems(d, nil), workload.NotRead(d, err))
	}
	return workload.Problems(d, pods.Items)
}

// readOtherNamespaces looks for the package's CSVs in other namespaces.
func (r *reader) readOtherNamespaces(ctx context.Context) error {
	if r.data.Mode == v1alpha1.InstallOwnNamespace {
		return nil
	}
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := r.local.List(ctx, &list); err != nil {
		return fmt.Errorf("list ClusterServiceVersions: %w", err)
	}
	o := r.observation
	for _, csv := range list.Items {
		if _, ours := o.Offer.Versions[csv.Name]; ours && csv.Namespace != r.data.Namespace {
			o.Cluster.Elsewhere = append(o.Cluster.Elsewhere, csv.Namespace+"/"+csv.Name)
		}
	}
	return nil
}

// addOwnedKinds notes the kinds of custom resources that a CSV owns.
func (r *reader) addOwnedKinds(csv *operatorsv1alpha1.ClusterServiceVersion) {
	for _, crd := range csv.Spec.CustomResourceDefinitions.Owned {
		r.observation.owned[csv.Name] = append(r.observation.owned[csv.Name], crd.Name)
		_, group, _ := strings.Cut(crd.Name, ".")
		r.observation.ownedKinds = append(r.observation.ownedKinds,
			schema.GroupVersionKind{Group: group, Version: crd.Version, Kind: crd.Kind})
	}
}
