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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// InstallInput has the data for the explanation of one operator on one cluster. All fields except Now, Cluster and
// Operator can be nil.
type InstallInput struct {
	Now      time.Time
	Cluster  *v1alpha1.FleetCluster
	Operator *v1alpha1.ManagedOperator
	// Catalog is the operator's catalog. It has the versions that can be reached.
	Catalog *v1alpha1.OperatorCatalog
	// Rollout is the rollout that the install belongs to, or else the newest rollout.
	Rollout *v1alpha1.OperatorRollout
	Install *v1alpha1.OperatorInstall
	// Downstream has the observations on the cluster itself.
	Downstream *Downstream
	// Budgets are the error budgets of the operator on this cluster.
	Budgets []Budget
	// BudgetsErr is why the error budgets could not be read.
	BudgetsErr error
	// Program is the command with which the user runs bellwether; empty means "bellwether".
	Program string
}

// Downstream has the observations on the cluster itself.
type Downstream struct {
	// Err is why the cluster could not be read.
	Err error
	// Links describe the engine's objects and the operator's workload.
	Links []Link
	// Probes are the operator's probes on the cluster.
	Probes []v1alpha1.EndpointProbe
}

// Install explains an operator on a cluster. If the operator does not select the cluster and is not installed there, it
// explains only that. It does not return the command that the user has just run as a remedy.
func Install(in InstallInput) Explanation {
	var chain []Link
	if in.Install == nil && !isSelected(in.Operator, in.Cluster) {
		chain = []Link{buildNotSelectedLink(in)}
	} else {
		var pending []v1alpha1.OperatorReference
		if in.Install == nil || isPending(in.Install, in.Rollout) {
			pending = []v1alpha1.OperatorReference{{Namespace: in.Operator.Namespace, Name: in.Operator.Name}}
		}
		cluster := buildClusterLinkFor(in.Cluster, pending)
		chain = append([]Link{buildOperatorLink(in), cluster}, listChangeLinks(in)...)
	}
	subject := Subject{Kind: "OperatorInstall", Namespace: in.Operator.Namespace, Name: in.Operator.Name,
		Cluster: in.Cluster.Name}
	e := conclude(subject, chain, in.buildNames(), summarizeHealthy(in))
	e.Budgets = in.Budgets
	e.Remedies = slices.DeleteFunc(e.Remedies, func(a remedy.Action) bool { // the command that the user has just run
		isOwnCommand := strings.Contains(a.Command, " why "+in.Cluster.Name+" "+in.Operator.Name)
		return isOwnCommand && (in.Downstream != nil || !strings.Contains(a.Command, "--cluster-kubeconfig"))
	})
	return e
}

// listChangeLinks returns the links for the actions of the rollout and the agent, and for their results: the rollout,
// the admission, the install, the class of the cluster, the catalog and the error budgets.
func listChangeLinks(in InstallInput) []Link {
	links := []Link{buildInstallRolloutLink(in), buildAdmissionLink(in), buildInstallLink(in)}
	if class := findClassLink(in); class != nil {
		links = append(links, *class)
	}
	if in.Catalog != nil {
		links = append(links, buildInstallCatalogLink(in))
	}
	if in.BudgetsErr != nil {
		text := "the error budgets could not be read: " + trimPeriod(in.BudgetsErr.Error())
		links = append(links, Link{Text: text, stale: []Stale{{What: "the error budgets", Why: text}}})
	}
	return append(links, listBudgetLinks(in.Budgets)...)
}

// summarizeHealthy returns the summary of a healthy install.
func summarizeHealthy(in InstallInput) string {
	if in.Install == nil || in.Install.Status.Installed == nil {
		return ""
	}
	ready := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionReady)
	return fmt.Sprintf("%s is installed and Ready since %s; nothing is pending.", formatVersion(in.Install),
		formatTime(ready.LastTransitionTime.Time))
}

