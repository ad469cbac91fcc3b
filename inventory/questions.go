// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import "slices"

// Question is a query with a name.
type Question struct {
	Name string `json:"name"`
	// Doc says what is answered.
	Doc        string      `json:"doc"`
	Parameters []Parameter `json:"parameters"`
	SQL        string      `json:"sql"`
}

// Parameter is a value that a question needs.
type Parameter struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// Example is a value for the documentation. It is the value of the parameter if IsOptional is true.
	Example    string `json:"example"`
	IsOptional bool   `json:"optional,omitempty"`
}

// FindQuestion returns the question with a name.
func FindQuestion(name string) (Question, bool) {
	i := slices.IndexFunc(questions, func(q Question) bool { return q.Name == name })
	if i < 0 {
		return Question{}, false
	}
	return questions[i], true
}

// Questions returns all questions, in the order in which they are documented.
func Questions() []Question { return slices.Clone(questions) }

// Parameters that several questions have.
var (
	operatorParameter = Parameter{Name: "operator", Doc: "name of the ManagedOperator", Example: "echo"}
	versionParameter  = Parameter{Name: "version", Doc: "version of the operator", Example: "1.2.0"}
	clusterParameter  = Parameter{Name: "cluster", Doc: "name of the FleetCluster", Example: "prod-1"}
	rolloutParameter  = Parameter{Name: "rollout", Doc: "name of the OperatorRollout", Example: "echo-2"}
	sinceParameter    = Parameter{
		Name: "since",
		Doc: "beginning of the time, as in 2026-11-24 or 2026-11-24T10:00:00Z; " +
			"it may be relative, as in -7 days",
		Example:    "-1 day",
		IsOptional: true,
	}
)

// SinceParameter is the name of the parameters that are times. Their texts are read by ParseTime.
const SinceParameter = "since"

