// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// newInternalsPage returns the dashboard of the internals of controllers.
func newInternalsPage() page {
	job := newMultiVariable("job", "Job", buildLabelValues(series.ReconcileTotal, "job"))
	return page{
		uid: UIDInternals, title: "Bellwether / Controller internals", from: "now-3h",
		description: "Reconcilers, queues and API requests of the hub, the agents and the operators that are " +
			"scraped. Come here when something is slow, and choose its job.",
		variables: append([]dashboard.VariableModel{job, newClusterVariable()}, newOperatorVariables()...),
		rows: []row{
			{"Reconcilers", newReconcilerPanels()},
			{"Queues", newQueuePanels()},
			{"API requests and processes", newProcessPanels()},
			{"Controllers of operators", newControllerPanels()},
		},
	}
}

// jobMatcher matches the job that is selected on this page.
const jobMatcher = `job=~"$job"`

// newReconcilerPanels returns the panels of the reconcilers in the selected jobs.
func newReconcilerPanels() []panel {
	rateByController := func(metric string) string {
		return "sum by (job, controller) (" + buildRate(selectSeries(metric, jobMatcher)) + ")"
	}
	return []panel{
		{
			title: "Reconciles", draw: drawTimeSeries, width: 12, height: 8, unit: units.OpsPerSecond,
			noData: "nothing scraped", minimum: newZero(),
			description: "Reconciles each second. A rate that never falls means that something is reconciled in a " +
				"loop: its " +
				"log names the object.",
			queries: []query{{rateByController(series.ReconcileTotal), "{{job}} {{controller}}"}},
		},
		{
			title: "Failed reconciles", draw: drawTimeSeries, width: 12, height: 8, unit: units.PercentUnit,
			noData: "nothing scraped", minimum: newZero(), levels: []level{{good, 0}, {warn, 0.05}, {bad, 0.1}},
			description: "The share of reconciles that returned an error and are tried again. A few are normal after " +
				"a restart; if they stay, the controller's log has the errors.",
			queries: []query{{rateByController(series.ReconcileErrorsTotal) + "\n/\n" +
				rateByController(series.ReconcileTotal),
				"{{job}} {{controller}}"}},
		},
		{
			title: "Time of the slowest reconciles", draw: drawTimeSeries, width: 12, height: 8, unit: units.Seconds,
			noData: "nothing scraped", minimum: newZero(),
			description: "What the slowest hundredth of the reconciles take. Seconds mean that a reconcile waits for " +
				"something: usually an API server or a registry.",
			queries: []query{{"histogram_quantile(0.99, sum by (job, controller, le) (" +
				buildRate(selectSeries(series.ReconcileTimeBucket, jobMatcher)) + "))", "{{job}} {{controller}}"}},
		},
		{
			title: "Panics", draw: drawTimeSeries, width: 6, height: 8, unit: units.Short, noData: "nothing scraped",
			minimum: newZero(), levels: newAnyIsBadLevels(), decimals: newZero(),
			description: "How many reconciles panicked within 15 minutes. Each one is a bug: report it with the " +
				"stack trace of the log.",
			queries: []query{{"round(sum by (job, controller) (" +
				buildIncrease(selectSeries(series.ReconcilePanicsTotal, jobMatcher)) + "))", "{{job}} {{controller}}"}},
		},
		{
			title: "Admissions", draw: drawTimeSeries, width: 6, height: 8, unit: units.Short, noData: hubSilent,
			minimum: newZero(),
			description: "Clusters that the hub admitted to a release within ten minutes. None during a rollout " +
				"means that its wave soaks or waits: see the rollout.",
			queries: []query{{"sum(increase(" + selectSeries(series.RolloutAdmissionsTotal, jobMatcher) + "[10m]))",
				"admitted"}},
			link: buildLink(UIDRollout),
		},
	}
}

// newQueuePanels returns the panels of the work queues in the selected jobs. Durations are in seconds.
func newQueuePanels() []panel {
	return []panel{
		{
			title: "Depth", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short, noData: "nothing scraped",
			minimum: newZero(),
			description: "Objects that wait for their reconcile. A queue that only grows has too few workers or too " +
				"slow ones: raise --max-concurrent-reconciles of the hub if the API server can take it.",
			queries: []query{{"max by (job, name) (" + selectSeries(series.QueueDepth, jobMatcher) + ")",
				"{{job}} {{name}}"}},
		},
		{
			title: "Time in the queue", draw: drawTimeSeries, width: 8, height: 8, unit: units.Seconds,
			noData: "nothing scraped", minimum: newZero(),
			description: "How long the slowest hundredth waited before its reconcile began. This is by how much " +
				"everything comes late.",
			queries: []query{{"histogram_quantile(0.99, sum by (job, name, le) (" +
				buildRate(selectSeries("workqueue_queue_duration_seconds_bucket", jobMatcher)) + "))",
				"{{job}} {{name}}"}},
		},
		{
			title: "Longest running", draw: drawTimeSeries, width: 8, height: 8, unit: units.Seconds,
			noData: "nothing scraped", minimum: newZero(), levels: []level{{good, 0}, {warn, 60}, {bad, 300}},
			description: "For how long the oldest reconcile has been running. Minutes mean that it hangs: take a " +
				"goroutine dump before you restart it.",
			queries: []query{{"max by (job, name) (" + selectSeries(series.QueueLongestRunning, jobMatcher) + ")",
				"{{job}} {{name}}"}},
		},
	}
}

