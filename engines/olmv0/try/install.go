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

// install approves OLM's plan for a bundle, and waits until OLM says that the bundle is
// installed.
func (t *trial) install(ctx context.Context, r Release) (string, error) {
	plan, err := t.awaitPlan(ctx, r.Bundle.Name)
	if err != nil {
		return "", err
	}
	if err := t.admit(ctx, plan); err != nil {
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
	if others := without(plan.Spec.ClusterServiceVersionNames, r.Bundle.Name); len(others) > 0 {
		message += ", with " + strings.Join(others, ", ")
	}
	return message, nil
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}

// awaitPlan waits for the plan that installs a bundle, until it can be approved
// (docs/olm.md, fact 4).
func (t *trial) awaitPlan(ctx context.Context, csv string) (*operatorsv1alpha1.InstallPlan, error) {
	var found *operatorsv1alpha1.InstallPlan
	var problem string
	var since time.Time
	err := t.poll(ctx, t.Timeout, func(ctx context.Context) (bool, error) {
		var plans operatorsv1alpha1.InstallPlanList
		if err := t.List(ctx, &plans, client.InNamespace(t.namespace)); err != nil {
			return false, fmt.Errorf("list InstallPlans: %w", err)
		}
		var err error
		if found, err = pendingPlan(plans.Items, csv); found != nil || err != nil {
			return true, err
		}
		said, err := t.whyUnresolved(ctx)
		switch {
		case err != nil:
			return false, err
		case said == "" || problem == "":
			since = t.Now()
		}
		if problem = said; problem != "" && t.Now().Sub(since) > resolveLimit {
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

// pendingPlan returns the plan that installs a CSV and waits for approval; nil if there
// is none yet. A plan for something else is an error. It is pure.
func pendingPlan(plans []operatorsv1alpha1.InstallPlan, csv string) (*operatorsv1alpha1.InstallPlan, error) {
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

// whyUnresolved returns what OLM says on the Subscription; empty if that is nothing bad.
func (t *trial) whyUnresolved(ctx context.Context) (string, error) {
	var s operatorsv1alpha1.Subscription
	if err := t.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: objectName}, &s); err != nil {
		return "", fmt.Errorf("get Subscription: %w", err)
	}
	for _, c := range s.Status.Conditions {
		bad := c.Type == operatorsv1alpha1.SubscriptionResolutionFailed ||
			c.Type == operatorsv1alpha1.SubscriptionBundleUnpackFailed
		if bad && c.Status == corev1.ConditionTrue {
			return strings.TrimSpace(c.Message), nil
		}
	}
	return "", nil
}

// admit refuses a plan that would change what was there before, and writes down what
// else it makes outside of the namespace.
func (t *trial) admit(ctx context.Context, plan *operatorsv1alpha1.InstallPlan) error {
	var steps []object
	for _, s := range plan.Status.Plan {
		if s != nil {
			steps = append(steps, object{s.Resource.Group, s.Resource.Version, s.Resource.Kind, s.Resource.Name})
		}
	}
	fresh := slices.DeleteFunc(steps, func(o object) bool { return slices.Contains(t.made.Objects, o) })
	there, err := t.existing(ctx, fresh)
	if err != nil {
		return err
	}
	if len(there) > 0 && !t.AllowExisting {
		return fmt.Errorf("%w: InstallPlan %s would change %s", ErrConflict, plan.Name, names(there))
	}
	var made []object
	for _, o := range fresh {
		cluster, err := t.isClusterScoped(o)
		if err != nil {
			return err
		}
		if cluster && !slices.Contains(there, o) {
			made = append(made, o)
		}
	}
	return t.remember(ctx, made, nil)
}

// awaitCSV waits until OLM has installed a ClusterServiceVersion.
func (t *trial) awaitCSV(ctx context.Context, name string, plan *operatorsv1alpha1.InstallPlan) error {
	last := "it does not exist"
	err := t.poll(ctx, t.Timeout, func(ctx context.Context) (bool, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(plan), plan); err != nil {
			return false, fmt.Errorf("get InstallPlan %s: %w", plan.Name, err)
		}
		if plan.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed {
			return false, failf("InstallPlan %s of %s failed: %s", plan.Name, name, planMessage(plan))
		}
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		err := t.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, csv)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("get ClusterServiceVersion %s: %w", name, err)
		}
		last = csvMessage(csv)
		if csv.Status.Phase == operatorsv1alpha1.CSVPhaseFailed {
			return false, failf("OLM could not install %s: %s%s", name, last, t.whyUnready(ctx))
		}
		return csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return failf("OLM did not install %s within %s: %s%s", name, t.Timeout, last, t.whyUnready(ctx))
	}
	return err
}

func planMessage(p *operatorsv1alpha1.InstallPlan) string {
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" {
			return c.Message
		}
	}
	return cmp.Or(p.Status.Message, "it does not say why")
}

// csvMessage is the state of a ClusterServiceVersion, and the requirements that are not
// met. It is pure.
func csvMessage(csv *operatorsv1alpha1.ClusterServiceVersion) string {
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