// formatVersion returns the installed version, the bundle's name if the version is not known, or "no version".
func formatVersion(install *v1alpha1.OperatorInstall) string {
	switch {
	case install.Status.Installed == nil:
		return "no version"
	case install.Status.Installed.Version != "":
		return install.Status.Installed.Version
	default:
		return install.Status.Installed.Bundle
	}
}

// buildNames returns the names for the commands of remedies.
func (in InstallInput) buildNames() remedy.Names {
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

// isSelected reports whether an operator selects a cluster. It returns true if the selector is not valid: then the
// operator's own state has the error.
func isSelected(o *v1alpha1.ManagedOperator, c *v1alpha1.FleetCluster) bool {
	selector, err := metav1.LabelSelectorAsSelector(&o.Spec.ClusterSelector)
	return err != nil || selector.Matches(labels.Set(c.Labels))
}

// buildNotSelectedLink says that the operator does not select the cluster.
func buildNotSelectedLink(in InstallInput) Link {
	return Link{State: Waiting, Reason: remedy.NotSelected, Text: fmt.Sprintf(
		"operator %s is not wanted on cluster %s: the cluster selector %s does not match the labels "+
			"%q", in.Operator.Name,
		in.Cluster.Name, metav1.FormatLabelSelector(&in.Operator.Spec.ClusterSelector),
		labels.FormatLabels(in.Cluster.Labels)),
		Evidence: []Evidence{{Object: formatObject(in.Operator), Field: "spec.clusterSelector",
			Observed: metav1.FormatLabelSelector(&in.Operator.Spec.ClusterSelector)}}}
}

// readInstallStatus returns the status of an install.
func readInstallStatus(install *v1alpha1.OperatorInstall) objectStatus {
	return objectStatus{object: "OperatorInstall " + install.Namespace + "/" + install.Name,
		generation: install.Generation,
		observed:   install.Status.ObservedGeneration, conditions: install.Status.Conditions, by: remedy.Agent}
}

// buildAdmissionLink says to which release the cluster was admitted.
func buildAdmissionLink(in InstallInput) Link {
	switch {
	case in.Install == nil:
		return Link{State: Waiting, Reason: remedy.NoInstall, Text: fmt.Sprintf(
			"Bellwether has nothing installed on cluster %s: it has no OperatorInstall", in.Cluster.Name)}
	case in.Install.Spec.Admission == nil:
		return Link{State: Waiting, Reason: v1alpha1.ReasonNotAdmitted,
			Text: "no rollout has admitted cluster " + in.Cluster.Name + " yet"}
	}
	a := in.Install.Spec.Admission
	l := Link{State: Healthy, Check: "the cluster was admitted to a release", Since: toTime(a.AdmittedAt),
		Text: fmt.Sprintf("admitted %s by rollout %s, wave %s", a.Release.Purpose(), a.Rollout, a.Wave),
		Evidence: []Evidence{{Object: readInstallStatus(in.Install).object, Field: "spec.admission",
			Observed: fmt.Sprintf("revision %d, %s", a.Revision, a.Release.VersionText()), Time: toTime(a.AdmittedAt)}}}
	if !isSelected(in.Operator, in.Cluster) {
		l.Links = append(l.Links, buildNotSelectedLink(in))
	}
	return l
}

// buildInstallLink describes what the agent reports, and what was observed on the cluster. If the agent's report is not
// current, it has no state, but the observations on the cluster have.
func buildInstallLink(in InstallInput) Link {
	install := in.Install
	if install == nil {
		return Link{Text: "the agent has nothing to do"}
	}
	r := readInstallStatus(install)
	l := r.summarize(formatVersion(install)+" is installed and Ready",
		"the agent reports the admitted release as Ready")
	if l.State != Healthy && l.Reason != remedy.StatusOutdated {
		l.Text = formatVersion(install) + " is installed; " + l.Text
	}
	details := listInstallDetails(in, r)
	l.Links = append(l.Links, details...)
	if subject, lost := DescribeLostObjects(install); lost && l.Reason == v1alpha1.ReasonObjectsLost {
		l.Text = formatVersion(install) + " is installed; " + subject // the remedy is printed separately
	}
	if l.State == Degraded && !hasSucceeded(install) {
		l.State = Failed // another release runs until a person acts
	}
	switch {
	case findStaleSince(in.Cluster) != nil:
		l = clearStates([]Link{l})[0]
		l.Text = "as last reported: " + l.Text
	case l.Reason == remedy.StatusOutdated: // the details are about an older spec
		l.Links = append(r.listFailureLinks(), clearStates(details)...)
	}
	if in.Downstream != nil { // read just now, so it is current
		l.Links = append(l.Links, listDownstreamLinks(in)...)
	}
	if install.DeletionTimestamp != nil {
		l.Links = append([]Link{{State: Waiting, Reason: v1alpha1.ReasonUninstalling, Since: install.DeletionTimestamp,
			Text: "the operator is being removed from cluster " + in.Cluster.Name}}, l.Links...)
	}
	return l
}

// DescribeLostObjects describes the objects of the bundle that an install has lost, as its agent reports. lost is false
// if there are none. OLM creates these objects again only with the ClusterServiceVersion. A requirement that another
// object must provide, such as the definition of another operator, is not part of the bundle.
func DescribeLostObjects(install *v1alpha1.OperatorInstall) (subject string, lost bool) {
	ready := conditions.Get(install.Status.Conditions, v1alpha1.ConditionReady)
	return trimPeriod(strings.TrimSuffix(ready.Message, install.RepairAdvice())), install.DeletionTimestamp == nil &&
		ready.Status == metav1.ConditionFalse && ready.Reason == v1alpha1.ReasonObjectsLost && hasSucceeded(install)
}

// hasSucceeded reports whether the admitted release, with its settings, was installed successfully, now or before.
func hasSucceeded(install *v1alpha1.OperatorInstall) bool {
	return install.Spec.Admission != nil && install.Status.SucceededHash == install.Spec.Admission.Hash
}

// listInstallDetails returns links for the agent's reports other than the state: the release, the problems of pods, the
// other conditions, and a block of the installed version.
func listInstallDetails(in InstallInput, r objectStatus) []Link {
	var links []Link
	if l, differs := compareRelease(in); differs {
		if l.Reason == v1alpha1.ReasonProgressing && !conditions.IsTrue(in.Install.Status.Conditions,
			v1alpha1.ConditionReady) {
			l.State = "" // the agent says why
		}
		links = append(links, l)
	}
	if in.Downstream == nil || in.Downstream.Err != nil { // with Downstream, the pods were read just now
		links = append(links, listProblemLinks(in.Install)...)
	}
	for _, c := range in.Install.Status.Conditions {
		switch c.Type {
		case v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
			v1alpha1.ConditionReconcileFailing: // in the summary
		case v1alpha1.ConditionDrifted:
			links = append(links, buildDriftLink(r, c))
		case v1alpha1.ConditionStorageMigrated:
			links = append(links, buildStorageLink(r, c))
		default:
			links = append(links, buildStageLink(in, r, c))
		}
	}
	if l, isBlocked := buildBlockedLink(in); isBlocked {
		links = append(links, l)
	}
	return links
}

// listProblemLinks says why pods are not available, as the agent reports. A container that is not ready might only
// be starting.
func listProblemLinks(install *v1alpha1.OperatorInstall) []Link {
	states := map[string]State{remedy.NotReadyYet: Progressing, remedy.PodsNotRead: Degraded} // others are Failed
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
		text += ": " + cmp.Or(trimPeriod(p.Message), p.Reason)
		links = append(links, Link{State: cmp.Or(states[p.Reason], Failed), Reason: p.Reason, Text: text,
			Evidence: []Evidence{{Object: readInstallStatus(install).object,
				Field: fmt.Sprintf("status.problems[%d]", i), Observed: workload.FormatReason(p.Reason, p.Message)}}})
	}
	return links
}

