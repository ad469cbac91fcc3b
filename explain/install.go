// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/workload"
	"github.com/bellwether-dev/bellwether/phrase"
)

// InstallInput is what the explanation of one operator on one cluster is made
// of. All but Now, Cluster and Operator may be nil.
type InstallInput struct {
	Now      time.Time
	Cluster  *v1alpha1.FleetCluster
	Operator *v1alpha1.ManagedOperator
	// Catalog of the operator: it knows which versions can be reached.
	Catalog *v1alpha1.OperatorCatalog
	// Rollout is the one that the install belongs to, or else the newest.
	Rollout *v1alpha1.OperatorRollout
	Install *v1alpha1.OperatorInstall
	// Downstream is what was seen on the cluster itself.
	Downstream *Downstream
	// Budgets of the operator on this cluster.
	Budgets []Budget
	// BudgetsErr is why they could not be read.
	BudgetsErr error
	// Program is how the user calls bellwether; empty means by that name.
	Program string
}

// Downstream is what was seen on the cluster itself.
type Downstream struct {
	// Err is why the cluster could not be read.
	Err error
	// Links are what the engine's objects and the operator's workload say.
	Links []Link
	// Probes of the operator on the cluster.
	Probes []v1alpha1.EndpointProbe
}

// Install explains an operator on a cluster.
func Install(in InstallInput) Explanation {
	var chain []Link
	if in.Install == nil && !selects(in.Operator, in.Cluster) {
		chain = []Link{notSelected(in)}
	} else {
		var pending []v1alpha1.OperatorReference
		if in.Install == nil || isPending(in.Install, in.Rollout) {
			pending = []v1alpha1.OperatorReference{{Namespace: in.Operator.Namespace, Name: in.Operator.Name}}
		}
		cluster := clusterLinkFor(in.Cluster, pending)
		chain = append([]Link{operatorLink(in), cluster}, changeLinks(in)...)
	}
	subject := Subject{Kind: "OperatorInstall", Namespace: in.Operator.Namespace, Name: in.Operator.Name,
		Cluster: in.Cluster.Name}
	e := conclude(subject, chain, in.names(), healthySummary(in))
	e.Budgets = in.Budgets
	e.Remedies = slices.DeleteFunc(e.Remedies, func(a remedy.Action) bool { // what the reader has just done
		why := strings.Contains(a.Command, " why "+in.Cluster.Name+" "+in.Operator.Name)
		return why && (in.Downstream != nil || !strings.Contains(a.Command, "--cluster-kubeconfig"))
	})
	return e
}

// changeLinks are what a rollout and the agent did, and what became of it.
func changeLinks(in InstallInput) []Link {
	links := []Link{rolloutOfInstall(in), admissionLink(in), installLink(in)}
	if class := classOf(in); class != nil {
		links = append(links, *class)
	}
	if in.Catalog != nil {
		links = append(links, catalogOfInstall(in))
	}
	if in.BudgetsErr != nil {
		text := "the error budgets could not be read: " + withoutStop(in.BudgetsErr.Error())
		links = append(links, Link{Text: text, stale: []Stale{{What: "the error budgets", Why: text}}})
	}
	return append(links, budgetLinks(in.Budgets)...)
}

func healthySummary(in InstallInput) string {
	if in.Install == nil || in.Install.Status.Installed == nil {
		return ""
	}
	ready := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionReady)
	return fmt.Sprintf("%s is installed and Ready since %s; nothing is pending.", versionOf(in.Install),
		clock(ready.LastTransitionTime.Time))
}

func versionOf(install *v1alpha1.OperatorInstall) string {
	switch {
	case install.Status.Installed == nil:
		return "no version"
	case install.Status.Installed.Version != "":
		return install.Status.Installed.Version
	default:
		return install.Status.Installed.Bundle
	}
}

func (in InstallInput) names() remedy.Names {
	n := remedy.Names{Cluster: in.Cluster.Name, Operator: in.Operator.Name, HubNamespace: in.Operator.Namespace,
		Catalog: in.Operator.Spec.Catalog.Name, Package: in.Operator.Spec.Package, Program: in.Program}
	if in.Rollout != nil {
		n.Rollout = in.Rollout.Name
	}
	n.Namespace = n.Package
	if ns := in.Operator.Spec.Install.Namespace; ns != "" {
		n.Namespace = ns
	}
	if in.Install != nil && in.Install.Spec.Admission != nil {
		n.Namespace = in.Install.Spec.Admission.Release.TargetNamespace()
	}
	return n
}

