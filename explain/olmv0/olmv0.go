// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olmv0 describes the objects of OLM v0 on a fleet cluster for an operator, as links of the chain that package
// explain builds. It is pure: the caller passes the objects.
package olmv0

import (
	"cmp"
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Objects are the objects that were found for one install. An object that does not exist is nil.
type Objects struct {
	Namespace string
	// Terminating is the namespace if it is being deleted with everything in it.
	Terminating   *corev1.Namespace
	CatalogSource *operatorsv1alpha1.CatalogSource
	Subscription  *operatorsv1alpha1.Subscription
	InstallPlan   *operatorsv1alpha1.InstallPlan
	// CSV is the ClusterServiceVersion that is being installed, or else the installed ClusterServiceVersion.
	CSV         *operatorsv1alpha1.ClusterServiceVersion
	Deployments []explain.Deployment
}

// SelectNames returns which objects of an install are part of the explanation: the InstallPlan, and the
// ClusterServiceVersions of which the first that exists counts, the one that OLM is installing before the installed
// one. A name is empty if it is not known. s is the Subscription, which names them better than the install's status;
// nil if it does not exist.
func SelectNames(install *v1alpha1.OperatorInstall, s *operatorsv1alpha1.Subscription) (installPlan string,
	csvs []string) {
	installPlan = install.Status.OLMDetails().InstallPlan
	if s != nil {
		csvs = append(csvs, cmp.Or(s.Status.CurrentCSV, s.Status.InstalledCSV))
		if s.Status.InstallPlanRef != nil {
			installPlan = cmp.Or(s.Status.InstallPlanRef.Name, installPlan)
		}
	}
	if install.Status.Installed != nil {
		csvs = append(csvs, install.Status.Installed.Bundle)
	}
	return installPlan, csvs
}

// Links returns links for the objects, from the catalog to the pods.
func (o Objects) Links() []explain.Link {
	links := []explain.Link{o.buildCatalogSourceLink(), o.buildSubscriptionLink(), o.buildInstallPlanLink(),
		o.buildCSVLink()}
	if o.Terminating != nil {
		links = append([]explain.Link{buildTerminatingLink(o.Terminating)}, links...)
	}
	return []explain.Link{{Text: "on the cluster, namespace " + o.Namespace, Links: links}}
}

// buildTerminatingLink says that a namespace is being deleted, and what blocks the deletion.
func buildTerminatingLink(ns *corev1.Namespace) explain.Link {
	remains := "its content is being deleted"
	for _, c := range ns.Status.Conditions {
		if c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue {
			remains = trimPeriod(phrase.OneLine(c.Message))
		}
	}
	return explain.Link{State: explain.Progressing, Reason: v1alpha1.ReasonNamespaceTerminating,
		Since: ns.DeletionTimestamp, Text: fmt.Sprintf("namespace %s is being deleted: %s", ns.Name, remains),
		Evidence: []explain.Evidence{{Object: "Namespace " + ns.Name,
			Field: "condition " + string(corev1.NamespaceFinalizersRemaining), Observed: remains}}}
}

// trimPeriod returns the text without its period.
func trimPeriod(text string) string { return strings.TrimSuffix(text, ".") }

// buildMissingLink says that there is no object of a kind. In a namespace that is being deleted, that is not
// a failure.
func (o Objects) buildMissingLink(kind string) explain.Link {
	l := explain.Link{Text: kind + ": there is none"}
	if o.Terminating == nil {
		l.State, l.Reason = explain.Failed, remedy.ObjectMissing
	}
	return l
}

// buildEvidence returns the evidence for a field of an object.
func buildEvidence(kind string, o metav1.Object, field, observed string) []explain.Evidence {
	return []explain.Evidence{{Object: kind + " " + o.GetNamespace() + "/" + o.GetName(), Field: field,
		Observed: observed}}
}

// buildCatalogSourceLink says whether OLM is connected to the catalog.
func (o Objects) buildCatalogSourceLink() explain.Link {
	c := o.CatalogSource
	if c == nil {
		return o.buildMissingLink("CatalogSource")
	}
	state := "no connection yet"
	if s := c.Status.GRPCConnectionState; s != nil {
		state = cmp.Or(s.LastObservedState, state)
	}
	l := explain.Link{State: explain.Healthy, Check: "OLM is connected to the catalog view",
		Text:     fmt.Sprintf("CatalogSource %s: %s, %s", c.Name, state, c.Spec.Address),
		Evidence: buildEvidence("CatalogSource", c, "status.connectionState.lastObservedState", state)}
	if state != plan.ConnectionReady {
		l.State, l.Check, l.Reason = explain.Progressing, "", v1alpha1.ReasonCatalogNotReady
	}
	return l
}

// buildSubscriptionLink describes the Subscription and its failures. Failures are Degraded if the newest version is
// installed, else Failed.
func (o Objects) buildSubscriptionLink() explain.Link {
	s := o.Subscription
	if s == nil {
		return o.buildMissingLink("Subscription")
	}
	state := cmp.Or(string(s.Status.State), "no state yet")
	l := explain.Link{State: explain.Healthy, Check: "the Subscription is at its latest version",
		Text: fmt.Sprintf("Subscription %s: %s, installed %s, current %s", s.Name, state,
			cmp.Or(s.Status.InstalledCSV, "nothing"), cmp.Or(s.Status.CurrentCSV, "nothing")),
		Evidence: buildEvidence("Subscription", s, "status.state", state)}
	severity := explain.Degraded // the newest version is installed
	if s.Status.State != operatorsv1alpha1.SubscriptionStateAtLatest {
		l.State, l.Check, l.Reason = explain.Progressing, "", v1alpha1.ReasonProgressing
		severity = explain.Failed
	}
	reasons := map[operatorsv1alpha1.SubscriptionConditionType]string{
		operatorsv1alpha1.SubscriptionResolutionFailed:        v1alpha1.ReasonResolutionFailed,
		operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy: v1alpha1.ReasonCatalogNotReady,
		operatorsv1alpha1.SubscriptionInstallPlanFailed:       v1alpha1.ReasonPlanFailed,
		operatorsv1alpha1.SubscriptionBundleUnpackFailed:      v1alpha1.ReasonUnpackFailed,
	}
	for _, c := range s.Status.Conditions {
		if reason, isProblem := reasons[c.Type]; isProblem && c.Status == corev1.ConditionTrue {
			l.Links = append(l.Links, explain.Link{State: severity, Reason: reason, Since: c.LastTransitionTime,
				Text: fmt.Sprintf("%s: %s", c.Type, phrase.OneLine(c.Message)),
				Evidence: buildEvidence("Subscription", s, "condition "+string(c.Type),
					"True: "+phrase.OneLine(c.Message))})
		}
	}
	return l
}

// buildInstallPlanLink describes the InstallPlan and its failures.
func (o Objects) buildInstallPlanLink() explain.Link {
	p := o.InstallPlan
	if p == nil { // OLM might have deleted an old InstallPlan
		return explain.Link{Text: "InstallPlan: there is none"}
	}
	approved := "not approved"
	if p.Spec.Approved {
		approved = "approved"
	}
	phase := cmp.Or(string(p.Status.Phase), "new")
	l := explain.Link{State: explain.Progressing, Reason: v1alpha1.ReasonProgressing,
		Text: fmt.Sprintf("InstallPlan %s for %s: %s, %s", p.Name,
			strings.Join(p.Spec.ClusterServiceVersionNames, ", "), approved, phase),
		Evidence: buildEvidence("InstallPlan", p, "status.phase", phase)}
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseComplete:
		l.State, l.Reason, l.Check = explain.Healthy, "", "the InstallPlan is complete"
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		l.State, l.Reason = explain.Failed, v1alpha1.ReasonPlanFailed
	}
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse {
			text := fmt.Sprintf("%s: %s: %s", c.Type, c.Reason, phrase.OneLine(c.Message))
			l.Links = append(l.Links, explain.Link{State: explain.Failed, Reason: v1alpha1.ReasonPlanFailed, Text: text,
				Evidence: buildEvidence("InstallPlan", p, "condition "+string(c.Type), text)})
		}
	}
	return l
}

