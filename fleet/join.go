// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// join adds the actions that create the cluster's namespace and access on the hub, and sets the summary.
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
		// The agent's access was deleted with the namespace, so the agent cannot remove its finalizers.
		d.Removals = releaseAll(in.Operators)
	case NamespaceForeign: // the hub must not change it; the summary says what a person can do
	}
	conditions.Summarize(&d.Status.Conditions, in.Cluster.Generation, summarize(in))
}

// AccountPause is how long the hub waits before it creates a deleted ServiceAccount again. An API server accepts a
// token for 10 s after a check (TokenSuccessCacheTTL of kube-apiserver, which cannot be configured), and detects a
// deletion with a delay. Otherwise an agent with such a token could request a token of the new ServiceAccount.
const AccountPause = 30 * time.Second

// computeAccountPause returns the remaining time of AccountPause.
func computeAccountPause(in Input) time.Duration {
	if in.Account != "" || in.AccountGoneAt.IsZero() {
		return 0
	}
	return max(0, in.AccountGoneAt.Add(AccountPause).Sub(in.Now))
}

// createAccount adds the action that creates the ServiceAccount. While the tokens of a deleted ServiceAccount might
// still be accepted, it sets the time of the next check instead.
func createAccount(in Input, d *Decision) {
	if pause := computeAccountPause(in); pause > 0 {
		d.RecheckAfter = minDelay(d.RecheckAfter, pause)
		return
	}
	d.Actions = append(d.Actions, CreateAccount)
}

// releaseAll returns steps that remove the agent's finalizer from installs that are being deleted.
func releaseAll(operators []Operator) []removal.Step {
	var steps []removal.Step
	for _, o := range operators {
		if o.Deleting && o.Held {
			steps = append(steps, removal.Step{Namespace: o.Namespace, Name: o.Name, Release: true})
		}
	}
	return steps
}

// summarize returns the state of a cluster in the fleet. The first problem in the order of joining decides.
func summarize(in Input) conditions.Summary {
	namespace := v1alpha1.ClusterNamespace(in.Cluster.Name)
	switch in.Namespace {
	case NamespaceForeign:
		return newStalled(v1alpha1.ReasonNamespaceConflict, fmt.Sprintf(
			"namespace %s exists on the hub and was not made for this cluster (label %s=%s is missing): delete that "+
				"namespace, or give the cluster another name",
			namespace, v1alpha1.LabelCluster, in.Cluster.Name))
	case NamespaceTerminating:
		return newWaiting(v1alpha1.ReasonNamespaceTerminating, fmt.Sprintf(
			"namespace %s is being deleted; it is created again after that, and the agent then needs a new token: run "+
				"`bellwether fleet join` again",
			namespace))
	case NamespaceAbsent:
		return newWaiting(v1alpha1.ReasonProgressing, fmt.Sprintf("namespace %s is being created", namespace))
	case NamespaceOurs: // the state depends on the agent
	}
	switch {
	case in.Account == "" && isRevoked(in):
		return newStalled(v1alpha1.ReasonAccessRevoked, explainRevoked(in.Cluster.Name))
	case computeAccountPause(in) > 0:
		return newWaiting(v1alpha1.ReasonProgressing,
			fmt.Sprintf("the agent's ServiceAccount was deleted; it is created "+
				"again %s after that, when the API server no longer accepts its tokens", AccountPause))
	case !in.AccessInSync, in.Account == "":
		return newWaiting(v1alpha1.ReasonProgressing,
			fmt.Sprintf("the agent's access to namespace %s is being created", namespace))
	case !in.Lease.Found:
		return newWaiting(v1alpha1.ReasonNeverJoined, explainNeverJoined(in.Cluster.Name))
	case isRevoked(in):
		return newStalled(v1alpha1.ReasonAccessRevoked, explainRevoked(in.Cluster.Name))
	case !in.Lease.IsOnline(in.Now) && isHibernating(in):
		return newWaiting(v1alpha1.ReasonHibernating, explainHibernation(in.Cluster.Status.Source))
	case !in.Lease.IsOnline(in.Now):
		return newStalled(v1alpha1.ReasonAgentOffline, explainExpiry(in))
	case !in.Lease.APIServer.Checked:
		return newWaiting(v1alpha1.ReasonWaiting, notChecked)
	case !in.Lease.APIServer.IsReachable():
		return newStalled(v1alpha1.ReasonAPIServerUnreachable, explainUnreachable(in.Lease.APIServer))
	case !in.Lease.OLMChecked:
		return newWaiting(v1alpha1.ReasonWaiting, olmNotChecked)
	case in.Lease.Versions.OLM == "":
		return newStalled(v1alpha1.ReasonOLMMissing, olmMissing)
	}
	text := "the agent reports, the API server answers and OLM is installed"
	if in.Cluster.Spec.Paused {
		text += "; spec.paused is true: rollouts skip this cluster"
	}
	if isHibernating(in) {
		text += "; " + describePowerState(in.Cluster.Status.Source) + ": rollouts skip this cluster"
	}
	if in.Cluster.Status.IsSourcePaused() {
		text += "; its source is paused, or is being moved: rollouts skip this cluster"
	}
	return conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded, Message: text}
}

// newStalled returns the summary of a state in which a person must act.
func newStalled(reason, message string) conditions.Summary {
	return conditions.Summary{State: conditions.Stalled, Reason: reason, Message: message}
}

// newWaiting returns the summary of a state that ends without a person, or that is expected.
func newWaiting(reason, message string) conditions.Summary {
	return conditions.Summary{State: conditions.InProgress, Reason: reason, Message: message}
}
