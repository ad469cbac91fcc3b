// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// fieldOwner is the field manager of the agent on the fleet cluster.
const fieldOwner = client.FieldOwner(plan.FieldOwner)

// abandonedStrategy is an install strategy that OLM does not support. OLM fails a CSV with such a strategy at once,
// keeps it Failed, and lets the next CSV replace it. The objects of the CSV stay until then.
const abandonedStrategy = "abandoned-by-bellwether"

// kinds maps the kinds of actions to the kinds of their objects.
var kinds = map[string]schema.GroupVersionKind{
	plan.KindNamespace:     corev1.SchemeGroupVersion.WithKind(plan.KindNamespace),
	plan.KindOperatorGroup: operatorsv1.SchemeGroupVersion.WithKind(plan.KindOperatorGroup),
	plan.KindCatalogSource: operatorsv1alpha1.SchemeGroupVersion.WithKind(plan.KindCatalogSource),
	plan.KindSubscription:  operatorsv1alpha1.SchemeGroupVersion.WithKind(plan.KindSubscription),
	plan.KindInstallPlan:   operatorsv1alpha1.SchemeGroupVersion.WithKind(plan.KindInstallPlan),
	plan.KindCSV:           operatorsv1alpha1.SchemeGroupVersion.WithKind(plan.KindCSV),
	plan.KindDeployment:    appsv1.SchemeGroupVersion.WithKind(plan.KindDeployment),
}

// Apply carries out the actions in order and stops at the first error. Each action can be repeated, so the next pass
// does the rest.
func (e *Engine) Apply(ctx context.Context, install *v1alpha1.OperatorInstall, o *Observation,
	actions []plan.Action) error {
	for _, action := range actions {
		if action.Verb != plan.Read {
			log.FromContext(ctx).Info("Acting", "verb", action.Verb, "kind", action.Kind, "name", action.Name,
				"value", action.Value)
		}
		if err := e.runAction(ctx, install, o, action); err != nil {
			return fmt.Errorf("%s %s %s: %w", action.Verb, action.Kind, action.Name, err)
		}
	}
	return nil
}

// WhileFrozen returns the actions that serve views, so that OLM can still connect to its CatalogSources during
// a freeze.
func (e *Engine) WhileFrozen(actions []plan.Action) []plan.Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a plan.Action) bool { return a.Verb != plan.Serve })
}

// runAction carries out one action.
func (e *Engine) runAction(ctx context.Context, install *v1alpha1.OperatorInstall, o *Observation,
	a plan.Action) error {
	switch a.Verb {
	case plan.Read:
		return e.readData(ctx, install, o, a)
	case plan.Serve:
		_, _, err := e.Views.Set(formatViewKey(install), o.view, readServedPort(o.facts.Cluster.CatalogSource))
		return err
	case plan.StopServing:
		e.Views.Remove(formatViewKey(install))
		e.offers.forget(client.ObjectKeyFromObject(install))
		e.driftCache.forget(client.ObjectKeyFromObject(install))
		e.stepsCache.forget(client.ObjectKeyFromObject(install))
		return nil
	case plan.Apply:
		rendered, ok := o.facts.Rendered[a.Kind]
		if !ok {
			return nil // the template does not render; the status reports that
		}
		return e.Local.Apply(ctx, client.ApplyConfigurationFromUnstructured(rendered), fieldOwner,
			client.ForceOwnership)
	case plan.Delete:
		return client.IgnoreNotFound(e.Local.Delete(ctx, newActionObject(install, a),
			client.Preconditions{UID: &a.Object.UID}))
	case plan.Correct:
		return e.correctFields(ctx, install, o, a)
	case plan.Redo:
		return e.redoPlan(ctx, install, a)
	case plan.TakeOver:
		return e.takeOver(ctx, install, o, a)
	case plan.GiveBack:
		return e.restoreSubscription(ctx, install, o, a)
	default:
		return e.patchObject(ctx, install, a)
	}
}

// readServedPort returns the port in the address of a CatalogSource, so that a restart of the agent does not move the
// view; 0 for any port.
func readServedPort(source *plan.CatalogSource) int {
	if source == nil {
		return 0
	}
	_, text, err := net.SplitHostPort(source.Address)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return port
}

// newActionObject returns an empty object with the kind and name of an action's object.
func newActionObject(install *v1alpha1.OperatorInstall, a plan.Action) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kinds[a.Kind])
	object.SetName(a.Name)
	if a.Kind != plan.KindNamespace {
		object.SetNamespace(install.Spec.Admission.Release.TargetNamespace())
	}
	return object
}