// buildCSVLink describes the ClusterServiceVersion, its Deployments and, until it has succeeded, its
// unmet requirements.
func (o Objects) buildCSVLink() explain.Link {
	c := o.CSV
	if c == nil {
		return o.buildMissingLink("ClusterServiceVersion")
	}
	phase := cmp.Or(string(c.Status.Phase), "no phase yet")
	l := explain.Link{State: explain.Progressing, Reason: v1alpha1.ReasonProgressing,
		Text: fmt.Sprintf("ClusterServiceVersion %s: %s", c.Name, phase), Since: c.Status.LastTransitionTime,
		Evidence: buildEvidence("ClusterServiceVersion", c, "status.phase", phase)}
	switch c.Status.Phase {
	case operatorsv1alpha1.CSVPhaseSucceeded:
		l.State, l.Reason, l.Check = explain.Healthy, "", "the ClusterServiceVersion is Succeeded"
	case operatorsv1alpha1.CSVPhaseFailed:
		l.State, l.Reason = explain.Failed, v1alpha1.ReasonCSVFailed
	}
	if l.State != explain.Healthy {
		l.Text += fmt.Sprintf(" (%s): %s", cmp.Or(string(c.Status.Reason), "no reason"),
			phrase.OneLine(c.Status.Message))
		for _, r := range c.Status.RequirementStatus {
			if plan.IsUnmet(r) {
				text := fmt.Sprintf("requirement %s %s: %s: %s", r.Kind, r.Name, r.Status, phrase.OneLine(r.Message))
				l.Links = append(l.Links, explain.Link{State: explain.Failed, Reason: v1alpha1.ReasonRequirementsNotMet,
					Text: text, Evidence: buildEvidence("ClusterServiceVersion", c, "status.requirementStatus", text)})
			}
		}
	}
	for _, d := range o.Deployments {
		l.Links = append(l.Links, d.Link())
	}
	return l
}
