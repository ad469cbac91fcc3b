// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Phases of OLM's objects (operator-framework/api), which a report of an agent has as text.
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

// deleting is about what was deleted and is still there.
func (s subject) deleting() []Finding {
	var found []Finding
	add := func(what string, finalizers []string) {
		found = append(found, Finding{Class: Conflict, Reason: "Deleting", Message: fmt.Sprintf(
			"%s was deleted, and %s.", what, waits(finalizers)), Choices: []string{
			"Let the deletion finish: see to it that whoever set the finalizer takes it away."}})
	}
	if s.sub != nil && s.sub.Deleting {
		add(s.name(), s.sub.Finalizers)
	}
	if s.csv != nil && s.csv.Deleting {
		add(s.csvName(), s.csv.Finalizers)
	}
	return found
}

func waits(finalizers []string) string {
	if len(finalizers) == 0 {
		return "OLM removes it"
	}
	return "waits for the finalizer " + phrase.First(finalizers, 3)
}

// definitions is about those that the operator owns.
func (s subject) definitions() []Finding {
	if s.csv == nil || len(s.csv.Missing) == 0 {
		return nil
	}
	return one(NeedsDecision, "DefinitionMissing", fmt.Sprintf("%s owns %s, which the cluster does not have.",
		s.csvName(), phrase.First(s.csv.Missing, 3)),
		"Create the definitions again from the bundle, and scan again.", leave)
}

// csvState judges whether the operator is installed, and works.
func (s subject) csvState() []Finding {
	switch {
	case s.csv == nil:
		return s.noCSV()
	case s.sub == nil:
		return s.noSubscription()
	case s.csv.Phase == csvFailed:
		return one(NeedsDecision, "CSVFailed", fmt.Sprintf("%s has failed: %s.", s.csvName(), s.csvMessage()),
			"Repair it with the means that installed it, or upgrade it with them to a version that works, and scan "+
				"again. What has failed is not taken over: OLM lets an upgrade leave it only where the OperatorGroup "+
				"says so.")
	case s.csv.Phase == csvReplacing:
		return s.underWay(fmt.Sprintf("%s is being replaced", s.csvName()))
	case s.csv.Phase != csvSucceeded:
		text := fmt.Sprintf("%s is in phase %s", s.csvName(), orUnknown(s.csv.Phase))
		if s.csv.Message != "" {
			text += " (" + trimEnd(s.csv.Message) + ")"
		}
		return s.underWay(text)
	case len(s.Found.Others) > 0:
		other := s.Found.Others[0]
		if other.Phase == csvDeleting {
			return s.replaced(other)
		}
		return s.underWay(fmt.Sprintf("ClusterServiceVersion %s/%s of the same upgrade is still there, in phase %s",
			s.Found.Namespace, other.Name, orUnknown(other.Phase)))
	}
	return nil
}

func orUnknown(phase string) string {
	if phase == "" {
		return "Unknown"
	}
	return phase
}

func (s subject) csvMessage() string {
	if s.csv.Message != "" {
		return trimEnd(s.csv.Message)
	}
	return orUnknown(s.csv.Reason)
}

func (s subject) underWay(text string) []Finding {
	return one(Unknown, "UnderWay", text+": OLM is at work. It can be judged when OLM is done.",
		"Scan again in some minutes. If it stays like this, find out why OLM does not finish.")
}

// replaced is about the CSV of an earlier version, which OLM has deleted and which is still there.
func (s subject) replaced(before v1alpha1.FoundVersion) []Finding {
	return one(Unknown, "UnderWay", fmt.Sprintf("ClusterServiceVersion %s/%s was replaced, and OLM is deleting it. "+
		"The operator can be judged when it is gone.", s.Found.Namespace, before.Name),
		"Scan again in some minutes. If it is still there, its metadata.finalizers say what keeps it: see to it that "+
			"whoever set the finalizer takes it away.")
}

func (s subject) noCSV() []Finding {
	if s.sub == nil {
		return nil
	}
	what := fmt.Sprintf("%s has installed nothing", s.name())
	switch {
	case s.sub.InstalledCSV != "":
		what = fmt.Sprintf("The CSV %s that %s has installed was deleted", s.sub.InstalledCSV, s.name())
	case s.sub.NotResolved != "":
		what += ": " + trimEnd(s.sub.NotResolved)
	default: // it was made a moment ago, or waits for the approval of its InstallPlan
		return s.underWay(what + " yet")
	}
	return one(NeedsDecision, "NotInstalled", what+".",
		"If nobody needs it, delete the Subscription. A ManagedOperator can install the operator then.",
		"If it is to be installed, correct what keeps OLM from it, and scan again.")
}

