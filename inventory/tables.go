// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

// The names of columns that several tables have.
const (
	columnCluster   = "cluster"
	columnNamespace = "namespace"
	columnOperator  = "operator"
)

// Columns that several tables have.
var (
	namespaceColumn = Column{Name: columnNamespace, Type: Text, Doc: "namespace on the hub"}
	operatorColumn  = Column{Name: columnOperator, Type: Text, Doc: "name of the ManagedOperator"}
	clusterColumn   = Column{Name: columnCluster, Type: Text, Doc: "name of the FleetCluster"}
	rolloutColumn   = Column{Name: "rollout", Type: Text, Doc: "name of the OperatorRollout"}
	waveColumn      = Column{Name: "wave", Type: Text, Doc: "name of the wave"}
	readyColumn     = Column{Name: "ready", Type: Text, Doc: "status of the condition Ready: True, False or Unknown"}
	reasonColumn    = Column{Name: "reason", Type: Text, Doc: "reason of the condition Ready"}
	messageColumn   = Column{Name: "message", Type: Text, Doc: "message of the condition Ready", Follows: true}
)

// Clusters are the members of the fleet.
var Clusters = &Table{
	Name: "clusters", Doc: "a cluster of the fleet", Source: FromHub, Restricted: columnCluster,
	Key: []Column{clusterColumn},
	Values: []Column{
		{Name: "labels", Type: Text, Doc: "labels as a JSON object, as in labels ->> 'region'"},
		{Name: "online", Type: Text, Doc: "status of the condition Online: True, False or Unknown"},
		{Name: "stale_since", Type: Text, Doc: "when the hub stopped getting current reports; NULL while it gets them"},
		readyColumn, reasonColumn, messageColumn,
		{Name: "agent", Type: Text, Doc: "version of the agent"},
		{Name: "kubernetes", Type: Text, Doc: "version of Kubernetes"},
		{Name: "olm", Type: Text, Doc: "version of OLM"},
		{Name: "paused", Type: Integer, Doc: "1 if a person paused the cluster"},
		{Name: "freeze", Type: Text, Doc: "name of the FleetFreeze in force"},
		{Name: "veto", Type: Text, Doc: "why the cluster's owner refuses changes"},
		{Name: "source", Type: Text, Doc: "object that the cluster was discovered from, as kind namespace/name"},
	},
}

// Operators are the ManagedOperators.
var Operators = &Table{
	Name: "operators", Doc: "a ManagedOperator", Source: FromHub, Restricted: columnNamespace,
	Key: []Column{namespaceColumn, operatorColumn},
	Values: []Column{
		{Name: "package", Type: Text, Doc: "name of the package"},
		{Name: "catalog", Type: Text, Doc: "name of the OperatorCatalog"},
		{Name: "wanted", Type: Text, Doc: "version or range of versions in the spec; NULL follows the channel's head"},
		{Name: "target", Type: Text, Doc: "version that is rolled out"},
		{Name: "channel", Type: Text, Doc: "channel of the target"},
		{Name: "waiting_version", Type: Text, Doc: "newer version that waits for an approval"},
		{Name: "paused", Type: Integer, Doc: "1 if no new rollouts are created"},
		readyColumn, reasonColumn, messageColumn,
		{Name: "selected", Type: Integer, Doc: "clusters that the selector selects"},
		{Name: "updated", Type: Integer, Doc: "clusters that run the target", Follows: true},
		{Name: "ready_clusters", Type: Integer, Doc: "clusters on which the operator is Ready", Follows: true},
	},
}

// Installs are the operators on each cluster.
var Installs = &Table{
	Name: "installs", Doc: "an operator on a cluster", Source: FromHub, Cluster: columnCluster,
	Restricted: columnNamespace,
	Key:        []Column{namespaceColumn, operatorColumn, clusterColumn},
	Values: []Column{
		{Name: "version", Type: Text, Doc: "installed version, whether it works or not; NULL if none is installed"},
		{Name: "admitted_version", Type: Text, Doc: "version that the cluster was admitted to"},
		{Name: "rollout", Type: Text, Doc: "OperatorRollout that admitted the cluster"},
		{Name: "wave", Type: Text, Doc: "wave in which the cluster was admitted"},
		readyColumn, reasonColumn, messageColumn,
	},
}

// Drift are the operators that differ from what was installed.
var Drift = &Table{
	Name: "drift", Doc: "a time in which the objects of an operator on a cluster differed from what was installed",
	Source: FromHub, Cluster: columnCluster, Restricted: columnNamespace,
	Key: []Column{namespaceColumn, operatorColumn, clusterColumn},
	Values: []Column{
		{Name: "reason", Type: Text, Doc: "reason of the condition Drifted"},
		{Name: "message", Type: Text, Doc: "what was changed", Follows: true},
	},
}

// Versions are the versions in the catalogs.
var Versions = &Table{
	Name:   "versions",
	Doc:    "a version in a catalog, of a package that a ManagedOperator uses: the newest, and those that clusters run",
	Source: FromHub, Restricted: columnNamespace,
	Key: []Column{namespaceColumn, {Name: "catalog", Type: Text, Doc: "name of the OperatorCatalog"},
		{Name: "package", Type: Text, Doc: "name of the package"},
		{Name: "bundle", Type: Text, Doc: "name of the bundle"}},
	Values: []Column{
		{Name: "version", Type: Text, Doc: "version of the bundle"},
		{Name: "blocked", Type: Text, Doc: "why the version is blocked; NULL if it is not"},
		{Name: "deprecated", Type: Text, Doc: "the catalog's deprecation message; NULL if there is none"},
		{Name: "end_of_support", Type: Text, Doc: "last day of support; NULL if the catalog does not have it"},
		{Name: "absent", Type: Integer, Doc: "1 if clusters run the version although the catalog does not have it"},
	},
}