// selects tells whether an operator is wanted on a cluster. With an invalid selector
// that is not known, and the operator's own state says so.
func selects(o *v1alpha1.ManagedOperator, c *v1alpha1.FleetCluster) bool {
	selector, err := metav1.LabelSelectorAsSelector(&o.Spec.ClusterSelector)
	return err != nil || selector.Matches(labels.Set(c.Labels))
}

func notSelected(in InstallInput) Link {
	return Link{State: Waiting, Reason: remedy.NotSelected, Text: fmt.Sprintf(
		"operator %s is not wanted on cluster %s: the cluster selector %s does not match the labels "+
			"%q", in.Operator.Name,
		in.Cluster.Name, metav1.FormatLabelSelector(&in.Operator.Spec.ClusterSelector),
		labels.FormatLabels(in.Cluster.Labels)),
		Evidence: []Evidence{{Object: objectOf(in.Operator), Field: "spec.clusterSelector",
			Observed: metav1.FormatLabelSelector(&in.Operator.Spec.ClusterSelector)}}}
}

func reportedByInstall(install *v1alpha1.OperatorInstall) reported {
	return reported{object: "OperatorInstall " + install.Namespace + "/" + install.Name, generation: install.Generation,
		observed: install.Status.ObservedGeneration, conditions: install.Status.Conditions, by: remedy.Agent}
}

func admissionLink(in InstallInput) Link {
	switch {
	case in.Install == nil:
		return Link{State: Waiting, Reason: remedy.NoInstall, Text: fmt.Sprintf(
			"Bellwether has nothing installed on cluster %s: it has no OperatorInstall", in.Cluster.Name)}
	case in.Install.Spec.Admission == nil:
		return Link{State: Waiting, Reason: v1alpha1.ReasonNotAdmitted,
			Text: "no rollout has admitted cluster " + in.Cluster.Name + " yet"}
	}
	a := in.Install.Spec.Admission
	l := Link{State: Healthy, Check: "the cluster was admitted to a release", Since: timeOf(a.AdmittedAt),
		Text: fmt.Sprintf("admitted %s by rollout %s, wave %s", a.Release.Purpose(), a.Rollout, a.Wave),
		Evidence: []Evidence{{Object: reportedByInstall(in.Install).object, Field: "spec.admission",
			Observed: fmt.Sprintf("revision %d, %s", a.Revision, a.Release.VersionText()), Time: timeOf(a.AdmittedAt)}}}
	if !selects(in.Operator, in.Cluster) {
		l.Links = append(l.Links, notSelected(in))
	}
	return l
}

// installLink is what the agent reports.
func installLink(in InstallInput) Link {
	install := in.Install
	if install == nil {
		return Link{Text: "the agent has nothing to do"}
	}
	r := reportedByInstall(install)
	l := r.summary(versionOf(install)+" is installed and Ready", "the agent reports the admitted release as Ready")
	if l.State != Healthy && l.Reason != remedy.StatusOutdated {
		l.Text = versionOf(install) + " is installed; " + l.Text
	}
	details := installDetails(in, r)
	l.Links = append(l.Links, details...)
	if what, lost := Lost(install); lost && l.Reason == v1alpha1.ReasonObjectsLost {
		l.Text = versionOf(install) + " is installed; " + what // the remedy of the reason is printed too
	}
	if l.State == Degraded && !hasSucceeded(install) {
		l.State = Failed // what runs is not the admitted release, and that stays so until a person acts
	}
	switch {
	case staleSince(in.Cluster) != nil:
		l = asOfThen([]Link{l})[0]
		l.Text = "as last reported: " + l.Text
	case l.Reason == remedy.StatusOutdated:
		l.Links = append(r.failureLinks(), asOfThen(details)...)
	}
	if in.Downstream != nil { // read just now, so it is current whatever the agent reports
		l.Links = append(l.Links, downstreamLinks(in)...)
	}
	if install.DeletionTimestamp != nil {
		l.Links = append([]Link{{State: Waiting, Reason: v1alpha1.ReasonUninstalling, Since: install.DeletionTimestamp,
			Text: "the operator is being removed from cluster " + in.Cluster.Name}}, l.Links...)
	}
	return l
}

