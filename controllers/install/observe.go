// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package install

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/install/plan"
	"github.com/bellwether-dev/bellwether/controllers/install/templates"
)

// observe reads everything that one decision rests on.
func (r *Reconciler) observe(ctx context.Context, oi *v1alpha1.OperatorInstall) (*seen, error) {
	s := &seen{
		Input:    plan.Input{Now: r.Now(), Install: oi},
		key:      oi.Name,
		rendered: map[string]client.Object{},
		live:     map[plan.Action]client.Object{},
	}
	if served, ok := r.Views.State(s.key); ok {
		s.View = plan.View{Hash: served.Hash, Address: served.Addr}
	}
	if oi.Spec.Admission == nil {
		return s, nil
	}
	s.Cluster.OLM, _ = r.OLM()
	s.data = dataFor(oi, s.View.Address)
	if err := r.observeNamespace(ctx, s); err != nil {
		return nil, err
	}
	if !s.Cluster.OLM {
		return s, nil
	}
	for _, read := range []func(context.Context, *seen) error{
		r.observeOperatorGroups, r.observeCatalogSource, r.observeSubscriptions, r.observeInstallPlans, r.observeCSVs,
		r.observeDeployments,
	} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	if !oi.DeletionTimestamp.IsZero() {
		r.observeOccupants(ctx, s)
		return s, nil
	}
	return s, r.offer(ctx, s)
}

func dataFor(oi *v1alpha1.OperatorInstall, address string) templates.Data {
	release := oi.Spec.Admission.Release
	return templates.Data{
		Cluster: oi.Spec.Cluster, Operator: oi.Spec.Operator.Name, OperatorNamespace: oi.Spec.Operator.Namespace,
		Namespace: release.TargetNamespace(), Package: release.Package, Channel: release.Channel,
		Version: release.Version,
		Mode:    release.Install.Mode, Config: release.Install.Config, ViewAddress: address,
	}
}

// sync renders the template of a kind and tells whether the live object is as
// rendered. A template that does not render becomes the offer's problem.
func (r *Reconciler) sync(s *seen, kind string, live *unstructured.Unstructured) bool {
	rendered, err := r.Templates.Render(kind, s.data)
	if err != nil {
		s.Offer.Problem = &plan.Problem{Reason: v1alpha1.ReasonTemplateInvalid, Message: err.Error() +
			". Correct the agent's template."}
		return true
	}
	s.rendered[kind] = rendered
	return live != nil && templates.InSync(rendered, live)
}

func managed(o client.Object) bool { return o.GetLabels()[v1alpha1.LabelManaged] == "true" }

func (r *Reconciler) observeNamespace(ctx context.Context, s *seen) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(plan.KindNamespace))
	err := r.Live.Get(ctx, client.ObjectKey{Name: s.data.Namespace}, live)
	switch {
	case apierrors.IsNotFound(err):
		r.sync(s, plan.KindNamespace, nil)
		return nil
	case err != nil:
		return fmt.Errorf("get namespace: %w", err)
	}
	s.Cluster.Namespace = plan.Namespace{
		Exists: true, Terminating: !live.GetDeletionTimestamp().IsZero(), Managed: managed(live),
		InSync: r.sync(s, plan.KindNamespace, live), Kept: live.GetAnnotations()[annotationKeep] != "",
	}
	s.remember(plan.KindNamespace, live)
	return nil
}

// remember keeps a live object, so that an action that names it acts on what
// was observed.
func (s *seen) remember(kind string, o client.Object) {
	s.live[plan.Action{Kind: kind, Name: o.GetName()}] = o
}

func (r *Reconciler) list(ctx context.Context, s *seen, kind string, list *unstructured.UnstructuredList) error {
	version := operatorsv1alpha1.SchemeGroupVersion
	if kind == plan.KindOperatorGroup {
		version = operatorsv1.SchemeGroupVersion
	}
	list.SetGroupVersionKind(version.WithKind(kind + "List"))
	if err := r.Local.List(ctx, list, client.InNamespace(s.data.Namespace)); err != nil {
		return fmt.Errorf("list %ss: %w", kind, err)
	}
	for i := range list.Items {
		s.remember(kind, &list.Items[i])
	}
	return nil
}

