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

// Names of the alerts. The names never change, and neither do the labels that identify an alert: scope,
// operator_namespace, operator and sli, with cluster or version. The page and the ticket have the same
// name, and never fire for the same failure at the same time. All other data is in annotations.
const (
	// AlertOperator is about one SLI of an operator on one cluster.
	AlertOperator = "BellwetherOperatorSLOBurn"
	// AlertRelease is about one SLI of a version of an operator. If the label version
	// is missing, it is about several versions that fail in the same way. If the
	// label sli is missing, it is about a version with a wave that was judged failed.
	AlertRelease = "BellwetherReleaseSLOBurn"
	// AlertCluster is about a cluster on which several operators fail, or from which there is no data.
	AlertCluster = "BellwetherClusterFailing"
)

const (
	// keepFiring is how long a page that is not about a burn rate continues after its
	// reason is gone. A short gap between two reasons then does not cause a second page.
	keepFiring = 5 * time.Minute
	// pageMemory is how long after a page there is no ticket about the same failure,
	// because the windows of the ticket still contain the failure that paged.
	pageMemory = 6 * time.Hour
	// lostAfter is how long there must be no data from a cluster before the cluster counts as failing.
	lostAfter = 10 * time.Minute
)

// buildBurnAlerts returns the alerts about burning budgets and about clusters. One failure
// makes one alert: about the cluster, else about the release, else about the operator.
func (s Set) buildBurnAlerts() []monitoringv1.Rule {
	// There is no ticket within pageMemory after a burn rate that pages, or after a ticket about the release.
	ticket := fmt.Sprintf("max without (%s) (%s{%s})\nunless %s max_over_time(%s{%s}[%s])\nunless %s (\n  %s{%s} and "+
		"%s max_over_time(%s{severity=%q}[%s])\n)", series.Tier, series.SLOBurn, matchTiers(series.Ticket),
		matchOn(budgetLabels), series.SLOBurn, s.matchPagingTiers(), formatDuration(pageMemory), matchOn(budgetLabels),
		series.SLOVersionBurn, matchTiers(series.Ticket), matchOn(releaseLabels), series.SLOReleaseBurn, series.Ticket,
		formatDuration(pageMemory))
	rules := []monitoringv1.Rule{
		s.buildClusterAlert(),
		s.buildReleaseAlert(series.Page, buildReleasePageExpr()),
		s.buildFailedReleaseAlert(),
		s.buildReleaseAlert(series.Ticket, fmt.Sprintf("%s{severity=%q}", series.SLOReleaseBurn, series.Ticket)),
	}
	if len(s.listCritical()) == 0 { // otherwise the page is in the group of critical operators
		page := s.buildPageExpr(fmt.Sprintf("%s{%s}", series.SLOBurn, matchTiers(series.Page)))
		burns := selectBySeverity(series.SLOBurn, series.Page, installIdentity...)
		rules = append(rules, s.buildOperatorAlert(series.Page, page, burns, burns))
	}
	return append(rules, s.buildOperatorAlert(series.Ticket, ticket, "", ""))
}

// buildPageExpr returns the expression of the page about operators on a cluster: their burn rates
// and their held pages, unless a release or the cluster is blamed. The exclusion is needed
// because a slower tier may have recorded a burn rate before the fastest tier blamed the release.
func (s Set) buildPageExpr(burns string) string {
	return fmt.Sprintf("(\n  max without (%s) (%s)\n  or %s\n)\nunless %s min_over_time(%s[%s]) == 0\n"+
		"unless on (cluster) %s", series.Tier, burns, s.selectHeldPages(), matchOn(budgetLabels), series.SLIBadCluster,
		formatDuration(pickFastestTier().Short), series.SLOClusterBurn)
}

// buildReleasePageExpr returns the expression of the pages about single versions. If several versions that
// clusters run fail at the same time, the release is not the cause, and there is one page without a version.
func buildReleasePageExpr() string {
	burn := addRegrown(series.SLOReleasePage, releaseLabels)
	// A version that is only held does not prevent the page of another version.
	several := fmt.Sprintf("%s > 1", aggregate("count", objectiveLabels, fmt.Sprintf("%s{severity=%q} and %s %s",
		series.SLOReleaseBurn, series.Page, matchOn(versionLabels), runningMetric)))
	return fmt.Sprintf("(%[1]s unless %[2]s (%[3]s))\nor max by (%[4]s) (%[1]s and %[2]s (%[3]s))", burn,
		matchOn(objectiveLabels), several, objectiveLabels)
}