// patchObject patches an object of OLM, or its status.
func (e *Engine) patchObject(ctx context.Context, install *v1alpha1.OperatorInstall, a plan.Action) error {
	p := newPatch(a, install.Spec.Admission.Revision, e.Now())
	p.Metadata.ResourceVersion = a.Object.ResourceVersion
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	patch := client.RawPatch(types.MergePatchType, text)
	if p.Status != nil {
		return e.Local.Status().Patch(ctx, newActionObject(install, a), patch, fieldOwner)
	}
	return e.Local.Patch(ctx, newActionObject(install, a), patch, fieldOwner)
}

// patch is a merge patch. The resource version is a precondition.
type patch struct {
	Metadata patchMetadata `json:"metadata"`
	Spec     any           `json:"spec,omitempty"`
	Status   any           `json:"status,omitempty"`
}

type patchMetadata struct {
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// newPatch returns the patch for an action whose object is patched; an empty patch for any other action.
func newPatch(a plan.Action, revision int64, now time.Time) patch {
	switch a.Verb {
	case plan.Approve:
		return patch{
			Metadata: patchMetadata{Annotations: map[string]string{
				v1alpha1.AnnotationRevision: strconv.FormatInt(revision, 10)}},
			Spec: approval{Approved: true},
		}
	case plan.Abandon:
		var spec strategy
		spec.Install.Strategy = abandonedStrategy
		return patch{Spec: spec}
	case plan.Detach:
		return patch{Spec: detachedCSV{}}
	case plan.Forget:
		return patch{Metadata: patchMetadata{Annotations: map[string]string{v1alpha1.AnnotationKept: ""}}}
	case plan.Keep:
		return patch{Metadata: patchMetadata{Annotations: map[string]string{plan.AnnotationKeep: a.Value}}}
	case plan.Retry:
		return patch{Status: retriedPlan{Phase: operatorsv1alpha1.InstallPlanPhaseInstalling}}
	case plan.Adopt:
		return patch{Status: adoptedCSV{CurrentCSV: a.Value, InstalledCSV: a.Value,
			State: operatorsv1alpha1.SubscriptionStateAtLatest, LastUpdated: now.UTC().Format(time.RFC3339)}}
	case plan.Reset:
		status := resetSubscription{LastUpdated: now.UTC().Format(time.RFC3339)}
		if a.Value != "" {
			status.CurrentCSV = &a.Value
		}
		return patch{Status: status}
	case plan.Reprocess:
		return patch{Status: csvPhase{Phase: operatorsv1alpha1.CSVPhasePending,
			Reason:  operatorsv1alpha1.CSVReasonRequirementsUnknown,
			Message: "processed again on behalf of Bellwether"}}
	case plan.SetReplacing:
		return patch{Status: csvPhase{Phase: operatorsv1alpha1.CSVPhaseReplacing,
			Reason:  operatorsv1alpha1.CSVReasonBeingReplaced,
			Message: "replaced on behalf of Bellwether"}}
	}
	return patch{}
}

// The parts of OLM's objects that are patched. A nil field is removed from the object.
type (
	approval struct {
		Approved bool `json:"approved"`
	}
	strategy struct {
		Install struct {
			Strategy string `json:"strategy"`
		} `json:"install"`
	}
	detachedCSV struct {
		Replaces *string `json:"replaces"`
	}
	// retriedPlan makes OLM carry out a failed InstallPlan again. Completed steps stay completed.
	retriedPlan struct {
		Phase      operatorsv1alpha1.InstallPlanPhase `json:"phase"`
		Message    *string                            `json:"message"`
		StartTime  *string                            `json:"startTime"`
		Conditions *[]string                          `json:"conditions"`
	}
	// adoptedCSV is what OLM writes when it has installed a CSV for a Subscription.
	adoptedCSV struct {
		CurrentCSV   string                              `json:"currentCSV"`
		InstalledCSV string                              `json:"installedCSV"`
		State        operatorsv1alpha1.SubscriptionState `json:"state"`
		LastUpdated  string                              `json:"lastUpdated"`
	}
	// resetSubscription removes OLM's plan from a Subscription. OLM then resolves at once, and makes a plan only for
	// a CSV other than the current CSV. The time makes sure that the patch is a change.
	resetSubscription struct {
		LastUpdated    string  `json:"lastUpdated"`
		InstallPlanRef *string `json:"installPlanRef"`
		InstallPlan    *string `json:"installplan"`
		State          *string `json:"state"`
		CurrentCSV     *string `json:"currentCSV"`
	}
	// csvPhase makes OLM continue with a CSV from another phase. The objects of the CSV exist, so a CSV that is
	// processed again is Succeeded after a moment.
	csvPhase struct {
		Phase   operatorsv1alpha1.ClusterServiceVersionPhase `json:"phase"`
		Reason  operatorsv1alpha1.ConditionReason            `json:"reason"`
		Message string                                       `json:"message"`
	}
)
