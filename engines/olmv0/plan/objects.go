// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ObjectOf returns the identity of an object as it was read.
func ObjectOf(o metav1.Object) Object {
	return Object{UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
}

// readConditionMessage returns the message of a condition of a Subscription if the condition is true;
// empty otherwise.
func readConditionMessage(sub *operatorsv1alpha1.Subscription,
	condition operatorsv1alpha1.SubscriptionConditionType) string {
	if c := sub.Status.GetCondition(condition); c.Status == corev1.ConditionTrue {
		return cmp.Or(c.Message, c.Reason)
	}
	return ""
}

// readSubscription returns what the plan needs from the spec and status of a Subscription. The fields that depend on
// the operator, such as IsOwn and InSync, are not set.
func readSubscription(sub operatorsv1alpha1.Subscription) Subscription {
	observed := Subscription{
		Name: sub.Name, InstalledCSV: sub.Status.InstalledCSV, CurrentCSV: sub.Status.CurrentCSV,
		ResolutionFailed: readConditionMessage(&sub, operatorsv1alpha1.SubscriptionResolutionFailed),
		LastUpdated:      sub.Status.LastUpdated.Time,
		UnpackFailed:     readConditionMessage(&sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed),
	}
	if sub.Spec != nil {
		observed.Package = sub.Spec.Package
	}
	if sub.Status.InstallPlanRef != nil {
		observed.Plan = sub.Status.InstallPlanRef.UID
	}
	// In other states, the reference names a plan that OLM has already carried out.
	if sub.Status.InstallPlanRef != nil && sub.Status.State == operatorsv1alpha1.SubscriptionStateUpgradePending {
		observed.Awaits = sub.Status.InstallPlanRef.Name
	}
	return observed
}

// InstallPlanOf returns what the plan needs from an InstallPlan.
func InstallPlanOf(live *operatorsv1alpha1.InstallPlan) InstallPlan {
	observed := InstallPlan{
		Object: ObjectOf(live), Name: live.Name, Phase: string(live.Status.Phase), Approved: live.Spec.Approved,
		Message: live.Status.Message, CSVs: live.Spec.ClusterServiceVersionNames,
		Created: live.CreationTimestamp.Time, Subscribes: listSubscribedCSVs(live), Sources: listSources(live),
		Services: listServices(live),
	}
	// The revision is 0 for a plan that Bellwether did not approve: the annotation is missing or invalid.
	observed.Revision, _ = strconv.ParseInt(live.Annotations[v1alpha1.AnnotationRevision], 10, 64)
	if live.Status.StartTime != nil {
		observed.Started = live.Status.StartTime.Time
	}
	done := live.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	if done.Status == corev1.ConditionTrue && done.LastTransitionTime != nil {
		observed.Completed = done.LastTransitionTime.Time
	}
	if live.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed {
		observed.FailedAt, observed.Failure = readFailure(live)
	}
	return observed
}

// listSubscribedCSVs returns the CSVs for which a plan makes a Subscription.
func listSubscribedCSVs(p *operatorsv1alpha1.InstallPlan) []string {
	var csvs []string
	for _, step := range p.Status.Plan {
		if step != nil && step.Resource.Kind == KindSubscription {
			csvs = append(csvs, step.Resolving)
		}
	}
	return csvs
}

// listServices returns the Services that a plan makes, by the CSV that they belong to.
func listServices(p *operatorsv1alpha1.InstallPlan) map[string][]string {
	var out map[string][]string
	for _, step := range p.Status.Plan {
		if step != nil && step.Resource.Kind == KindService {
			if out == nil {
				out = map[string][]string{}
			}
			out[step.Resolving] = append(out[step.Resolving], step.Resource.Name)
		}
	}
	return out
}

// listSources returns the CatalogSources that a plan's steps come from, each once for each CSV.
func listSources(p *operatorsv1alpha1.InstallPlan) []StepSource {
	var out []StepSource
	add := func(s StepSource) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, step := range p.Status.Plan {
		if step != nil {
			add(StepSource{CSV: step.Resolving, Namespace: step.Resource.CatalogSourceNamespace,
				Name: step.Resource.CatalogSource})
		}
	}
	for _, bundle := range p.Status.BundleLookups {
		if bundle.CatalogSourceRef != nil {
			add(StepSource{CSV: bundle.Identifier, Namespace: bundle.CatalogSourceRef.Namespace,
				Name: bundle.CatalogSourceRef.Name})
		}
	}
	return out
}

// readFailure returns when and why a plan failed. The text follows the word "failed" in a sentence, and names the first
// unfinished step if there is one.
func readFailure(p *operatorsv1alpha1.InstallPlan) (time.Time, string) {
	failedAt, message := p.CreationTimestamp.Time, p.Status.Message
	for _, condition := range p.Status.Conditions {
		if condition.Status == corev1.ConditionFalse && condition.LastTransitionTime != nil {
			failedAt, message = condition.LastTransitionTime.Time, condition.Message
		}
	}
	for _, step := range p.Status.Plan {
		if step == nil || step.Status == operatorsv1alpha1.StepStatusPresent ||
			step.Status == operatorsv1alpha1.StepStatusCreated {
			continue
		}
		return failedAt, fmt.Sprintf("at the step %s %s of %s: %s", step.Resource.Kind, step.Resource.Name,
			step.Resolving, message)
	}
	return failedAt, "because " + message
}

// readCSV returns what the plan needs from a ClusterServiceVersion. label is the name of the label that OLM puts on all
// objects of the package.
func readCSV(live *operatorsv1alpha1.ClusterServiceVersion, label string) CSV {
	_, isOfPackage := live.Labels[label]
	observed := CSV{
		Object: ObjectOf(live), Name: live.Name, Version: live.Spec.Version.String(), Phase: string(live.Status.Phase),
		Reason:  string(live.Status.Reason),
		Message: live.Status.Message, Replaces: live.Spec.Replaces, Created: live.CreationTimestamp.Time,
		Deleting: !live.DeletionTimestamp.IsZero(), IsOfPackage: isOfPackage,
		Missing: listRequirements(live, IsUnmet),
		Lost: listRequirements(live, func(r operatorsv1alpha1.RequirementStatus) bool {
			return IsUnmet(r) && isFromBundle(live, r)
		}),
	}
	if live.Status.LastTransitionTime != nil {
		observed.Since = live.Status.LastTransitionTime.Time
	}
	return observed
}

// listRequirements returns the selected requirements of a CSV in words, sorted.
func listRequirements(csv *operatorsv1alpha1.ClusterServiceVersion,
	isSelected func(operatorsv1alpha1.RequirementStatus) bool) []string {
	var all []string
	for _, r := range csv.Status.RequirementStatus {
		if isSelected(r) {
			all = append(all, fmt.Sprintf("%s %s (%s)", r.Kind, r.Name, cmp.Or(r.Message, string(r.Status))))
		}
	}
	slices.Sort(all)
	return all
}

// isFromBundle reports whether the CSV's bundle meets a requirement: the bundle has its service accounts and the
// CustomResourceDefinitions that it owns.
func isFromBundle(csv *operatorsv1alpha1.ClusterServiceVersion, r operatorsv1alpha1.RequirementStatus) bool {
	return r.Kind == "ServiceAccount" || slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Owned,
		func(crd operatorsv1alpha1.CRDDescription) bool {
			return r.Kind == KindDefinition && r.Name == crd.Name
		})
}

// formatComponentLabel returns the label that OLM puts on all objects of a package's Subscription. OLM truncates it
// to the maximum length of a label's name.
func formatComponentLabel(pkg, namespace string) string {
	name := pkg + "." + namespace
	if len(name) > maxLabelName {
		name = name[:maxLabelName]
	}
	return "operators.coreos.com/" + name
}

const maxLabelName = 63