// isPending reports whether an install must still be changed: its agent has not finished the admission, or the rollout
// that it belongs to has not admitted it yet. r is this rollout; nil if it is not known.
func isPending(install *v1alpha1.OperatorInstall, r *v1alpha1.OperatorRollout) bool {
	a, memberOf := install.Spec.Admission, install.Labels[v1alpha1.LabelRollout]
	switch {
	case a == nil, install.DeletionTimestamp != nil, !hasSucceeded(install), len(install.Status.Path) > 0,
		install.Status.ObservedRevision < a.Revision:
		return true
	case r != nil && r.Name == memberOf && r.IsStopped():
		return false // a stopped rollout admits no cluster
	}
	return memberOf != "" && memberOf != a.Rollout
}

// compareRelease returns a link that says whether the agent has acted on the newest admission and has installed the
// admitted release. It returns false if there is no admission.
func compareRelease(in InstallInput) (Link, bool) {
	a, status, object := in.Install.Spec.Admission, in.Install.Status, readInstallStatus(in.Install).object
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

// buildDriftLink says whether the installed objects differ from the bundle.
func buildDriftLink(r objectStatus, c metav1.Condition) Link {
	switch c.Status {
	case metav1.ConditionTrue:
		return r.buildLink(c, Degraded)
	case metav1.ConditionFalse:
		const text = "the ClusterServiceVersion and its Deployments are those of the admitted bundle, as configured"
		return Link{State: Healthy, Text: text, Evidence: r.buildEvidence(c), Check: text}
	}
	l := r.buildLink(c, Unknown)
	if c.Reason == v1alpha1.ReasonNotCompared {
		l.State = Degraded // the report is current, and must not hide a worse state
	}
	l.Text = "what runs could not be compared with the bundle: " + l.Text
	return l
}

// buildStorageLink says in which version custom resources are stored. An old version is a problem only when a release
// drops that version.
func buildStorageLink(r objectStatus, c metav1.Condition) Link {
	if c.Status == metav1.ConditionTrue {
		const text = "custom resources are stored in the storage version of their definitions"
		return Link{State: Healthy, Text: text, Check: text, Since: toTime(c.LastTransitionTime),
			Evidence: r.buildEvidence(c)}
	}
	var l Link
	switch c.Reason {
	case v1alpha1.ReasonStorageMigrationForbidden, v1alpha1.ReasonStorageMigrationFailed:
		l = r.buildLink(c, Degraded)
	default:
		l = Link{Text: phrase.OneLine(c.Message), Evidence: r.buildEvidence(c)}
	}
	l.Text = c.Type + ": " + l.Text
	return l
}

// buildStageLink describes a condition of the engine. The link is Failed if the install is stalled for the same
// reason, and Degraded if the install is Ready.
func buildStageLink(in InstallInput, r objectStatus, c metav1.Condition) Link {
	if c.Status == metav1.ConditionTrue {
		return Link{State: Healthy, Text: c.Type, Check: c.Type, Since: toTime(c.LastTransitionTime),
			Evidence: r.buildEvidence(c)}
	}
	stalled := conditions.Get(in.Install.Status.Conditions, v1alpha1.ConditionStalled)
	state := Progressing
	switch {
	case stalled.Status == metav1.ConditionTrue && stalled.Reason == c.Reason:
		state = Failed
	case conditions.IsTrue(in.Install.Status.Conditions, v1alpha1.ConditionReady):
		state = Degraded
	}
	l := r.buildLink(c, state)
	l.Text = c.Type + ": " + l.Text
	return l
}

// buildBlockedLink says whether the installed version is blocked, with the catalog's proposal if there is one. It
// returns false if no version is installed.
func buildBlockedLink(in InstallInput) (Link, bool) {
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
			Evidence: []Evidence{{Object: readInstallStatus(in.Install).object, Field: "spec.blocks",
				Observed: b.Package + " " + b.Version + ": " + phrase.OneLine(b.Reason)}}}
		if p := findProposal(in.Catalog, b); p != "" {
			l.remedies = []remedy.Action{{Text: "The catalog proposes: " + endSentence(p)}}
		}
		return l, true
	}
	return Link{State: Healthy, Text: "the installed version is not blocked",
		Check: "the installed version is not blocked"}, true
}

