// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

func internalsPage() page {
	job := choice("job", "Job", values(series.ReconcileTotal, "job"))
	return page{
		uid: UIDInternals, title: "Bellwether / Controller internals", from: "now-3h",
		description: "Reconcilers, queues and API requests of the hub, the agents and the operators that are " +
			"scraped. Come here when something is slow, and choose its job.",
		variables: append([]dashboard.VariableModel{job, clusters()}, operators()...),
		rows: []row{
			{"Reconcilers", reconcilers()},
			{"Queues", queues()},
			{"API requests and processes", processes()},
			{"Controllers of operators", operatorControllers()},
		},
	}
}

// byJob matches the variable of this page.
const byJob = `job=~"$job"`

func reconcilers() []panel {
	each := func(metric string) string {
		return "sum by (job, controller) (" + rated(of(metric, byJob)) + ")"
	}
	return []panel{
		{
			title: "Reconciles", draw: timeSeries, width: 12, height: 8, unit: units.OpsPerSecond,
			none: "nothing scraped", minimum: zero(),
			description: "Reconciles each second. A rate that never falls means that something is reconciled in a " +
				"loop: its " +
				"log names the object.",
			queries: []query{{each(series.ReconcileTotal), "{{job}} {{controller}}"}},
		},
		{
			title: "Failed reconciles", draw: timeSeries, width: 12, height: 8, unit: units.PercentUnit,
			none: "nothing scraped", minimum: zero(), levels: []level{{good, 0}, {warn, 0.05}, {bad, 0.1}},
			description: "The share of reconciles that returned an error and are tried again. A few are normal after " +
				"a restart; if they stay, the controller's log has the errors.",
			queries: []query{{each(series.ReconcileErrorsTotal) + "\n/\n" + each(series.ReconcileTotal),
				"{{job}} {{controller}}"}},
		},
		{
			title: "Time of the slowest reconciles", draw: timeSeries, width: 12, height: 8, unit: units.Seconds,
			none: "nothing scraped", minimum: zero(),
			description: "What the slowest hundredth of the reconciles take. Seconds mean that a reconcile waits for " +
				"something: usually an API server or a registry.",
			queries: []query{{"histogram_quantile(0.99, sum by (job, controller, le) (" +
				rated(of(series.ReconcileTimeBucket, byJob)) + "))", "{{job}} {{controller}}"}},
		},
		{
			title: "Panics", draw: timeSeries, width: 6, height: 8, unit: units.Short, none: "nothing scraped",
			minimum: zero(), levels: anyIsBad(), decimals: zero(),
			description: "How many reconciles panicked within 15 minutes. Each one is a bug: report it with the " +
				"stack trace of the log.",
			queries: []query{{"round(sum by (job, controller) (" +
				increased(of(series.ReconcilePanicsTotal, byJob)) + "))", "{{job}} {{controller}}"}},
		},
		{
			title: "Admissions", draw: timeSeries, width: 6, height: 8, unit: units.Short, none: hubSilent,
			minimum: zero(),
			description: "Clusters that the hub admitted to a release within ten minutes. None during a rollout " +
				"means that its wave soaks or waits: see the rollout.",
			queries: []query{{"sum(increase(" + of(series.RolloutAdmissionsTotal, byJob) + "[10m]))", "admitted"}},
			link:    to(UIDRollout),
		},
	}
}

func queues() []panel {
	return []panel{
		{
			title: "Depth", draw: timeSeries, width: 8, height: 8, unit: units.Short, none: "nothing scraped",
			minimum: zero(),
			description: "Objects that wait for their reconcile. A queue that only grows has too few workers or too " +
				"slow ones: raise --max-concurrent-reconciles of the hub if the API server can take it.",
			queries: []query{{"max by (job, name) (" + of(series.QueueDepth, byJob) + ")", "{{job}} {{name}}"}},
		},
		{
			title: "Time in the queue", draw: timeSeries, width: 8, height: 8, unit: units.Seconds,
			none: "nothing scraped", minimum: zero(),
			description: "How long the slowest hundredth waited before its reconcile began. This is by how much " +
				"everything comes late.",
			queries: []query{{"histogram_quantile(0.99, sum by (job, name, le) (" +
				rated(of("workqueue_queue_duration_seconds_bucket", byJob)) + "))", "{{job}} {{name}}"}},
		},
		{
			title: "Longest running", draw: timeSeries, width: 8, height: 8, unit: units.Seconds,
			none: "nothing scraped", minimum: zero(), levels: []level{{good, 0}, {warn, 60}, {bad, 300}},
			description: "For how long the oldest reconcile has been running. Minutes mean that it hangs: take a " +
				"goroutine dump before you restart it.",
			queries: []query{{"max by (job, name) (" + of(series.QueueLongestRunning, byJob) + ")",
				"{{job}} {{name}}"}},
		},
	}
}

