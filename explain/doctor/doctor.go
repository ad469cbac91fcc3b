// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor judges an installation of Bellwether: whether hub, agents, OLM, permissions, clocks, webhooks,
// catalogs and alerts work together. Its input is what was observed; its output is findings with remedies. What explain
// decides about a cluster or a catalog is not decided again here. The package is pure: it has no client, clock or
// logger.
package doctor

import (
	"cmp"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/explain"
)

// Severity says how urgent a finding is.
type Severity string

const (
	// Critical means that something does not work now.
	Critical Severity = "Critical"
	// Warning means that something works and will not stay so, or works less well than it should.
	Warning Severity = "Warning"
)

// Check is what was examined.
type Check string

// The checks, in the order in which they are shown.
const (
	CheckHub         Check = "Hub"
	CheckAgents      Check = "Agents"
	CheckOLM         Check = "OLM"
	CheckVersions    Check = "Versions"
	CheckPermissions Check = "Permissions"
	CheckClocks      Check = "Clocks"
	CheckWebhooks    Check = "Webhooks"
	CheckCatalogs    Check = "Catalogs"
	CheckAlerts      Check = "Alerts"
)

// Checks lists all checks, in the order in which they are shown.
func Checks() []Check {
	return []Check{CheckHub, CheckAgents, CheckOLM, CheckVersions, CheckPermissions, CheckClocks, CheckWebhooks,
		CheckCatalogs, CheckAlerts}
}

// Observation is what was seen of an installation.
type Observation struct {
	// Now is the time by the clock of the hub's API server.
	Now time.Time
	// Program is how the user calls bellwether; empty means by that name.
	Program string
	// Hub is the hub's cluster, and Fleet a cluster of the fleet if one was looked at.
	Hub   Site
	Fleet *Site

	// Leader is the Lease that replicas of the hub agree through; nil where it does not exist.
	Leader *coordinationv1.Lease
	// LeaderElsewhere says that the replicas agree through a Lease on another cluster.
	LeaderElsewhere bool
	// ChartVersion is that of the chart that is built into the program.
	ChartVersion string
	// CRDs are those that are missing, or differ from the built-in chart's.
	CRDs []CRD

	Clusters   []v1alpha1.FleetCluster
	Leases     []coordinationv1.Lease
	Catalogs   []v1alpha1.OperatorCatalog
	Objectives []v1alpha1.OperatorSLO
	Paging     []v1alpha1.PagingPolicy

	// Gaps are the checks that could not be made, or not completely.
	Gaps []Gap
}

// Site is what was seen of one API server.
type Site struct {
	// Name for messages, such as "the hub" or "cluster prod-1".
	Name string
	// Flags select the API server in a command of kubectl, as in "--kubeconfig FILE".
	Flags string
	// Namespace that Bellwether is installed in.
	Namespace string
	// Component is that of Bellwether, hub or agent, with the Deployments of it.
	Component   string
	Deployments []explain.Deployment
	// OLM is OLM's own Deployments; only looked at on a cluster of the fleet.
	OLM []explain.Deployment
	// Account is the ServiceAccount of the component, as NAMESPACE/NAME, and Denied what it may not do, as in
	// "get, list leases.coordination.k8s.io".
	Account string
	Denied  []string
	// Webhooks that no ready endpoint serves.
	Webhooks []Webhook
	// Ahead is how far the clock of the API server is ahead of the caller's; nil where it is not known.
	Ahead *time.Duration
}

// CRD is a CustomResourceDefinition that is not as the built-in chart has it.
type CRD struct {
	Name    string
	Missing bool
}

// Webhook is an admission webhook that no ready endpoint serves.
type Webhook struct {
	// Kind is ValidatingWebhookConfiguration or MutatingWebhookConfiguration, and Configuration its name.
	Kind, Configuration string
	Name                string
	// Service is NAMESPACE/NAME, and Missing says that it does not exist.
	Service string
	Missing bool
	// Fails says that requests fail without an answer of the webhook.
	Fails bool
	// Groups of the API whose requests it is asked about; "" is the core group, "*" all.
	Groups []string
}

// Gap is a check that could not be made, or not completely.
type Gap struct {
	Check Check `json:"check"`
	// What could not be looked at, and why.
	What string `json:"what"`
	Why  string `json:"why"`
}

// APIVersion and Kind of a report as data.
const (
	APIVersion = "doctor.bellwether.dev/v1alpha1"
	Kind       = "DoctorReport"
)

// Report is what was found.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Findings, the most urgent first.
	Findings []Finding `json:"findings"`
	// NotChecked is not known: it is neither good nor bad.
	NotChecked []Gap `json:"notChecked"`
	// Passed are the checks that were made completely and found nothing.
	Passed []Check `json:"passed"`
}

// Finding is something that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	Check    Check    `json:"check"`
	// Reason is the key of the reference of reasons, where it is in there.
	Reason string `json:"reason,omitempty"`
	// Text is one sentence.
	Text string `json:"text"`
	// Objects that it is about.
	Objects []string `json:"objects,omitempty"`
	// Remedies are what a person can do, the likeliest first. There is at least one.
	Remedies []remedy.Action `json:"remedies"`
}

// Worst is the severity of the worst finding; empty without findings.
func (r Report) Worst() Severity {
	if len(r.Findings) == 0 {
		return ""
	}
	return r.Findings[0].Severity
}

// Examine judges an observation.
func Examine(in Observation) Report {
	in.Program = cmp.Or(in.Program, "bellwether")
	r := Report{APIVersion: APIVersion, Kind: Kind, Findings: []Finding{}, NotChecked: []Gap{}, Passed: []Check{}}
	for _, judge := range []func(Observation) []Finding{judgeHub, judgeLeader, judgeClusters, judgeFleetSite,
		judgeVersions, judgeCRDs, judgePermissions, judgeClocks, judgeWebhooks, judgeCatalogs, judgeObjectives,
		judgePaging, judgeAlertmanager} {
		r.Findings = append(r.Findings, judge(in)...)
	}
	order := func(c Check) int { return slices.Index(Checks(), c) }
	urgency := map[Severity]int{Critical: 0, Warning: 1}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(urgency[a.Severity], urgency[b.Severity]), cmp.Compare(order(a.Check),
			order(b.Check)))
	})
	r.NotChecked = append(r.NotChecked, in.Gaps...)
	if v := in.hubVersion(); v != "" && v != in.ChartVersion {
		r.NotChecked = append(r.NotChecked, Gap{Check: CheckVersions,
			What: "whether the CRDs are those of the hub's version",
			Why:  "the hub has version " + v + ", and this program only knows those of " + in.ChartVersion})
	}
	slices.SortStableFunc(r.NotChecked, func(a, b Gap) int { return cmp.Compare(order(a.Check), order(b.Check)) })
	for _, c := range Checks() {
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == c }) &&
			!slices.ContainsFunc(r.NotChecked, func(g Gap) bool { return g.Check == c }) {
			r.Passed = append(r.Passed, c)
		}
	}
	return r
}

func run(text, command string) remedy.Action { return remedy.Action{Text: text, Command: command} }