func (r *Reconciler) observeOperatorGroups(ctx context.Context, s *seen) error {
	var list unstructured.UnstructuredList
	if err := r.list(ctx, s, plan.KindOperatorGroup, &list); err != nil {
		return err
	}
	if len(list.Items) == 0 {
		r.sync(s, plan.KindOperatorGroup, nil)
	}
	for i := range list.Items {
		live := &list.Items[i]
		group := operatorsv1.OperatorGroup{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &group); err != nil {
			return fmt.Errorf("read OperatorGroup: %w", err)
		}
		s.Cluster.OperatorGroups = append(s.Cluster.OperatorGroups, plan.OperatorGroup{
			Name: group.Name, Managed: managed(live), InSync: r.sync(s, plan.KindOperatorGroup, live),
			Targets: group.Spec.TargetNamespaces, Selector: group.Spec.Selector != nil,
		})
	}
	return nil
}

func (r *Reconciler) observeCatalogSource(ctx context.Context, s *seen) error {
	var list unstructured.UnstructuredList
	if err := r.list(ctx, s, plan.KindCatalogSource, &list); err != nil {
		return err
	}
	r.sync(s, plan.KindCatalogSource, nil)
	rendered := s.rendered[plan.KindCatalogSource]
	for i := range list.Items {
		live := &list.Items[i]
		if rendered == nil || live.GetName() != rendered.GetName() {
			continue
		}
		source := operatorsv1alpha1.CatalogSource{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &source); err != nil {
			return fmt.Errorf("read CatalogSource: %w", err)
		}
		observed := &plan.CatalogSource{Name: source.Name, Managed: managed(live),
			InSync: r.sync(s, plan.KindCatalogSource, live)}
		if state := source.Status.GRPCConnectionState; state != nil && state.Address == source.Spec.Address {
			observed.State = state.LastObservedState
		}
		s.Cluster.CatalogSource = observed
	}
	return nil
}

func (r *Reconciler) observeSubscriptions(ctx context.Context, s *seen) error {
	var list unstructured.UnstructuredList
	if err := r.list(ctx, s, plan.KindSubscription, &list); err != nil {
		return err
	}
	r.sync(s, plan.KindSubscription, nil)
	for i := range list.Items {
		live := &list.Items[i]
		sub := operatorsv1alpha1.Subscription{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &sub); err != nil {
			return fmt.Errorf("read Subscription: %w", err)
		}
		observed := subscriptionOf(sub)
		if sub.Name == s.data.Package {
			observed.Ours, observed.InSync = true, r.sync(s, plan.KindSubscription, live)
		}
		s.Cluster.Subscriptions = append(s.Cluster.Subscriptions, observed)
	}
	return nil
}

func subscriptionOf(sub operatorsv1alpha1.Subscription) plan.Subscription {
	said := func(condition operatorsv1alpha1.SubscriptionConditionType) string {
		if c := sub.Status.GetCondition(condition); c.Status == corev1.ConditionTrue {
			return cmp.Or(c.Message, c.Reason)
		}
		return ""
	}
	observed := plan.Subscription{
		Name: sub.Name, InstalledCSV: sub.Status.InstalledCSV, CurrentCSV: sub.Status.CurrentCSV,
		ResolutionFailed: said(operatorsv1alpha1.SubscriptionResolutionFailed),
		UnpackFailed:     said(operatorsv1alpha1.SubscriptionBundleUnpackFailed),
	}
	if sub.Spec != nil {
		observed.Package = sub.Spec.Package
	}
	if sub.Status.InstallPlanRef != nil && sub.Status.State == operatorsv1alpha1.SubscriptionStateUpgradePending {
		observed.Awaits = sub.Status.InstallPlanRef.Name
	}
	return observed
}

func (r *Reconciler) observeInstallPlans(ctx context.Context, s *seen) error {
	var list operatorsv1alpha1.InstallPlanList
	if err := r.Local.List(ctx, &list, client.InNamespace(s.data.Namespace)); err != nil {
		return fmt.Errorf("list InstallPlans: %w", err)
	}
	for i := range list.Items {
		s.addInstallPlan(&list.Items[i])
	}
	return r.confirmInstallPlans(ctx, s)
}

// confirmInstallPlans reads those that Subscriptions wait for directly where
// the cache does not have them; see confirmCSV.
func (r *Reconciler) confirmInstallPlans(ctx context.Context, s *seen) error {
	for _, sub := range s.Cluster.Subscriptions {
		if _, there := s.live[plan.Action{Kind: plan.KindInstallPlan, Name: sub.Awaits}]; there || sub.Awaits == "" {
			continue
		}
		live := &operatorsv1alpha1.InstallPlan{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.data.Namespace, Name: sub.Awaits}, live)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get InstallPlan: %w", err)
		}
		if err == nil {
			s.addInstallPlan(live)
		}
	}
	return nil
}

