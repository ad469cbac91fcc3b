// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// report says what became of a policy.
func report(status *v1alpha1.PagingPolicyStatus, in Input, p *v1alpha1.PagingPolicy, problem paging.Problem,
	inForce []paging.Policy, written map[types.NamespacedName]paging.Policy, failed error) {
	key := keyOfObject(p)
	status.ObservedGeneration = p.Generation
	last, applied := written[key]
	if failed == nil {
		i := slices.IndexFunc(inForce, func(o paging.Policy) bool { return keyOf(o) == key })
		if applied = i >= 0; applied {
			last = inForce[i]
		}
	}
	status.Operators, status.Configuration = 0, nil
	if applied {
		status.Operators = int32(len(last.Operators))
		status.Configuration = &v1alpha1.PagingConfiguration{Kind: string(in.Kind), Namespace: in.Namespace,
			Name: SecretName, Generation: last.Generation}
		if in.Kind == KindObject {
			status.Configuration.Namespace, status.Configuration.Name = p.Namespace, ObjectName(p.Name)
		}
	}
	reportTest(status, in, p)
	status.ChangeEvents = changeEvents(p, status.ChangeEvents, problem, in.Now)
	// Whatever was written has the fleet's policy.
	fleet := failed == nil || len(written) > 0
	conditions.Summarize(&status.Conditions, p.Generation, summarize(p, problem, last, applied, fleet, failed))
}

// changeEvents are the receivers that change events are sent to. A policy that is wrong
// gets no new ones.
func changeEvents(p *v1alpha1.PagingPolicy, before []v1alpha1.ChangeEventReceiver, problem paging.Problem,
	now time.Time) []v1alpha1.ChangeEventReceiver {
	if p.Spec.ChangeEvents == nil {
		return nil
	}
	var out []v1alpha1.ChangeEventReceiver
	for _, name := range p.Spec.ChangeEvents.Receivers {
		i := slices.IndexFunc(before, func(r v1alpha1.ChangeEventReceiver) bool { return r.Receiver == name })
		switch {
		case i >= 0:
			out = append(out, before[i])
		case problem.Reason == "":
			out = append(out, v1alpha1.ChangeEventReceiver{Receiver: name,
				Since: metav1.NewTime(now.UTC().Truncate(time.Second))})
		}
	}
	return out
}

// summarize says what became of a policy, for a person.
func summarize(p *v1alpha1.PagingPolicy, problem paging.Problem, last paging.Policy, applied, fleet bool,
	failed error) conditions.Summary {
	switch {
	case problem.Reason != "":
		return conditions.Summary{State: conditions.Stalled, Reason: problem.Reason, Message: problem.Message + ". " +
			stays(p, last, applied, fleet)}
	case errors.Is(failed, paging.ErrNoFleetPolicy):
		return conditions.Summary{State: conditions.Stalled, Reason: v1alpha1.ReasonNoFleetPolicy,
			Message: failed.Error() + ". " + stays(p, last, applied, fleet)}
	case failed != nil:
		return conditions.Summary{State: conditions.Stalled, Reason: v1alpha1.ReasonConfigurationInvalid,
			Message: failed.Error() + ". " + stays(p, last, applied, fleet)}
	}
	message := fmt.Sprintf("alerts about %s are routed", phrase.Count(len(last.Operators), "operator"))
	if last.IsFleet() {
		message += ", and those about clusters and the fleet"
	}
	if missing := unknown(p, last); len(missing) > 0 {
		message += fmt.Sprintf("; there is no operator %s in namespace %s", strings.Join(missing, ", "), p.Namespace)
	}
	return conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded, Message: message}
}

// stays says what is in force in place of a policy that is not applied.
func stays(p *v1alpha1.PagingPolicy, last paging.Policy, applied, fleet bool) string {
	switch {
	case applied:
		return fmt.Sprintf("The policy as it was in generation %d stays in force", last.Generation)
	case !fleet:
		return "No configuration was ever written: nobody is notified"
	case p.Spec.Scope == v1alpha1.PagingFleet:
		return "The policy was never applied: another one with the scope Fleet stays in force"
	}
	return "The policy was never applied: its alerts go where the policy with the scope Fleet says"
}

// unknown are operators that a policy names and that do not exist, or have another team.
func unknown(p *v1alpha1.PagingPolicy, last paging.Policy) []string {
	return slices.DeleteFunc(slices.Clone(p.Spec.Operators), func(name string) bool {
		return slices.ContainsFunc(last.Operators, func(op paging.Operator) bool { return op.Name == name })
	})
}
