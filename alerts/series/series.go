// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package series defines the names of the time series that exporters, rules and dashboards share.
// Every metric and label of operators' SLOs is defined only here. It contains only names and help
// texts, and imports nothing of the rule generator, so that an exporter does not depend on it.
package series

// Labels. Each label has a limited number of values: by the fleet, by
// the operators managed on a cluster, or by a list in this repository.
const (
	// Cluster is the FleetCluster's name.
	Cluster = "cluster"
	// Operator is the ManagedOperator's name, and OperatorNamespace its namespace on the hub. Both together
	// identify an operator: every series, rule, alert and dashboard that has one of the labels also has the other.
	Operator          = "operator"
	OperatorNamespace = "operator_namespace"
	// Namespace is the namespace that the operator runs in on its cluster.
	Namespace = "namespace"
	// SLI is a name of the table in package slo, probe:NAME, or an own SLI's name.
	SLI = "sli"
	// SLO is the name of the objective in alerts: NAMESPACE/OPERATOR/SLI.
	SLO = "slo"
	// Version is the operator's version, from its CSV.
	Version = "version"
	// RecoveredClusters is on how many clusters a version was bad before it recovered and then failed again
	// on more clusters. It distinguishes the page about the second failure from the page about the first one.
	RecoveredClusters = "recovered_clusters"
	// Release is the short hash of a release, as ShortHash returns it. Two releases of one
	// version differ in their configuration. The label exists only on series with Version.
	Release = "release"
	// CSV is the name of the operator's ClusterServiceVersion.
	CSV = "csv"
	// Tier is the long window of the burn rate that was exceeded, as in 1h.
	Tier = "tier"
	// Severity is how urgent an alert is: page or ticket. The routes of Alertmanager decide who receives it.
	Severity = "severity"
	// Scope is the subject of an alert: operator, release, cluster or fleet.
	Scope = "scope"
	// Team is the team that owns the operator's SLOs.
	Team = "team"
	// Criticality is how important an operator is, by its OperatorSLO.
	Criticality = "criticality"
	// Probe is the EndpointProbe's name.
	Probe = "probe"
	// Target is the name of one of the objects that the EndpointProbe's
	// selector matches. It is empty without a selector.
	Target = "target"
	// Vantage is where a probe ran: cluster or hub.
	Vantage = "vantage"
	// Deployment is the name of one of the operator's Deployments.
	Deployment = "deployment"
	// ConditionType is the type of an OperatorCondition's condition.
	ConditionType = "type"
	// VolumeClaim is the name of a PersistentVolumeClaim, in the series of kubelets.
	VolumeClaim = "persistentvolumeclaim"
	// Name is the name of an admission webhook, in the series of API servers.
	Name = "name"
	// Kind is the kind of the operator's custom resources.
	Kind = "kind"
	// Ready is true, false or unknown.
	Ready = "ready"
	// Outcome is how an installation or upgrade ended: succeeded or failed.
	Outcome = "outcome"
	// Reason is why custom resources are not counted: forbidden, too_many or failed.
	Reason = "reason"
	// Of is the meaning of a number of custom resources: their number, or their growth within a day.
	Of = "of"
	// RestartReason is why a container ended before it restarted: oom_killed, error
	// or other.
	RestartReason = "reason"
)

// Values of Ready.
const (
	ReadyTrue    = "true"
	ReadyFalse   = "false"
	ReadyUnknown = "unknown"
)

// Values of Outcome.
const (
	OutcomeSucceeded = "succeeded"
	OutcomeFailed    = "failed"
)

// Values of Reason.
const (
	// ReasonForbidden: the agent must not list them.
	ReasonForbidden = "forbidden"
	// ReasonTooMany: there are more than an agent counts.
	ReasonTooMany = "too_many"
	// ReasonFailed: the last attempt failed; the previous counts are kept for some time.
	ReasonFailed = "failed"
)

// Values of RestartReason.
const (
	// RestartOOM: the container needed more memory than its limit.
	RestartOOM = "oom_killed"
	// RestartError: the container ended with an exit code that is not 0.
	RestartError = "error"
	// RestartOther: the container ended without an error, or the reason is unknown.
	RestartOther = "other"
)

