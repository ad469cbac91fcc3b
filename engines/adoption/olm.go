// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// The phases and values of OLM's objects (operator-framework/api), as text in a report.
const (
	csvSucceeded = "Succeeded"
	csvFailed    = "Failed"
	csvReplacing = "Replacing"
	csvDeleting  = "Deleting"

	planRequiresApproval = "RequiresApproval"
	planFailed           = "Failed"
	planComplete         = "Complete"

	approvalManual = "Manual"
	sourceReady    = "READY"
)

// checkDeleting reports objects that were deleted and still exist.
func (s subject) checkDeleting() []Finding {
	var found []Finding
	add := func(name string, finalizers []string) {
		found = append(found, Finding{Class: Conflict, Reason: "Deleting", Message: fmt.Sprintf(
			"%s was deleted, and %s.", name, describeWait(finalizers)), Choices: []string{
			"Let the deletion finish: make the program that set the finalizer remove it."}})
	}
	if s.sub != nil && s.sub.Deleting {
		add(s.formatName(), s.sub.Finalizers)
	}
	if s.csv != nil && s.csv.Deleting {
		add(s.formatCSVName(), s.csv.Finalizers)
	}
	return found
}

// describeWait returns what the deletion of an object waits for.
func describeWait(finalizers []string) string {
	if len(finalizers) == 0 {
		return "OLM removes it"
	}
	return "waits for the finalizer " + phrase.First(finalizers, 3)
}

// checkDefinitions reports CustomResourceDefinitions that the operator owns and the cluster does not have.
func (s subject) checkDefinitions() []Finding {
	if s.csv == nil || len(s.csv.Missing) == 0 {
		return nil
	}
	return report(NeedsDecision, "DefinitionMissing", fmt.Sprintf("%s owns %s, which the cluster does not have.",
		s.formatCSVName(), phrase.First(s.csv.Missing, 3)),
		"Create the definitions again from the bundle, and scan again.", leave)
}

// checkCSV checks whether the operator is installed and works, and whether OLM is changing it. The order matters: a CSV
// without a Subscription, or a failed CSV, is reported before the phases through which OLM passes by itself.
func (s subject) checkCSV() []Finding {
	switch {
	case s.csv == nil:
		return s.reportMissingCSV()
	case s.sub == nil:
		return s.reportMissingSubscription()
	case s.csv.Phase == csvFailed:
		return report(NeedsDecision, "CSVFailed",
			fmt.Sprintf("%s has failed: %s.", s.formatCSVName(), s.formatCSVMessage()),
			"Repair it with the means that installed it, or upgrade it with them to a version that works, and scan "+
				"again. What has failed is not taken over: OLM lets an upgrade leave it only where the OperatorGroup "+
				"says so.")
	case s.csv.Phase == csvReplacing:
		return s.reportUnderWay(fmt.Sprintf("%s is being replaced", s.formatCSVName()))
	case s.csv.Phase != csvSucceeded:
		text := fmt.Sprintf("%s is in phase %s", s.formatCSVName(), formatPhase(s.csv.Phase))
		if s.csv.Message != "" {
			text += " (" + trimFullStop(s.csv.Message) + ")"
		}
		return s.reportUnderWay(text)
	case len(s.Found.Others) > 0:
		other := s.Found.Others[0]
		if other.Phase == csvDeleting {
			return s.reportReplaced(other)
		}
		return s.reportUnderWay(
			fmt.Sprintf("ClusterServiceVersion %s/%s of the same upgrade is still there, in phase %s",
				s.Found.Namespace, other.Name, formatPhase(other.Phase)))
	}
	return nil
}

// formatPhase returns a phase or reason; "Unknown" if it is empty.
func formatPhase(phase string) string {
	if phase == "" {
		return "Unknown"
	}
	return phase
}

// formatCSVMessage returns the message of the CSV, or else its reason.
func (s subject) formatCSVMessage() string {
	if s.csv.Message != "" {
		return trimFullStop(s.csv.Message)
	}
	return formatPhase(s.csv.Reason)
}

// reportUnderWay reports that OLM is changing the operator. text is a sentence without a full stop.
func (s subject) reportUnderWay(text string) []Finding {
	return report(Unknown, "UnderWay", text+": OLM is at work. It can be judged when OLM is done.",
		"Scan again in some minutes. If it stays like this, find out why OLM does not finish.")
}