// Lost says what an install has lost of what came with it, as its agent reports it; lost is false where that is
// nothing. OLM makes it again only with the ClusterServiceVersion. A requirement that something else has to provide,
// such as the definition of another operator, did not come with it.
func Lost(install *v1alpha1.OperatorInstall) (what string, lost bool) {
	ready := conditions.Get(install.Status.Conditions, v1alpha1.ConditionReady)
	return withoutStop(strings.TrimSuffix(ready.Message, install.RepairAdvice())), install.DeletionTimestamp == nil &&
		ready.Status == metav1.ConditionFalse && ready.Reason == v1alpha1.ReasonObjectsLost && hasSucceeded(install)
}

// hasSucceeded tells whether the admitted release was installed with its settings, now or before.
func hasSucceeded(install *v1alpha1.OperatorInstall) bool {
	return install.Spec.Admission != nil && install.Status.SucceededHash == install.Spec.Admission.Hash
}

// installDetails are what the agent reports beside the state.
func installDetails(in InstallInput, r reported) []Link {
	var links []Link
	if l, differs := notAtRelease(in); differs {
		if l.Reason == v1alpha1.ReasonProgressing && !conditions.IsTrue(in.Install.Status.Conditions,
			v1alpha1.ConditionReady) {
			l.State = "" // the agent says why
		}
		links = append(links, l)
	}
	if in.Downstream == nil || in.Downstream.Err != nil { // otherwise the pods were read just now
		links = append(links, problemLinks(in.Install)...)
	}
	for _, c := range in.Install.Status.Conditions {
		switch c.Type {
		case v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
			v1alpha1.ConditionReconcileFailing: // in the summary
		case v1alpha1.ConditionDrifted:
			links = append(links, driftLink(r, c))
		case v1alpha1.ConditionStorageMigrated:
			links = append(links, storageLink(r, c))
		default:
			links = append(links, stageLink(in, r, c))
		}
	}
	if l, isBlocked := blockedLink(in); isBlocked {
		links = append(links, l)
	}
	return links
}

// problemLinks are why pods are not available, as the agent reports it. A container that is not ready may
// only be starting.
func problemLinks(install *v1alpha1.OperatorInstall) []Link {
	states := map[string]State{remedy.NotReadyYet: Progressing, remedy.PodsNotRead: Degraded}
	if conditions.IsTrue(install.Status.Conditions, v1alpha1.ConditionReady) {
		states[remedy.NotReadyYet] = Degraded
	}
	var links []Link
	for i, p := range install.Status.Problems {
		text := "Deployment " + p.Deployment
		if p.Pods > 0 {
			text = phrase.Count(p.Pods, "pod") + " of " + text
		}
		if p.Container != "" {
			text += ", container " + p.Container
		}
		text += ": " + cmp.Or(withoutStop(p.Message), p.Reason)
		links = append(links, Link{State: cmp.Or(states[p.Reason], Failed), Reason: p.Reason, Text: text,
			Evidence: []Evidence{{Object: reportedByInstall(install).object,
				Field: fmt.Sprintf("status.problems[%d]", i), Observed: workload.Describe(p.Reason, p.Message)}}})
	}
	return links
}

// isPending tells whether something is still to be changed for an install. The rollout is the one that it belongs to,
// nil where that is not known.
func isPending(install *v1alpha1.OperatorInstall, r *v1alpha1.OperatorRollout) bool {
	a, planned := install.Spec.Admission, install.Labels[v1alpha1.LabelRollout]
	switch {
	case a == nil, install.DeletionTimestamp != nil, !hasSucceeded(install), len(install.Status.Path) > 0,
		install.Status.ObservedRevision < a.Revision:
		return true
	case r != nil && r.Name == planned && r.IsStopped():
		return false // it admits nobody any more
	}
	return planned != "" && planned != a.Rollout
}