func processes() []panel {
	return []panel{
		{
			title: "Requests to API servers", draw: timeSeries, width: 12, height: 8, unit: units.RequestsPerSecond,
			none: "nothing scraped", minimum: zero(), stacked: true,
			description: "Requests each second, by answer. 429 is an API server that limits requests, 5xx one that " +
				"is " +
				"ill: both slow everything else on this page.",
			queries: []query{{"sum by (job, code) (" + rated(of("rest_client_requests_total", byJob)) + ")",
				"{{job}} {{code}}"}},
		},
		{
			title: "Elections without one leader", draw: timeSeries, width: 12, height: 8, unit: units.Short,
			none: "no leader election", minimum: zero(), levels: anyIsBad(), decimals: zero(),
			description: "Leader elections that do not have exactly one leader, by job. Without a leader nothing is " +
				"decided: look at the Lease and at the pods; the series of the hub come from its leader only.",
			queries: []query{{fmt.Sprintf("sum by (job) (sum by (job, cluster, namespace, name) (%s) != bool 1)",
				of(series.LeaderStatus, byJob)), "{{job}}"}},
		},
		{
			title: "Memory", draw: timeSeries, width: 8, height: 8, unit: units.BytesIEC, none: "nothing scraped",
			minimum: zero(),
			description: "Resident memory of the 10 largest processes. If it nears the limit of the pod, raise its " +
				"resources in the chart's values.",
			queries: []query{byProcess(of("process_resident_memory_bytes", byJob))},
		},
		{
			title: "CPU", draw: timeSeries, width: 8, height: 8, unit: units.Short, none: "nothing scraped",
			minimum: zero(),
			description: "Cores that the 10 busiest processes use. Compare with the reconciles above: CPU without " +
				"reconciles is work outside of them, such as probes or catalogs.",
			queries: []query{byProcess(rated(of("process_cpu_seconds_total", byJob)))},
		},
		{
			title: "Goroutines", draw: timeSeries, width: 8, height: 8, unit: units.Short, none: "nothing scraped",
			minimum: zero(),
			description: "Goroutines of the 10 processes with the most. A line that only rises is a leak: take a " +
				"goroutine dump, and report it.",
			queries: []query{byProcess(of("go_goroutines", byJob))},
		},
	}
}

// byProcess shows the 10 processes with the highest values.
func byProcess(expr string) query {
	return query{most(10, "max by (job, instance) ("+expr+")"), "{{job}} {{instance}}"}
}

func operatorControllers() []panel {
	return []panel{
		{
			title: "Failed reconciles of operators", draw: timeSeries, width: 12, height: 8, unit: units.PercentUnit,
			none: "no operator scraped", minimum: zero(), levels: []level{{good, 0}, {bad, 0.1}},
			description: "The share of failed reconciles in the namespaces of the chosen operators: the 10 worst " +
				"controllers. Above 10 % their slices are bad: their own logs say why.",
			queries: []query{{most(10, theirs("sum by (cluster, namespace, controller) ("+
				rated(ofPods(series.ReconcileErrorsTotal))+")\n/\nsum by (cluster, namespace, controller) ("+
				rated(ofPods(series.ReconcileTotal))+")")),
				"{{cluster}} {{namespace}} {{controller}}"}},
		},
		{
			title: "Failed admission requests", draw: timeSeries, width: 12, height: 8, unit: units.PercentUnit,
			none: "no webhooks", minimum: zero(), levels: []level{{good, 0}, {bad, 0.01}},
			description: "The share of requests to operators' webhooks that ended with a server error, and of those " +
				"that API servers could not make: the 10 worst of each. Above 1 % users cannot write objects of this " +
				"operator, or nobody checks them: treat it as an outage.",
			queries: []query{{most(10, theirs("sum by (cluster, namespace, webhook) ("+
				rated(ofPods(series.WebhookRequestsTotal, `code=~"5.."`))+
				")\n/\nsum by (cluster, namespace, webhook) ("+rated(ofPods(series.WebhookRequestsTotal))+")")),
				"{{cluster}} {{namespace}} {{webhook}}"},
				{most(10, notCalled()), "{{cluster}} {{name}} not called"}},
		},
	}
}

// notCalled is the share of calls that API servers could not make, of each
// webhook of the chosen operators. Their counters of failures are there once
// there was one.
func notCalled() string {
	total := "sum by (cluster, name) (" + rated(of(series.AdmissionRequestsTotal)) + ")"
	share := func(failed string) string {
		return "(sum by (cluster, name) (" + rated(failed) + ") or 0 * " + total + ")"
	}
	refused, passed := of(series.AdmissionRejectionCount, is("error_type", series.AdmissionCallingError)),
		of(series.AdmissionFailOpenCount)
	return "(" + share(refused) + "\n+ " + share(passed) + ")\n/ " + total + "\nand on (cluster, name) " +
		of(series.OperatorWebhook)
}
