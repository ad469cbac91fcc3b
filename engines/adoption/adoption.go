// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adoption judges operators that run on a cluster and that Bellwether did not install: whether Bellwether can
// take one over where it is, or what stands in the way. It is pure, and the only place where that is decided: the hub
// asks it when it shows or plans, and an agent in the moment in which it would act. Its input is what an agent found
// (package olmv0, OperatorScan) and what the hub knows. Reports of agents are hints: nothing here relies on
// their size, order or truth.
package adoption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/claim"
)

// Class is what can be done with an operator that was found.
type Class string

// The classes, in the order in which people read of them.
const (
	// Conflict: OLM or another operator does not permit it. First something has to change, on the cluster or the hub.
	Conflict Class = "conflict"
	// NeedsDecision: it is possible in more than one way, or with a loss; a person has to choose.
	NeedsDecision Class = "needs a decision"
	// Unknown: it cannot be judged now.
	Unknown Class = "unknown"
	// Eligible: it can be taken over as it is.
	Eligible Class = "eligible"
	// Managed: Bellwether manages it.
	Managed Class = "managed"
)

// Classes returns all classes, the most severe first.
func Classes() []Class { return []Class{Conflict, NeedsDecision, Unknown, Eligible, Managed} }

// severity orders classes, the most severe first.
func (c Class) severity() int { return slices.Index(Classes(), c) }

// Finding is one thing that was found about an operator.
type Finding struct {
	Class Class `json:"class"`
	// Reason is a word in CamelCase for machines. The reasons are in docs/guides/add-a-cluster.md.
	Reason string `json:"reason"`
	// Message says what is the case, in one or two sentences.
	Message string `json:"message"`
	// Choices are what a person can do, the likeliest first. None: there is nothing to do.
	Choices []string `json:"choices,omitempty"`
}

// Verdict is the judgement of one operator.
type Verdict struct {
	// Class is the most severe one of the findings.
	Class Class `json:"class"`
	// Findings has at least one; the most severe first.
	Findings []Finding `json:"findings"`
}

// Input is what a judgement is made of.
type Input struct {
	// Found is the operator, and Scan everything that its cluster reported.
	Found *v1alpha1.FoundOperator
	Scan  *v1alpha1.OperatorScanStatus
	// Refusal is why nothing is changed on the cluster, where that concerns the operator; nil otherwise.
	Refusal *Refusal
	Known   Known
}

// Refusal is a veto of a cluster's owner.
type Refusal struct {
	// Message says it, beginning in lower case and without a full stop.
	Message string
	// ReadOnly says that the agent cannot change anything, whoever wants it.
	ReadOnly bool
}

// Known is what the hub knows, as far as it can concern the cluster.
type Known struct {
	// Packages of OperatorCatalogs.
	Packages []Package
	// NotRead are the catalogs that could not be read, and why.
	NotRead []string
	// Operators are the ManagedOperators that select the cluster, and All also those that do not.
	Operators []Operator
	All       []types.NamespacedName
}

// Operator is a ManagedOperator.
type Operator struct {
	claim.Claim
	// Catalog is its OperatorCatalog, as namespace/name.
	Catalog string
	// Config is what it sets in the Subscription; nil for nothing.
	Config *v1alpha1.OperatorConfig
}

// OperatorOf returns what a judgement needs of a ManagedOperator.
func OperatorOf(o *v1alpha1.ManagedOperator) Operator {
	return Operator{Claim: claim.Of(o), Catalog: o.Namespace + "/" + o.Spec.Catalog.Name, Config: o.Spec.Install.Config}
}

// subject is an operator with what is around it.
type subject struct {
	Input
	// sub and csv are nil where there is none.
	sub *v1alpha1.FoundSubscription
	csv *v1alpha1.FoundCSV
	// namespace is nil where the report leaves it out.
	namespace *v1alpha1.FoundNamespace
	// pkg is empty where nothing names it.
	pkg string
}