// notAtRelease compares what is reported with what was admitted.
func notAtRelease(in InstallInput) (Link, bool) {
	a, status, object := in.Install.Spec.Admission, in.Install.Status, reportedByInstall(in.Install).object
	switch {
	case a == nil:
		return Link{}, false
	case status.ObservedRevision < a.Revision:
		text := fmt.Sprintf("the agent has acted on revision %d of the admissions, and the newest is %d",
			status.ObservedRevision, a.Revision)
		return Link{State: Progressing, Reason: remedy.StatusOutdated, Text: text,
			Evidence: []Evidence{{Object: object, Field: "status.observedRevision",
				Observed: fmt.Sprint(status.ObservedRevision)}},
			stale: []Stale{{What: "the status of " + object, Why: text}}}, true
	case !hasSucceeded(in.Install) || len(status.Path) > 0:
		text := "release " + a.Release.Version + " has not been installed with the admitted settings yet"
		if a.Release.AsInstalled {
			text = "what is installed has not been taken over yet"
		}
		if len(status.Path) > 0 {
			text += "; to be installed: " + strings.Join(status.Path, ", ")
		}
		return Link{State: Progressing, Reason: v1alpha1.ReasonProgressing, Text: text,
			Evidence: []Evidence{{Object: object, Field: "status.succeededHash", Observed: status.SucceededHash}}}, true
	}
	text := "release " + a.Release.Version + " was installed with the admitted settings"
	if a.Release.AsInstalled {
		text = "what was installed was taken over"
	}
	return Link{State: Healthy, Check: "the admitted release was installed with the admitted settings",
		Text: text, Since: status.SucceededAt,
		Evidence: []Evidence{{Object: object, Field: "status.succeededHash", Observed: status.SucceededHash,
			Time: status.SucceededAt}}}, true
}

func driftLink(r reported, c metav1.Condition) Link {
	switch c.Status {
	case metav1.ConditionTrue:
		return r.link(c, Degraded)
	case metav1.ConditionFalse:
		const text = "the ClusterServiceVersion and its Deployments are those of the admitted bundle, as configured"
		return Link{State: Healthy, Text: text, Evidence: r.evidence(c), Check: text}
	}
	l := r.link(c, Unknown)
	if c.Reason == v1alpha1.ReasonNotCompared {
		l.State = Degraded // that is current, and must not hide what is worse
	}
	l.Text = "what runs could not be compared with the bundle: " + l.Text
	return l
}

// storageLink says how custom resources are stored. That they are stored in an old
// version does no harm until a release drops that version.
func storageLink(r reported, c metav1.Condition) Link {
	if c.Status == metav1.ConditionTrue {
		const text = "custom resources are stored in the storage version of their definitions"
		return Link{State: Healthy, Text: text, Check: text, Since: timeOf(c.LastTransitionTime),
			Evidence: r.evidence(c)}
	}
	var l Link
	switch c.Reason {
	case v1alpha1.ReasonStorageMigrationForbidden, v1alpha1.ReasonStorageMigrationFailed:
		l = r.link(c, Degraded)
	default:
		l = Link{Text: phrase.OneLine(c.Message), Evidence: r.evidence(c)}
	}
	l.Text = c.Type + ": " + l.Text
	return l
}

// stageLink is a condition of the engine. It fails where it is what the install
// is stalled by, and degrades an install that is Ready all the same.
func stageLink(in InstallInput, r reported, c metav1.Condition) Link {
	if c.Status == metav1.ConditionTrue {
		return Link{State: Healthy, Text: c.Type, Check: c.Type, Since: timeOf(c.LastTransitionTime),
			Evidence: r.evidence(c)}
	}
	stalled := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionStalled)
	state := Progressing
	switch {
	case stalled.Status == metav1.ConditionTrue && stalled.Reason == c.Reason:
		state = Failed
	case conditions.IsTrue(in.Install.Status.Conditions, v1alpha1.ConditionReady):
		state = Degraded
	}
	l := r.link(c, state)
	l.Text = c.Type + ": " + l.Text
	return l
}

