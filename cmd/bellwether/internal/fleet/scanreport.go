// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/rollouts/veto"
)

// ScanReport is what `bellwether fleet scan` shows.
type ScanReport struct {
	Clusters []ScannedCluster `json:"clusters"`
	Packages []ScannedVersion `json:"packages"`
	// Groups are operators that are alike, with what is to be done; those that are managed or eligible are left out.
	Groups []ScanGroup `json:"groups"`
	// Notes are the same for operators that are eligible and of which something is to be known.
	Notes []ScanGroup `json:"notes"`
	// Ownerless are definitions that no operator owns.
	Ownerless []OwnerlessDefinition `json:"ownerless"`
	// CatalogsNotRead says why.
	CatalogsNotRead []string `json:"catalogsNotRead,omitempty"`
}

// ScannedCluster is one cluster of the report.
type ScannedCluster struct {
	Name  string    `json:"name"`
	State scanState `json:"state"`
	// ChangedAt is when its agent last found something new, and StaleSince when its reports ended.
	ChangedAt  *time.Time `json:"changedAt,omitempty"`
	StaleSince *time.Time `json:"staleSince,omitempty"`
	// Agent is its version.
	Agent    string `json:"agent,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	// NotRead is what the agent could not read.
	NotRead string `json:"notRead,omitempty"`
	// Omitted is how many operators the report leaves out.
	Omitted   int32             `json:"omitted,omitempty"`
	Operators []ScannedOperator `json:"operators"`
}

// scanState tells what is known of a cluster.
type scanState string

const (
	scanCurrent  scanState = "Current"
	scanStale    scanState = "Stale"
	scanNoReport scanState = "NoReport"
	scanNoOLM    scanState = "NoOLM"
)

// ScannedOperator is an operator on one cluster.
type ScannedOperator struct {
	Package      string `json:"package"`
	Version      string `json:"version,omitempty"`
	Namespace    string `json:"namespace"`
	Channel      string `json:"channel,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	CSV          string `json:"csv,omitempty"`
	adoption.Verdict
}

// ScannedVersion is one version of a package over the fleet.
type ScannedVersion struct {
	Package  string   `json:"package"`
	Version  string   `json:"version,omitempty"`
	Clusters []string `json:"clusters"`
	// Classes counts operators.
	Classes map[adoption.Class]int `json:"classes"`
}

// ScanGroup is a finding with everybody whom it concerns.
type ScanGroup struct {
	Package   string   `json:"package"`
	Versions  []string `json:"versions"`
	Namespace string   `json:"namespace"`
	Clusters  []string `json:"clusters"`
	adoption.Finding
}

// OwnerlessDefinition is a CustomResourceDefinition with the clusters where no operator owns it.
type OwnerlessDefinition struct {
	Name     string   `json:"name"`
	Clusters []string `json:"clusters"`
}

// scanInput is what a report is made of.
type scanInput struct {
	Scans
	// pkg leaves out all other packages, unless it is empty.
	pkg string
}

// makeScanReport judges everything and puts together what is alike.
func makeScanReport(in scanInput) ScanReport {
	r := ScanReport{CatalogsNotRead: in.NotRead}
	for i := range in.Clusters {
		r.Clusters = append(r.Clusters, in.cluster(&in.Clusters[i]))
	}
	slices.SortFunc(r.Clusters, func(a, b ScannedCluster) int { return cmp.Compare(a.Name, b.Name) })
	r.Packages = countVersions(r.Clusters)
	isNote := func(c adoption.Class) bool { return c == adoption.Eligible }
	r.Groups = group(r.Clusters, func(c adoption.Class) bool { return !isNote(c) && c != adoption.Managed })
	r.Notes = slices.DeleteFunc(group(r.Clusters, isNote), func(g ScanGroup) bool { return g.Reason == "Eligible" })
	if in.pkg == "" {
		r.Ownerless = in.ownerless()
	}
	return r
}