// Channels are the heads of channels.
var Channels = &Table{
	Name: "channels", Doc: "a channel of a package in a catalog", Source: FromHub, Restricted: columnNamespace,
	Key: []Column{namespaceColumn, {Name: "catalog", Type: Text, Doc: "name of the OperatorCatalog"},
		{Name: "package", Type: Text, Doc: "name of the package"},
		{Name: "channel", Type: Text, Doc: "name of the channel"}},
	Values: []Column{
		{Name: "head", Type: Text, Doc: "version at the head of the channel"},
		{Name: "versions", Type: Integer, Doc: "number of versions in the channel"},
	},
}

// Rollouts are the changes of operators.
var Rollouts = &Table{
	Name: "rollouts", Doc: "an OperatorRollout", Source: FromHub, Restricted: columnNamespace,
	Key: []Column{namespaceColumn, rolloutColumn},
	Values: []Column{
		operatorColumn,
		{Name: "revision", Type: Integer, Doc: "number of the rollout of this operator"},
		{Name: "version", Type: Text, Doc: "version that is rolled out"},
		{Name: "phase", Type: Text, Doc: "phase of the rollout"},
		{Name: "current_wave", Type: Text, Doc: "wave that is worked on"},
		{Name: "started_at", Type: Text, Doc: "when the first cluster was admitted"},
		{Name: "ended_at", Type: Text, Doc: "when the rollout ended"},
		{Name: "rollback_of", Type: Text, Doc: "rollout that this one rolls back; NULL if it is no rollback"},
		{Name: "rollback_reason", Type: Text, Doc: "why it is rolled back"},
		{Name: "paused", Type: Integer, Doc: "1 if a person paused the rollout"},
		{Name: "blocked", Type: Text, Doc: "why the version is blocked"},
		{Name: "message", Type: Text, Doc: "state of the rollout in one sentence", Follows: true},
		{Name: "total", Type: Integer, Doc: "clusters", Follows: true},
		{Name: "succeeded", Type: Integer, Doc: "clusters that succeeded", Follows: true},
		{Name: "failed", Type: Integer, Doc: "clusters that failed", Follows: true},
	},
}

// Waves are the waves of rollouts.
var Waves = &Table{
	Name: "waves", Doc: "a wave of a rollout", Source: FromHub, Restricted: columnNamespace,
	Key: []Column{namespaceColumn, rolloutColumn, waveColumn},
	Values: []Column{
		{Name: "position", Type: Integer, Doc: "place of the wave in the rollout, from 1"},
		{Name: "phase", Type: Text, Doc: "phase of the wave"},
		{Name: "started_at", Type: Text, Doc: "when the wave's first cluster was admitted"},
		{Name: "updated_at", Type: Text, Doc: "when the soak began"},
		{Name: "verified_at", Type: Text, Doc: "when the wave was verified"},
		{Name: "failed_at", Type: Text, Doc: "since when the wave counts as failed"},
		{Name: "total", Type: Integer, Doc: "clusters", Follows: true},
		{Name: "succeeded", Type: Integer, Doc: "clusters that succeeded", Follows: true},
		{Name: "failed", Type: Integer, Doc: "clusters that failed", Follows: true},
		{Name: "deferred", Type: Integer, Doc: "clusters that the rollout does not wait for", Follows: true},
	},
}

// Gates are the gates of waves, with their evidence.
var Gates = &Table{
	Name: "gates", Doc: "a gate of a wave", Source: FromHub, Restricted: columnNamespace,
	Key: []Column{namespaceColumn, rolloutColumn, waveColumn, {Name: "gate", Type: Text, Doc: "name of the gate"}},
	Values: []Column{
		{Name: "verdict", Type: Text, Doc: "Waiting, Passed, Failed or Overridden"},
		{Name: "approval", Type: Integer, Doc: "1 if the gate waits for a person"},
		{Name: "decided_at", Type: Text, Doc: "since when the gate has this verdict; NULL while it is Waiting"},
		{Name: "evidence", Type: Text, Doc: "the data behind the verdict, or what is missing", Follows: true},
		{Name: "value", Type: Text, Doc: "what was measured last", Follows: true},
		{Name: "threshold", Type: Text, Doc: "what the value is compared with", Follows: true},
	},
}

// Decisions are what people and the hub decided about operators and rollouts: approvals, overrides and others.
var Decisions = &Table{
	Name: "decisions", Doc: "a decision of a person or of the hub about an operator or one of its rollouts",
	Source: FromHub, Restricted: columnNamespace, IsLog: true,
	Key: []Column{namespaceColumn, operatorColumn,
		{Name: "at", Type: Text, Doc: "when it was decided if that is recorded, otherwise when the hub observed it"},
		{Name: "what", Type: Text, Doc: "kind of the decision, such as Approved, GateOverridden or RollbackRequested"},
		{Name: "rollout", Type: Text, Doc: "OperatorRollout that it is about; empty for the operator"},
		{Name: "subject", Type: Text, Doc: "subject of the decision, such as a gate of a wave"},
		{Name: "by", Type: Text, Doc: "user name of the person who decided, or hub; empty if no name is signed"}},
	Values: []Column{
		{Name: "reason", Type: Text, Doc: "the given reason"},
	},
}
