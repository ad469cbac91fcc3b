// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// installBundle approves OLM's plan for a bundle, and waits until OLM has installed the bundle.
func (t *trial) installBundle(ctx context.Context, r Release) (string, error) {
	plan, err := t.awaitPlan(ctx, r.Bundle.Name)
	if err != nil {
		return "", err
	}
	if err := t.checkPlan(ctx, plan); err != nil {
		return "", err
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"approved":true}}`))
	if err := t.Patch(ctx, plan, patch, fieldOwner); err != nil {
		return "", fmt.Errorf("approve InstallPlan %s: %w", plan.Name, err)
	}
	if err := t.awaitCSV(ctx, r.Bundle.Name, plan); err != nil {
		return "", err
	}
	message := "installed " + r.Bundle.Name
	if dependencies := removeName(plan.Spec.ClusterServiceVersionNames, r.Bundle.Name); len(dependencies) > 0 {
		message += ", with " + strings.Join(dependencies, ", ")
	}
	return message, nil
}

// removeName returns the names without one name.
func removeName(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}

// awaitPlan returns the plan that installs a bundle as soon as the plan can be approved (docs/olm.md, fact 4). It
// returns a failure of the bundle if OLM reports for longer than resolveLimit that it cannot resolve, or makes no
// plan within the timeout.
func (t *trial) awaitPlan(ctx context.Context, csv string) (*operatorsv1alpha1.InstallPlan, error) {
	var found *operatorsv1alpha1.InstallPlan
	var problem string
	var problemSince time.Time
	err := t.poll(ctx, t.Timeout, func(ctx context.Context) (bool, error) {
		var plans operatorsv1alpha1.InstallPlanList
		if err := t.List(ctx, &plans, client.InNamespace(t.namespace)); err != nil {
			return false, fmt.Errorf("list InstallPlans: %w", err)
		}
		var err error
		if found, err = findPendingPlan(plans.Items, csv); found != nil || err != nil {
			return true, err
		}
		current, err := t.explainUnresolved(ctx)
		switch {
		case err != nil:
			return false, err
		case current == "" || problem == "": // there is no problem, or it has just begun
			problemSince = t.Now()
		}
		if problem = current; problem != "" && t.Now().Sub(problemSince) > resolveLimit {
			return false, failf("OLM cannot install %s: %s", csv, problem)
		}
		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, failf("OLM made no InstallPlan for %s within %s: %s", csv, t.Timeout,
			cmp.Or(problem, "the Subscription does not say why"))
	}
	return found, err
}

// findPendingPlan returns the plan that installs a CSV and waits for approval; nil if there is none yet. It returns
// an error if a plan for another CSV waits for approval. It is pure.
func findPendingPlan(plans []operatorsv1alpha1.InstallPlan, csv string) (*operatorsv1alpha1.InstallPlan, error) {
	for i := range plans {
		p := &plans[i]
		if p.Spec.Approved || p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
			continue
		}
		if !slices.Contains(p.Spec.ClusterServiceVersionNames, csv) {
			return nil, failf("OLM wants to install %s instead of %s: the catalog does not lead there",
				strings.Join(p.Spec.ClusterServiceVersionNames, ", "), csv)
		}
		return p, nil
	}
	return nil, nil
}

// explainUnresolved returns OLM's message about a failed resolution or unpacking; empty if neither failed.
func (t *trial) explainUnresolved(ctx context.Context) (string, error) {
	var s operatorsv1alpha1.Subscription
	if err := t.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: objectName}, &s); err != nil {
		return "", fmt.Errorf("get Subscription: %w", err)
	}
	for _, c := range s.Status.Conditions {
		isProblem := c.Type == operatorsv1alpha1.SubscriptionResolutionFailed ||
			c.Type == operatorsv1alpha1.SubscriptionBundleUnpackFailed
		if isProblem && c.Status == corev1.ConditionTrue {
			return strings.TrimSpace(c.Message), nil
		}
	}
	return "", nil
}

// checkPlan returns an error if a plan would change existing objects. Otherwise it records the other cluster-scoped
// objects that the plan creates.
func (t *trial) checkPlan(ctx context.Context, plan *operatorsv1alpha1.InstallPlan) error {
	var steps []object
	for _, s := range plan.Status.Plan {
		if s != nil {
			steps = append(steps, object{Group: s.Resource.Group, Version: s.Resource.Version, Kind: s.Resource.Kind,
				Name: s.Resource.Name})
		}
	}
	unrecorded := slices.DeleteFunc(steps, func(o object) bool { return slices.Contains(t.record.Objects, o) })
	existing, err := t.listExisting(ctx, unrecorded)
	if err != nil {
		return err
	}
	if len(existing) > 0 && !t.AllowExisting {
		return fmt.Errorf("%w: InstallPlan %s would change %s", ErrConflict, plan.Name, joinNames(existing))
	}
	var created []object
	for _, o := range unrecorded {
		isClusterScoped, err := t.isClusterScoped(o)
		if err != nil {
			return err
		}
		if isClusterScoped && !slices.Contains(existing, o) {
			created = append(created, o)
		}
	}
	return t.recordCreated(ctx, created, nil)
}

// awaitCSV waits until OLM has installed a ClusterServiceVersion. It returns a failure of the bundle if the plan or the
// ClusterServiceVersion fails, or if OLM does not finish within the timeout.
func (t *trial) awaitCSV(ctx context.Context, name string, plan *operatorsv1alpha1.InstallPlan) error {
	lastState := "it does not exist"
	err := t.poll(ctx, t.Timeout, func(ctx context.Context) (bool, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(plan), plan); err != nil {
			return false, fmt.Errorf("get InstallPlan %s: %w", plan.Name, err)
		}
		if plan.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed {
			return false, failf("InstallPlan %s of %s failed: %s", plan.Name, name, formatPlanFailure(plan))
		}
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		err := t.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, csv)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("get ClusterServiceVersion %s: %w", name, err)
		}
		lastState = formatCSVState(csv)
		if csv.Status.Phase == operatorsv1alpha1.CSVPhaseFailed {
			return false, failf("OLM could not install %s: %s%s", name, lastState, t.explainUnready(ctx))
		}
		return csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return failf("OLM did not install %s within %s: %s%s", name, t.Timeout, lastState, t.explainUnready(ctx))
	}
	return err
}

// formatPlanFailure returns why an InstallPlan failed.
func formatPlanFailure(p *operatorsv1alpha1.InstallPlan) string {
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" {
			return c.Message
		}
	}
	return cmp.Or(p.Status.Message, "it does not say why")
}

// formatCSVState returns the phase of a ClusterServiceVersion, and the requirements that are not met. It is pure.
func formatCSVState(csv *operatorsv1alpha1.ClusterServiceVersion) string {
	out := cmp.Or(string(csv.Status.Phase), "it has no phase")
	if csv.Status.Message != "" {
		out += fmt.Sprintf(" (%s): %s", csv.Status.Reason, csv.Status.Message)
	}
	for _, r := range csv.Status.RequirementStatus {
		if !plan.IsUnmet(r) || csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded {
			continue
		}
		out += fmt.Sprintf("; %s %s is %s", r.Kind, r.Name, r.Status)
		if r.Message != "" {
			out += " (" + r.Message + ")"
		}
		for _, d := range r.Dependents {
			if d.Status == operatorsv1alpha1.DependentStatusReasonNotSatisfied {
				out += fmt.Sprintf(", %s is missing: %s", d.Kind, d.Message)
			}
		}
	}
	return out
}
