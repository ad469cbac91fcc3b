// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet decides the next changes for a FleetCluster: its namespace and access on the hub, its liveness,
// and its removal from the fleet. It is pure: its input is an observation, and its output is a list of actions and
// a status.
//
// The package also decides for the commands: what a request to join changes, which discovered clusters can join, what
// a removal costs, and which of the operators that agents found can be taken over.
package fleet

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// NamespaceState is the state of the cluster's namespace on the hub.
type NamespaceState int

const (
	// NamespaceAbsent means that the namespace does not exist.
	NamespaceAbsent NamespaceState = iota
	// NamespaceOurs means that the namespace was created for this cluster.
	NamespaceOurs
	// NamespaceForeign means that the namespace was created for another purpose.
	NamespaceForeign
	// NamespaceTerminating means that the namespace was created for this cluster and is being deleted.
	NamespaceTerminating
)

// Lease is the agent's Lease as the hub saw it.
type Lease struct {
	// Found is false until an agent reports for the first time.
	Found bool
	// SeenAt is when the hub saw the last renewal, by the hub's clock: clocks of clusters are never compared. Zero
	// means that the hub saw no renewal since it started and that the cluster was not online before.
	SeenAt time.Time
	// ValidFrom is when the hub last began to wait for a renewal: SeenAt, or later if the hub could not see whether
	// the agent renews. It does not prove that the agent runs. Zero means SeenAt.
	ValidFrom time.Time
	// Duration is how long a renewal is valid.
	Duration time.Duration
	// Versions are the versions that the agent wrote into its Lease.
	Versions v1alpha1.ClusterVersions
	// Account is the UID of the ServiceAccount whose token the agent used; empty if the agent did not report it.
	Account types.UID
	// OLMChecked is false until the agent has checked for OLM.
	OLMChecked bool
	// APIServer is the result of the agent's last check.
	APIServer APIServer
	// Veto has the changes that the cluster's owner refuses, as the agent last reported; nil if there are none.
	Veto *v1alpha1.ClusterVeto
}

// Operator is an OperatorInstall of the cluster.
type Operator struct {
	removal.Install
	Ready bool
	// Finalizers are the finalizers of other programs than the agent.
	Finalizers []string
	// Package and Bundle are what the agent last reported as installed. Target is the operator's namespace on the
	// cluster. They can be empty.
	Package, Bundle, Target string
}

// Input has all data that the decision depends on.
type Input struct {
	Now       time.Time
	Cluster   *v1alpha1.FleetCluster
	Namespace NamespaceState
	// Remaining is what blocks the deletion of the namespace, as the API server reports; empty if it reports nothing.
	Remaining string
	// AccessInSync is true if Role, RoleBinding, ResourceQuota and OperatorScan are correct, and the ServiceAccount
	// too if it exists.
	AccessInSync bool
	// HubVersion is the version of this hub.
	HubVersion string
	// Account is the UID of the ServiceAccount; empty if there is none.
	Account types.UID
	// AccountGoneAt is when the hub first saw that the ServiceAccount was deleted, by the hub's clock. Zero means that
	// it exists, or that there was none before, as for a new cluster.
	AccountGoneAt time.Time
	Lease         Lease
	Operators     []Operator
	// Freeze is the FleetFreeze of the cluster; nil if there is none.
	Freeze *v1alpha1.FleetFreeze
}

// Action is a change on the hub.
type Action string

const (
	// AddFinalizer adds the hub's finalizer. It comes before all changes that a deletion must undo.
	AddFinalizer Action = "AddFinalizer"
	// CreateNamespace creates the cluster's namespace.
	CreateNamespace Action = "CreateNamespace"
	// ApplyAccess creates or corrects Role, RoleBinding, ResourceQuota and OperatorScan, and sets the labels of the
	// ServiceAccount if it exists.
	ApplyAccess Action = "ApplyAccess"
	// CreateAccount creates the ServiceAccount.
	CreateAccount Action = "CreateAccount"
	// DeleteNamespace deletes the cluster's namespace.
	DeleteNamespace Action = "DeleteNamespace"
	// RemoveFinalizer permits the deletion of the FleetCluster.
	RemoveFinalizer Action = "RemoveFinalizer"
)

// Decision has the changes, in order, and the new status.
type Decision struct {
	Actions  []Action
	Removals []removal.Step
	// LeftBehind must be recorded before the removals are carried out; nil if nothing is left behind.
	LeftBehind *LeftBehind
	Status     v1alpha1.FleetClusterStatus
	// RecheckAfter is when the decision can change without any event; zero if never.
	RecheckAfter time.Duration
}

// Next returns the decision.
//
//	            ┌─ namespace foreign ──▶ stalled, changes nothing
//	joining ────┼─ namespace absent ───▶ namespace, access ────────▶ waits for the agent
//	            └─ lease fresh ────────▶ online until it expires, ready while its API server answers
//	offboarding: installs removed by policy, or by the hub after the agent's
//	             deadline ─▶ namespace deleted ─▶ gone
func Next(in Input) Decision {
	d := Decision{Status: *in.Cluster.Status.DeepCopy()}
	d.Status.Operators = countInstalls(in.Operators)
	if in.Lease.Found {
		d.Status.Versions = limitVersions(in.Lease.Versions)
	}
	d.RecheckAfter = minDelay(setHibernating(in, &d.Status), setLiveness(in, &d.Status))
	setVersion(in, &d.Status)
	d.Status.StaleSince = findStaleSince(in)
	setVeto(in, &d.Status)
	setFreeze(in, &d.Status)
	if in.Cluster.DeletionTimestamp != nil {
		offboard(in, &d)
	} else {
		join(in, &d)
	}
	return d
}

// limitVersions cuts the agent's texts to the API's limits. Otherwise the API server would refuse the whole status.
func limitVersions(v v1alpha1.ClusterVersions) v1alpha1.ClusterVersions {
	for _, text := range []*string{&v.Agent, &v.Kubernetes, &v.OLM} {
		*text = phrase.Truncate(phrase.OneLine(*text), maxVersion)
	}
	return v
}

// maxVersion is the API's limit.
const maxVersion = 128

// countInstalls counts the operators of the cluster.
func countInstalls(operators []Operator) v1alpha1.InstallCounts {
	var counts v1alpha1.InstallCounts
	for _, o := range operators {
		counts.Total++
		if o.Ready {
			counts.Ready++
		} else {
			counts.NotReady++
		}
	}
	return counts
}