// reportReplaced reports the CSV of an earlier version that OLM has deleted and that still exists.
func (s subject) reportReplaced(replaced v1alpha1.FoundVersion) []Finding {
	return report(Unknown, "UnderWay", fmt.Sprintf("ClusterServiceVersion %s/%s was replaced, and OLM is deleting it. "+
		"The operator can be judged when it is gone.", s.Found.Namespace, replaced.Name),
		"Scan again in some minutes. If it is still there, its metadata.finalizers name the finalizer that "+
			"prevents the deletion: make the program that set the finalizer remove it.")
}

// reportMissingCSV reports a Subscription without a CSV.
func (s subject) reportMissingCSV() []Finding {
	if s.sub == nil {
		return nil
	}
	text := fmt.Sprintf("%s has installed nothing", s.formatName())
	switch {
	case s.sub.InstalledCSV != "":
		text = fmt.Sprintf("The CSV %s that %s has installed was deleted", s.sub.InstalledCSV, s.formatName())
	case s.sub.NotResolved != "":
		text += ": " + trimFullStop(s.sub.NotResolved)
	default: // the Subscription is new, or its InstallPlan waits for approval
		return s.reportUnderWay(text + " yet")
	}
	return report(NeedsDecision, "NotInstalled", text+".",
		"If it is not needed, delete the Subscription. A ManagedOperator can install the operator then.",
		"If it is to be installed, correct what keeps OLM from it, and scan again.")
}

// reportMissingSubscription reports a CSV without a Subscription. OLM does not upgrade it, and it stops every
// resolution in its namespace (olm.md, fact 12).
func (s subject) reportMissingSubscription() []Finding {
	text := fmt.Sprintf("No Subscription has installed %s, so OLM resolves nothing in the namespace.",
		s.formatCSVName())
	if s.pkg != "" && s.csv.Phase == csvSucceeded {
		return report(Eligible, "NoSubscription", text+" A ManagedOperator for package "+s.pkg+" makes a Subscription "+
			"that adopts it.")
	}
	return report(NeedsDecision, "NoSubscription", text,
		"If a catalog of yours is to have its version, add it there, and scan again.",
		"If it is not needed, delete the CSV. Its Deployments go with it; its definitions and objects stay.", leave)
}

// checkPlans checks the InstallPlans that concern the operator.
func (s subject) checkPlans() []Finding {
	if s.namespace == nil {
		return nil
	}
	var found []Finding
	for _, p := range s.namespace.InstallPlans {
		if !s.isConcernedBy(p) {
			continue
		}
		text := fmt.Sprintf("InstallPlan %s/%s for %s", s.Found.Namespace, p.Name, phrase.First(p.CSVs, 3))
		switch {
		case p.Phase == planComplete:
			// a finished plan changes nothing
		case p.Phase == planFailed:
			found = append(found, Finding{Class: NeedsDecision, Reason: "PlanFailed", Message: text + " has failed.",
				Choices: []string{"Correct what its status says, and scan again when OLM is done.",
					"Delete the InstallPlan, if the version that runs is the one to keep."}})
		case p.Phase == planRequiresApproval && !p.Approved:
			found = append(found, Finding{Class: NeedsDecision, Reason: "PlanPending",
				Message: text + " waits for approval.",
				Choices: []string{"Approve it, and scan again when OLM is done: then the new version is taken over.",
					accept(PlanPending, "the version that runs is taken over, and the InstallPlan waits until the "+
						"first upgrade, for which OLM makes another one."),
					"Delete it: then the version that runs is taken over. OLM makes another one unless the " +
						"Subscription changes."}})
		default:
			found = append(found, Finding{Class: Unknown, Reason: "UnderWay", Message: text +
				" is being carried out. It can be judged when OLM is done.",
				Choices: []string{"Scan again in some minutes."}})
		}
	}
	return found
}

// isConcernedBy reports whether an InstallPlan concerns the operator: its Subscription refers to the plan, or the plan
// has a CSV of the operator.
func (s subject) isConcernedBy(p v1alpha1.FoundInstallPlan) bool {
	names := []string{}
	if s.csv != nil {
		names = append(names, s.csv.Name)
	}
	if s.sub != nil {
		if p.Name == s.sub.InstallPlan && p.Name != "" {
			return true
		}
		names = append(names, s.sub.CurrentCSV, s.sub.InstalledCSV)
	}
	return slices.ContainsFunc(p.CSVs, func(csv string) bool { return csv != "" && slices.Contains(names, csv) })
}