// findProposal returns the hub's proposal, from the upgrade graph, for clusters that run a blocked version. It returns
// "" if there is none.
func findProposal(c *v1alpha1.OperatorCatalog, b v1alpha1.VersionBlock) string {
	if c == nil {
		return ""
	}
	for _, blocked := range c.Status.BlockedVersions {
		if blocked.Package == b.Package && blocked.Version == b.Version {
			return blocked.Proposal
		}
	}
	return ""
}

// listDownstreamLinks returns links for the observations on the cluster itself.
func listDownstreamLinks(in InstallInput) []Link {
	d := in.Downstream
	if d.Err != nil {
		subject, why := "the objects on cluster "+in.Cluster.Name, "could not be read: "+trimPeriod(d.Err.Error())
		return []Link{{State: Unknown, Reason: remedy.ClusterUnreadable, Text: subject + " " + why, about: aboutReading,
			stale: []Stale{{What: subject, Why: why}}}}
	}
	links := slices.Clone(d.Links)
	for i := range d.Probes {
		links = append(links, buildProbeLink(&d.Probes[i]))
	}
	return links
}

// buildProbeLink says whether a probe succeeds.
func buildProbeLink(p *v1alpha1.EndpointProbe) Link {
	r := objectStatus{object: "EndpointProbe " + p.Namespace + "/" + p.Name, generation: p.Generation,
		observed: p.Status.ObservedGeneration, conditions: p.Status.Conditions}
	if l, isOutdated := r.checkOutdated(); isOutdated {
		return l
	}
	c := conditions.Get(p.Status.Conditions, v1alpha1.ConditionSuccess)
	switch c.Status {
	case metav1.ConditionTrue:
		return Link{State: Healthy, Text: "probe " + p.Name + " succeeds", Check: "probe " + p.Name,
			Evidence: r.buildEvidence(c), Since: toTime(c.LastTransitionTime)}
	case metav1.ConditionFalse:
		l := r.buildLink(c, Degraded)
		l.Text = "probe " + p.Name + " fails" + formatSince(l.Since) + ": " + l.Text
		return l
	}
	return Link{State: Progressing, Reason: remedy.NotReported, Text: "probe " + p.Name + " has not run yet"}
}