// Values of Severity.
const (
	Page   = "page"
	Ticket = "ticket"
	// Heartbeat is the severity of the alert that always fires.
	Heartbeat = "heartbeat"
)

// Values of Scope.
const (
	// ScopeOperator is one operator on one cluster.
	ScopeOperator = "operator"
	// ScopeRelease is a version of an operator on all clusters.
	ScopeRelease = "release"
	// ScopeCluster is a cluster with all its operators.
	ScopeCluster = "cluster"
	// ScopeFleet is the hub, the rules, or all clusters.
	ScopeFleet = "fleet"
)

// Series that an agent exports for each operator that it manages. All have the
// labels Cluster, OperatorNamespace and Operator. A series ends with its object.
const (
	// OperatorExpected is 1 for each operator that should run on a cluster: the
	// inventory. Its exporter must continue to work while the operator fails.
	OperatorExpected = "bellwether_operator_expected"
	// OperatorInfo is 1, with Namespace, CSV and Version of the installed operator,
	// and the Release that it belongs to, which is empty if it is unknown.
	OperatorInfo = "bellwether_operator_info"
	// OperatorCSVSucceeded is 1 if the installed CSV's phase is Succeeded, else 0.
	OperatorCSVSucceeded = "bellwether_operator_csv_succeeded"
	// OperatorUpgrading is 1 during the limited grace period of an admitted upgrade, else 0.
	OperatorUpgrading = "bellwether_operator_upgrading"
	// OperatorCatalogReady is 1 if the operator's CatalogSource is READY, else 0.
	OperatorCatalogReady = "bellwether_operator_catalog_ready"
	// OperatorReplicasDesired counts the desired replicas of each Deployment, from its spec.
	OperatorReplicasDesired = "bellwether_operator_deployment_replicas_desired"
	// OperatorReplicasAvailable counts available replicas by Deployment.
	OperatorReplicasAvailable = "bellwether_operator_deployment_replicas_available"
	// OperatorConditionStatus is 1 if the OperatorCondition's condition is True, else 0.
	OperatorConditionStatus = "bellwether_operator_condition"
	// OperatorWebhook is 1 for each admission webhook of the installed CSV, with
	// its Name. Rules use it to assign series of API servers to an operator.
	OperatorWebhook = "bellwether_operator_webhook"
	// OperatorOperands counts custom resources by Kind and Ready, without resources that were created recently.
	OperatorOperands = "bellwether_operator_operands"
	// OperatorOperandsUncounted is 1 for each Kind whose counts are missing or incomplete, with the Reason.
	OperatorOperandsUncounted = "bellwether_operator_operands_uncounted"
	// OperatorCustomResources counts all custom resources by Kind, including resources that were created recently.
	OperatorCustomResources = "bellwether_operator_custom_resources"
	// OperatorRestarts counts restarts of the operator's containers by RestartReason,
	// since the agent's start.
	OperatorRestarts = "bellwether_operator_container_restarts_total"
	// OperatorPodsPending counts the operator's pods that have been Pending for at
	// least five minutes.
	OperatorPodsPending = "bellwether_operator_pods_pending"
	// OperatorVolumeClaim is 1 for each VolumeClaim, with its Namespace, that a
	// Deployment of the operator uses.
	OperatorVolumeClaim = "bellwether_operator_volume_claim"
	// OperatorCertificateRotation is when OLM must renew the serving certificates of the operator's webhooks, in
	// seconds since 1970: a day before the certificates expire. It is absent for operators without such certificates.
	OperatorCertificateRotation = "bellwether_operator_certificate_rotation_timestamp_seconds"
	// OperatorInstallTotal counts finished installations and upgrades by Outcome.
	OperatorInstallTotal = "bellwether_operator_install_total"
	// OperatorInstallDuration is a histogram of their durations, in seconds.
	OperatorInstallDuration = "bellwether_operator_install_duration_seconds"
)

