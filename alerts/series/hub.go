// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series

import "slices"

// Labels of the hub's series, in addition to the labels of operators. A series about a
// catalog has the OperatorCatalog's Namespace, so it must be scraped with honor_labels.
const (
	// State is one of a few words, which the comment of each series lists.
	State = "state"
	// Phase is a RolloutPhase or a WavePhase.
	Phase = "phase"
	// Wave is the name of a rollout's wave.
	Wave = "wave"
	// Gate is the name of a gate of a Wave.
	Gate = "gate"
	// Rollout is the OperatorRollout's name.
	Rollout = "rollout"
	// From is the version that a rollout changes clusters from.
	From = "from"
	// ApprovedBy is the name of the user who approved a wave of a rollout last.
	ApprovedBy = "approved_by"
	// Catalog is the OperatorCatalog's name.
	Catalog = "catalog"
	// Policy is the PagingPolicy's name.
	Policy = "policy"
	// Digest is the digest of a catalog, with its algorithm.
	Digest = "digest"
	// Package is the name of a package in a catalog.
	Package = "package"
	// HoldReason is why clusters are not admitted now, such as WindowClosed.
	HoldReason = "reason"
	// Silence is the name of an AlertSilence in a Namespace, and Owner is its owner. Cause is why
	// the hub created it: upgrade, veto, removal or hibernation; empty if a person created it.
	Silence = "silence"
	Owner   = "owner"
	Cause   = "cause"
	// Agent, Kubernetes and OLM are versions.
	Agent      = "agent"
	Kubernetes = "kubernetes"
	OLM        = "olm"
)

// Values of the label Kind of RolloutChangeStart. The values for rollbacks end with the same word.
const (
	KindRollout = "rollout"
	// KindRollback is a rollback by a person, and KindAutomaticRollback
	// by the failure policy of the rollout that is rolled back.
	KindRollback          = "rollback"
	KindAutomaticRollback = "automatic rollback"
)

// SeveralVersions is the label From of a rollout whose clusters ran
// several versions, none of them on more than half of the clusters.
const SeveralVersions = "several versions"