func (s *seen) addInstallPlan(live *operatorsv1alpha1.InstallPlan) {
	observed := plan.InstallPlan{
		Name: live.Name, Phase: string(live.Status.Phase), Approved: live.Spec.Approved, Message: live.Status.Message,
		CSVs: live.Spec.ClusterServiceVersionNames, Created: live.CreationTimestamp.Time, Subscribes: subscribes(live),
	}
	// One that was approved otherwise has no such annotation, or nonsense.
	observed.Revision, _ = strconv.ParseInt(live.Annotations[v1alpha1.AnnotationRevision], 10, 64)
	if live.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed {
		observed.FailedAt, observed.Failure = failure(live)
	}
	s.Cluster.InstallPlans = append(s.Cluster.InstallPlans, observed)
	s.remember(plan.KindInstallPlan, live)
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

func (r *Reconciler) observeCSVs(ctx context.Context, s *seen) error {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := r.Local.List(ctx, &list, client.InNamespace(s.data.Namespace)); err != nil {
		return fmt.Errorf("list ClusterServiceVersions: %w", err)
	}
	for i := range list.Items {
		s.addCSV(&list.Items[i])
	}
	return r.confirmCSV(ctx, s)
}

// confirmCSV reads the installed CSV directly where the cache does not have it:
// the caches of different kinds run ahead of each other, and an operator must
// not be taken for deleted because of that.
func (r *Reconciler) confirmCSV(ctx context.Context, s *seen) error {
	for _, sub := range s.Cluster.Subscriptions {
		if _, there := s.Cluster.Installed(); !sub.Ours || there || sub.InstalledCSV == "" {
			continue
		}
		live := &operatorsv1alpha1.ClusterServiceVersion{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.data.Namespace, Name: sub.InstalledCSV}, live)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get ClusterServiceVersion: %w", err)
		}
		if err == nil {
			s.addCSV(live)
		}
	}
	return nil
}

func (s *seen) addCSV(live *operatorsv1alpha1.ClusterServiceVersion) {
	_, ours := live.Labels[componentLabel(s.data.Package, s.data.Namespace)]
	observed := plan.CSV{
		Name: live.Name, Version: live.Spec.Version.String(), Phase: string(live.Status.Phase),
		Reason:  string(live.Status.Reason),
		Message: live.Status.Message, Replaces: live.Spec.Replaces, Created: live.CreationTimestamp.Time,
		Deleting: !live.DeletionTimestamp.IsZero(), Ours: ours, Missing: missing(live),
	}
	if live.Status.LastTransitionTime != nil {
		observed.Since = live.Status.LastTransitionTime.Time
	}
	s.Cluster.CSVs = append(s.Cluster.CSVs, observed)
	s.remember(plan.KindCSV, live)
}

// missing words the requirements of a CSV that are not met.
func missing(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	var all []string
	for _, r := range csv.Status.RequirementStatus {
		if unmet(r) {
			all = append(all, fmt.Sprintf("%s %s (%s)", r.Kind, r.Name, cmp.Or(r.Message, string(r.Status))))
		}
	}
	slices.Sort(all)
	return all
}

func unmet(r operatorsv1alpha1.RequirementStatus) bool {
	switch r.Status {
	case operatorsv1alpha1.RequirementStatusReasonPresent, operatorsv1alpha1.DependentStatusReasonSatisfied:
		return false
	}
	return true
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
func (r *Reconciler) observeDeployments(ctx context.Context, s *seen) error {
	csv, ok := s.Cluster.Installed()
	if !ok {
		return nil
	}
	var list appsv1.DeploymentList
	if err := r.Local.List(ctx, &list, client.InNamespace(s.data.Namespace)); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for i := range list.Items {
		live := &list.Items[i]
		if live.Labels[labelOLMOwner] != csv.Name {
			continue
		}
		wanted := int32(1)
		if live.Spec.Replicas != nil {
			wanted = *live.Spec.Replicas
		}
		s.Cluster.Deployments = append(s.Cluster.Deployments, plan.Deployment{
			Name: live.Name, Unavailable: max(wanted-live.Status.AvailableReplicas, 0),
			Configured: live.Status.ObservedGeneration >= live.Generation &&
				configured(live.Spec.Template.Spec, s.data.Config),
		})
	}
	slices.SortFunc(s.Cluster.Deployments, func(a, b plan.Deployment) int { return strings.Compare(a.Name, b.Name) })
	return nil
}
