// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Names of the alerts. They never change, and neither does what identifies an
// alert: scope, operator_namespace, operator and sli, with cluster or version. Page
// and ticket have the same name, and never fire for the same failure at once.
// Everything else is in annotations.
const (
	// AlertOperator is about one SLI of an operator on one cluster.
	AlertOperator = "BellwetherOperatorSLOBurn"
	// AlertRelease is about one SLI of a version of an operator. Without the label
	// version it is about several versions that fail in the same way; without the label
	// sli, about a version with a wave that was judged failed.
	AlertRelease = "BellwetherReleaseSLOBurn"
	// AlertCluster is about a cluster: several operators fail, or nothing is known of it.
	AlertCluster = "BellwetherClusterFailing"
)

const (
	// keepFiring is how long a page that is not about a burn rate goes on after its reason
	// is gone, so that a gap between two reasons is no second page.
	keepFiring = 5 * time.Minute
	// pageMemory is how long after a page there is no ticket about the same: its
	// windows still hold what paged.
	pageMemory = 6 * time.Hour
	// silence is how long nothing is known of a cluster before it is failing.
	silence = 10 * time.Minute
)

// burnAlerts are the alerts about budgets that burn, and about clusters. One
// failure is one alert: of the cluster, else of the release, else of the operator.
func (s Set) burnAlerts() []monitoringv1.Rule {
	ticket := fmt.Sprintf("max without (%s) (%s{%s})\nunless %s max_over_time(%s{%s}[%s])\nunless %s (\n  %s{%s} and "+
		"%s max_over_time(%s{severity=%q}[%s])\n)", series.Tier, series.SLOBurn, tiersOf(series.Ticket),
		on(budgetLabels), series.SLOBurn, s.pagingTiers(), duration(pageMemory), on(budgetLabels),
		series.SLOVersionBurn, tiersOf(series.Ticket), on(releaseLabels), series.SLOReleaseBurn, series.Ticket,
		duration(pageMemory))
	rules := []monitoringv1.Rule{
		s.clusterAlert(),
		s.releaseAlert(series.Page, releasePages()),
		s.failedReleaseAlert(),
		s.releaseAlert(series.Ticket, fmt.Sprintf("%s{severity=%q}", series.SLOReleaseBurn, series.Ticket)),
	}
	if len(s.critical()) == 0 { // otherwise the page is in the group of critical operators
		page := s.pageOf(fmt.Sprintf("%s{%s}", series.SLOBurn, tiersOf(series.Page)))
		burns := selected(series.SLOBurn, series.Page, installIdentity...)
		rules = append(rules, s.operatorAlert(series.Page, page, burns, burns))
	}
	return append(rules, s.operatorAlert(series.Ticket, ticket, "", ""))
}

// pageOf is the page about burn rates of operators on a cluster, and about those that
// are held, unless a release or the cluster is blamed: a slower tier may have recorded a
// burn rate before the fastest one blamed the release.
func (s Set) pageOf(burns string) string {
	return fmt.Sprintf("(\n  max without (%s) (%s)\n  or %s\n)\nunless %s min_over_time(%s[%s]) == 0\n"+
		"unless on (cluster) %s", series.Tier, burns, s.heldPages(), on(budgetLabels), series.SLIBadCluster,
		duration(fastest().Short), series.SLOClusterBurn)
}

// releasePages are those of single versions; where several versions that clusters
// run fail at the same time, it is not the release's fault, and one page without a
// version.
func releasePages() string {
	burn := withRegrown(series.SLOReleasePage, releaseLabels)
	// One that is only held does not excuse another.
	several := fmt.Sprintf("%s > 1", aggregate("count", objectiveLabels, fmt.Sprintf("%s{severity=%q} and %s %s",
		series.SLOReleaseBurn, series.Page, on(versionLabels), running)))
	return fmt.Sprintf("(%[1]s unless %[2]s (%[3]s))\nor max by (%[4]s) (%[1]s and %[2]s (%[3]s))", burn,
		on(objectiveLabels), several, objectiveLabels)
}