// Series that the hub exports. Only the leader exports them.
const (
	// FleetClusters counts clusters by State: online, offline, hibernating, never_joined, revoked.
	FleetClusters = "bellwether_fleet_clusters"
	// ClusterOnline is 1 if a Cluster's agent is alive, else 0. It
	// is absent for a cluster that is silent because it hibernates.
	ClusterOnline = "bellwether_fleet_cluster_online"
	// ClusterHeartbeat is when a Cluster's agent last renewed its Lease,
	// by the agent's clock. It is absent for a cluster that never joined.
	ClusterHeartbeat = "bellwether_fleet_cluster_heartbeat_timestamp_seconds"
	// ClusterInfo is 1 for each Cluster, with the versions of its Agent, Kubernetes and OLM.
	ClusterInfo = "bellwether_fleet_cluster_info"
	// ClusterInstalls counts a Cluster's OperatorInstalls by State: ready, not_ready.
	ClusterInstalls = "bellwether_fleet_cluster_installs"

	// ClusterFrozenSince is since when a FleetFreeze stops changes
	// on a Cluster. It is absent for a cluster that is not frozen.
	ClusterFrozenSince = "bellwether_fleet_cluster_frozen_since_timestamp_seconds"
	// ClusterVetoEnd is when the owner of a Cluster plans to end the current veto.
	// It is absent for a cluster without a veto, or with a veto without an end.
	ClusterVetoEnd = "bellwether_fleet_cluster_veto_end_timestamp_seconds"

	// SilenceEnd is when a Silence that is in force ends.
	SilenceEnd = "bellwether_alert_silence_end_timestamp_seconds"
	// SilenceHiddenPages counts the firing alerts with the severity page that a Silence
	// hides, by Operator, or by Cluster if they are about a cluster; the other labels
	// are then empty. Alerts that an upgrade causes in its usual time are not counted.
	SilenceHiddenPages = "bellwether_alert_silence_hidden_pages"

	// BudgetExcluded is 1 while a Silence excludes time in which an Operator is
	// bad on a Cluster from its error budgets, with the Owner and the beginning of
	// the Reason. If the Cluster is empty, it is about SLIs that have no cluster.
	BudgetExcluded = "bellwether_slo_budget_excluded"

	// OperatorClusters counts the selected clusters of an Operator by State: selected, updated, ready, offline.
	OperatorClusters = "bellwether_operator_clusters"
	// OperatorVersionClusters counts the clusters that run a Version.
	OperatorVersionClusters = "bellwether_operator_version_clusters"
	// OperatorReady is 1 while a ManagedOperator is Ready, else 0.
	OperatorReady = "bellwether_operator_ready"

	// SLORulesLoaded is 1 if Prometheus evaluates the newest rules of an Operator's
	// objectives, else 0. It is absent if the hub has no Prometheus to query.
	SLORulesLoaded = "bellwether_slo_rules_loaded"
	// SLOFeasible is 1 if all objectives of an Operator can work, else 0.
	SLOFeasible = "bellwether_slo_feasible"

	// RolloutAdmissionsTotal counts admissions that were written.
	RolloutAdmissionsTotal = "bellwether_rollout_admissions_total"
	// RolloutPhase is 1 for the Phase of an Operator's newest rollout.
	RolloutPhase = "bellwether_rollout_phase"
	// RolloutHeld counts the clusters of an Operator's newest rollout that are
	// not admitted now, by HoldReason. A reason without clusters has no series.
	RolloutHeld = "bellwether_rollout_held_clusters"
	// RolloutClusters counts the clusters of an Operator's newest rollout
	// by State: pending, in_progress, succeeded, failed, deferred, removed.
	RolloutClusters = "bellwether_rollout_clusters"
	// RolloutInfo is 1 for an Operator's newest Rollout, with the Version and the Release that it installs.
	RolloutInfo = "bellwether_rollout_info"
	// RolloutStart and RolloutEnd are when the newest rollout started and ended. Each is absent until that time.
	RolloutStart = "bellwether_rollout_start_timestamp_seconds"
	RolloutEnd   = "bellwether_rollout_end_timestamp_seconds"
	// RolloutChangeStart is when an Operator's newest Rollout of each Version started. Its
	// labels describe the change: its Kind, the version From which most of its clusters came,
	// the current Wave, and who approved a wave last (ApprovedBy). They are empty if they are
	// unknown. The rollout is the newest of all if RolloutInfo has the same Rollout.
	RolloutChangeStart = "bellwether_rollout_change_start_timestamp_seconds"
	// RolloutWavePhase is 1 for the Phase of each Wave of the newest rollout.
	RolloutWavePhase = "bellwether_rollout_wave_phase"
	// RolloutWaveClusters counts the clusters of each Wave, by State as in RolloutClusters.
	RolloutWaveClusters = "bellwether_rollout_wave_clusters"
	// RolloutWaveFailed is 1 for each Wave that was judged failed, of an Operator's
	// newest rollout of each Version, with the Release that it installs. It stays
	// while the rollout is rolled back, until the version is rolled out again.
	RolloutWaveFailed = "bellwether_rollout_wave_failed"
	// RolloutWaveStart is when the first cluster of a Wave was admitted, and
	// RolloutWaveVerified when the next wave could start. Each is absent until that time.
	RolloutWaveStart    = "bellwether_rollout_wave_start_timestamp_seconds"
	RolloutWaveVerified = "bellwether_rollout_wave_verified_timestamp_seconds"
	// RolloutGateWaiting is since when a Gate without a verdict is the only reason that
	// blocks a Wave: an approval that was not given, or a measurement without data.
	RolloutGateWaiting = "bellwether_rollout_gate_waiting_since_timestamp_seconds"

	// CatalogReady is 1 while the current content of the source is in use, else 0.
	CatalogReady = "bellwether_catalog_ready"
	// CatalogInfo is 1 for each Catalog, with the Digest in use.
	CatalogInfo = "bellwether_catalog_info"
	// CatalogRead is when the Digest in use was first read.
	CatalogRead = "bellwether_catalog_read_timestamp_seconds"
	// CatalogPackages counts the packages of a Catalog.
	CatalogPackages = "bellwether_catalog_packages"
	// CatalogBlocked counts the clusters that run a blocked Version. A version that no cluster runs has no series.
	CatalogBlocked = "bellwether_catalog_blocked_version_clusters"

	// PagingPolicyReady is 1 while the newest form of a PagingPolicy is in force, else 0.
	PagingPolicyReady = "bellwether_paging_policy_ready"
	// PagingSelfTestPassed is 1 if each notification of the last self-test of a PagingPolicy was accepted, else
	// 0. PagingSelfTestTime is when the self-test ended. Both are absent for a policy that was not tested.
	PagingSelfTestPassed = "bellwether_paging_self_test_passed"
	PagingSelfTestTime   = "bellwether_paging_self_test_timestamp_seconds"
	// RolloutChangeEvents counts the change events of an Operator's
	// rollouts, by the State of the event, while the rollouts exist.
	RolloutChangeEvents = "bellwether_rollout_change_events"
)