// newAlert returns an alert with a severity and a scope. Pages continue for
// keepFiring, except pages about the burn rate of an operator or a release.
func newAlert(name, severity, scope, expr string, annotations map[string]string) monitoringv1.Rule {
	out := monitoringv1.Rule{
		Alert: name, Expr: intstr.FromString(expr), Annotations: annotations,
		Labels: map[string]string{series.Severity: severity, series.Scope: scope},
	}
	if severity == series.Page && name != AlertOperator && name != AlertRelease {
		keep := monitoringv1.NonEmptyDuration(formatDuration(keepFiring))
		out.KeepFiringFor = &keep
	}
	return out
}

// installIdentity are the labels that identify an SLI of an operator on one cluster.
var installIdentity = []string{series.Cluster, series.OperatorNamespace, series.Operator, series.SLI}

// buildOperatorAlert returns the alert about one SLI of an operator on one cluster. burning is PromQL of the burn
// rates for which the alert fires. For a page, burns selects its burn rates by the labels of the alert, and recent
// selects the burn rates for which the page also fires without being held. Both are empty for a ticket, which
// has no window: there may be thousands of tickets, and Prometheus evaluates every annotation of every alert
// at each evaluation.
func (s Set) buildOperatorAlert(severity, burning, burns, recent string) monitoringv1.Rule {
	const rate = "its {{ $labels.sli }} budget {{ printf \"%.1f\" $value }} times too fast " +
		"on cluster {{ $labels.cluster }}"
	summary, description := operatorName+" burns "+rate, burnDescription
	if severity == series.Page {
		until := queryHeldUntil(burns, recent, installIdentity...)
		summary = chooseIfHeld(until, operatorName+" burned "+rate+heldSummary, summary)
		description = chooseIfHeld(until, heldDescription, description)
	}
	annotations := addEvidence(severity, map[string]string{
		"summary":     summary,
		"description": description,
		"burn":        "{{ printf \"%.1f\" $value }}",
		"budget_left": formatBudgetLeft("%s", installIdentity...),
		"criticality": s.buildCriticality(),
		"look":        "bellwether why {{ $labels.cluster }} {{ $labels.operator }}" + inNamespace,
	})
	if severity == series.Page {
		annotations["window"] = listBurningWindow(burns, installIdentity...)
		annotations["held_until"] = formatHeldUntil(queryHeldUntil(burns, recent, installIdentity...))
	}
	return newAlert(AlertOperator, severity, series.ScopeOperator, addSLOAndTeam(burning),
		s.addDashboard(annotations, "&var-cluster={{ $labels.cluster | urlquery }}"))
}

// buildReleaseAlert returns the alert about one SLI of a version of an operator, or of several versions if an
// alert has no version. burning is PromQL of the burn rates for which the alert fires. Most annotations are
// templates that choose by whether the alert has a version.
func (s Set) buildReleaseAlert(severity, burning string) monitoringv1.Rule {
	objective := []string{series.OperatorNamespace, series.Operator, series.SLI}
	release := append(slices.Clone(objective), series.Version)
	chooseAnnotation := func(annotation func(labels ...string) string) string {
		return chooseByVersion(annotation(release...), annotation(objective...))
	}
	countClusters := func(each string) string {
		return chooseAnnotation(func(labels ...string) string {
			return listResults(fmt.Sprintf("count(%s)", listBurningClusters(severity, labels...)), each, labels...)
		})
	}
	rate := "its {{ $labels.sli }} budget {{ printf \"%.1f\" $value }} times too fast " +
		"{{ with $labels.version }}in version {{ . }}{{ else }}in several versions{{ end }}" +
		countClusters(` on {{ $x | value | printf "%.0f" }} cluster{{ if ne ($x | value) 1.0 }}s{{ end }}`)
	summary := operatorName + " burns " + rate
	description := chooseAnnotation(func(labels ...string) string { return s.describeBlame(severity, labels...) })
	until := ""
	if severity == series.Page {
		// A page about several versions is not held.
		burns := fmt.Sprintf("%s{%s=%q,%s}", series.SLOReleaseBurn, series.Severity, series.Page,
			matchAlertLabels(release...))
		until = queryHeldUntil(burns, burns, release...)
		summary = chooseIfHeld(until, operatorName+" burned "+rate+heldSummary, summary+recoveredText)
		description = chooseIfHeld(until, heldDescription, description)
	}
	annotations := addChange(map[string]string{
		"summary":     summary,
		"description": description,
		"burn":        "{{ printf \"%.1f\" $value }}",
		"window": chooseAnnotation(func(labels ...string) string {
			return listBurningWindow(selectBySeverity(series.SLOVersionBurn, severity, labels...), labels...)
		}),
		"budget_left": formatBudgetLeft("min(%s)", objective...),
		"clusters": chooseAnnotation(func(labels ...string) string {
			return listSortedResults(series.Cluster,
				fmt.Sprintf("topk(%d, %s)", maxListed, listBurningClusters(severity, labels...)),
				`{{ $x | label "cluster" }}`, labels...)
		}),
		"cluster_count": countClusters(`{{ $x | value | printf "%.0f" }}`),
		"criticality":   s.buildCriticality(),
	}, "{{ $labels.version }} burns its {{ $labels.sli }} budget")
	if severity == series.Page {
		annotations["held_until"] = formatHeldUntil(until)
	}
	return newAlert(AlertRelease, severity, series.ScopeRelease, addSLOAndTeam(burning),
		s.addDashboard(annotations, ""))
}

