// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Downstream is what was found on the fleet cluster for one install; what was
// not there is nil or empty.
type Downstream struct {
	// Err is why the cluster could not be read.
	Err           error
	Namespace     string
	CatalogSource *operatorsv1alpha1.CatalogSource
	Subscription  *operatorsv1alpha1.Subscription
	InstallPlan   *operatorsv1alpha1.InstallPlan
	// CSV is the one that is being installed, or else the installed one.
	CSV         *operatorsv1alpha1.ClusterServiceVersion
	Deployments []Deployment
}

// Deployment is a Deployment that a CSV names, and its pods.
type Deployment struct {
	Name string
	// Deployment is nil where it does not exist.
	Deployment *appsv1.Deployment
	Pods       []corev1.Pod
}

func (d *Downstream) nodes(now time.Time) []node {
	if d.Err != nil {
		return []node{{term.Warn, "on the cluster: cannot be read: " + phrase.OneLine(d.Err.Error()), nil}}
	}
	return []node{{term.Plain, "on the cluster, namespace " + d.Namespace, []node{
		d.catalogNode(), d.subscriptionNode(), d.planNode(), d.csvNode(now),
	}}}
}

func (d *Downstream) catalogNode() node {
	c := d.CatalogSource
	switch {
	case c == nil:
		return node{term.Warn, "CatalogSource: there is none", nil}
	case c.Status.GRPCConnectionState == nil:
		return node{term.Warn, fmt.Sprintf("CatalogSource %s: OLM has not looked at it", c.Name), nil}
	}
	state := c.Status.GRPCConnectionState
	n := node{term.Good, fmt.Sprintf("CatalogSource %s: %s, %s", c.Name, state.LastObservedState, c.Spec.Address), nil}
	if state.LastObservedState != "READY" {
		n.tone = term.Warn
	}
	return n
}

func (d *Downstream) subscriptionNode() node {
	s := d.Subscription
	if s == nil {
		return node{term.Warn, "Subscription: there is none", nil}
	}
	n := node{term.Good, fmt.Sprintf("Subscription %s: %s, installed %s, current %s", s.Name,
		term.OrElse(string(s.Status.State), "no state yet"), term.OrDash(s.Status.InstalledCSV),
		term.OrDash(s.Status.CurrentCSV)),
		nil}
	if s.Status.State != operatorsv1alpha1.SubscriptionStateAtLatest {
		n.tone = term.Warn
	}
	for _, c := range s.Status.Conditions {
		problem := c.Type == operatorsv1alpha1.SubscriptionResolutionFailed ||
			c.Type == operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy ||
			c.Type == operatorsv1alpha1.SubscriptionInstallPlanFailed ||
			c.Type == operatorsv1alpha1.SubscriptionBundleUnpackFailed
		if problem && c.Status == corev1.ConditionTrue {
			n.children = append(n.children, node{term.Bad, fmt.Sprintf("%s: %s", c.Type, phrase.OneLine(c.Message)),
				nil})
		}
	}
	return n
}

func (d *Downstream) planNode() node {
	p := d.InstallPlan
	if p == nil {
		return node{term.Dim, "InstallPlan: there is none", nil}
	}
	approved := "not approved"
	if p.Spec.Approved {
		approved = "approved"
	}
	n := node{term.Good, fmt.Sprintf("InstallPlan %s for %s: %s, %s", p.Name,
		strings.Join(p.Spec.ClusterServiceVersionNames, ", "), approved, p.Status.Phase), nil}
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseComplete:
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		n.tone = term.Bad
	default:
		n.tone = term.Warn
	}
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse {
			n.children = append(n.children, node{term.Bad, fmt.Sprintf("%s: %s: %s", c.Type, c.Reason,
				phrase.OneLine(c.Message)),
				nil})
		}
	}
	return n
}