// Series of probes, as blackbox_exporter names them, with Cluster,
// OperatorNamespace, Operator, Probe, Target and Vantage.
const (
	ProbeSuccess            = "probe_success"
	ProbeDuration           = "probe_duration_seconds"
	ProbeInterval           = "probe_interval_seconds"
	ProbeHTTPStatusCode     = "probe_http_status_code"
	ProbeSSLEarliestExpiry  = "probe_ssl_earliest_cert_expiry"
	ProbeHTTPDuration       = "probe_http_duration_seconds"
	ProbeDNSLookupTime      = "probe_dns_lookup_time_seconds"
	ProbeIPProtocol         = "probe_ip_protocol"
	ProbeFailedDueToRegex   = "probe_failed_due_to_regex"
	ProbeFailedDueToCEL     = "probe_failed_due_to_cel"
	ProbeTLSVersionInfo     = "probe_tls_version_info"
	ProbeHTTPRedirects      = "probe_http_redirects"
	ProbeHTTPContentLength  = "probe_http_content_length"
	ProbeIPAddrHash         = "probe_ip_addr_hash"
	ProbeHTTPSSL            = "probe_http_ssl"
	ProbeHTTPVersion        = "probe_http_version"
	ProbeHTTPUncompressed   = "probe_http_uncompressed_body_length"
	ProbeSSLChainExpiry     = "probe_ssl_last_chain_expiry_timestamp_seconds"
	ProbeSSLChainInfo       = "probe_ssl_last_chain_info"
	ProbeGRPCStatusCode     = "probe_grpc_status_code"
	ProbeGRPCHealthResponse = "probe_grpc_healthcheck_response"
)

// Series of the operators themselves, from controller-runtime and client-go. They are scraped with Cluster and
// Namespace. If they also have OperatorNamespace and Operator, as from the PodMonitors of agents, they belong to that
// operator if OperatorInfo lists it in that namespace. Otherwise they belong to the only operator of the namespace.
const (
	ReconcileTotal       = "controller_runtime_reconcile_total"
	ReconcileErrorsTotal = "controller_runtime_reconcile_errors_total"
	ReconcilePanicsTotal = "controller_runtime_reconcile_panics_total"
	// ReconcileTime is the native histogram. The next two series belong to the classic histogram.
	ReconcileTime        = "controller_runtime_reconcile_time_seconds"
	ReconcileTimeBucket  = "controller_runtime_reconcile_time_seconds_bucket"
	ReconcileTimeCount   = "controller_runtime_reconcile_time_seconds_count"
	QueueLongestRunning  = "workqueue_longest_running_processor_seconds"
	QueueDepth           = "workqueue_depth"
	LeaderStatus         = "leader_election_master_status"
	WebhookRequestsTotal = "controller_runtime_webhook_requests_total"
)

// Series of kubelets. They are scraped with Cluster. Rules join them with the
// operators' Deployments by the names of pods, and with OperatorVolumeClaim.
const (
	ContainerMemory      = "container_memory_working_set_bytes"
	ContainerMemoryLimit = "container_spec_memory_limit_bytes"
	ContainerThrottled   = "container_cpu_cfs_throttled_periods_total"
	ContainerPeriods     = "container_cpu_cfs_periods_total"
	VolumeAvailable      = "kubelet_volume_stats_available_bytes"
	VolumeCapacity       = "kubelet_volume_stats_capacity_bytes"
)

// Series of API servers about their calls to admission webhooks. They are scraped with Cluster, and rules
// join them with OperatorWebhook by Name. The two counters of failures are absent before the first failure.
const (
	AdmissionRequestsTotal = "apiserver_admission_webhook_request_total"
	// AdmissionRejectionCount counts refused requests by error_type, which is
	// AdmissionCallingError if the request failed because the webhook could not be called.
	AdmissionRejectionCount = "apiserver_admission_webhook_rejection_count"
	// AdmissionFailOpenCount counts requests that were accepted because
	// of the failure policy although the webhook could not be called.
	AdmissionFailOpenCount = "apiserver_admission_webhook_fail_open_count"
	AdmissionCallingError  = "calling_webhook_error"
)

