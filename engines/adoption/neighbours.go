// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// trimFullStop returns a text as one line without the full stop, for use within another sentence.
func trimFullStop(text string) string { return strings.TrimRight(phrase.OneLine(text), ". ") }

// listProvided returns the APIs of a CSV in the form KIND.VERSION.GROUP that bundles use, sorted.
func listProvided(csv *v1alpha1.FoundCSV) []string {
	if csv == nil {
		return nil
	}
	var out []string
	for _, d := range csv.Owned {
		_, group, _ := strings.Cut(d.Name, ".")
		out = append(out, d.Kind+"."+d.Version+"."+group)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// checkTwins reports a second Subscription for the package in the namespace.
func (s subject) checkTwins() []Finding {
	if s.sub == nil {
		return nil
	}
	var names []string
	for _, o := range s.Scan.Operators {
		if o.Namespace == s.Found.Namespace && o.Subscription != nil && o.Subscription.Package == s.sub.Package {
			names = append(names, o.Subscription.Name)
		}
	}
	if len(names) < 2 {
		return nil
	}
	slices.Sort(names)
	return report(Conflict, "TwoSubscriptions", fmt.Sprintf("%d Subscriptions of namespace %s are for package %s: %s. "+
		"OLM resolves nothing in the namespace.", len(names), s.Found.Namespace, s.sub.Package,
		strings.Join(names, ", ")),
		"Delete all but one, and keep the one whose status.installedCSV names the CSV that runs. Deleting a "+
			"Subscription leaves the operator running.")
}

// checkGroup checks that the namespace has exactly one OperatorGroup, and that its mode is possible. An incomplete
// report without the namespace makes the operator Unknown.
func (s subject) checkGroup() []Finding {
	if s.namespace == nil {
		return report(Unknown, "NotReported", fmt.Sprintf("The report of the cluster is too long, and leaves out the "+
			"OperatorGroups of namespace %s.", s.Found.Namespace))
	}
	groups := s.namespace.OperatorGroups
	switch len(groups) {
	case 0:
		return report(Conflict, "NoOperatorGroup", fmt.Sprintf("Namespace %s has no OperatorGroup, so OLM installs "+
			"nothing there.", s.Found.Namespace),
			"Create the OperatorGroup that was there when the operator was installed.")
	case 1:
		return s.checkOneGroup(groups[0])
	}
	names := make([]string, len(groups))
	for i, g := range groups {
		names[i] = g.Name
	}
	return report(Conflict, "ManyOperatorGroups",
		fmt.Sprintf("Namespace %s has %d OperatorGroups (%s), and OLM allows "+
			"exactly one.", s.Found.Namespace, len(groups), phrase.First(names, 5)),
		"Delete all but one, and keep the one with the namespaces that the operator watches.")
}

// checkOneGroup checks the only OperatorGroup of the namespace against the possible install modes, and against the
// mode of the ManagedOperator that would take the operator over.
func (s subject) checkOneGroup(g v1alpha1.FoundOperatorGroup) []Finding {
	var found []Finding
	mode, ok := findMode(g, s.Found.Namespace)
	switch o := s.findOperator(); {
	case !ok:
		selection := "names " + phrase.First(g.Targets, 3)
		if g.Selector {
			selection = "selects namespaces by their labels"
		}
		found = report(NeedsDecision, "OtherInstallMode",
			fmt.Sprintf("OperatorGroup %s/%s %s. A ManagedOperator watches "+
				"all namespaces, or its own.", s.Found.Namespace, g.Name, selection),
			"Change the OperatorGroup to all namespaces or to its own one. The operator restarts with the namespaces "+
				"that it then watches.", leave)
	case o != nil && o.AllNamespaces != (mode == v1alpha1.InstallAllNamespaces):
		found = report(NeedsDecision, "OtherInstallMode",
			fmt.Sprintf("OperatorGroup %s/%s is for install mode %s, and "+
				"ManagedOperator %s asks for the other one.", s.Found.Namespace, g.Name, mode, o.Key),
			fmt.Sprintf("Set spec.install.mode of the ManagedOperator to %s, so that the operator keeps watching what "+
				"it watches.", mode),
			"Change the OperatorGroup. The operator restarts with the namespaces that it then watches.")
	}
	if g.ServiceAccount != "" {
		found = append(found, Finding{Class: Eligible, Reason: "LimitedByServiceAccount", Message: fmt.Sprintf(
			"OperatorGroup %s/%s limits OLM to the rights of ServiceAccount %s, and goes on doing so.",
			s.Found.Namespace, g.Name, g.ServiceAccount)})
	}
	return found
}

// findMode returns the install mode of an OperatorGroup; false if a ManagedOperator cannot have such a mode.
func findMode(g v1alpha1.FoundOperatorGroup, namespace string) (v1alpha1.InstallMode, bool) {
	switch {
	case g.Selector:
		return "", false
	case len(g.Targets) == 0:
		return v1alpha1.InstallAllNamespaces, true
	case len(g.Targets) == 1 && g.Targets[0] == namespace:
		return v1alpha1.InstallOwnNamespace, true
	}
	return "", false
}

// newClaim returns the claim of an operator that was found. It claims all namespaces unless its only OperatorGroup
// has target namespaces.
func (s subject) newClaim(found *v1alpha1.FoundOperator, pkg string) engines.Claim {
	c := engines.Claim{Package: pkg, Namespace: found.Namespace, AllNamespaces: true, Provides: listProvided(found.CSV)}
	for _, n := range s.Scan.Namespaces {
		if n.Name == found.Namespace && len(n.OperatorGroups) == 1 {
			c.AllNamespaces = len(n.OperatorGroups[0].Targets) == 0
		}
	}
	return c
}

// checkClaims reports ManagedOperators that select the cluster, and other operators on it, that OLM cannot run
// together with the operator.
func (s subject) checkClaims() []Finding {
	own := s.newClaim(s.Found, s.pkg)
	var found []Finding
	for _, o := range s.Known.Operators {
		if o.Namespace == own.Namespace && o.Package == own.Package || s.isRenamed(o) {
			continue // this ManagedOperator would take the operator over, under this or another package name
		}
		if m := own.FindConflict(o.Claim); m != nil {
			text := fmt.Sprintf("ManagedOperator %s selects the cluster and %s", o.Key, m.Overlap)
			if m.Cause != "" {
				text += ": " + m.Cause
			}
			found = append(found, Finding{Class: Conflict, Reason: m.Reason, Message: text + ".", Choices: []string{
				fmt.Sprintf("To have ManagedOperator %s take this one over, set its spec.install.namespace to %s.",
					o.Key, s.Found.Namespace),
				"Let the ManagedOperator not select this cluster."}})
		}
	}
	for i := range s.Scan.Operators {
		other := &s.Scan.Operators[i]
		if other.Namespace == s.Found.Namespace {
			continue // checkTwins and checkSharedNamespace check these operators
		}
		if m := own.FindConflict(s.newClaim(other, s.Known.findPackage(other))); m != nil {
			found = append(found, Finding{Class: Conflict, Reason: m.Reason, Message: fmt.Sprintf(
				"%s in namespace %s is an operator for the same APIs, or the same package: %s.",
				describeOperator(other),
				other.Namespace, m.Cause), Choices: []string{
				"Remove one of the two from the cluster, and keep its objects."}})
		}
	}
	return found
}

// isRenamed reports whether a ManagedOperator installs the operator under the name of another package: into the same
// namespace, with a common API or a bundle of the same name, while no catalog has the package of the operator.
func (s subject) isRenamed(o Operator) bool {
	return o.Namespace == s.Found.Namespace && o.Package != s.pkg && s.findKnownPackage() == nil &&
		(s.findSharedAPI(o.Provides) != "" || s.isBundleOf(o.Package))
}

// isBundleOf reports whether the operator's CSV is a version of a package.
func (s subject) isBundleOf(pkg string) bool {
	return s.csv != nil && slices.ContainsFunc(s.Known.Packages, func(p Package) bool {
		_, ok := p.findBundle(s.csv.Name)
		return ok && p.Name == pkg
	})
}

// describeOperator returns the main object of an operator for messages.
func describeOperator(found *v1alpha1.FoundOperator) string {
	switch {
	case found.Subscription != nil:
		return "Subscription " + found.Subscription.Name
	case found.CSV != nil:
		return "ClusterServiceVersion " + found.CSV.Name
	}
	return "An operator"
}

// checkSharedNamespace reports other operators in the namespace.
func (s subject) checkSharedNamespace() []Finding {
	if s.sub == nil || s.sub.Dependency {
		return nil
	}
	var names []string
	for _, o := range s.Scan.Operators {
		if o.Namespace == s.Found.Namespace && o.Subscription != nil && !o.Subscription.Dependency &&
			o.Subscription.Package != s.sub.Package {
			names = append(names, o.Subscription.Package)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return report(NeedsDecision, "SharedNamespace",
		fmt.Sprintf("Namespace %s has other operators too: %s. OLM makes one "+
			"InstallPlan for a namespace: one Subscription with manual approval makes all of them manual, and one "+
			"that does not resolve stops all.", s.Found.Namespace, phrase.First(names, 5)),
		accept(SharedNamespace, "a person must approve the InstallPlans of the other operators from then on."),
		"Install the operator in a namespace of its own, after its Subscription and CSV were deleted here. Its "+
			"objects stay, and its pods stop meanwhile.", leave)
}

// checkDependencies reports that the operator was installed as a dependency, or that other operators need its APIs.
func (s subject) checkDependencies() []Finding {
	var users []string
	owned := map[string]bool{}
	if s.csv != nil {
		for _, d := range s.csv.Owned {
			owned[d.Name] = true
		}
	}
	for _, o := range s.Scan.Operators {
		if o.CSV != nil && slices.ContainsFunc(o.CSV.Required, func(name string) bool { return owned[name] }) {
			users = append(users, o.CSV.Name)
		}
	}
	slices.Sort(users)
	users = slices.Compact(users)
	if s.sub != nil && s.sub.Dependency {
		user := "another operator"
		if len(users) > 0 {
			user = phrase.First(users, 3)
		}
		return report(NeedsDecision, "Dependency",
			fmt.Sprintf("OLM installed it by itself, because %s needs it.", user),
			"Take over the operator that needs it. Its catalog view then has this one too.",
			accept(Dependency, "it is taken over by itself, and its ManagedOperator decides about its versions."))
	}
	if len(users) == 0 {
		return nil
	}
	return report(Eligible, "UsedByOthers", fmt.Sprintf("%s %s its APIs. An upgrade must keep them.",
		phrase.First(users, 3), phrase.Word(len(users), "needs", "need")))
}

// checkRefusal reports the veto of the cluster's owner. An agent that only reads does not make the operator less
// eligible.
func (s subject) checkRefusal() []Finding {
	switch {
	case s.Refusal == nil:
		return nil
	case s.Refusal.ReadOnly:
		return report(Eligible, "ReadOnly", capitalize(s.Refusal.Message)+".")
	}
	return report(NeedsDecision, v1alpha1.ReasonVetoed, capitalize(s.Refusal.Message)+".",
		"Ask the cluster's owner. Nothing is taken over before the veto ends.")
}

// capitalize returns a text with a capital first letter.
func capitalize(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// checkTruncated reports that operators are missing in the cluster's report.
func (s subject) checkTruncated() []Finding {
	t := s.Scan.Truncated
	if t == nil || t.Operators == 0 {
		return nil
	}
	return report(Unknown, "NotReported", fmt.Sprintf("The report of the cluster is too long, and leaves out %s, of "+
		"which one may be a neighbour of this one.", phrase.Count(t.Operators, "operator")))
}