// listBudgetLinks returns links for firing alerts and for the remaining error budgets. A budget that is not known has
// no link.
func listBudgetLinks(all []Budget) []Link {
	var links []Link
	for _, b := range all {
		if len(b.Firing) > 0 {
			links = append(links, Link{State: Degraded, Reason: remedy.AlertFiring, about: aboutSymptom,
				Text: fmt.Sprintf("%s for %s%s: %s", phrase.Count(len(b.Firing), "firing alert"), b.SLI,
					formatOnCluster(b.Cluster), strings.Join(b.Firing, ", "))})
		}
		switch {
		case b.Left == nil: // not known
		case *b.Left <= 0:
			links = append(links, Link{State: Degraded, Reason: remedy.BudgetSpent, about: aboutSymptom,
				Text: "the error budget of " + b.SLI + " is spent" + formatOnCluster(b.Cluster),
				Evidence: []Evidence{{Object: "Prometheus", Field: "error budget of " + b.SLI,
					Observed: budgets.LeftText(b.Left)}}})
		default:
			links = append(links, Link{State: Healthy, Check: "the error budget of " + b.SLI +
				formatOnCluster(b.Cluster),
				Text: fmt.Sprintf("%s of the error budget of %s is left%s", phrase.Percent(*b.Left), b.SLI,
					formatOnCluster(b.Cluster))})
		}
	}
	return links
}

// formatOnCluster returns " on cluster NAME", or "" if the name is empty.
func formatOnCluster(cluster string) string {
	if cluster == "" {
		return ""
	}
	return " on cluster " + cluster
}