// Series that the rules record.
const (
	// SLIBad is 1 if the operator was bad in this slice, else 0, for each cluster, operator and SLI.
	// For an operator's own SLIs it may be the share of bad requests. A slice is one evaluation: 60 s.
	SLIBad = "bellwether:sli_bad:bool"
	// SLIBadSlice has only the samples of SLIBad that are not 0, so that the cost of a sum over a window depends
	// on the number of bad slices. If the budget counts requests, it is the number of bad requests; sums convert
	// it to slices again. Slices of an SLI that is bad because of the same failure as another SLI are left out.
	SLIBadSlice = "bellwether:sli_bad:slice"
	// SLIRequests is the number of requests of a slice, for own SLIs whose budgets count requests.
	SLIRequests = "bellwether:sli_requests:count"
	// SLIRequestsSum is the prefix of the names of sums of SLIRequests over a window, as SLIBadVersionSum.
	SLIRequestsSum = "bellwether:sli_requests:sum"
	// SLIBadVersion is SLIBadSlice with the Version and Release that ran. Releases are
	// judged by it. Budgets do not use it, so they are not affected by an upgrade.
	SLIBadVersion = "bellwether:sli_bad_version:slice"
	// SLIBadConfirmed is, for each sample of SLIBadVersion of an SLI that reads gauges of
	// the agent, 1 if the two newest scrapes were bad, and 0 if only the newest one was bad.
	SLIBadConfirmed = "bellwether:sli_bad_confirmed:slice"
	// OperatorAlone is 1 for each operator that is the only one in a Namespace of a
	// cluster. Series that are scraped in the namespace and name no operator belong to it.
	OperatorAlone = "bellwether:operator_alone:bool"
	// SlicesRecorded is when slices of a cluster were made, with their Schema.
	SlicesRecorded = "bellwether:slices_recorded:timestamp"
	// SliceLag is the age of the newest slices of a cluster, in seconds.
	SliceLag = "bellwether:slices_recorded:age"
	// ClusterLate is 1 for each cluster whose slices arrive, but late.
	ClusterLate = "bellwether:cluster:late"
	// SLIBadVersionSum is the prefix of the names of sums of SLIBadVersion over a window, by cluster, operator, SLI
	// and Version. The window follows, as in bellwether:sli_bad_version:sum1h. There is no series if nothing was bad.
	SLIBadVersionSum = "bellwether:sli_bad_version:sum"
	// SLIBadVersionClusters counts the clusters that are bad now, by operator, SLI and Version. A cluster
	// is bad with at least two bad slices in the last 5 minutes, or with one confirmed slice. If most
	// clusters of the version are bad and the failure is too new for three slices, one bad slice is enough.
	SLIBadVersionClusters = "bellwether:sli_bad_version:clusters"
	// SLIBadCluster has the samples of SLIBadSlice, but 0 for slices that belong to the alert about a release
	// or about the whole cluster. Alerts about a single operator on a single cluster are computed from it.
	SLIBadCluster = "bellwether:sli_bad_cluster:slice"
	// SLIBadClusterSum is the prefix of the names of sums of SLIBadCluster over a window.
	SLIBadClusterSum = "bellwether:sli_bad_cluster:sum"
	// SLIBadCritical has the bad slices of 15 s of critical operators, for SLIs that read only gauges.
	SLIBadCritical = "bellwether:sli_bad_critical:slice"
	// SLIBadCriticalSum is the prefix of the names of sums of SLIBadCritical over a window.
	SLIBadCriticalSum = "bellwether:sli_bad_critical:sum"
	// SLIBadCriticalVersion is the sum over the last 75 s, with the Version that runs.
	SLIBadCriticalVersion = "bellwether:sli_bad_critical:version"
	// OperatorBadNow is 1 for each operator with a bad slice of 15 s, on clusters where a critical operator has one.
	OperatorBadNow = "bellwether:operator_bad_now:bool"
	// AgentScrapeSlices is how many slices of 15 s read the same sample
	// of a critical operator, for operators that were bad recently.
	AgentScrapeSlices = "bellwether:agent_scrape:slices"
	// ClusterBadNow counts the operators of a cluster that are bad now, by slices of 15 s or 60 s,
	// if a critical operator is bad. ReleaseBadNow counts the clusters of a Version in the same way.
	ClusterBadNow = "bellwether:cluster_bad_now:operators"
	ReleaseBadNow = "bellwether:release_bad_now:clusters"
	// SLOGuardCritical is SLOGuard for slices of 15 s.
	SLOGuardCritical = "bellwether:slo_guard_critical:slices"
	// SLIExpected is 1 for each cluster, operator and SLI that must have slices.
	SLIExpected = "bellwether:sli_expected:bool"
	// SLOObjective is the target of each operator and SLI, between 0 and 1.
	SLOObjective = "bellwether:slo_objective:ratio"
	// SLOPeriod is the budget period of each operator and SLI, in seconds.
	SLOPeriod = "bellwether:slo_period:seconds"
	// SLOGuard is the minimum number of bad slices in a tier's long
	// window, unless one slice is confirmed (only for the fastest tier).
	SLOGuard = "bellwether:slo_guard:slices"
	// SLOMinRequests is the minimum number of requests in a tier's
	// long window, for objectives whose budgets count requests.
	SLOMinRequests = "bellwether:slo_min_requests:count"
	// SLOTeam is 1 for each operator, with its Team and its Criticality.
	SLOTeam = "bellwether:slo_team:info"
	// SLOEdited is 1 while an objective or a period differs from a day ago. It explains a sudden change of a budget.
	SLOEdited = "bellwether:slo_edited:bool"
	// SLOBurn is the burn rate over a Tier's long window of each cluster, operator and SLI by SLIBadCluster,
	// while both windows are above the tier's threshold. It stays while the cluster is silent.
	SLOBurn = "bellwether:slo_burn:ratio"
	// SLOVersionBurn is the burn rate by SLIBadVersion, with the Version.
	SLOVersionBurn = "bellwether:slo_version_burn:ratio"
	// SLOReleaseBurn is the burn rate of the worst cluster for each
	// operator, SLI, Version and Severity, while the release is blamed.
	SLOReleaseBurn = "bellwether:slo_release_burn:ratio"
	// SLOReleasePage has the samples of SLOReleaseBurn for which there is a page,
	// and the last sample while the page is held because the burn rate recurs.
	SLOReleasePage = "bellwether:slo_release_page:ratio"
	// ReleaseRecovered is the maximum number of clusters on which a
	// version was bad before it recovered, while there is a page about it.
	ReleaseRecovered = "bellwether:release_recovered:clusters"
	// ReleaseRegrown is 1 for a version that recovered on RecoveredClusters
	// and then failed again on more clusters, while there is a page about it.
	ReleaseRegrown = "bellwether:release_regrown:bool"
	// SLOClusterBurn counts the operators that are bad on a
	// cluster, while there are enough of them to blame the cluster.
	SLOClusterBurn = "bellwether:slo_cluster_burn:operators"
	// ReleaseBlame is how many clusters must be bad at the same time before their Version is blamed.
	ReleaseBlame = "bellwether:release_blame:clusters"
	// ClusterMeasured is 1 for each cluster with recorded slices.
	ClusterMeasured = "bellwether:cluster:measured"
	// ClusterSilent is 1 for each cluster of the fleet without any slice.
	ClusterSilent = "bellwether:cluster:silent"
	// ClusterLost is 1 for each cluster on which operators are expected and that has had no slice for 10 minutes.
	ClusterLost = "bellwether:cluster:lost"
	// ClusterExpected counts the operators that are expected on a cluster.
	ClusterExpected = "bellwether:cluster:expected"
	// CustomResourcesLimit is how many custom resources of a Kind an operator may have
	// on a cluster, and CustomResourcesGrowthLimit how many may be added within a day.
	CustomResourcesLimit       = "bellwether:custom_resources:limit"
	CustomResourcesGrowthLimit = "bellwether:custom_resources_growth:limit"
	// CustomResourcesExcess is the number of custom resources of a Kind, or their
	// growth within a day, while it is above its limit. The label Of tells which.
	CustomResourcesExcess = "bellwether:custom_resources:excess"
	// RecentRestarts are the restarts of the last 10 minutes by RestartReason. It is absent without restarts.
	RecentRestarts = "bellwether:container_restarts:recent"
	// RulesEvaluated is when slices, burn rates and alerts were evaluated.
	RulesEvaluated = "bellwether:rules_evaluated:timestamp"
	// SLOBudgetLeft is the remaining part of the period's budget: 1 is
	// the whole budget, 0 is nothing, and a negative value is overspent.
	SLOBudgetLeft = "bellwether:slo_budget_left:ratio"
	// SlicesMissing is the part of an hour's slices of a Cluster that never arrived, if any
	// are missing. The hour ended so long ago that none of its slices can still arrive.
	SlicesMissing = "bellwether:slices_missing:ratio"
	// SLIBadExcluded has the samples of SLIBadSlice in time that an AlertSilence excludes from error budgets.
	SLIBadExcluded = "bellwether:sli_bad_excluded:slice"
	// SLOBudgetExcluding is the remaining budget as if the slices of SLIBadExcluded were good.
	// It is absent if the period has no such slices; then SLOBudgetLeft has the same value.
	SLOBudgetExcluding = "bellwether:slo_budget_excluding:ratio"
	// SLIBadBlamed has the samples of SLIBadSlice for which a release
	// or the whole cluster is blamed: SLIBadCluster is then 0.
	SLIBadBlamed = "bellwether:sli_bad_blamed:slice"
	// SLOBudgetCluster is the remaining budget as if the slices of SLIBadBlamed
	// were good, if at least three other slices are bad and at most 5 % is left.
	SLOBudgetCluster = "bellwether:slo_budget_cluster:ratio"
)