// noSubscription is about a CSV that OLM does not upgrade, and that stops every resolution in its namespace (olm.md,
// fact 12).
func (s subject) noSubscription() []Finding {
	text := fmt.Sprintf("No Subscription has installed %s, so OLM resolves nothing in the namespace.", s.csvName())
	if s.pkg != "" && s.csv.Phase == csvSucceeded {
		return one(Eligible, "NoSubscription", text+" A ManagedOperator for package "+s.pkg+" makes a Subscription "+
			"that adopts it.")
	}
	return one(NeedsDecision, "NoSubscription", text,
		"If a catalog of yours is to have its version, add it there, and scan again.",
		"If nobody needs it, delete the CSV. Its Deployments go with it; its definitions and objects stay.", leave)
}

// plans judges InstallPlans that are about the operator.
func (s subject) plans() []Finding {
	if s.namespace == nil {
		return nil
	}
	var found []Finding
	for _, p := range s.namespace.InstallPlans {
		if !s.concerns(p) {
			continue
		}
		what := fmt.Sprintf("InstallPlan %s/%s for %s", s.Found.Namespace, p.Name, phrase.First(p.CSVs, 3))
		switch {
		case p.Phase == planComplete:
		case p.Phase == planFailed:
			found = append(found, Finding{Class: NeedsDecision, Reason: "PlanFailed", Message: what + " has failed.",
				Choices: []string{"Correct what its status says, and scan again when OLM is done.",
					"Delete the InstallPlan, if the version that runs is the one to keep."}})
		case p.Phase == planRequiresApproval && !p.Approved:
			found = append(found, Finding{Class: NeedsDecision, Reason: "PlanPending",
				Message: what + " waits for approval.",
				Choices: []string{"Approve it, and scan again when OLM is done: then the new version is taken over.",
					accepting(PlanPending, "the version that runs is taken over, and the InstallPlan waits until the "+
						"first upgrade, for which OLM makes another one."),
					"Delete it: then the version that runs is taken over. OLM makes another one unless the " +
						"Subscription changes."}})
		default:
			found = append(found, Finding{Class: Unknown, Reason: "UnderWay", Message: what +
				" is being carried out. It can be judged when OLM is done.",
				Choices: []string{"Scan again in some minutes."}})
		}
	}
	return found
}