// checkWriters reports other programs that write the Subscription.
func (s subject) checkWriters() []Finding {
	if s.sub == nil {
		return nil
	}
	if s.sub.GitOps != "" {
		return report(NeedsDecision, "GitOps", fmt.Sprintf("%s writes %s, and would undo what a take-over changes.",
			s.sub.GitOps, s.formatName()),
			"Take the Subscription out of the repository or release in such a way that it is not deleted on the "+
				"cluster, and scan again. The ManagedOperator can be in the repository instead.",
			accept(GitOps, "what writes the Subscription must not write it again, or each of the two undoes what "+
				"the other one does."), leave)
	}
	var otherWriters []string
	for _, w := range s.sub.Writers {
		if !isUsualWriter(w) {
			otherWriters = append(otherWriters, w)
		}
	}
	if len(otherWriters) == 0 {
		return nil
	}
	return report(Eligible, "OtherWriters", fmt.Sprintf("%s was written by %s. Make sure that it is not written back.",
		s.formatName(), phrase.First(otherWriters, 3)))
}

// isUsualWriter reports whether a field manager is a person's tool, or OLM or Bellwether: these do not
// revert changes.
func isUsualWriter(manager string) bool {
	return strings.HasPrefix(manager, "kubectl") || strings.HasPrefix(manager, "bellwether") ||
		slices.Contains([]string{"catalog", "olm", "oc", "Mozilla", "node-fetch", "k9s"}, manager)
}

// checkConfig checks whether the ManagedOperator has, or can have, the same configuration as the Subscription. If no
// ManagedOperator would take the operator over, or the report lacks the settings, it only lists the configured fields.
func (s subject) checkConfig() []Finding {
	if s.sub == nil {
		return nil
	}
	if len(s.sub.ConfigNotSupported) > 0 {
		return report(NeedsDecision, "ConfigNotSupported",
			fmt.Sprintf("%s sets spec.config.%s, which a ManagedOperator "+
				"does not have.", s.formatName(), strings.Join(s.sub.ConfigNotSupported, ", spec.config.")),
			"Remove these settings from the Subscription, if the operator runs without them. Its pods restart.", leave)
	}
	o := s.findOperator()
	if config, isKnown := s.sub.SupportedConfig(); o != nil && isKnown {
		return s.compareConfig(o, config)
	}
	if len(s.sub.Config) == 0 {
		return nil
	}
	return report(Eligible, "Config",
		fmt.Sprintf("%s sets spec.config.%s: the same must be in spec.install.config of "+
			"the ManagedOperator, or the operator is not taken over.", s.formatName(),
			strings.Join(s.sub.Config, ", spec.config.")))
}

// compareConfig compares the configuration of the Subscription with the configuration of the ManagedOperator. A
// difference needs a decision, because a take-over applies the configuration of the ManagedOperator.
func (s subject) compareConfig(o *Operator, config *v1alpha1.OperatorConfig) []Finding {
	differing := listDifferingConfig(config, o.Config)
	switch {
	case len(differing) > 0:
		return report(NeedsDecision, "ConfigDiffers", fmt.Sprintf("%s and ManagedOperator %s have other settings: "+
			"spec.config.%s. A take-over would restart the operator's pods with them.", s.formatName(), o.Key,
			strings.Join(differing, ", spec.config.")),
			"Make spec.install.config of the ManagedOperator equal to spec.config of the Subscription, with lists in "+
				"the same order. Where clusters differ, each of the settings needs a ManagedOperator of its own.",
			"Change the Subscription, with the means that installed it. The operator's pods restart.", leave)
	case len(s.sub.Config) == 0:
		return nil
	}
	return report(Eligible, "Config", fmt.Sprintf("%s sets spec.config.%s, as ManagedOperator %s does.", s.formatName(),
		strings.Join(s.sub.Config, ", spec.config."), o.Key))
}

// listDifferingConfig returns the fields in which two configurations differ for OLM: the order of variables is kept
// in a Deployment, and empty resources remove the bundle's resources.
func listDifferingConfig(a, b *v1alpha1.OperatorConfig) []string {
	var none v1alpha1.OperatorConfig
	if a == nil {
		a = &none
	}
	if b == nil {
		b = &none
	}
	var out []string
	for _, field := range []struct {
		name string
		a, b any
	}{
		{"env", a.Env, b.Env}, {"resources", a.Resources, b.Resources},
		{"nodeSelector", a.NodeSelector, b.NodeSelector}, {"tolerations", a.Tolerations, b.Tolerations},
	} {
		if !equality.Semantic.DeepEqual(field.a, field.b) {
			out = append(out, field.name)
		}
	}
	return out
}