// blockedLink says that the installed version is blocked, and where to go.
func blockedLink(in InstallInput) (Link, bool) {
	installed := in.Install.Status.Installed
	if installed == nil {
		return Link{}, false
	}
	for _, b := range in.Install.Spec.Blocks {
		if b.Package != in.Operator.Spec.Package || b.Version != installed.Version {
			continue
		}
		l := Link{State: Degraded, Reason: v1alpha1.ReasonVersionBlocked,
			Text: fmt.Sprintf("version %s is installed and is blocked: %s", b.Version, phrase.OneLine(b.Reason)),
			Evidence: []Evidence{{Object: reportedByInstall(in.Install).object, Field: "spec.blocks",
				Observed: b.Package + " " + b.Version + ": " + phrase.OneLine(b.Reason)}}}
		if p := proposal(in.Catalog, b); p != "" {
			l.remedies = []remedy.Action{{Text: "The catalog proposes: " + sentence(p)}}
		}
		return l, true
	}
	return Link{State: Healthy, Text: "the installed version is not blocked",
		Check: "the installed version is not blocked"}, true
}

// proposal is what the hub worked out from the upgrade graph for those who run a
// blocked version.
func proposal(c *v1alpha1.OperatorCatalog, b v1alpha1.VersionBlock) string {
	if c == nil {
		return ""
	}
	for _, known := range c.Status.BlockedVersions {
		if known.Package == b.Package && known.Version == b.Version {
			return known.Proposal
		}
	}
	return ""
}

func downstreamLinks(in InstallInput) []Link {
	d := in.Downstream
	if d.Err != nil {
		what, why := "the objects on cluster "+in.Cluster.Name, "could not be read: "+withoutStop(d.Err.Error())
		return []Link{{State: Unknown, Reason: remedy.ClusterUnreadable, Text: what + " " + why, about: aboutReading,
			stale: []Stale{{What: what, Why: why}}}}
	}
	links := slices.Clone(d.Links)
	for i := range d.Probes {
		links = append(links, probeLink(&d.Probes[i]))
	}
	return links
}

func probeLink(p *v1alpha1.EndpointProbe) Link {
	r := reported{object: "EndpointProbe " + p.Namespace + "/" + p.Name, generation: p.Generation,
		observed: p.Status.ObservedGeneration, conditions: p.Status.Conditions}
	if l, old := r.outdated(); old {
		return l
	}
	c := conditions.Get(p.Status.Conditions, v1alpha1.ConditionSuccess)
	switch c.Status {
	case metav1.ConditionTrue:
		return Link{State: Healthy, Text: "probe " + p.Name + " succeeds", Check: "probe " + p.Name,
			Evidence: r.evidence(c), Since: timeOf(c.LastTransitionTime)}
	case metav1.ConditionFalse:
		l := r.link(c, Degraded)
		l.Text = "probe " + p.Name + " fails" + since(l.Since) + ": " + l.Text
		return l
	}
	return Link{State: Progressing, Reason: remedy.NotReported, Text: "probe " + p.Name + " has not run yet"}
}

func budgetLinks(all []Budget) []Link {
	var links []Link
	for _, b := range all {
		if len(b.Firing) > 0 {
			links = append(links, Link{State: Degraded, Reason: remedy.AlertFiring, about: aboutSymptom,
				Text: fmt.Sprintf("%s for %s%s: %s", phrase.Count(len(b.Firing), "firing alert"), b.SLI,
					on(b.Cluster), strings.Join(b.Firing, ", "))})
		}
		switch {
		case b.Left == nil:
		case *b.Left <= 0:
			links = append(links, Link{State: Degraded, Reason: remedy.BudgetSpent, about: aboutSymptom,
				Text: "the error budget of " + b.SLI + " is spent" + on(b.Cluster),
				Evidence: []Evidence{{Object: "Prometheus", Field: "error budget of " + b.SLI,
					Observed: budgets.LeftText(b.Left)}}})
		default:
			links = append(links, Link{State: Healthy, Check: "the error budget of " + b.SLI + on(b.Cluster),
				Text: fmt.Sprintf("%s of the error budget of %s is left%s", phrase.Percent(*b.Left), b.SLI,
					on(b.Cluster))})
		}
	}
	return links
}

func on(cluster string) string {
	if cluster == "" {
		return ""
	}
	return " on cluster " + cluster
}