var questions = []Question{
	{
		Name: "who-ran", Doc: "The clusters that ran a version of an operator at the time of the query.",
		Parameters: []Parameter{operatorParameter, versionParameter},
		SQL: `SELECT namespace, cluster, ready, valid_from, observed_until
FROM installs WHERE operator = :operator AND version = :version
ORDER BY namespace, cluster`,
	},
	{
		Name: "versions", Doc: "How many clusters ran each version of each operator at the time of the query.",
		SQL: `SELECT namespace, operator, version, count(*) AS clusters,
  count(*) FILTER (WHERE ready = 'True') AS ready,
  min(observed_until) AS observed_until
FROM installs GROUP BY namespace, operator, version
ORDER BY namespace, operator, clusters DESC, version`,
	},
	{
		Name: "on-cluster", Doc: "The operators on a cluster at the time of the query.",
		Parameters: []Parameter{clusterParameter},
		SQL: `SELECT namespace, operator, version, admitted_version, ready, reason, valid_from, observed_until
FROM installs WHERE cluster = :cluster
ORDER BY namespace, operator`,
	},
	{
		Name:       "changes-on-cluster",
		Doc:        "What changed on a cluster: operators that got another version or another state.",
		Parameters: []Parameter{clusterParameter, sinceParameter},
		SQL: `SELECT valid_from AS at, namespace, operator, version, ready, reason, rollout, message
FROM installs_history WHERE cluster = :cluster AND valid_from >= :since
ORDER BY at, namespace, operator`,
	},
	{
		Name: "upgrades", Doc: "When each cluster got another version of an operator, with the version before.",
		Parameters: []Parameter{operatorParameter, sinceParameter},
		SQL: `WITH changes AS (
  SELECT namespace, cluster, valid_from, version, rollout,
    lag(version) OVER (PARTITION BY namespace, cluster ORDER BY valid_from) AS version_before
  FROM installs_history WHERE operator = :operator)
SELECT valid_from AS at, namespace, cluster, version_before, version, rollout
FROM changes WHERE version IS NOT version_before AND valid_from >= :since
  AND valid_from > (SELECT min(began) FROM observations)
ORDER BY at, namespace, cluster`,
	},
	{
		Name:       "behind",
		Doc:        "The clusters that do not run the operator's target, and since when nothing has changed there.",
		Parameters: []Parameter{operatorParameter},
		SQL: `SELECT i.namespace, i.cluster, i.version, o.target, max(i.valid_from, o.valid_from) AS unchanged_since,
  i.reason, i.observed_until
FROM operators o JOIN installs i ON i.namespace = o.namespace AND i.operator = o.operator
WHERE o.operator = :operator AND o.target IS NOT NULL AND i.version IS NOT o.target
ORDER BY unchanged_since, i.namespace, i.cluster`,
	},
	{
		Name: "not-ready",
		Doc:  "The operators that were not Ready at the time of the query, those first whose state is the oldest.",
		SQL: `SELECT valid_from AS since, namespace, operator, cluster, version, reason, message, observed_until
FROM installs WHERE ready IS NOT 'True'
ORDER BY since, namespace, operator, cluster`,
	},
	{
		Name: "stale-clusters", Doc: "The clusters that did not report at the time of the query, the longest first.",
		SQL: `SELECT cluster, stale_since, online, reason, agent, kubernetes
FROM clusters WHERE stale_since IS NOT NULL OR online IS NOT 'True'
ORDER BY stale_since NULLS LAST, cluster`,
	},
	{
		Name: "cluster-versions", Doc: "How many clusters ran each version of Kubernetes, OLM and the agent.",
		SQL: `SELECT kubernetes, olm, agent, count(*) AS clusters
FROM clusters GROUP BY kubernetes, olm, agent
ORDER BY clusters DESC, kubernetes, olm, agent`,
	},
	{
		Name: "approvals", Doc: "Who approved or overrode what, and why.",
		Parameters: []Parameter{{Name: "since", Doc: sinceParameter.Doc, Example: "-30d", IsOptional: true}},
		SQL: `SELECT at, namespace, operator, rollout, what, subject, by, reason
FROM decisions WHERE at >= :since
  AND what IN ('Approved', 'ApprovalWithdrawn', 'GateOverridden', 'GateOverrideWithdrawn', 'WindowsOverridden',
    'WindowOverrideWithdrawn', 'RemovalConfirmed')
ORDER BY at, namespace, operator`,
	},
	{
		Name: "decisions", Doc: "All decisions of people and of the hub about an operator.",
		Parameters: []Parameter{operatorParameter},
		SQL: `SELECT at, namespace, rollout, what, subject, by, reason
FROM decisions WHERE operator = :operator
ORDER BY at, namespace`,
	},
	{
		Name: "rollouts", Doc: "The rollouts that were under way or ended since a time, with how they ended.",
		Parameters: []Parameter{{Name: "since", Doc: sinceParameter.Doc, Example: "-7d", IsOptional: true}},
		SQL: `SELECT namespace, operator, rollout, version, phase, started_at, ended_at, succeeded, failed, total,
  rollback_of, message
FROM (SELECT *, row_number() OVER (PARTITION BY namespace, rollout ORDER BY valid_from DESC) AS n FROM rollouts_history)
WHERE n = 1 AND (ended_at IS NULL OR ended_at >= :since)
ORDER BY started_at NULLS LAST, namespace, rollout`,
	},
	{
		Name: "rollout-steps", Doc: "How the phases of a rollout and of its waves changed.",
		Parameters: []Parameter{rolloutParameter},
		SQL: `SELECT valid_from AS at, namespace, NULL AS wave, phase, message
FROM rollouts_history WHERE rollout = :rollout
UNION ALL
SELECT valid_from, namespace, wave, phase,
  succeeded || ' of ' || total || ' clusters succeeded, ' || failed || ' failed'
FROM waves_history WHERE rollout = :rollout
ORDER BY at, namespace, wave`,
	},
	{
		Name: "gate-evidence", Doc: "The verdicts of a rollout's gates, with their evidence.",
		Parameters: []Parameter{rolloutParameter},
		SQL: `SELECT valid_from AS at, namespace, wave, gate, verdict, value, threshold, evidence
FROM gates_history WHERE rollout = :rollout
ORDER BY at, namespace, wave, gate`,
	},
	{
		Name:       "lead-times",
		Doc:        "How long each version took from the catalog to 90 % of the clusters that run the operator.",
		Parameters: []Parameter{operatorParameter},
		SQL: `WITH published AS (
  SELECT v.namespace, o.operator, v.version, min(v.valid_from) AS published_at
  FROM operators o JOIN versions_history v ON v.namespace = o.namespace AND v.catalog = o.catalog
    AND v.package = o.package
  WHERE o.operator = :operator GROUP BY v.namespace, o.operator, v.version),
arrived AS (
  SELECT h.namespace, h.cluster, h.version, min(h.valid_from) AS at
  FROM installs_history h
  JOIN installs i ON i.namespace = h.namespace AND i.operator = h.operator AND i.cluster = h.cluster
  WHERE h.operator = :operator AND h.version IS NOT NULL GROUP BY h.namespace, h.cluster, h.version),
fleet AS (SELECT namespace, count(*) AS clusters FROM installs WHERE operator = :operator GROUP BY namespace),
ranked AS (
  SELECT a.namespace, a.version, a.at, f.clusters,
    row_number() OVER (PARTITION BY a.namespace, a.version ORDER BY a.at) AS position
  FROM arrived a JOIN fleet f ON f.namespace = a.namespace)
SELECT p.namespace, p.version, p.published_at, min(r.at) AS reached_90_percent_at,
  round((julianday(min(r.at)) - julianday(p.published_at)) * 24, 1) AS hours
FROM published p LEFT JOIN ranked r ON r.namespace = p.namespace AND r.version = p.version
  AND r.position >= 0.9 * r.clusters
WHERE p.published_at > (SELECT min(began) FROM observations)
GROUP BY p.namespace, p.version, p.published_at
ORDER BY p.published_at, p.namespace, p.version`,
	},
	{
		Name: "drift", Doc: "The operators whose objects were changed on their clusters, and since when.",
		SQL: `SELECT valid_from AS since, namespace, operator, cluster, reason, message, observed_until
FROM drift
ORDER BY since, namespace, operator, cluster`,
	},
	{
		Name: "end-of-support",
		Doc:  "The versions that clusters ran although they were blocked, deprecated or out of support.",
		SQL: `SELECT o.namespace, o.operator, v.version, v.end_of_support, v.blocked, v.deprecated, count(*) AS clusters
FROM operators o
JOIN versions v ON v.namespace = o.namespace AND v.catalog = o.catalog AND v.package = o.package
JOIN installs i ON i.namespace = o.namespace AND i.operator = o.operator AND i.version = v.version
WHERE v.blocked IS NOT NULL OR v.deprecated IS NOT NULL OR v.end_of_support < date(:at)
GROUP BY o.namespace, o.operator, v.version, v.end_of_support, v.blocked, v.deprecated
ORDER BY clusters DESC, o.namespace, o.operator`,
	},
}
