// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/phrase"
)

// shown is how many names of objects a sentence has.
const shown = 5

// trouble is one object with a reason, before those of the same reason are put together.
type trouble struct {
	reason, name, text string
	remedies           []remedy.Action
	severity           Severity
	check              Check
}

// together makes one finding of the objects that have the same reason, so that a hundred clusters that are offline are
// one line. noun is the plural of the objects' kind.
func together(troubles []trouble, noun, object, program string) []Finding {
	byReason := map[string][]trouble{}
	for _, t := range troubles {
		byReason[t.reason] = append(byReason[t.reason], t)
	}
	var findings []Finding
	for _, reason := range sortedKeys(byReason) {
		group := byReason[reason]
		f := Finding{Severity: group[0].severity, Check: group[0].check, Reason: reason, Text: group[0].text,
			Remedies: group[0].remedies}
		names := make([]string, len(group))
		for i, t := range group {
			names[i] = t.name
			f.Objects = append(f.Objects, object+" "+t.name)
		}
		r, known := remedy.For(reason)
		if len(group) > 1 {
			slices.Sort(names)
			means := ""
			if known {
				means = " " + r.Means
			}
			f.Text = fmt.Sprintf("%d %s have the reason %s: %s.%s", len(group), noun, reason, phrase.First(names,
				shown),
				means)
			if known {
				f.Remedies = r.For("", remedy.Names{Program: program})
			}
		}
		if len(f.Remedies) == 0 {
			f.Remedies = []remedy.Action{{Text: "Read the conditions, and correct what they name",
				Command: "kubectl describe " + object + " " + names[0]}}
		}
		findings = append(findings, f)
	}
	return findings
}

// judgeClusters takes what explain says of each cluster.
func judgeClusters(in Observation) []Finding {
	var troubles []trouble
	for i := range in.Clusters {
		c := &in.Clusters[i]
		e := explain.Cluster(explain.ClusterInput{Now: in.Now, Cluster: c, Program: in.Program})
		severity := severityOf(e.State)
		if severity == "" || c.DeletionTimestamp != nil {
			continue
		}
		t := trouble{reason: cmp.Or(e.Cause.Reason, e.Reason), name: c.Name, severity: severity, check: CheckAgents,
			text: e.Cause.Text, remedies: e.Remedies}
		switch t.reason {
		case v1alpha1.ReasonNeverJoined, remedy.NotReported:
			t.severity = Warning
		case v1alpha1.ReasonOLMMissing:
			t.check = CheckOLM
			t.text = "cluster " + c.Name + " has no OLM: " + t.text
		}
		troubles = append(troubles, t)
	}
	return together(troubles, "clusters", "FleetCluster", in.Program)
}

// severityOf is empty for states that nobody has to act on.
func severityOf(s explain.State) Severity {
	switch s {
	case explain.Failed, explain.Unknown:
		return Critical
	case explain.Degraded:
		return Warning
	default:
		return ""
	}
}

// judgeCatalogs takes what explain says of each catalog.
func judgeCatalogs(in Observation) []Finding {
	var troubles []trouble
	for i := range in.Catalogs {
		c := &in.Catalogs[i]
		e := explain.Catalog(explain.CatalogInput{Now: in.Now, Catalog: c, Program: in.Program})
		severity := severityOf(e.State)
		if severity == "" || e.Reason == v1alpha1.ReasonVersionBlocked {
			continue // a block is a decision of a person, and none of the installation's troubles
		}
		name := c.Namespace + "/" + c.Name
		text := "catalog " + name + " cannot be used: " + e.Cause.Text
		if e.Reason == v1alpha1.ReasonReconcileError { // what was read before stays in use
			text = e.Cause.Text
		}
		troubles = append(troubles, trouble{reason: e.Reason, name: name, severity: severity, check: CheckCatalogs,
			text: text, remedies: e.Remedies})
	}
	return together(troubles, "catalogs", "OperatorCatalog", in.Program)
}