// Judge classifies one operator.
func Judge(in Input) Verdict {
	s := newSubject(in)
	if found := s.managed(); found != nil {
		return Verdict{Class: found.Class, Findings: []Finding{*found}}
	}
	if s.sub == nil && s.csv == nil { // no agent reports that
		return Verdict{Class: Unknown, Findings: one(Unknown, "NotReported",
			"The report of the cluster says nothing of it.")}
	}
	var all []Finding
	for _, judge := range []func(subject) []Finding{ // causes before what follows from them
		subject.deleting, subject.twins, subject.group, subject.meetings, subject.definitions, subject.csvState,
		subject.plans, subject.catalog, subject.gitOps, subject.shared, subject.dependencies, subject.config,
		subject.changed, subject.source, subject.subscription, subject.refusal, subject.truncated,
	} {
		all = append(all, judge(s)...)
	}
	if !slices.ContainsFunc(all, func(f Finding) bool { return f.Class != Eligible }) {
		all = slices.Insert(all, 0, s.eligible())
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Class.severity(), b.Class.severity()) })
	return Verdict{Class: all[0].Class, Findings: all}
}

func newSubject(in Input) subject {
	s := subject{Input: in, sub: in.Found.Subscription, csv: in.Found.CSV}
	for i := range in.Scan.Namespaces {
		if in.Scan.Namespaces[i].Name == in.Found.Namespace {
			s.namespace = &in.Scan.Namespaces[i]
		}
	}
	s.pkg = in.Known.packageOf(in.Found)
	return s
}

// packageOf is the package of an operator: that of its Subscription, or the one whose catalog has its CSV.
func (k Known) packageOf(found *v1alpha1.FoundOperator) string {
	if found.Subscription != nil {
		return found.Subscription.Package
	}
	if found.CSV == nil {
		return ""
	}
	for _, p := range k.Packages {
		if _, ok := p.bundle(found.CSV.Name); ok {
			return p.Name
		}
	}
	return ""
}

// PackageOf returns the package of an operator that was found. Where nothing names it, that is the name of its CSV
// without the version.
func PackageOf(found *v1alpha1.FoundOperator, known Known) string {
	if pkg := known.packageOf(found); pkg != "" {
		return pkg
	}
	if found.CSV == nil {
		return ""
	}
	name, _, _ := strings.Cut(found.CSV.Name, ".")
	return name
}

// VersionOf returns the version that an operator runs; empty where it has none.
func VersionOf(found *v1alpha1.FoundOperator) string {
	if found.CSV == nil {
		return ""
	}
	return found.CSV.Version
}

// OperatorFor returns the ManagedOperator that would take an operator over: it selects the cluster, and installs the
// package into the same namespace. It is nil where there is none.
func OperatorFor(found *v1alpha1.FoundOperator, known Known) *Operator {
	pkg := known.packageOf(found)
	for i, o := range known.Operators {
		if o.Package == pkg && o.Namespace == found.Namespace {
			return &known.Operators[i]
		}
	}
	return nil
}

func (s subject) managed() *Finding {
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

func (s subject) eligible() Finding {
	version := VersionOf(s.Found)
	text := fmt.Sprintf("It runs version %s", version)
	if p := s.knownPackage(); p != nil {
		text += fmt.Sprintf(", which %s has", p.catalogText())
	}
	return Finding{Class: Eligible, Reason: "Eligible", Message: text + ". Nothing stands in the way of a take-over."}
}

// operator is the ManagedOperator that would take this operator over; nil where there is none.
func (s subject) operator() *Operator { return OperatorFor(s.Found, s.Known) }

// name is the operator's main object, for messages.
func (s subject) name() string {
	if s.sub != nil {
		return fmt.Sprintf("Subscription %s/%s", s.Found.Namespace, s.sub.Name)
	}
	return s.csvName()
}

func (s subject) csvName() string {
	if s.csv == nil {
		return ""
	}
	return fmt.Sprintf("ClusterServiceVersion %s/%s", s.Found.Namespace, s.csv.Name)
}

// one returns a finding as a list.
func one(class Class, reason, message string, choices ...string) []Finding {
	return []Finding{{Class: class, Reason: reason, Message: message, Choices: choices}}
}