// newProcessPanels returns the panels of the processes in the selected jobs: API requests, leaders and resources.
func newProcessPanels() []panel {
	return []panel{
		{
			title: "Requests to API servers", draw: drawTimeSeries, width: 12, height: 8, unit: units.RequestsPerSecond,
			noData: "nothing scraped", minimum: newZero(), stacked: true,
			description: "Requests each second, by answer. 429 is an API server that limits requests, 5xx one that " +
				"is " +
				"ill: both slow everything else on this page.",
			queries: []query{{"sum by (job, code) (" + buildRate(selectSeries("rest_client_requests_total",
				jobMatcher)) + ")", "{{job}} {{code}}"}},
		},
		{
			title: "Elections without one leader", draw: drawTimeSeries, width: 12, height: 8, unit: units.Short,
			noData: "no leader election", minimum: newZero(), levels: newAnyIsBadLevels(), decimals: newZero(),
			description: "Leader elections that do not have exactly one leader, by job. Without a leader nothing is " +
				"decided: look at the Lease and at the pods; the series of the hub come from its leader only.",
			queries: []query{{fmt.Sprintf("sum by (job) (sum by (job, cluster, namespace, name) (%s) != bool 1)",
				selectSeries(series.LeaderStatus, jobMatcher)), "{{job}}"}},
		},
		{
			title: "Memory", draw: drawTimeSeries, width: 8, height: 8, unit: units.BytesIEC, noData: "nothing scraped",
			minimum: newZero(),
			description: "Resident memory of the 10 largest processes. If it nears the limit of the pod, raise its " +
				"resources in the chart's values.",
			queries: []query{newProcessQuery(selectSeries("process_resident_memory_bytes", jobMatcher))},
		},
		{
			title: "CPU", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short, noData: "nothing scraped",
			minimum: newZero(),
			description: "Cores that the 10 busiest processes use. Compare with the reconciles above: CPU without " +
				"reconciles is work outside of them, such as probes or catalogs.",
			queries: []query{newProcessQuery(buildRate(selectSeries("process_cpu_seconds_total", jobMatcher)))},
		},
		{
			title: "Goroutines", draw: drawTimeSeries, width: 8, height: 8, unit: units.Short,
			noData:  "nothing scraped",
			minimum: newZero(),
			description: "Goroutines of the 10 processes with the most. A line that only rises is a leak: take a " +
				"goroutine dump, and report it.",
			queries: []query{newProcessQuery(selectSeries("go_goroutines", jobMatcher))},
		},
	}
}

// newProcessQuery returns a query for the 10 processes with the highest values.
func newProcessQuery(expr string) query {
	return query{selectHighest(10, "max by (job, instance) ("+expr+")"), "{{job}} {{instance}}"}
}

// newControllerPanels returns the panels of the failures of operators: of their reconciles and their webhooks.
func newControllerPanels() []panel {
	return []panel{
		{
			title: "Failed reconciles of operators", draw: drawTimeSeries, width: 12, height: 8,
			unit:   units.PercentUnit,
			noData: "no operator scraped", minimum: newZero(), levels: []level{{good, 0}, {bad, 0.1}},
			description: "The share of failed reconciles in the namespaces of the chosen operators: the 10 worst " +
				"controllers. Above 10 % their slices are bad: their own logs say why.",
			queries: []query{{selectHighest(10, keepOperatorNamespaces("sum by (cluster, namespace, controller) ("+
				buildRate(selectPodSeries(series.ReconcileErrorsTotal))+
				")\n/\nsum by (cluster, namespace, controller) ("+
				buildRate(selectPodSeries(series.ReconcileTotal))+")")),
				"{{cluster}} {{namespace}} {{controller}}"}},
		},
		{
			title: "Failed admission requests", draw: drawTimeSeries, width: 12, height: 8, unit: units.PercentUnit,
			noData: "no webhooks", minimum: newZero(), levels: []level{{good, 0}, {bad, 0.01}},
			description: "The share of requests to operators' webhooks that ended with a server error, and of those " +
				"that API servers could not make: the 10 worst of each. Above 1 % users cannot write objects of this " +
				"operator, or nobody checks them: treat it as an outage.",
			queries: []query{{selectHighest(10, keepOperatorNamespaces("sum by (cluster, namespace, webhook) ("+
				buildRate(selectPodSeries(series.WebhookRequestsTotal, `code=~"5.."`))+
				")\n/\nsum by (cluster, namespace, webhook) ("+buildRate(selectPodSeries(series.WebhookRequestsTotal))+
				")")), "{{cluster}} {{namespace}} {{webhook}}"},
				{selectHighest(10, buildNotCalledShare()), "{{cluster}} {{name}} not called"}},
		},
	}
}

// buildNotCalledShare returns a query for the share of webhook calls that API servers could not make,
// for each webhook of the selected operators. A counter of failures exists only after the first failure,
// so the query uses 0 until then.
func buildNotCalledShare() string {
	total := "sum by (cluster, name) (" + buildRate(selectSeries(series.AdmissionRequestsTotal)) + ")"
	sumFailures := func(failed string) string {
		return "(sum by (cluster, name) (" + buildRate(failed) + ") or 0 * " + total + ")"
	}
	refused, passed := selectSeries(series.AdmissionRejectionCount,
		matchLabel("error_type", series.AdmissionCallingError)), selectSeries(series.AdmissionFailOpenCount)
	return "(" + sumFailures(refused) + "\n+ " + sumFailures(passed) + ")\n/ " + total + "\nand on (cluster, name) " +
		selectSeries(series.OperatorWebhook)
}
