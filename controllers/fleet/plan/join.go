// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

func join(in Input, d *Decision) {
	if !slices.Contains(in.Cluster.Finalizers, v1alpha1.FinalizerHub) {
		d.Actions = append(d.Actions, AddFinalizer)
	}
	d.Status.Namespace = ""
	switch in.Namespace {
	case NamespaceAbsent:
		d.Actions = append(d.Actions, CreateNamespace, ApplyAccess)
		createAccount(in, d)
	case NamespaceOurs:
		d.Status.Namespace = v1alpha1.ClusterNamespace(in.Cluster.Name)
		if !in.AccessInSync {
			d.Actions = append(d.Actions, ApplyAccess)
		}
		if in.Account == "" {
			createAccount(in, d)
		}
	case NamespaceTerminating:
		// The agent's access was deleted with the namespace, so nobody else would
		// remove the finalizers of what is left in it.
		d.Removals = releaseAll(in.Operators)
	case NamespaceForeign:
	}
	conditions.Summarize(&d.Status.Conditions, in.Cluster.Generation, summarize(in))
}

// AccountPause is how long the hub waits before it makes a ServiceAccount again that was deleted. An API server accepts
// a token for 10 s after it checked it (TokenSuccessCacheTTL of kube-apiserver, which cannot be set), and learns of a
// deletion with a delay. An agent that has such a token could otherwise request one of the new ServiceAccount.
const AccountPause = 30 * time.Second

// accountPause returns how much of AccountPause is left.
func accountPause(in Input) time.Duration {
	if in.Account != "" || in.AccountGoneAt.IsZero() {
		return 0
	}
	return max(0, in.AccountGoneAt.Add(AccountPause).Sub(in.Now))
}

// createAccount makes the ServiceAccount once its predecessor's tokens have ended.
func createAccount(in Input, d *Decision) {
	if pause := accountPause(in); pause > 0 {
		d.RecheckAfter = soonest(d.RecheckAfter, pause)
		return
	}
	d.Actions = append(d.Actions, CreateAccount)
}

func releaseAll(operators []Operator) []removal.Step {
	var steps []removal.Step
	for _, o := range operators {
		if o.Deleting && o.Held {
			steps = append(steps, removal.Step{Namespace: o.Namespace, Name: o.Name, Release: true})
		}
	}
	return steps
}

func summarize(in Input) conditions.Summary {
	namespace := v1alpha1.ClusterNamespace(in.Cluster.Name)
	switch in.Namespace {
	case NamespaceForeign:
		return stalled(v1alpha1.ReasonNamespaceConflict, fmt.Sprintf(
			"namespace %s exists on the hub and was not made for this cluster (label %s=%s is missing): delete that "+
				"namespace, or give the cluster another name",
			namespace, v1alpha1.LabelCluster, in.Cluster.Name))
	case NamespaceTerminating:
		return waiting(v1alpha1.ReasonNamespaceTerminating, fmt.Sprintf(
			"namespace %s is being deleted; it is created again after that, and the agent then needs a new token: run "+
				"`bellwether fleet join` again",
			namespace))
	case NamespaceAbsent:
		return waiting(v1alpha1.ReasonProgressing, fmt.Sprintf("namespace %s is being created", namespace))
	case NamespaceOurs:
	}
	switch {
	case in.Account == "" && isRevoked(in):
		return stalled(v1alpha1.ReasonAccessRevoked, accessRevoked(in.Cluster.Name))
	case accountPause(in) > 0:
		return waiting(v1alpha1.ReasonProgressing, fmt.Sprintf("the agent's ServiceAccount was deleted; it is created "+
			"again %s after that, when the API server no longer accepts its tokens", AccountPause))
	case !in.AccessInSync, in.Account == "":
		return waiting(v1alpha1.ReasonProgressing,
			fmt.Sprintf("the agent's access to namespace %s is being created", namespace))
	case !in.Lease.Found:
		return waiting(v1alpha1.ReasonNeverJoined, neverJoined(in.Cluster.Name))
	case isRevoked(in):
		return stalled(v1alpha1.ReasonAccessRevoked, accessRevoked(in.Cluster.Name))
	case !in.Lease.IsOnline(in.Now) && isSaidToHibernate(in):
		return waiting(v1alpha1.ReasonHibernating, hibernating(in.Cluster.Status.Source))
	case !in.Lease.IsOnline(in.Now):
		return stalled(v1alpha1.ReasonAgentOffline, leaseExpired(in))
	case !in.Lease.APIServer.Checked:
		return waiting(v1alpha1.ReasonWaiting, notChecked)
	case !in.Lease.APIServer.IsReachable():
		return stalled(v1alpha1.ReasonAPIServerUnreachable, apiServerUnreachable(in.Lease.APIServer))
	case !in.Lease.OLMChecked:
		return waiting(v1alpha1.ReasonWaiting, olmNotChecked)
	case in.Lease.Versions.OLM == "":
		return stalled(v1alpha1.ReasonOLMMissing, olmMissing)
	}
	text := "the agent reports, the API server answers and OLM is installed"
	if in.Cluster.Spec.Paused {
		text += "; spec.paused is true: rollouts skip this cluster"
	}
	if isSaidToHibernate(in) {
		text += "; " + powerState(in.Cluster.Status.Source) + ": rollouts skip this cluster"
	}
	if in.Cluster.Status.IsSourcePaused() {
		text += "; its source is paused, or is being moved: rollouts skip this cluster"
	}
	return conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded, Message: text}
}

func stalled(reason, message string) conditions.Summary {
	return conditions.Summary{State: conditions.Stalled, Reason: reason, Message: message}
}

func waiting(reason, message string) conditions.Summary {
	return conditions.Summary{State: conditions.InProgress, Reason: reason, Message: message}
}