// rule is an alert of a severity and a scope. A page goes on for a while, unless it is
// about the burn rate of an operator or a release.
func rule(name, severity, scope, expr string, annotations map[string]string) monitoringv1.Rule {
	out := monitoringv1.Rule{
		Alert: name, Expr: intstr.FromString(expr), Annotations: annotations,
		Labels: map[string]string{series.Severity: severity, series.Scope: scope},
	}
	if severity == series.Page && name != AlertOperator && name != AlertRelease {
		keep := monitoringv1.NonEmptyDuration(duration(keepFiring))
		out.KeepFiringFor = &keep
	}
	return out
}

// installIdentity are the labels of an SLI of an operator on one cluster.
var installIdentity = []string{series.Cluster, series.OperatorNamespace, series.Operator, series.SLI}

// operatorAlert is about one SLI of an operator on one cluster. Burns selects the burn rates of
// a page by the labels of the alert, and lately those for which it also fires without being held. A ticket has
// none, and no window: there may be thousands of tickets, and Prometheus evaluates each annotation of each alert each
// time.
func (s Set) operatorAlert(severity, burning, burns, lately string) monitoringv1.Rule {
	const rate = "its {{ $labels.sli }} budget {{ printf \"%.1f\" $value }} times too fast " +
		"on cluster {{ $labels.cluster }}"
	summary, description := nameOfOperator+" burns "+rate, ratePersists
	if severity == series.Page {
		until := heldUntil(burns, lately, installIdentity...)
		summary = ifHeld(until, nameOfOperator+" burned "+rate+again, summary)
		description = ifHeld(until, isHeld, description)
	}
	annotations := addEvidence(severity, map[string]string{
		"summary":     summary,
		"description": description,
		"burn":        "{{ printf \"%.1f\" $value }}",
		"budget_left": budgetLeft("%s", installIdentity...),
		"criticality": s.criticality(),
		"look":        "bellwether why {{ $labels.cluster }} {{ $labels.operator }}" + inNamespace,
	})
	if severity == series.Page {
		annotations["window"] = windowOf(burns, installIdentity...)
		annotations["held_until"] = heldUntilTime(heldUntil(burns, lately, installIdentity...))
	}
	return rule(AlertOperator, severity, series.ScopeOperator, owned(burning),
		s.annotate(annotations, "&var-cluster={{ $labels.cluster | urlquery }}"))
}

// releaseAlert is about one SLI of a version of an operator.
func (s Set) releaseAlert(severity, burning string) monitoringv1.Rule {
	objective := []string{series.OperatorNamespace, series.Operator, series.SLI}
	release := append(slices.Clone(objective), series.Version)
	either := func(annotation func(labels ...string) string) string {
		return ofVersionOrAll(annotation(release...), annotation(objective...))
	}
	number := func(each string) string {
		return either(func(labels ...string) string {
			return list(fmt.Sprintf("count(%s)", clustersOf(severity, labels...)), each, labels...)
		})
	}
	rate := "its {{ $labels.sli }} budget {{ printf \"%.1f\" $value }} times too fast " +
		"{{ with $labels.version }}in version {{ . }}{{ else }}in several versions{{ end }}" +
		number(` on {{ $x | value | printf "%.0f" }} cluster{{ if ne ($x | value) 1.0 }}s{{ end }}`)
	summary := nameOfOperator + " burns " + rate
	description := either(func(labels ...string) string { return s.whoIsBlamed(severity, labels...) })
	until := ""
	if severity == series.Page {
		// What several versions have in common is not held.
		burns := fmt.Sprintf("%s{%s=%q,%s}", series.SLOReleaseBurn, series.Severity, series.Page, matching(release...))
		until = heldUntil(burns, burns, release...)
		summary = ifHeld(until, nameOfOperator+" burned "+rate+again, summary+afterRecovery)
		description = ifHeld(until, isHeld, description)
	}
	annotations := addChange(map[string]string{
		"summary":     summary,
		"description": description,
		"burn":        "{{ printf \"%.1f\" $value }}",
		"window": either(func(labels ...string) string {
			return windowOf(selected(series.SLOVersionBurn, severity, labels...), labels...)
		}),
		"budget_left": budgetLeft("min(%s)", objective...),
		"clusters": either(func(labels ...string) string {
			return listBy(series.Cluster, fmt.Sprintf("topk(%d, %s)", listed, clustersOf(severity, labels...)),
				`{{ $x | label "cluster" }}`, labels...)
		}),
		"cluster_count": number(`{{ $x | value | printf "%.0f" }}`),
		"criticality":   s.criticality(),
	}, "{{ $labels.version }} burns its {{ $labels.sli }} budget")
	if severity == series.Page {
		annotations["held_until"] = heldUntilTime(until)
	}
	return rule(AlertRelease, severity, series.ScopeRelease, owned(burning), s.annotate(annotations, ""))
}