const (
	// burnDescription explains the effect of a burn rate.
	burnDescription = "At this rate the error budget is gone before its period is over."
	// recoveredText follows the summary of a page about a version that already failed on fewer clusters and recovered.
	recoveredText = "{{ with $labels.recovered_clusters }}, after it had recovered from a failure on {{ . }} " +
		"cluster{{ if ne . \"1\" }}s{{ end }}{{ end }}"
)

// describeBlame returns a template that explains why the version is blamed:
// several clusters fail, or one cluster fails after a wave was judged failed.
func (s Set) describeBlame(severity string, labels ...string) string {
	single := "A wave of the rollout was judged failed. " + burnDescription
	if s.Blame.applyDefaults().Clusters < 2 { // one bad cluster is enough without a failed wave
		single = burnDescription
	}
	several := "Several clusters fail in the same way. " + burnDescription + " The value is that of the worst cluster."
	return fmt.Sprintf("{{ if %s }}%s{{ else }}%s{{ end }}",
		formatQuery(fmt.Sprintf("count(%s) == 1", listBurningClusters(severity, labels...)),
			labels...), single, several)
}

// buildClusterAlert returns the alert about a whole cluster.
func (s Set) buildClusterAlert() monitoringv1.Rule {
	burning := fmt.Sprintf("topk(%d, %s)", maxListed, aggregate("group", operatorLabels,
		series.SLOVersionBurn+"{cluster=%q,"+matchTiers(series.Page)+"}"))
	// The value of the alert is the number of operators that fail, or 0 if there is no data.
	lost := "0 * " + series.ClusterLost
	if !slices.Contains(s.WithoutAlerts, AlertFleetSilent) {
		lost += fmt.Sprintf(" unless on () (%s)", manyLost)
	}
	failing := fmt.Sprintf("%s\nor on (cluster) (%s)", series.SLOClusterBurn, lost)
	return newAlert(AlertCluster, series.Page, series.ScopeCluster, failing, map[string]string{
		"summary": "{{ if $value }}{{ $value }} operators fail on cluster {{ $labels.cluster }}{{ else }}There " +
			"are no measurements from cluster {{ $labels.cluster }}{{ end }}",
		"description": "{{ if $value }}Several operators of the cluster fail at the same time. There is no page for " +
			"each of them.{{ else }}No SLI of any operator was measured for " + formatDuration(lostAfter) +
			". Check that " +
			"the cluster's API server answers, that its agent runs, and that its metrics reach Prometheus.{{ end }}",
		"operators": listSortedResults(series.Operator, burning,
			`{{ $x | label "operator_namespace" }}/{{ $x | label "operator" }}`, series.Cluster),
		"look": "bellwether fleet get {{ $labels.cluster }}",
	})
}

// maxListed is the maximum number of names in an annotation.
const maxListed = 20

// listResults returns an annotation template that lists the results of a query. each is the
// template of one result $x, and labels are the labels of the alert that the query uses.
func listResults(query, each string, labels ...string) string {
	return fmt.Sprintf("{{ range $i, $x := %s }}{{ if $i }}, {{ end }}%s{{ end }}", formatQuery(query, labels...), each)
}

// listSortedResults returns an annotation template that lists the results of a
// query like listResults, sorted by the label order. Query results have no order.
func listSortedResults(order, query, each string, labels ...string) string {
	return fmt.Sprintf("{{ range $i, $x := %s | sortByLabel %q }}{{ if $i }}, {{ end }}%s{{ end }}",
		formatQuery(query, labels...), order, each)
}