// judgeObjectives looks whether Prometheus evaluates the rules of OperatorSLOs.
func judgeObjectives(in Observation) []Finding {
	var troubles []trouble
	for i := range in.Objectives {
		s := &in.Objectives[i]
		troubles = append(troubles, failures(s.Status.Conditions, "OperatorSLO", s.Namespace, s.Name, in.Program)...)
		c := conditions.Get(s.Status.Conditions, v1alpha1.ConditionRulesLoaded)
		if c.Status != metav1.ConditionFalse && c.Status != metav1.ConditionUnknown {
			continue
		}
		troubles = append(troubles, reportedTrouble(c, "OperatorSLO", s.Namespace, s.Name, in.Program))
	}
	return together(troubles, "OperatorSLOs", "OperatorSLO", in.Program)
}

// judgePaging looks whether the PagingPolicies are in force.
func judgePaging(in Observation) []Finding {
	var troubles []trouble
	for i := range in.Paging {
		p := &in.Paging[i]
		troubles = append(troubles, failures(p.Status.Conditions, "PagingPolicy", p.Namespace, p.Name, in.Program)...)
		c := conditions.Get(p.Status.Conditions, v1alpha1.ConditionReady)
		if c.Status != metav1.ConditionFalse || conditions.IsTrue(p.Status.Conditions, v1alpha1.ConditionReconciling) {
			continue
		}
		t := reportedTrouble(c, "PagingPolicy", p.Namespace, p.Name, in.Program)
		t.severity = Critical // nobody is paged
		troubles = append(troubles, t)
	}
	return together(troubles, "PagingPolicies", "PagingPolicy", in.Program)
}

// alertmanagerFlag is the hub's flag that names the Alertmanager.
const alertmanagerFlag = "--alertmanager-url"

// judgeAlertmanager looks whether the hub knows an Alertmanager. Where its Deployment cannot be read, nothing is said.
func judgeAlertmanager(in Observation) []Finding {
	known, seen := false, false
	for _, d := range in.Hub.Deployments {
		if d.Deployment == nil {
			continue
		}
		for _, container := range d.Deployment.Spec.Template.Spec.Containers {
			seen = seen || container.Name == "hub"
			known = known || slices.ContainsFunc(append(slices.Clone(container.Args), container.Command...),
				func(arg string) bool {
					value, is := strings.CutPrefix(arg, alertmanagerFlag)
					return is && value != "="
				})
		}
	}
	if !seen || known {
		return nil
	}
	f := Finding{Severity: Warning, Check: CheckAlerts, Reason: v1alpha1.ReasonNoAlertmanager,
		Text: "the hub knows no Alertmanager: AlertSilences do not come into force, alerts about upgrades are not " +
			"silenced, and PagingPolicies are not tested"}
	if r, known := remedy.For(v1alpha1.ReasonNoAlertmanager); known {
		f.Remedies = r.For(remedy.Hub, remedy.Names{Program: in.Program})
	}
	return []Finding{f}
}

// failures say that the hub fails to reconcile an object.
func failures(all []metav1.Condition, kind, namespace, name, program string) []trouble {
	if c := conditions.Get(all, v1alpha1.ConditionReconcileFailing); c.Status == metav1.ConditionTrue {
		return []trouble{reportedTrouble(c, kind, namespace, name, program)}
	}
	return nil
}

// reportedTrouble is a condition that is not as it should be.
func reportedTrouble(c metav1.Condition, kind, namespace, name, program string) trouble {
	key := namespace + "/" + name
	t := trouble{reason: c.Reason, name: key, severity: Warning, check: CheckAlerts,
		text: fmt.Sprintf("%s %s: %s", kind, key, phrase.OneLine(c.Message))}
	if r, known := remedy.For(c.Reason); known {
		t.remedies = r.For(remedy.Hub, remedy.Names{Program: program, HubNamespace: namespace, Operator: name})
	}
	return t
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
