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
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/engines/adoption"
)

// ScanReport is the output of `bellwether fleet scan`.
type ScanReport struct {
	Clusters []ScannedCluster `json:"clusters"`
	Packages []ScannedVersion `json:"packages"`
	// Groups has equal operators with the same finding and its choices,
	// without operators that are managed or eligible.
	Groups []ScanGroup `json:"groups"`
	// Notes has the eligible operators with findings that a user should read.
	Notes []ScanGroup `json:"notes"`
	// Ownerless are CustomResourceDefinitions without an operator that owns them.
	Ownerless []OwnerlessDefinition `json:"ownerless"`
	// CatalogsNotRead lists the catalogs that could not be read, with the reasons.
	CatalogsNotRead []string `json:"catalogsNotRead,omitempty"`
}

// ScannedCluster is one cluster of the report.
type ScannedCluster struct {
	Name  string    `json:"name"`
	State ScanState `json:"state"`
	// ChangedAt is when the agent last found a change, and StaleSince when the agent stopped reporting.
	ChangedAt  *time.Time `json:"changedAt,omitempty"`
	StaleSince *time.Time `json:"staleSince,omitempty"`
	// Agent is the version of the agent.
	Agent    string `json:"agent,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	// NotRead describes the objects that the agent could not read.
	NotRead string `json:"notRead,omitempty"`
	// Omitted is the number of operators that the agent's report leaves out.
	Omitted   int32             `json:"omitted,omitempty"`
	Operators []ScannedOperator `json:"operators"`
}

// ScanState is whether a cluster has a report, and whether the report is current.
type ScanState string

const (
	// ScanCurrent means that the report is current.
	ScanCurrent ScanState = "Current"
	// ScanStale means that the report is from before the agent stopped reporting.
	ScanStale ScanState = "Stale"
	// ScanNoReport means that the agent has not reported operators.
	ScanNoReport ScanState = "NoReport"
	// ScanNoOLM means that the report is current, and the cluster has no OLM.
	ScanNoOLM ScanState = "NoOLM"
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

// ScannedVersion is one version of a package, with the clusters that have it.
type ScannedVersion struct {
	Package  string   `json:"package"`
	Version  string   `json:"version,omitempty"`
	Clusters []string `json:"clusters"`
	// Classes has the number of operators of each class.
	Classes map[adoption.Class]int `json:"classes"`
}

// ScanGroup is a finding, with the versions and clusters that it concerns.
type ScanGroup struct {
	Package   string   `json:"package"`
	Versions  []string `json:"versions"`
	Namespace string   `json:"namespace"`
	Clusters  []string `json:"clusters"`
	adoption.Finding
}

// OwnerlessDefinition is a CustomResourceDefinition, with the clusters on which no operator owns it.
type OwnerlessDefinition struct {
	Name     string   `json:"name"`
	Clusters []string `json:"clusters"`
}

// BuildScanReport judges the operators of all clusters, and groups equal findings. pkg is the only package in the
// report; empty for all packages.
func BuildScanReport(s Scans, pkg string) ScanReport {
	r := ScanReport{CatalogsNotRead: s.NotRead}
	for i := range s.Clusters {
		r.Clusters = append(r.Clusters, s.judgeCluster(&s.Clusters[i], pkg))
	}
	slices.SortFunc(r.Clusters, func(a, b ScannedCluster) int { return cmp.Compare(a.Name, b.Name) })
	r.Packages = countVersions(r.Clusters)
	isNote := func(c adoption.Class) bool { return c == adoption.Eligible }
	r.Groups = groupFindings(r.Clusters, func(c adoption.Class) bool { return !isNote(c) && c != adoption.Managed })
	// The finding Eligible has no more information than the class.
	r.Notes = slices.DeleteFunc(groupFindings(r.Clusters, isNote),
		func(g ScanGroup) bool { return g.Reason == "Eligible" })
	if pkg == "" { // the package of a definition without an operator is unknown
		r.Ownerless = s.listOwnerless()
	}
	return r
}

// judgeCluster returns the state of a cluster's report, and the verdict on each operator in it that is of the package
// pkg; on all operators if pkg is empty.
func (s Scans) judgeCluster(c *v1alpha1.FleetCluster, pkg string) ScannedCluster {
	out := ScannedCluster{Name: c.Name, State: ScanNoReport, Agent: c.Status.Versions.Agent,
		ReadOnly: c.Status.Veto != nil && c.Status.Veto.ReadOnly}
	if c.Status.StaleSince != nil {
		out.StaleSince = &c.Status.StaleSince.Time
	}
	scan := s.Reports[c.Name]
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
		out.State = ScanStale
	case status.OLM == v1alpha1.OLMNotServed:
		out.State = ScanNoOLM
	default:
		out.State = ScanCurrent
	}
	known := s.selectKnown(c)
	for i := range status.Operators {
		found := &status.Operators[i]
		o := ScannedOperator{Package: adoption.PackageOf(found, known), Version: adoption.VersionOf(found),
			Namespace: found.Namespace}
		if pkg != "" && o.Package != pkg {
			continue
		}
		if found.Subscription != nil {
			o.Subscription, o.Channel = found.Subscription.Name, found.Subscription.Channel
		}
		if found.CSV != nil {
			o.CSV = found.CSV.Name
		}
		o.Verdict = adoption.Judge(adoption.Input{Found: found, Scan: status, Known: known,
			Refusal: findRefusal(c.Status.Veto, adoption.OperatorFor(found, known))})
		out.Operators = append(out.Operators, o)
	}
	return out
}

// countVersions counts the operators of each class by package and version, sorted by package and version. A cluster
// with several operators of the same version is listed once.
func countVersions(clusters []ScannedCluster) []ScannedVersion {
	type key struct{ pkg, version string }
	versions := map[key]*ScannedVersion{}
	for _, c := range clusters {
		for _, o := range c.Operators {
			k := key{o.Package, o.Version}
			if versions[k] == nil {
				versions[k] = &ScannedVersion{Package: o.Package, Version: o.Version, Classes: map[adoption.Class]int{}}
			}
			v := versions[k]
			v.Classes[o.Class]++
			if !slices.Contains(v.Clusters, c.Name) {
				v.Clusters = append(v.Clusters, c.Name)
			}
		}
	}
	var out []ScannedVersion
	for _, v := range versions {
		out = append(out, *v)
	}
	slices.SortFunc(out, func(a, b ScannedVersion) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), catalogs.CompareVersions(a.Version, b.Version))
	})
	return out
}

// groupFindings groups equal findings of the operators whose class includes accepts. It uses the findings that have
// the operator's own class, which decided the class.
func groupFindings(clusters []ScannedCluster, includes func(adoption.Class) bool) []ScanGroup {
	groups := map[string]*ScanGroup{}
	for _, c := range clusters {
		for _, o := range c.Operators {
			if !includes(o.Class) {
				continue
			}
			for _, f := range o.Findings {
				if f.Class == o.Class {
					addToGroup(groups, c.Name, o, f)
				}
			}
		}
	}
	var out []ScanGroup
	for _, g := range groups {
		slices.SortFunc(g.Versions, catalogs.CompareVersions)
		out = append(out, *g)
	}
	rank := func(g ScanGroup) int { return slices.Index(adoption.Classes(), g.Class) }
	slices.SortFunc(out, func(a, b ScanGroup) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Package, b.Package),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return out
}

// addToGroup adds the finding f of operator o on a cluster to the group of
// equal findings, and creates the group if needed.
func addToGroup(groups map[string]*ScanGroup, cluster string, o ScannedOperator, f adoption.Finding) {
	key := fmt.Sprintf("%q", []string{o.Package, o.Namespace, string(f.Class), f.Reason, f.Message,
		strings.Join(f.Choices, "\n")})
	g := groups[key]
	if g == nil {
		g = &ScanGroup{Package: o.Package, Namespace: o.Namespace, Finding: f}
		groups[key] = g
	}
	if !slices.Contains(g.Clusters, cluster) {
		g.Clusters = append(g.Clusters, cluster)
	}
	if o.Version != "" && !slices.Contains(g.Versions, o.Version) {
		g.Versions = append(g.Versions, o.Version)
	}
}

// listOwnerless returns the CustomResourceDefinitions without an operator, with their clusters, sorted by name.
func (s Scans) listOwnerless() []OwnerlessDefinition {
	clustersByName := map[string][]string{}
	for _, c := range s.Clusters {
		if scan := s.Reports[c.Name]; scan != nil {
			for _, name := range scan.Status.OwnerlessDefinitions {
				clustersByName[name] = append(clustersByName[name], c.Name)
			}
		}
	}
	var out []OwnerlessDefinition
	for name, clusters := range clustersByName {
		slices.Sort(clusters)
		out = append(out, OwnerlessDefinition{Name: name, Clusters: clusters})
	}
	slices.SortFunc(out, func(a, b OwnerlessDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