// formatQuery returns a template call that runs a query. The values
// of the given labels of the alert replace the %q in the query.
func formatQuery(query string, labels ...string) string {
	return fmt.Sprintf("query (printf %s %s)", quote(query), "$labels."+strings.Join(labels, " $labels."))
}

// listBurningClusters returns a query format for the clusters that burn. A page begins
// when one of several bad clusters burns, so for a page the query also finds clusters
// that were bad recently, and, while the page is held, the clusters that burned last.
func listBurningClusters(severity string, labels ...string) string {
	burn := selectBySeverity(series.SLOVersionBurn, severity, labels...)
	if severity == series.Page {
		burn = fmt.Sprintf("%[1]s or last_over_time(%[2]s{%[3]s}[%[4]s]) or on () last_over_time(%[1]s[%[5]s])", burn,
			series.SLIBadVersion, matchAlertLabels(labels...), formatDuration(pickFastestTier().Short),
			formatDuration(recurringHold))
	}
	return fmt.Sprintf("max by (cluster) (%s)", burn)
}

// listBurningWindow returns a template with the long window of the
// tier that burns fastest, or that burned last while a page is held.
func listBurningWindow(burns string, labels ...string) string {
	return listResults(fmt.Sprintf("topk(1, max by (tier) (%[1]s or on () last_over_time(%[1]s[%[2]s])))", burns,
		formatDuration(recurringHold)), `{{ $x | label "tier" }}`, labels...)
}

// selectBySeverity returns the format of a selector by the tiers of a severity and by labels.
func selectBySeverity(name, severity string, labels ...string) string {
	return name + "{" + matchTiers(severity) + "," + matchAlertLabels(labels...) + "}"
}

// matchAlertLabels returns the format of matchers of labels. The format can be used more than once in a query.
func matchAlertLabels(labels ...string) string {
	var out []string
	for i, label := range labels {
		out = append(out, fmt.Sprintf("%s=%%[%d]q", label, i+1))
	}
	return strings.Join(out, ",")
}

// chooseByVersion returns a template that chooses a text by whether an alert has a version.
func chooseByVersion(single, several string) string {
	return "{{ if $labels.version }}" + single + "{{ else }}" + several + "{{ end }}"
}

// buildCriticality returns a template with the criticality of the alert's operator. The
// criticality is not a label, because an edit would then create another alert. It is not a query
// either, because Prometheus evaluates every annotation query for every alert at each evaluation.
func (s Set) buildCriticality() string {
	return s.chooseByOperator(criticalityStandard, func(op Operator) string {
		return cmp.Or(op.Criticality,
			criticalityStandard)
	})
}

// operatorName is the template of an operator's name in annotations.
const operatorName = "{{ $labels.operator_namespace }}/{{ $labels.operator }}"

// addSLOAndTeam adds the label slo and the team of their operator to alerts.
func addSLOAndTeam(alerts string) string {
	return fmt.Sprintf("label_join(\n%s,\n  \"slo\", \"/\", \"operator_namespace\", \"operator\", \"sli\"\n)\n* %s "+
		"%s", indent(alerts), matchOn(operatorLabels), joinTeam)
}

// formatBudgetLeft returns an annotation template with the remaining budget of an
// alert. The format receives the selector of the budget series, by labels of the alert.
func formatBudgetLeft(format string, labels ...string) string {
	query := fmt.Sprintf(format, series.SLOBudgetLeft+"{"+strings.Join(labels, "=%q,")+"=%q}")
	return fmt.Sprintf("{{ with %s }}{{ . | first | value | humanizePercentage }}{{ else }}unknown{{ end }}",
		formatQuery(query, labels...))
}

// addDashboard adds the dashboard link to the annotations of an alert about
// an SLI, and returns them. further are more variables of the dashboard.
func (s Set) addDashboard(annotations map[string]string, further string) map[string]string {
	if s.DashboardURL != "" {
		annotations["dashboard_url"] = s.buildDashboardURL() + "&var-sli={{ $labels.sli | urlquery }}" + further
	}
	return annotations
}

// buildDashboardURL returns a link to the dashboard of an alert's operator.
func (s Set) buildDashboardURL() string {
	return s.DashboardURL + "?var-operator_namespace={{ $labels.operator_namespace | urlquery }}" +
		"&var-operator={{ $labels.operator | urlquery }}"
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