// concerns tells whether an InstallPlan is about the operator.
func (s subject) concerns(p v1alpha1.FoundInstallPlan) bool {
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

// gitOps is about who else writes the Subscription.
func (s subject) gitOps() []Finding {
	if s.sub == nil {
		return nil
	}
	if s.sub.GitOps != "" {
		return one(NeedsDecision, "GitOps", fmt.Sprintf("%s writes %s, and would undo what a take-over changes.",
			s.sub.GitOps, s.name()),
			"Take the Subscription out of the repository or release in such a way that it is not deleted on the "+
				"cluster, and scan again. The ManagedOperator can be in the repository instead.",
			accepting(GitOps, "what writes the Subscription must not write it again, or each of the two undoes what "+
				"the other one does."), leave)
	}
	var others []string
	for _, w := range s.sub.Writers {
		if !isUsualWriter(w) {
			others = append(others, w)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return one(Eligible, "OtherWriters", fmt.Sprintf("%s was written by %s. Make sure that it is not written back.",
		s.name(), phrase.First(others, 3)))
}

// isUsualWriter tells whether a field manager is a person's tool, or OLM itself: these do not write something back.
func isUsualWriter(manager string) bool {
	return strings.HasPrefix(manager, "kubectl") || strings.HasPrefix(manager, "bellwether") ||
		slices.Contains([]string{"catalog", "olm", "oc", "Mozilla", "node-fetch", "k9s"}, manager)
}

// config is about settings of the Subscription.
func (s subject) config() []Finding {
	if s.sub == nil {
		return nil
	}
	if len(s.sub.ConfigNotSupported) > 0 {
		return one(NeedsDecision, "ConfigNotSupported", fmt.Sprintf("%s sets spec.config.%s, which a ManagedOperator "+
			"does not have.", s.name(), strings.Join(s.sub.ConfigNotSupported, ", spec.config.")),
			"Remove these settings from the Subscription, if the operator runs without them. Its pods restart.", leave)
	}
	o := s.operator()
	if config, known := s.sub.SupportedConfig(); o != nil && known {
		return s.compareConfig(o, config)
	}
	if len(s.sub.Config) == 0 {
		return nil
	}
	return one(Eligible, "Config", fmt.Sprintf("%s sets spec.config.%s: the same has to be in spec.install.config of "+
		"the ManagedOperator, or the operator is not taken over.", s.name(),
		strings.Join(s.sub.Config, ", spec.config.")))
}

// compareConfig compares the settings with those that the ManagedOperator would give.
func (s subject) compareConfig(o *Operator, config *v1alpha1.OperatorConfig) []Finding {
	differing := differingConfig(config, o.Config)
	switch {
	case len(differing) > 0:
		return one(NeedsDecision, "ConfigDiffers", fmt.Sprintf("%s and ManagedOperator %s have other settings: "+
			"spec.config.%s. A take-over would restart the operator's pods with them.", s.name(), o.Key,
			strings.Join(differing, ", spec.config.")),
			"Make spec.install.config of the ManagedOperator equal to spec.config of the Subscription, with lists in "+
				"the same order. Where clusters differ, each of the settings needs a ManagedOperator of its own.",
			"Change the Subscription, with the means that installed it. The operator's pods restart.", leave)
	case len(s.sub.Config) == 0:
		return nil
	}
	return one(Eligible, "Config", fmt.Sprintf("%s sets spec.config.%s, as ManagedOperator %s does.", s.name(),
		strings.Join(s.sub.Config, ", spec.config."), o.Key))
}

// differingConfig names the fields in which settings differ, as OLM would tell them apart: the order of variables is
// that in a Deployment, and empty resources take away those of the bundle.
func differingConfig(a, b *v1alpha1.OperatorConfig) []string {
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

// changed is about what people changed of what the bundle brought.
func (s subject) changed() []Finding {
	if s.csv == nil {
		return nil
	}
	var found []Finding
	if len(s.csv.EditedBy) > 0 {
		found = append(found, Finding{Class: NeedsDecision, Reason: "CSVEdited", Message: fmt.Sprintf(
			"%s was edited by %s. It differs from its bundle, and an upgrade undoes that.", s.csvName(),
			phrase.First(s.csv.EditedBy, 3)), Choices: []string{
			accepting(CSVEdited, "it is taken over as it is. Put what was edited into install settings, or into a "+
				"version of your own, before the first upgrade."), leave}})
	}
	for _, d := range s.csv.Deployments {
		found = append(found, s.deployment(d)...)
	}
	return found
}

func (s subject) deployment(d v1alpha1.FoundDeployment) []Finding {
	name := fmt.Sprintf("Deployment %s/%s", s.Found.Namespace, d.Name)
	switch {
	case d.Replicas == 0 && d.Bundle > 0:
		return one(NeedsDecision, "ScaledToZero", fmt.Sprintf("%s was scaled to 0: the operator does not run.", name),
			fmt.Sprintf("Scale it to %d again if it is to run, and scan again.", d.Bundle),
			accepting(ScaledToZero, "it stays at 0 until the first upgrade."), leave)
	case d.Replicas != d.Bundle:
		return one(Eligible, "Scaled", fmt.Sprintf("%s was scaled to %d, and the bundle asks for %d. An upgrade sets "+
			"it back.", name, d.Replicas, d.Bundle))
	case d.Ready < d.Replicas:
		return one(Eligible, "NotAvailable", fmt.Sprintf("%s has %d of %d replicas available.", name, d.Ready,
			d.Replicas))
	}
	return nil
}

// source is about the CatalogSource.
func (s subject) source() []Finding {
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
		return one(Eligible, "CatalogSourceGone", fmt.Sprintf("CatalogSource %s does not exist any more, so OLM finds "+
			"no updates. A take-over gives it another one.", name))
	case i >= 0 && s.Scan.CatalogSources[i].State != sourceReady && s.Scan.CatalogSources[i].State != "":
		return one(Eligible, "CatalogSourceNotReady", fmt.Sprintf("CatalogSource %s is in state %s, so OLM finds no "+
			"updates.", name, s.Scan.CatalogSources[i].State))
	}
	return nil
}

// subscription notes settings that a take-over changes or that keep things from being deleted.
func (s subject) subscription() []Finding {
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
		add("NotResolved", "OLM cannot resolve: %s.", trimEnd(s.sub.NotResolved))
	}
	if s.csv != nil && s.sub.StartingCSV != "" && s.sub.StartingCSV != s.csv.Name {
		add("StartingCSV", "It began with %s, which has no effect any more.", s.sub.StartingCSV)
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
		add("Finalizers", "The finalizer %s keeps it from being deleted, whoever deletes it.",
			phrase.First(finalizers, 3))
	}
	return found
}
