// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adoption judges operators on a cluster that Bellwether did not install: whether Bellwether can take an
// operator over where it is, or why it cannot. It is pure, and the only place where this is decided: the hub uses it
// to show and plan take-overs, and an agent uses it right before a take-over. Its input is what an agent found
// (package olmv0, OperatorScan) and what the hub knows about the cluster. Reports of agents are not trusted: nothing
// here relies on their size, order or truth.
//
// The package also decides what an agent reports of the operators that it found: what fits within the limits of an
// OperatorScan, and whether it differs from the report on the hub.
package adoption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

// Class is what can be done with an operator that was found.
type Class string

// The classes, in the order in which they are shown.
const (
	// Conflict means that OLM or another operator prevents the take-over. Something on the cluster or the hub must
	// change first.
	Conflict Class = "conflict"
	// NeedsDecision means that the take-over is possible in more than one way, or with a loss. A person must choose.
	NeedsDecision Class = "needs a decision"
	// Unknown means that the operator cannot be judged now.
	Unknown Class = "unknown"
	// Eligible means that the operator can be taken over as it is.
	Eligible Class = "eligible"
	// Managed means that Bellwether manages the operator.
	Managed Class = "managed"
)

// Classes returns all classes, the most severe first.
func Classes() []Class { return []Class{Conflict, NeedsDecision, Unknown, Eligible, Managed} }

// rank returns the position of a class in Classes.
func (c Class) rank() int { return slices.Index(Classes(), c) }

// Finding is one fact about an operator that matters for a take-over.
type Finding struct {
	Class Class `json:"class"`
	// Reason is a word in CamelCase for machines. The reasons are in docs/guides/add-a-cluster.md.
	Reason string `json:"reason"`
	// Message describes the finding in one or two sentences.
	Message string `json:"message"`
	// Choices are what a person can do, the likeliest first. Empty means that there is nothing to do.
	Choices []string `json:"choices,omitempty"`
}

// Verdict is the judgement of one operator.
type Verdict struct {
	// Class is the most severe class of the findings.
	Class Class `json:"class"`
	// Findings has at least one finding; the most severe first.
	Findings []Finding `json:"findings"`
}

// Input is the input of a judgement.
type Input struct {
	// Found is the operator, and Scan everything that its cluster reported.
	Found *v1alpha1.FoundOperator
	Scan  *v1alpha1.OperatorScanStatus
	// Refusal is why the agent changes nothing on the cluster, if that concerns the operator; nil otherwise.
	Refusal *Refusal
	Known   Known
}

// Refusal is a veto of a cluster's owner.
type Refusal struct {
	// Message is the reason. It begins in lower case and has no full stop.
	Message string
	// ReadOnly is set if the agent cannot change anything.
	ReadOnly bool
}

// Known is what the hub knows that can concern the cluster.
type Known struct {
	// Packages are the packages of OperatorCatalogs.
	Packages []Package
	// NotRead are the catalogs that could not be read, with the reason.
	NotRead []string
	// Operators are the ManagedOperators that select the cluster. All are the names of all ManagedOperators.
	Operators []Operator
	All       []types.NamespacedName
}

// Operator is a ManagedOperator.
type Operator struct {
	engines.Claim
	// Catalog is the OperatorCatalog, as namespace/name.
	Catalog string
	// Config is the configuration that it sets in the Subscription; nil for none.
	Config *v1alpha1.OperatorConfig
}

// OperatorOf returns what a judgement needs from a ManagedOperator.
func OperatorOf(o *v1alpha1.ManagedOperator) Operator {
	return Operator{Claim: engines.NewClaim(o), Catalog: o.Namespace + "/" + o.Spec.Catalog.Name,
		Config: o.Spec.Install.Config}
}

// subject is an operator with its environment on the cluster.
type subject struct {
	Input
	// sub and csv are nil if the operator has none.
	sub *v1alpha1.FoundSubscription
	csv *v1alpha1.FoundCSV
	// namespace is nil if the report does not include it.
	namespace *v1alpha1.FoundNamespace
	// pkg is the name of the package; empty if it is not known.
	pkg string
}

// Judge returns the findings about one operator. For a managed operator, it returns only the finding that it is
// managed. If no finding prevents the take-over, the first finding is that the operator is eligible.
func Judge(in Input) Verdict {
	s := newSubject(in)
	if found := s.checkManaged(); found != nil {
		return Verdict{Class: found.Class, Findings: []Finding{*found}}
	}
	if s.sub == nil && s.csv == nil { // no agent reports that
		return Verdict{Class: Unknown, Findings: report(Unknown, "NotReported",
			"The report of the cluster says nothing of it.")}
	}
	var all []Finding
	// Causes come before their consequences, because findings of one class keep this order.
	for _, judge := range []func(subject) []Finding{
		subject.checkDeleting, subject.checkTwins, subject.checkGroup, subject.checkClaims, subject.checkDefinitions,
		subject.checkCSV, subject.checkPlans, subject.checkCatalog, subject.checkWriters, subject.checkSharedNamespace,
		subject.checkDependencies, subject.checkConfig, subject.checkChanges, subject.checkSource,
		subject.checkSubscription, subject.checkRefusal, subject.checkTruncated,
	} {
		all = append(all, judge(s)...)
	}
	if !slices.ContainsFunc(all, func(f Finding) bool { return f.Class != Eligible }) {
		all = slices.Insert(all, 0, s.newEligibleFinding())
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Class.rank(), b.Class.rank()) })
	return Verdict{Class: all[0].Class, Findings: all}
}