func (in scanInput) cluster(c *v1alpha1.FleetCluster) ScannedCluster {
	out := ScannedCluster{Name: c.Name, State: scanNoReport, Agent: c.Status.Versions.Agent,
		ReadOnly: c.Status.Veto != nil && c.Status.Veto.ReadOnly}
	if c.Status.StaleSince != nil {
		out.StaleSince = &c.Status.StaleSince.Time
	}
	scan := in.Reports[c.Name]
	if scan == nil || scan.Status.ObservedAt == nil {
		return out
	}
	status := &scan.Status
	out.ChangedAt, out.NotRead = &status.ObservedAt.Time, status.NotRead
	if status.Truncated != nil {
		out.Omitted = status.Truncated.Operators
	}
	switch {
	case c.Status.StaleSince != nil:
		out.State = scanStale
	case status.OLM == v1alpha1.OLMNotServed:
		out.State = scanNoOLM
	default:
		out.State = scanCurrent
	}
	known := in.Known(c)
	for i := range status.Operators {
		found := &status.Operators[i]
		o := ScannedOperator{Package: adoption.PackageOf(found, known), Version: adoption.VersionOf(found),
			Namespace: found.Namespace}
		if in.pkg != "" && o.Package != in.pkg {
			continue
		}
		if found.Subscription != nil {
			o.Subscription, o.Channel = found.Subscription.Name, found.Subscription.Channel
		}
		if found.CSV != nil {
			o.CSV = found.CSV.Name
		}
		o.Verdict = adoption.Judge(adoption.Input{Found: found, Scan: status, Known: known,
			Refusal: RefusalOf(c.Status.Veto, adoption.OperatorFor(found, known))})
		out.Operators = append(out.Operators, o)
	}
	return out
}

// RefusalOf is what a veto means for an operator, which a ManagedOperator would take over if it is not nil.
func RefusalOf(v *v1alpha1.ClusterVeto, by *adoption.Operator) *adoption.Refusal {
	switch {
	case v == nil:
		return nil
	case by == nil && len(v.Operators) > 0:
		return nil
	case by != nil && !veto.Covers(v, v1alpha1.OperatorReference{Namespace: by.Key.Namespace, Name: by.Key.Name}):
		return nil
	}
	return &adoption.Refusal{Message: veto.Message(v), ReadOnly: v.ReadOnly}
}

// countVersions counts operators by package and version.
func countVersions(clusters []ScannedCluster) []ScannedVersion {
	type key struct{ pkg, version string }
	all := map[key]*ScannedVersion{}
	for _, c := range clusters {
		for _, o := range c.Operators {
			k := key{o.Package, o.Version}
			if all[k] == nil {
				all[k] = &ScannedVersion{Package: o.Package, Version: o.Version, Classes: map[adoption.Class]int{}}
			}
			v := all[k]
			v.Classes[o.Class]++
			if !slices.Contains(v.Clusters, c.Name) {
				v.Clusters = append(v.Clusters, c.Name)
			}
		}
	}
	var out []ScannedVersion
	for _, v := range all {
		out = append(out, *v)
	}
	slices.SortFunc(out, func(a, b ScannedVersion) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), compareVersions(a.Version, b.Version))
	})
	return out
}

// group puts together equal findings of operators of some classes: those findings that make the class. Operators that
// are eligible have all their findings in it.
func group(clusters []ScannedCluster, which func(adoption.Class) bool) []ScanGroup {
	all := map[string]*ScanGroup{}
	for _, c := range clusters {
		for _, o := range c.Operators {
			if !which(o.Class) {
				continue
			}
			for _, f := range o.Findings {
				if f.Class == o.Class {
					add(all, c.Name, o, f)
				}
			}
		}
	}
	var out []ScanGroup
	for _, g := range all {
		slices.SortFunc(g.Versions, compareVersions)
		out = append(out, *g)
	}
	rank := func(g ScanGroup) int { return slices.Index(adoption.Classes(), g.Class) }
	slices.SortFunc(out, func(a, b ScanGroup) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Package, b.Package),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return out
}

func add(all map[string]*ScanGroup, cluster string, o ScannedOperator, f adoption.Finding) {
	key := fmt.Sprintf("%q", []string{o.Package, o.Namespace, string(f.Class), f.Reason, f.Message,
		strings.Join(f.Choices, "\n")})
	g := all[key]
	if g == nil {
		g = &ScanGroup{Package: o.Package, Namespace: o.Namespace, Finding: f}
		all[key] = g
	}
	if !slices.Contains(g.Clusters, cluster) {
		g.Clusters = append(g.Clusters, cluster)
	}
	if o.Version != "" && !slices.Contains(g.Versions, o.Version) {
		g.Versions = append(g.Versions, o.Version)
	}
}

func (in scanInput) ownerless() []OwnerlessDefinition {
	by := map[string][]string{}
	for _, c := range in.Clusters {
		if scan := in.Reports[c.Name]; scan != nil {
			for _, name := range scan.Status.OwnerlessDefinitions {
				by[name] = append(by[name], c.Name)
			}
		}
	}
	var out []OwnerlessDefinition
	for name, clusters := range by {
		slices.Sort(clusters)
		out = append(out, OwnerlessDefinition{name, clusters})
	}
	slices.SortFunc(out, func(a, b OwnerlessDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
