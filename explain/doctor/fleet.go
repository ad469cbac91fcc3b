// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// maxShown is the maximum number of objects that a sentence lists.
const maxShown = 5

// trouble is the problem of one object. Problems with the same reason become one finding.
type trouble struct {
	reason, name, text string
	remedies           []remedy.Action
	severity           Severity
	check              Check
}

// groupTroubles returns one finding for all objects with the same reason, so that a hundred offline clusters are one
// line. noun is the plural of the objects' kind, and object is the kind. A single object keeps its text and remedies;
// several objects get the texts for the reason. A finding without a remedy gets a command that shows the conditions.
func groupTroubles(troubles []trouble, noun, object, program string) []Finding {
	byReason := map[string][]trouble{}
	for _, t := range troubles {
		byReason[t.reason] = append(byReason[t.reason], t)
	}
	var findings []Finding
	for _, reason := range sortKeys(byReason) {
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
				maxShown),
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

// judgeClusters returns findings for the clusters that package explain reports as failed, degraded or unknown. Clusters
// that leave the fleet do not count.
func judgeClusters(in Observation) []Finding {
	var troubles []trouble
	for i := range in.Clusters {
		c := &in.Clusters[i]
		e := explain.Cluster(explain.ClusterInput{Now: in.Now, Cluster: c, Program: in.Program})
		severity := classifySeverity(e.State)
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
	return groupTroubles(troubles, "clusters", "FleetCluster", in.Program)
}

// classifySeverity returns the severity of a state. It returns "" for states in which no person needs to act.
func classifySeverity(s explain.State) Severity {
	switch s {
	case explain.Failed, explain.Unknown:
		return Critical
	case explain.Degraded:
		return Warning
	default:
		return ""
	}
}

// judgeCatalogs returns findings for the catalogs that package explain reports as failed, degraded or unknown.
func judgeCatalogs(in Observation) []Finding {
	var troubles []trouble
	for i := range in.Catalogs {
		c := &in.Catalogs[i]
		e := explain.Catalog(explain.CatalogInput{Now: in.Now, Catalog: c, Program: in.Program})
		severity := classifySeverity(e.State)
		if severity == "" || e.Reason == v1alpha1.ReasonVersionBlocked {
			continue // a block is a decision of a person and not a problem of the installation
		}
		name := c.Namespace + "/" + c.Name
		text := "catalog " + name + " cannot be used: " + e.Cause.Text
		if e.Reason == v1alpha1.ReasonReconcileError { // the earlier catalog stays in use
			text = e.Cause.Text
		}
		troubles = append(troubles, trouble{reason: e.Reason, name: name, severity: severity, check: CheckCatalogs,
			text: text, remedies: e.Remedies})
	}
	return groupTroubles(troubles, "catalogs", "OperatorCatalog", in.Program)
}

// judgeObjectives checks whether Prometheus evaluates the rules of OperatorSLOs.
func judgeObjectives(in Observation) []Finding {
	var troubles []trouble
	for i := range in.Objectives {
		s := &in.Objectives[i]
		troubles = append(troubles, listFailures(s.Status.Conditions, "OperatorSLO", s.Namespace, s.Name,
			in.Program)...)
		c := conditions.Get(s.Status.Conditions, v1alpha1.ConditionRulesLoaded)
		if c.Status != metav1.ConditionFalse && c.Status != metav1.ConditionUnknown {
			continue
		}
		troubles = append(troubles, newTrouble(c, "OperatorSLO", s.Namespace, s.Name, in.Program))
	}
	return groupTroubles(troubles, "OperatorSLOs", "OperatorSLO", in.Program)
}

// judgePaging checks whether the PagingPolicies are in force.
func judgePaging(in Observation) []Finding {
	var troubles []trouble
	for i := range in.Paging {
		p := &in.Paging[i]
		troubles = append(troubles, listFailures(p.Status.Conditions, "PagingPolicy", p.Namespace, p.Name,
			in.Program)...)
		c := conditions.Get(p.Status.Conditions, v1alpha1.ConditionReady)
		if c.Status != metav1.ConditionFalse || conditions.IsTrue(p.Status.Conditions, v1alpha1.ConditionReconciling) {
			continue // the policy is in force, or will be without a person
		}
		t := newTrouble(c, "PagingPolicy", p.Namespace, p.Name, in.Program)
		t.severity = Critical // no person is paged
		troubles = append(troubles, t)
	}
	return groupTroubles(troubles, "PagingPolicies", "PagingPolicy", in.Program)
}

// alertmanagerFlag is the hub's flag with the URL of the Alertmanager.
const alertmanagerFlag = "alertmanager-url"

// judgeAlertmanager checks whether the hub is configured with an Alertmanager. If the hub's Deployment was not read,
// it returns no finding.
func judgeAlertmanager(in Observation) []Finding {
	isConfigured, isRead := false, false
	for _, d := range in.Hub.Deployments {
		if d.Deployment == nil {
			continue
		}
		for _, container := range d.Deployment.Spec.Template.Spec.Containers {
			isRead = isRead || container.Name == "hub"
		}
		isConfigured = isConfigured || d.ReadFlag(alertmanagerFlag) != ""
	}
	if !isRead || isConfigured {
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

// listFailures returns the trouble of an object that the hub fails to reconcile.
func listFailures(all []metav1.Condition, kind, namespace, name, program string) []trouble {
	if c := conditions.Get(all, v1alpha1.ConditionReconcileFailing); c.Status == metav1.ConditionTrue {
		return []trouble{newTrouble(c, kind, namespace, name, program)}
	}
	return nil
}

// newTrouble returns the trouble for a condition that reports a problem.
func newTrouble(c metav1.Condition, kind, namespace, name, program string) trouble {
	key := namespace + "/" + name
	t := trouble{reason: c.Reason, name: key, severity: Warning, check: CheckAlerts,
		text: fmt.Sprintf("%s %s: %s", kind, key, phrase.OneLine(c.Message))}
	if r, known := remedy.For(c.Reason); known {
		t.remedies = r.For(remedy.Hub, remedy.Names{Program: program, HubNamespace: namespace, Operator: name})
	}
	return t
}

// sortKeys returns the sorted keys of a map.
func sortKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