// newSubject finds the namespace and the package of an operator.
func newSubject(in Input) subject {
	s := subject{Input: in, sub: in.Found.Subscription, csv: in.Found.CSV}
	for i := range in.Scan.Namespaces {
		if in.Scan.Namespaces[i].Name == in.Found.Namespace {
			s.namespace = &in.Scan.Namespaces[i]
		}
	}
	s.pkg = in.Known.findPackage(in.Found)
	return s
}

// findPackage returns the package of an operator: the package of its Subscription, or the package whose catalog has
// its CSV; empty if it is not known.
func (k Known) findPackage(found *v1alpha1.FoundOperator) string {
	if found.Subscription != nil {
		return found.Subscription.Package
	}
	if found.CSV == nil {
		return ""
	}
	for _, p := range k.Packages {
		if _, ok := p.findBundle(found.CSV.Name); ok {
			return p.Name
		}
	}
	return ""
}

// PackageOf returns the package of an operator that was found. If the package is not known, it returns the name of
// the CSV without the version.
func PackageOf(found *v1alpha1.FoundOperator, known Known) string {
	if pkg := known.findPackage(found); pkg != "" {
		return pkg
	}
	if found.CSV == nil {
		return ""
	}
	name, _, _ := strings.Cut(found.CSV.Name, ".")
	return name
}

// VersionOf returns the version that an operator runs; empty if it has none.
func VersionOf(found *v1alpha1.FoundOperator) string {
	if found.CSV == nil {
		return ""
	}
	return found.CSV.Version
}

// OperatorFor returns the ManagedOperator that would take an operator over: it selects the cluster, and installs the
// package into the same namespace. It returns nil if there is none.
func OperatorFor(found *v1alpha1.FoundOperator, known Known) *Operator {
	pkg := known.findPackage(found)
	for i, o := range known.Operators {
		if o.Package == pkg && o.Namespace == found.Namespace {
			return &known.Operators[i]
		}
	}
	return nil
}

// checkManaged returns a finding for an operator that has Bellwether's label; nil for other operators. A person must
// decide about an operator whose ManagedOperator does not exist or does not select the cluster.
func (s subject) checkManaged() *Finding {
	if !s.Found.Managed {
		return nil
	}
	ref := s.Found.Operator
	if ref == nil {
		return &Finding{Class: Managed, Reason: "Managed", Message: "Bellwether manages it."}
	}
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if slices.ContainsFunc(s.Known.Operators, func(o Operator) bool { return o.Key == key }) {
		return &Finding{Class: Managed, Reason: "Managed", Message: fmt.Sprintf("ManagedOperator %s manages it.", key)}
	}
	missing := "does not exist on this hub"
	if slices.Contains(s.Known.All, key) {
		missing = "does not select this cluster"
	}
	return &Finding{Class: NeedsDecision, Reason: "NotManagedAnyMore", Message: fmt.Sprintf(
		"Bellwether installed it for ManagedOperator %s, which %s.", key, missing), Choices: []string{
		fmt.Sprintf("To manage it again, let ManagedOperator %s exist and select the cluster: the hub takes over "+
			"what the cluster keeps of it.", key),
		"If another hub manages this cluster, remove the cluster from one of the two hubs.",
		"Leave it. It runs on, and gets no updates."}}
}

// newEligibleFinding returns the finding for an operator that can be taken over.
func (s subject) newEligibleFinding() Finding {
	version := VersionOf(s.Found)
	text := fmt.Sprintf("It runs version %s", version)
	if p := s.findKnownPackage(); p != nil {
		text += fmt.Sprintf(", which %s has", p.formatCatalog())
	}
	return Finding{Class: Eligible, Reason: "Eligible", Message: text + ". Nothing stands in the way of a take-over."}
}

// findOperator returns the ManagedOperator that would take this operator over; nil if there is none.
func (s subject) findOperator() *Operator { return OperatorFor(s.Found, s.Known) }

// formatName returns the operator's main object for messages.
func (s subject) formatName() string {
	if s.sub != nil {
		return fmt.Sprintf("Subscription %s/%s", s.Found.Namespace, s.sub.Name)
	}
	return s.formatCSVName()
}

// formatCSVName returns the CSV for messages; empty if there is none.
func (s subject) formatCSVName() string {
	if s.csv == nil {
		return ""
	}
	return fmt.Sprintf("ClusterServiceVersion %s/%s", s.Found.Namespace, s.csv.Name)
}

// report returns a finding as a list.
func report(class Class, reason, message string, choices ...string) []Finding {
	return []Finding{{Class: class, Reason: reason, Message: message, Choices: choices}}
}