const (
	// ratePersists is what a burn rate means.
	ratePersists = "At this rate the error budget is gone before its period is over."
	// afterRecovery follows the summary of a page about a version that failed before, on fewer clusters.
	afterRecovery = "{{ with $labels.recovered_clusters }}, after it had recovered from a failure on {{ . }} " +
		"cluster{{ if ne . \"1\" }}s{{ end }}{{ end }}"
)

// whoIsBlamed says why the version is blamed: several clusters, or one after a wave was judged failed.
func (s Set) whoIsBlamed(severity string, labels ...string) string {
	one := "A wave of the rollout was judged failed. " + ratePersists
	if s.Blame.defaulted().Clusters < 2 {
		one = ratePersists
	}
	several := "Several clusters fail in the same way. " + ratePersists + " The value is that of the worst cluster."
	return fmt.Sprintf("{{ if %s }}%s{{ else }}%s{{ end }}",
		results(fmt.Sprintf("count(%s) == 1", clustersOf(severity, labels...)), labels...), one, several)
}

// clusterAlert is about a whole cluster.
func (s Set) clusterAlert() monitoringv1.Rule {
	burning := fmt.Sprintf("topk(%d, %s)", listed, aggregate("group", operatorLabels,
		series.SLOVersionBurn+"{cluster=%q,"+tiersOf(series.Page)+"}"))
	lost := "0 * " + series.ClusterLost
	if !slices.Contains(s.WithoutAlerts, AlertFleetSilent) {
		lost += fmt.Sprintf(" unless on () (%s)", manyLost)
	}
	failing := fmt.Sprintf("%s\nor on (cluster) (%s)", series.SLOClusterBurn, lost)
	return rule(AlertCluster, series.Page, series.ScopeCluster, failing, map[string]string{
		"summary": "{{ if $value }}{{ $value }} operators fail on cluster {{ $labels.cluster }}{{ else }}There " +
			"are no measurements from cluster {{ $labels.cluster }}{{ end }}",
		"description": "{{ if $value }}Several operators of the cluster fail at the same time. There is no page for " +
			"each of them.{{ else }}No SLI of any operator was measured for " + duration(silence) + ". Check that " +
			"the cluster's API server answers, that its agent runs, and that its metrics reach Prometheus.{{ end }}",
		"operators": listBy(series.Operator, burning,
			`{{ $x | label "operator_namespace" }}/{{ $x | label "operator" }}`, series.Cluster),
		"look": "bellwether fleet get {{ $labels.cluster }}",
	})
}

// listed is how many names an annotation has at most.
const listed = 20

// list is an annotation's template of the results of a query.
func list(query, each string, labels ...string) string {
	return fmt.Sprintf("{{ range $i, $x := %s }}{{ if $i }}, {{ end }}%s{{ end }}", results(query, labels...), each)
}

// listBy is a list in the order of a label: the results of a query have none.
func listBy(order, query, each string, labels ...string) string {
	return fmt.Sprintf("{{ range $i, $x := %s | sortByLabel %q }}{{ if $i }}, {{ end }}%s{{ end }}",
		results(query, labels...), order, each)
}