// Series describes one metric.
type Series struct {
	Name string
	// Type is gauge, counter or histogram.
	Type string
	// Labels are the variable labels, in the order in which exporters give values.
	Labels []string
	Help   string
}

// OfOperator returns the labels of a series about an operator:
// the labels that identify the operator, and further labels.
func OfOperator(further ...string) []string {
	return append([]string{OperatorNamespace, Operator}, further...)
}

// shortHash is the number of characters of a release's hash in the label
// Release: 48 bits, which are unique for the releases of an operator.
const shortHash = 12

// ShortHash returns the value of the label Release for a release's hash.
func ShortHash(hash string) string { return hash[:min(len(hash), shortHash)] }

// Exported returns the series that an agent exports about its operators, which also have Cluster.
func Exported() []Series {
	return []Series{
		{OperatorExpected, "gauge", OfOperator(), "1 for each operator that should run on the cluster."},
		{OperatorInfo, "gauge", OfOperator(Namespace, CSV, Version, Release),
			"1, with what is installed of the operator, and the hash of its release."},
		{OperatorCSVSucceeded, "gauge", OfOperator(),
			"Whether the installed ClusterServiceVersion is Succeeded."},
		{OperatorUpgrading, "gauge", OfOperator(),
			"Whether the operator is within the bounded grace of an admitted upgrade."},
		{OperatorCatalogReady, "gauge", OfOperator(), "Whether the operator's CatalogSource is ready."},
		{OperatorReplicasDesired, "gauge", OfOperator(Deployment),
			"Replicas that a Deployment of the operator asks for."},
		{OperatorReplicasAvailable, "gauge", OfOperator(Deployment),
			"Available replicas of a Deployment of the operator."},
		{OperatorConditionStatus, "gauge", OfOperator(ConditionType),
			"Whether a condition of the operator's OperatorCondition is True."},
		{OperatorWebhook, "gauge", OfOperator(Name),
			"1 for each admission webhook of the installed ClusterServiceVersion."},
		{OperatorOperands, "gauge", OfOperator(Kind, Ready),
			"Custom resources of the operator by readiness; young ones are left out."},
		{OperatorOperandsUncounted, "gauge", OfOperator(Kind, Reason),
			"1 for each kind of custom resources whose counts are missing or not of all."},
		{OperatorCustomResources, "gauge", OfOperator(Kind),
			"Custom resources of the operator, young ones included."},
		{OperatorRestarts, "counter", OfOperator(RestartReason),
			"Restarts of the operator's containers since the agent's start."},
		{OperatorPodsPending, "gauge", OfOperator(),
			"Pods of the operator that have been Pending for at least five minutes."},
		{OperatorVolumeClaim, "gauge", OfOperator(Namespace, VolumeClaim),
			"1 for each PersistentVolumeClaim that a Deployment of the operator uses."},
		{OperatorCertificateRotation, "gauge", OfOperator(),
			"When OLM must renew the certificates of the operator's webhooks, a day before they expire."},
		{OperatorInstallTotal, "counter", OfOperator(Outcome),
			"Finished installations and upgrades by outcome."},
		{OperatorInstallDuration, "histogram", OfOperator(Outcome),
			"How long installations and upgrades took, in seconds."},
	}
}

