// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// setStatus updates the status of a policy. If failed is not nil, nothing is written because
// of this error, so the state that was written last, if any, stays in force.
func setStatus(status *v1alpha1.PagingPolicyStatus, in Input, p *v1alpha1.PagingPolicy, problem Problem,
	inForce []Policy, written map[types.NamespacedName]Policy, failed error) {
	key := toObjectKey(p)
	status.ObservedGeneration = p.Generation
	last, applied := written[key]
	if failed == nil {
		i := slices.IndexFunc(inForce, func(o Policy) bool { return toKey(o) == key })
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
	status.ChangeEvents = mergeChangeEvents(p, status.ChangeEvents, problem, in.Now)
	// All written data contains the policy of the fleet.
	fleet := failed == nil || len(written) > 0
	conditions.Summarize(&status.Conditions, p.Generation, summarize(p, problem, last, applied, fleet, failed))
}

// mergeChangeEvents returns the receivers of change events, with the time since when they receive the
// events. Previous receivers keep their time. A policy with a problem gets no new receivers.
func mergeChangeEvents(p *v1alpha1.PagingPolicy, previous []v1alpha1.ChangeEventReceiver, problem Problem,
	now time.Time) []v1alpha1.ChangeEventReceiver {
	if p.Spec.ChangeEvents == nil {
		return nil
	}
	var out []v1alpha1.ChangeEventReceiver
	for _, name := range p.Spec.ChangeEvents.Receivers {
		i := slices.IndexFunc(previous, func(r v1alpha1.ChangeEventReceiver) bool { return r.Receiver == name })
		switch {
		case i >= 0:
			out = append(out, previous[i])
		case problem.Reason == "":
			out = append(out, v1alpha1.ChangeEventReceiver{Receiver: name,
				Since: metav1.NewTime(now.UTC().Truncate(time.Second))})
		}
	}
	return out
}

// summarize returns the state of a policy for a person. If applied is true, last is the policy as it is in force.
// fleet reports whether any configuration is in force. failed is the error because of which nothing is written, or nil.
func summarize(p *v1alpha1.PagingPolicy, problem Problem, last Policy, applied, fleet bool,
	failed error) conditions.Summary {
	switch {
	case problem.Reason != "":
		return conditions.Summary{State: conditions.Stalled, Reason: problem.Reason, Message: problem.Message + ". " +
			describeInForce(p, last, applied, fleet)}
	case errors.Is(failed, ErrNoFleetPolicy):
		return conditions.Summary{State: conditions.Stalled, Reason: v1alpha1.ReasonNoFleetPolicy,
			Message: failed.Error() + ". " + describeInForce(p, last, applied, fleet)}
	case failed != nil:
		return conditions.Summary{State: conditions.Stalled, Reason: v1alpha1.ReasonConfigurationInvalid,
			Message: failed.Error() + ". " + describeInForce(p, last, applied, fleet)}
	}
	message := fmt.Sprintf("alerts about %s are routed", phrase.Count(len(last.Operators), "operator"))
	if last.IsFleet() {
		message += ", and those about clusters and the fleet"
	}
	if missing := listUnknown(p, last); len(missing) > 0 {
		message += fmt.Sprintf("; there is no operator %s in namespace %s", strings.Join(missing, ", "), p.Namespace)
	}
	return conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded, Message: message}
}

// describeInForce describes which configuration is in force instead of a policy that is not applied.
func describeInForce(p *v1alpha1.PagingPolicy, last Policy, applied, fleet bool) string {
	switch {
	case applied:
		return fmt.Sprintf("The policy as it was in generation %d stays in force", last.Generation)
	case !fleet:
		return "No configuration was ever written: no user is notified"
	case p.Spec.Scope == v1alpha1.PagingFleet:
		return "The policy was never applied: another one with the scope Fleet stays in force"
	}
	return "The policy was never applied: its alerts go where the policy with the scope Fleet says"
}

// listUnknown returns the operators that a policy names and that do not exist, or have another team.
func listUnknown(p *v1alpha1.PagingPolicy, last Policy) []string {
	return slices.DeleteFunc(slices.Clone(p.Spec.Operators), func(name string) bool {
		return slices.ContainsFunc(last.Operators, func(op Operator) bool { return op.Name == name })
	})
}