// results are those of a query in a template. Its %q are the values of labels of the alert.
func results(query string, labels ...string) string {
	return fmt.Sprintf("query (printf %s %s)", quote(query), "$labels."+strings.Join(labels, " $labels."))
}

// clustersOf are the clusters that burn. A page begins when one of several clusters that are bad
// burns, so it has those that were bad lately too; and those that burned last while it is held.
func clustersOf(severity string, labels ...string) string {
	burn := selected(series.SLOVersionBurn, severity, labels...)
	if severity == series.Page {
		burn = fmt.Sprintf("%[1]s or last_over_time(%[2]s{%[3]s}[%[4]s]) or on () last_over_time(%[1]s[%[5]s])", burn,
			series.SLIBadVersion, matching(labels...), duration(fastest().Short), duration(recurringHold))
	}
	return fmt.Sprintf("max by (cluster) (%s)", burn)
}

// windowOf is the long window of the tier that burns fastest, or burned last while a page is held.
func windowOf(burns string, labels ...string) string {
	return list(fmt.Sprintf("topk(1, max by (tier) (%[1]s or on () last_over_time(%[1]s[%[2]s])))", burns,
		duration(recurringHold)), `{{ $x | label "tier" }}`, labels...)
}

// selected is a format of a selector: by the tiers of a severity, and by labels.
func selected(name, severity string, labels ...string) string {
	return name + "{" + tiersOf(severity) + "," + matching(labels...) + "}"
}

// matching is a format of matchers of labels, which may be in a query more than once.
func matching(labels ...string) string {
	var out []string
	for i, label := range labels {
		out = append(out, fmt.Sprintf("%s=%%[%d]q", label, i+1))
	}
	return strings.Join(out, ",")
}

// ofVersionOrAll chooses by whether an alert has a version.
func ofVersionOrAll(one, all string) string {
	return "{{ if $labels.version }}" + one + "{{ else }}" + all + "{{ end }}"
}

// criticality is a template of what the OperatorSLO says. It is no label of the alert:
// an edit would make another alert of it. It is no query either, as Prometheus evaluates
// each of them for each alert and each time.
func (s Set) criticality() string {
	return s.byOperator(standard, func(op Operator) string { return cmp.Or(op.Criticality, standard) })
}

// nameOfOperator is how annotations name an alert's operator.
const nameOfOperator = "{{ $labels.operator_namespace }}/{{ $labels.operator }}"

// owned gives alerts the label slo, and the team of their operator.
func owned(alerts string) string {
	return fmt.Sprintf("label_join(\n%s,\n  \"slo\", \"/\", \"operator_namespace\", \"operator\", \"sli\"\n)\n* %s "+
		"%s", indent(alerts), on(operatorLabels), joinTeam)
}

// budgetLeft is an annotation's template of what is left of an alert's budget. The
// format takes the selector of its series, by labels of the alert.
func budgetLeft(format string, labels ...string) string {
	query := fmt.Sprintf(format, series.SLOBudgetLeft+"{"+strings.Join(labels, "=%q,")+"=%q}")
	return fmt.Sprintf("{{ with %s }}{{ . | first | value | humanizePercentage }}{{ else }}unknown{{ end }}",
		results(query, labels...))
}

// annotate adds the dashboard of an alert about an SLI; further are variables of it.
func (s Set) annotate(to map[string]string, further string) map[string]string {
	if s.DashboardURL != "" {
		to["dashboard_url"] = s.dashboard() + "&var-sli={{ $labels.sli | urlquery }}" + further
	}
	return to
}

// dashboard is a link to the dashboard of an alert's operator.
func (s Set) dashboard() string {
	return s.DashboardURL + "?var-operator_namespace={{ $labels.operator_namespace | urlquery }}" +
		"&var-operator={{ $labels.operator | urlquery }}"
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
