// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/claim"
	"github.com/bellwether-dev/bellwether/phrase"
)

// trimEnd takes away the full stop of somebody else's sentence that is to be within one of ours.
func trimEnd(text string) string { return strings.TrimRight(phrase.OneLine(text), ". ") }

// provides names the APIs of a CSV as a bundle names them.
func provides(csv *v1alpha1.FoundCSV) []string {
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

// twins looks for a second Subscription for the package in the namespace.
func (s subject) twins() []Finding {
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
	return one(Conflict, "TwoSubscriptions", fmt.Sprintf("%d Subscriptions of namespace %s are for package %s: %s. "+
		"OLM resolves nothing in the namespace.", len(names), s.Found.Namespace, s.sub.Package,
		strings.Join(names, ", ")),
		"Delete all but one, and keep the one whose status.installedCSV names the CSV that runs. Deleting a "+
			"Subscription leaves the operator running.")
}

// group judges the OperatorGroup of the namespace.
func (s subject) group() []Finding {
	if s.namespace == nil {
		return one(Unknown, "NotReported", fmt.Sprintf("The report of the cluster is too long, and leaves out the "+
			"OperatorGroups of namespace %s.", s.Found.Namespace))
	}
	groups := s.namespace.OperatorGroups
	switch len(groups) {
	case 0:
		return one(Conflict, "NoOperatorGroup", fmt.Sprintf("Namespace %s has no OperatorGroup, so OLM installs "+
			"nothing there.", s.Found.Namespace),
			"Create the OperatorGroup that was there when the operator was installed.")
	case 1:
		return s.oneGroup(groups[0])
	}
	names := make([]string, len(groups))
	for i, g := range groups {
		names[i] = g.Name
	}
	return one(Conflict, "ManyOperatorGroups", fmt.Sprintf("Namespace %s has %d OperatorGroups (%s), and OLM allows "+
		"exactly one.", s.Found.Namespace, len(groups), phrase.First(names, 5)),
		"Delete all but one, and keep the one with the namespaces that the operator watches.")
}

func (s subject) oneGroup(g v1alpha1.FoundOperatorGroup) []Finding {
	var found []Finding
	mode, ok := modeOf(g, s.Found.Namespace)
	switch o := s.operator(); {
	case !ok:
		what := "names " + phrase.First(g.Targets, 3)
		if g.Selector {
			what = "selects namespaces by their labels"
		}
		found = one(NeedsDecision, "OtherInstallMode", fmt.Sprintf("OperatorGroup %s/%s %s. A ManagedOperator watches "+
			"all namespaces, or its own.", s.Found.Namespace, g.Name, what),
			"Change the OperatorGroup to all namespaces or to its own one. The operator restarts with the namespaces "+
				"that it then watches.", leave)
	case o != nil && o.AllNamespaces != (mode == v1alpha1.InstallAllNamespaces):
		found = one(NeedsDecision, "OtherInstallMode", fmt.Sprintf("OperatorGroup %s/%s is for install mode %s, and "+
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

// modeOf is the install mode that an OperatorGroup stands for, if it is one that a ManagedOperator can have.
func modeOf(g v1alpha1.FoundOperatorGroup, namespace string) (v1alpha1.InstallMode, bool) {
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

// claimOf is what an operator that was found claims of its cluster.
func (s subject) claimOf(found *v1alpha1.FoundOperator, pkg string) claim.Claim {
	c := claim.Claim{Package: pkg, Namespace: found.Namespace, AllNamespaces: true, Provides: provides(found.CSV)}
	for _, n := range s.Scan.Namespaces {
		if n.Name == found.Namespace && len(n.OperatorGroups) == 1 {
			c.AllNamespaces = len(n.OperatorGroups[0].Targets) == 0
		}
	}
	return c
}

// meetings looks for what OLM cannot run beside the operator: ManagedOperators that select the cluster, and operators
// that were found there.
func (s subject) meetings() []Finding {
	own := s.claimOf(s.Found, s.pkg)
	var found []Finding
	for _, o := range s.Known.Operators {
		if o.Namespace == own.Namespace && o.Package == own.Package || s.isRenamed(o) {
			continue // it is to take this one over
		}
		if m := own.Meets(o.Claim); m != nil {
			text := fmt.Sprintf("ManagedOperator %s selects the cluster and %s", o.Key, m.What)
			if m.Why != "" {
				text += ": " + m.Why
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
			continue // several in one namespace are judged as a whole
		}
		if m := own.Meets(s.claimOf(other, s.Known.packageOf(other))); m != nil {
			found = append(found, Finding{Class: Conflict, Reason: m.Reason, Message: fmt.Sprintf(
				"%s in namespace %s is an operator for the same APIs, or the same package: %s.", nameOf(other),
				other.Namespace, m.Why), Choices: []string{
				"Remove one of the two from the cluster, and keep its objects."}})
		}
	}
	return found
}

// isRenamed tells whether a ManagedOperator installs the operator under another package's name.
func (s subject) isRenamed(o Operator) bool {
	return o.Namespace == s.Found.Namespace && o.Package != s.pkg && s.knownPackage() == nil &&
		(s.shares(o.Provides) != "" || s.isBundleOf(o.Package))
}

// isBundleOf tells whether the operator's CSV is a version of a package.
func (s subject) isBundleOf(pkg string) bool {
	return s.csv != nil && slices.ContainsFunc(s.Known.Packages, func(p Package) bool {
		_, ok := p.bundle(s.csv.Name)
		return ok && p.Name == pkg
	})
}

func nameOf(found *v1alpha1.FoundOperator) string {
	switch {
	case found.Subscription != nil:
		return "Subscription " + found.Subscription.Name
	case found.CSV != nil:
		return "ClusterServiceVersion " + found.CSV.Name
	}
	return "An operator"
}

// shared is about other operators in the namespace.
func (s subject) shared() []Finding {
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
	return one(NeedsDecision, "SharedNamespace", fmt.Sprintf("Namespace %s has other operators too: %s. OLM makes one "+
		"InstallPlan for a namespace: one Subscription with manual approval makes all of them manual, and one that "+
		"does not resolve stops all.", s.Found.Namespace, phrase.First(names, 5)),
		accepting(SharedNamespace, "somebody has to approve the InstallPlans of the other operators from then on."),
		"Install the operator in a namespace of its own, after its Subscription and CSV were deleted here. Its "+
			"objects stay, and its pods stop meanwhile.", leave)
}

// dependencies says what came with what.
func (s subject) dependencies() []Finding {
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
		of := "another operator"
		if len(users) > 0 {
			of = phrase.First(users, 3)
		}
		return one(NeedsDecision, "Dependency", fmt.Sprintf("OLM installed it by itself, because %s needs it.", of),
			"Take over the operator that needs it. Its catalog view then has this one too.",
			accepting(Dependency, "it is taken over by itself, and its ManagedOperator decides about its versions."))
	}
	if len(users) == 0 {
		return nil
	}
	return one(Eligible, "UsedByOthers", fmt.Sprintf("%s %s its APIs. An upgrade must keep them.",
		phrase.First(users, 3), phrase.Word(len(users), "needs", "need")))
}

// refusal is about what the cluster's owner refuses.
func (s subject) refusal() []Finding {
	switch {
	case s.Refusal == nil:
		return nil
	case s.Refusal.ReadOnly:
		return one(Eligible, "ReadOnly", upper(s.Refusal.Message)+".")
	}
	return one(NeedsDecision, v1alpha1.ReasonVetoed, upper(s.Refusal.Message)+".",
		"Ask the cluster's owner. Nothing is taken over before the veto ends.")
}

// upper begins a text with a capital letter.
func upper(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// truncated is about what the cluster's report leaves out.
func (s subject) truncated() []Finding {
	t := s.Scan.Truncated
	if t == nil || t.Operators == 0 {
		return nil
	}
	return one(Unknown, "NotReported", fmt.Sprintf("The report of the cluster is too long, and leaves out %s, of "+
		"which one may be a neighbour of this one.", phrase.Count(t.Operators, "operator")))
}