// checkChanges reports edits of the CSV, and the state of its Deployments.
func (s subject) checkChanges() []Finding {
	if s.csv == nil {
		return nil
	}
	var found []Finding
	if len(s.csv.EditedBy) > 0 {
		found = append(found, Finding{Class: NeedsDecision, Reason: "CSVEdited", Message: fmt.Sprintf(
			"%s was edited by %s. It differs from its bundle, and an upgrade undoes that.", s.formatCSVName(),
			phrase.First(s.csv.EditedBy, 3)), Choices: []string{
			accept(CSVEdited, "it is taken over as it is. Put what was edited into install settings, or into a "+
				"version of your own, before the first upgrade."), leave}})
	}
	for _, d := range s.csv.Deployments {
		found = append(found, s.checkDeployment(d)...)
	}
	return found
}

// checkDeployment reports a Deployment that was scaled or is not available.
func (s subject) checkDeployment(d v1alpha1.FoundDeployment) []Finding {
	name := fmt.Sprintf("Deployment %s/%s", s.Found.Namespace, d.Name)
	switch {
	case d.Replicas == 0 && d.Bundle > 0:
		return report(NeedsDecision, "ScaledToZero",
			fmt.Sprintf("%s was scaled to 0: the operator does not run.", name),
			fmt.Sprintf("Scale it to %d again if it is to run, and scan again.", d.Bundle),
			accept(ScaledToZero, "it stays at 0 until the first upgrade."), leave)
	case d.Replicas != d.Bundle:
		return report(Eligible, "Scaled",
			fmt.Sprintf("%s was scaled to %d, and the bundle asks for %d. An upgrade sets "+
				"it back.", name, d.Replicas, d.Bundle))
	case d.Ready < d.Replicas:
		return report(Eligible, "NotAvailable", fmt.Sprintf("%s has %d of %d replicas available.", name, d.Ready,
			d.Replicas))
	}
	return nil
}

// checkSource reports a CatalogSource that does not exist or is not ready. It reports no missing CatalogSource if the
// report of the cluster leaves out CatalogSources.
func (s subject) checkSource() []Finding {
	if s.sub == nil || s.sub.Source == "" {
		return nil
	}
	name := s.sub.SourceNamespace + "/" + s.sub.Source
	i := slices.IndexFunc(s.Scan.CatalogSources, func(c v1alpha1.FoundCatalogSource) bool {
		return c.Namespace == s.sub.SourceNamespace && c.Name == s.sub.Source
	})
	isComplete := s.Scan.Truncated == nil || s.Scan.Truncated.CatalogSources == 0
	switch {
	case i < 0 && isComplete:
		return report(Eligible, "CatalogSourceGone",
			fmt.Sprintf("CatalogSource %s no longer exists, so OLM finds "+
				"no updates. A take-over gives it another one.", name))
	case i >= 0 && s.Scan.CatalogSources[i].State != sourceReady && s.Scan.CatalogSources[i].State != "":
		return report(Eligible, "CatalogSourceNotReady",
			fmt.Sprintf("CatalogSource %s is in state %s, so OLM finds no "+
				"updates.", name, s.Scan.CatalogSources[i].State))
	}
	return nil
}

// checkSubscription reports settings that a take-over changes, or that prevent a deletion.
func (s subject) checkSubscription() []Finding {
	if s.sub == nil {
		return nil
	}
	var found []Finding
	add := func(reason, format string, args ...any) {
		found = append(found, Finding{Class: Eligible, Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	if s.sub.Approval != approvalManual {
		add("AutomaticApproval", "Approval is automatic: until it is taken over, OLM upgrades it when its catalog has "+
			"a newer version.")
	}
	if s.csv != nil && s.sub.NotResolved != "" {
		add("NotResolved", "OLM cannot resolve: %s.", trimFullStop(s.sub.NotResolved))
	}
	if s.csv != nil && s.sub.StartingCSV != "" && s.sub.StartingCSV != s.csv.Name {
		add("StartingCSV", "It began with %s, which no longer has an effect.", s.sub.StartingCSV)
	}
	if s.sub.SourceNamespace != "" && s.sub.SourceNamespace != s.Found.Namespace {
		add("SourceElsewhere", "Its CatalogSource is in namespace %s. A take-over gives it one in its own namespace.",
			s.sub.SourceNamespace)
	}
	finalizers := slices.Clone(s.sub.Finalizers)
	if s.csv != nil {
		finalizers = append(finalizers, s.csv.Finalizers...)
	}
	if len(finalizers) > 0 && !s.sub.Deleting {
		add("Finalizers", "The finalizer %s prevents its deletion.",
			phrase.First(finalizers, 3))
	}
	return found
}