// Recorded returns the series that the rules record, with all
// their labels. Names of sums do not include their window.
func Recorded() []Series {
	labelSLO := func(further ...string) []string { return append(OfOperator(SLI), further...) }
	labelCluster := func(further ...string) []string { return append([]string{Cluster}, labelSLO(further...)...) }
	return append([]Series{
		{SLIBad, "gauge", labelCluster(), "Whether a slice of 60 s was bad."},
		{SLIBadSlice, "gauge", labelCluster(), "Bad slices only; bad requests, where the budget counts requests."},
		{SLIRequests, "gauge", labelCluster(), "Requests of a slice, where the budget counts requests."},
		{SLIRequestsSum, "gauge", labelCluster(), "Requests of a window, where the budget counts requests."},
		{SLIBadVersion, "gauge", labelCluster(Version, Release), "Bad slices by the version and release that ran."},
		{SLIBadConfirmed, "gauge", labelCluster(Version, Release),
			"Whether the two newest scrapes of a bad slice were."},
		{OperatorAlone, "gauge", append([]string{Cluster}, OfOperator(Namespace)...),
			"1 for each operator that is the only one in a namespace of a cluster."},
		{SlicesRecorded, "gauge", []string{Cluster, Schema},
			"When slices of a cluster were made, with the version of their schema."},
		{SliceLag, "gauge", []string{Cluster}, "How old the newest slices of a cluster are, in seconds."},
		{ClusterLate, "gauge", []string{Cluster}, "1 for each cluster whose slices arrive, but late."},
		{SLIBadVersionSum, "gauge", labelCluster(Version), "Bad slices of a window, by version."},
		{SLIBadVersionClusters, "gauge", labelSLO(Version), "Clusters that are bad now, by version."},
		{SLIBadCluster, "gauge", labelCluster(),
			"Bad slices, as 0 where the alert about a release or about the whole cluster covers them."},
		{SLIBadClusterSum, "gauge", labelCluster(), "Bad slices of a window that no other alert covers."},
		{SLIExpected, "gauge", labelCluster(), "1 for each SLI that must have slices."},
		{SLOObjective, "gauge", labelSLO(), "The target, between 0 and 1."},
		{SLOPeriod, "gauge", labelSLO(), "The budget period, in seconds."},
		{SLOGuard, "gauge", labelSLO(), "Fewer bad slices than this never alert, unless one is confirmed."},
		{SLOMinRequests, "gauge", labelSLO(),
			"Fewer requests than this never alert, where the budget counts requests."},
		{SLOTeam, "gauge", OfOperator(Team, Criticality),
			"1, with who owns the operator's SLOs, and how important the operator is."},
		{SLOEdited, "gauge", labelSLO(), "1 while an objective is not what it was a day ago."},
		{SLOBurn, "gauge", labelCluster(Tier), "The burn rate of a tier, while it is exceeded."},
		{SLOVersionBurn, "gauge", labelCluster(Version, Tier),
			"The same by version, also of slices that others cover."},
		{SLOReleaseBurn, "gauge", labelSLO(Version, Severity),
			"The burn rate of the worst cluster of a release, while the release is to blame."},
		{SLOReleasePage, "gauge", labelSLO(Version),
			"The burn rate of a release that pages, also while the page is held."},
		{ReleaseRecovered, "gauge", OfOperator(Version),
			"Clusters on which a version was bad before it recovered, while there is a page about it."},
		{ReleaseRegrown, "gauge", OfOperator(Version, RecoveredClusters),
			"1 for a version that recovered and then failed on more clusters, while there is a page about it."},
		{SLOClusterBurn, "gauge", []string{Cluster},
			"Operators that are bad on a cluster, while the cluster is to blame."},
		{ReleaseBlame, "gauge", OfOperator(Version),
			"Clusters that must be bad at the same time for their version to be blamed."},
		{ClusterMeasured, "gauge", []string{Cluster}, "1 for each cluster that slices were recorded of."},
		{ClusterSilent, "gauge", []string{Cluster}, "1 for each cluster without slices."},
		{ClusterLost, "gauge", []string{Cluster}, "1 for each cluster that nothing is known of."},
		{ClusterExpected, "gauge", []string{Cluster}, "Operators that are expected on a cluster."},
		{CustomResourcesLimit, "gauge", append([]string{Cluster}, OfOperator(Kind)...),
			"Custom resources that an operator may have on a cluster."},
		{CustomResourcesGrowthLimit, "gauge", append([]string{Cluster}, OfOperator(Kind)...),
			"Custom resources that may be added on a cluster within a day."},
		{CustomResourcesExcess, "gauge", append([]string{Cluster}, OfOperator(Kind, Of)...),
			"Custom resources, or their growth within a day, above a limit."},
		{RecentRestarts, "gauge", append([]string{Cluster}, OfOperator(RestartReason)...),
			"Restarts of the last 10 minutes, where there were some."},
		{RulesEvaluated, "gauge", nil, "When slices, burn rates and alerts were evaluated."},
	}, append(listBudgets(), listCritical()...)...)
}