func (d *Downstream) csvNode(now time.Time) node {
	c := d.CSV
	if c == nil {
		return node{term.Warn, "CSV: there is none", nil}
	}
	n := node{term.Warn, fmt.Sprintf("CSV %s: %s", c.Name, term.OrElse(string(c.Status.Phase), "no phase yet")), nil}
	switch c.Status.Phase {
	case operatorsv1alpha1.CSVPhaseSucceeded:
		n.tone = term.Good
	case operatorsv1alpha1.CSVPhaseFailed:
		n.tone = term.Bad
	default:
	}
	if n.tone != term.Good {
		n.text += fmt.Sprintf(" (%s): %s", term.OrDash(string(c.Status.Reason)), phrase.OneLine(c.Status.Message))
		for _, r := range c.Status.RequirementStatus {
			if r.Status != operatorsv1alpha1.RequirementStatusReasonPresent {
				n.children = append(n.children, node{term.Bad,
					fmt.Sprintf("requirement %s %s: %s: %s", r.Kind, r.Name, r.Status, phrase.OneLine(r.Message)), nil})
			}
		}
	}
	for _, deployment := range d.Deployments {
		n.children = append(n.children, deployment.node(now))
	}
	return n
}

func (d Deployment) node(now time.Time) node {
	if d.Deployment == nil {
		return node{term.Warn, fmt.Sprintf("Deployment %s: there is none", d.Name), nil}
	}
	want := int32(1)
	if d.Deployment.Spec.Replicas != nil {
		want = *d.Deployment.Spec.Replicas
	}
	available := d.Deployment.Status.AvailableReplicas
	n := node{term.Good, fmt.Sprintf("Deployment %s: %s available", d.Name, term.Fraction(available, want)), nil}
	if available < want {
		n.tone = term.Bad
		for _, c := range d.Deployment.Status.Conditions {
			if c.Status == corev1.ConditionFalse || c.Type == appsv1.DeploymentReplicaFailure {
				n.text += fmt.Sprintf("; %s: %s", c.Reason, phrase.OneLine(c.Message))
			}
		}
	}
	for i := range d.Pods {
		n.children = append(n.children, podNode(&d.Pods[i], now))
	}
	return n
}

func podNode(p *corev1.Pod, now time.Time) node {
	n := node{term.Good, fmt.Sprintf("pod %s: %s, %s old", p.Name, p.Status.Phase, term.Age(now, p.CreationTimestamp)),
		nil}
	for _, c := range p.Status.Conditions {
		if c.Status != corev1.ConditionTrue && (c.Type == corev1.PodReady || c.Type == corev1.PodScheduled) {
			n.tone = term.Bad
			if c.Message != "" {
				n.text += ": " + phrase.OneLine(c.Message)
			}
			break
		}
	}
	for _, c := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		if text := containerTrouble(c); text != "" {
			n.children = append(n.children, node{term.Bad, text, nil})
		}
	}
	return n
}

// maxLastWords cuts what a container said when it ended, which may be a log.
const maxLastWords = 200

// containerTrouble says what is wrong with a container; empty when nothing is.
func containerTrouble(c corev1.ContainerStatus) string {
	text := ""
	switch {
	case c.State.Waiting != nil:
		text = fmt.Sprintf("container %s waits: %s: %s", c.Name, c.State.Waiting.Reason,
			phrase.OneLine(c.State.Waiting.Message))
	case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
		text = fmt.Sprintf("container %s ended with exit code %d: %s", c.Name, c.State.Terminated.ExitCode,
			phrase.OneLine(c.State.Terminated.Message))
	case !c.Ready && c.State.Running != nil:
		text = fmt.Sprintf("container %s runs and is not ready", c.Name)
	}
	if last := c.LastTerminationState.Terminated; text != "" && last != nil {
		text += fmt.Sprintf("; it ended before with exit code %d (%d restarts) %s", last.ExitCode, c.RestartCount,
			term.Fit(phrase.OneLine(last.Message), maxLastWords))
	}
	return text
}
