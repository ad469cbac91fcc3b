// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor judges an installation of Bellwether: whether hub, agents, OLM, permissions, clocks, webhooks,
// catalogs and alerts work together. Its input is an observation; its output is findings with remedies. It uses
// package explain for the state of clusters and catalogs. The package is pure: it has no client, clock or logger.
package doctor

import (
	"cmp"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/explain"
)

// Severity says how urgent a finding is.
type Severity string

const (
	// Critical means that a part does not work now.
	Critical Severity = "Critical"
	// Warning means that a part works, but will fail later or works less well than it should.
	Warning Severity = "Warning"
)

// Check is a part of the installation that is examined.
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

// Observation has the data that was collected about an installation.
type Observation struct {
	// Now is the time by the clock of the hub's API server.
	Now time.Time
	// Program is the command with which the user runs bellwether; empty means "bellwether".
	Program string
	// Hub is the hub's cluster. Fleet is a cluster of the fleet; nil if none was examined.
	Hub   Site
	Fleet *Site

	// Leader is the Lease for the leader election of the hub's replicas; nil if it does not exist.
	Leader *coordinationv1.Lease
	// ChartVersion is the version of the chart that is built into the program.
	ChartVersion string
	// CRDs are the CRDs that are missing, or that differ from the CRDs of the built-in chart.
	CRDs []CRD

	Clusters   []v1alpha1.FleetCluster
	Leases     []coordinationv1.Lease
	Catalogs   []v1alpha1.OperatorCatalog
	Objectives []v1alpha1.OperatorSLO
	Paging     []v1alpha1.PagingPolicy

	// Gaps are the checks that could not be completed.
	Gaps []Gap
}

// Site has the data of one API server.
type Site struct {
	// Name is the name for messages, such as "the hub" or "cluster prod-1".
	Name string
	// Flags select the API server in a command of kubectl, as in "--kubeconfig FILE".
	Flags string
	// Namespace is the namespace in which Bellwether is installed.
	Namespace string
	// Component is the installed component, hub or agent. Deployments are its Deployments.
	Component   string
	Deployments []explain.Deployment
	// OLM are the Deployments of OLM. They are examined only on a cluster of the fleet.
	OLM []explain.Deployment
	// Account is the ServiceAccount of the component, as NAMESPACE/NAME. Denied are its missing permissions.
	Account string
	Denied  []authorizationv1.ResourceAttributes
	// Webhooks are the webhooks without a ready endpoint.
	Webhooks []Webhook
	// Ahead is how far the clock of the API server is ahead of the caller's clock; nil if it is not known.
	Ahead *time.Duration
}

// CRD is a CustomResourceDefinition that differs from the built-in chart.
type CRD struct {
	Name    string
	Missing bool
}

// Webhook is an admission webhook without a ready endpoint.
type Webhook struct {
	// Kind is ValidatingWebhookConfiguration or MutatingWebhookConfiguration. Configuration is the name of the object.
	Kind, Configuration string
	Name                string
	// Service is NAMESPACE/NAME. Missing is true if the Service does not exist.
	Service string
	Missing bool
	// Fails is true if requests fail when the webhook does not answer.
	Fails bool
	// Groups are the API groups whose requests the webhook handles; "" is the core group, "*" means all groups.
	Groups []string
}

// Gap is a check that could not be completed.
type Gap struct {
	Check Check `json:"check"`
	// What describes the part that could not be checked. Why is the reason.
	What string `json:"what"`
	Why  string `json:"why"`
}

// APIVersion and Kind of a report as data.
const (
	APIVersion = "doctor.bellwether.dev/v1alpha1"
	Kind       = "DoctorReport"
)

// Report has the results of the checks.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Findings are the problems, the most urgent first.
	Findings []Finding `json:"findings"`
	// NotChecked are the checks without a result: their result is neither good nor bad.
	NotChecked []Gap `json:"notChecked"`
	// Passed are the checks that were completed and found no problem.
	Passed []Check `json:"passed"`
}

// Finding is a problem.
type Finding struct {
	Severity Severity `json:"severity"`
	Check    Check    `json:"check"`
	// Reason is the key in the reference of reasons, if the reference has the reason.
	Reason string `json:"reason,omitempty"`
	// Text is one sentence.
	Text string `json:"text"`
	// Objects are the affected objects.
	Objects []string `json:"objects,omitempty"`
	// Remedies are what a person can do, the most likely remedy first. There is at least one.
	Remedies []remedy.Action `json:"remedies"`
}

// Worst returns the severity of the worst finding. It returns "" if there are no findings.
func (r Report) Worst() Severity {
	if len(r.Findings) == 0 {
		return ""
	}
	return r.Findings[0].Severity
}

// Examine judges an observation and returns the report. A check has passed if it has no finding and no gap.
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
	if v := in.readHubVersion(); v != "" && v != in.ChartVersion { // judgeCRDs compares only CRDs of the same version
		r.NotChecked = append(r.NotChecked, Gap{Check: CheckVersions,
			What: "whether the CRDs are those of the hub's version",
			Why:  "the hub has version " + v + ", and this program has only the CRDs of " + in.ChartVersion})
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

// newAction returns a remedy with a command.
func newAction(text, command string) remedy.Action {
	return remedy.Action{Text: text, Command: command}
}