// Hub returns the series that the hub exports, with all their labels.
func Hub() []Series {
	addCatalogLabels := func(labels ...string) []string { return append([]string{Namespace, Catalog}, labels...) }
	return slices.Concat(listFleet(), listRollouts(), []Series{
		{CatalogReady, "gauge", addCatalogLabels(), "Whether what a catalog's source has now is what is in use."},
		{CatalogInfo, "gauge", addCatalogLabels(Digest), "1, with the digest of a catalog that is in use."},
		{CatalogRead, "gauge", addCatalogLabels(), "When the digest in use of a catalog was first read."},
		{CatalogPackages, "gauge", addCatalogLabels(), "Packages of a catalog."},
		{CatalogBlocked, "gauge", addCatalogLabels(Package, Version),
			"Clusters that run a blocked version; at most 100 versions of a catalog."},
		{PagingPolicyReady, "gauge", []string{Namespace, Policy}, "Whether a PagingPolicy as it is now is in force."},
		{PagingSelfTestPassed, "gauge", []string{Namespace, Policy},
			"Whether each notification of the last self-test of a PagingPolicy was accepted."},
		{PagingSelfTestTime, "gauge", []string{Namespace, Policy}, "When the last self-test of a PagingPolicy ended."},
		{RolloutChangeEvents, "gauge", OfOperator(State),
			"Change events of an operator's rollouts for PagerDuty, by what became of them."},
	})
}

// listFleet returns the series about clusters, silences and operators.
func listFleet() []Series {
	return []Series{
		{FleetClusters, "gauge", []string{State}, "Clusters of the fleet by state of their agent."},
		{ClusterOnline, "gauge", []string{Cluster}, "Whether a cluster's agent is alive."},
		{ClusterHeartbeat, "gauge", []string{Cluster},
			"When a cluster's agent renewed its Lease the last time, by its own clock."},
		{ClusterInfo, "gauge", []string{Cluster, Agent, Kubernetes, OLM},
			"1, with the versions that a cluster's agent reports."},
		{ClusterInstalls, "gauge", []string{Cluster, State}, "OperatorInstalls of a cluster by readiness."},
		{ClusterFrozenSince, "gauge", []string{Cluster},
			"Since when a FleetFreeze stops changes on a cluster."},
		{ClusterVetoEnd, "gauge", []string{Cluster},
			"When the owner of a cluster means to end the veto that is in force there."},
		{SilenceEnd, "gauge", []string{Namespace, Silence, Owner, Cause}, "When a silence ends that is in force."},
		{SilenceHiddenPages, "gauge", OfOperator(Cluster, Namespace, Silence, Owner),
			"Firing alerts that page and that a silence hides, by what they are about."},
		{BudgetExcluded, "gauge", OfOperator(Cluster, Namespace, Silence, Owner, Reason),
			"1 while a silence excludes time in which an operator is bad on a cluster from its error budgets."},
		{OperatorClusters, "gauge", OfOperator(State), "Clusters that a managed operator selects, by state."},
		{OperatorVersionClusters, "gauge", OfOperator(Version),
			"Clusters by the version of a managed operator that they run; the 50 most used."},
		{OperatorReady, "gauge", OfOperator(), "Whether a managed operator is Ready."},
		{SLORulesLoaded, "gauge", OfOperator(),
			"Whether Prometheus evaluates the rules of a managed operator's objectives; absent where the hub cannot " +
				"know."},
		{SLOFeasible, "gauge", OfOperator(), "Whether all objectives of a managed operator can work."},
	}
}

// listRollouts returns the series about the rollouts of operators.
func listRollouts() []Series {
	return []Series{
		{RolloutAdmissionsTotal, "counter", nil, "Admissions of a cluster to a release that were written."},
		{RolloutPhase, "gauge", OfOperator(Phase),
			"Phase of the newest rollout of a managed operator: 1 for the phase it is in."},
		{
			RolloutClusters,
			"gauge",
			OfOperator(State),
			"Clusters of the newest rollout of a managed operator, by state.",
		},
		{RolloutHeld, "gauge", OfOperator(HoldReason),
			"Clusters of the newest rollout of a managed operator that are not admitted now, by reason."},
		{RolloutInfo, "gauge", OfOperator(Rollout, Version, Release),
			"1 for the newest rollout of a managed operator, with the version and the release that it brings."},
		{RolloutStart, "gauge", OfOperator(), "When the newest rollout of a managed operator started."},
		{RolloutEnd, "gauge", OfOperator(), "When the newest rollout of a managed operator ended."},
		{RolloutChangeStart, "gauge", OfOperator(Rollout, Version, From, Kind, Wave, ApprovedBy),
			"When the newest rollout of each version of a managed operator started, with what it changes."},
		{RolloutWavePhase, "gauge", OfOperator(Wave, Phase),
			"Phase of each wave of the newest rollout: 1 for the phase it is in."},
		{
			RolloutWaveClusters,
			"gauge",
			OfOperator(Wave, State),
			"Clusters of each wave of the newest rollout, by state.",
		},
		{RolloutWaveFailed, "gauge", OfOperator(Wave, Version, Release),
			"1 for each wave that was judged failed, of the newest rollout of each version of a managed operator."},
		{RolloutWaveStart, "gauge", OfOperator(Wave),
			"When the first cluster of a wave of the newest rollout was admitted."},
		{RolloutWaveVerified, "gauge", OfOperator(Wave), "When a wave of the newest rollout was verified."},
		{RolloutGateWaiting, "gauge", OfOperator(Wave, Gate),
			"Since when a gate without a verdict holds a wave of the newest rollout back; absent where none does."},
	}
}