// listBudgets returns the series about error budgets.
func listBudgets() []Series {
	labelCluster := func() []string { return append([]string{Cluster}, OfOperator(SLI)...) }
	return []Series{
		{SLOBudgetLeft, "gauge", labelCluster(), "The part of the error budget that is left."},
		{SlicesMissing, "gauge", []string{Cluster},
			"The part of an hour's slices that never arrived, where some are missing, two hours after that hour."},
		{SLIBadExcluded, "gauge", labelCluster(), "Bad slices in time that a silence excludes from error budgets."},
		{SLOBudgetExcluding, "gauge", labelCluster(),
			"The part that would be left without excluded time, where there is some."},
		{SLIBadBlamed, "gauge", labelCluster(), "Bad slices that a release or the whole cluster is blamed for."},
		{SLOBudgetCluster, "gauge", labelCluster(),
			"The part that failures left for which no release and no cluster was blamed, up to 0.05."},
	}
}

// listCritical returns the series that are recorded only if there is a critical operator.
func listCritical() []Series {
	labelSLO := func(further ...string) []string { return append(OfOperator(SLI), further...) }
	labelCluster := func(further ...string) []string { return append([]string{Cluster}, labelSLO(further...)...) }
	return []Series{
		{SLIBadCritical, "gauge", labelCluster(), "Bad slices of 15 s of critical operators."},
		{SLIBadCriticalSum, "gauge", labelCluster(), "Bad slices of 15 s of a window."},
		{SLIBadCriticalVersion, "gauge", labelCluster(Version), "Bad slices of 15 s of the last 75 s, by version."},
		{OperatorBadNow, "gauge", append([]string{Cluster}, OfOperator()...),
			"1 for each operator with a bad slice of 15 s, where a critical one has one."},
		{AgentScrapeSlices, "gauge", append([]string{Cluster}, OfOperator()...),
			"Slices of 15 s that one sample of a critical operator is looked at in, where it was bad lately."},
		{ClusterBadNow, "gauge", []string{Cluster},
			"Operators of a cluster that are bad now, where a critical one is."},
		{ReleaseBadNow, "gauge", labelSLO(Version),
			"Clusters of a version that are bad now, by slices of 15 s or 60 s."},
		{SLOGuardCritical, "gauge", labelSLO(), "Fewer bad slices of 15 s than this never alert."},
	}
}
