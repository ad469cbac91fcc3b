// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what is due for a FleetCluster: its namespace and access
// on the hub, its liveness, and how it leaves the fleet. It is pure: what was
// observed goes in, actions and a status come out.
package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// NamespaceState is what the cluster's namespace on the hub looks like.
type NamespaceState int

const (
	// NamespaceAbsent does not exist.
	NamespaceAbsent NamespaceState = iota
	// NamespaceOurs was made for this cluster.
	NamespaceOurs
	// NamespaceForeign exists and was made for something else.
	NamespaceForeign
	// NamespaceTerminating was made for this cluster and is being deleted.
	NamespaceTerminating
)

// Lease is the agent's sign of life as the hub saw it.
type Lease struct {
	// Found is false until an agent reports for the first time.
	Found bool
	// SeenAt is when the hub saw the last renewal, by its own clock: clocks of
	// clusters are never compared. Zero means that the hub saw none since it
	// started and the cluster was not online before.
	SeenAt time.Time
	// ValidFrom is when the hub last began to wait for a renewal: SeenAt, or later where
	// the hub could not see whether the agent renews. That is no sign of life. Zero means SeenAt.
	ValidFrom time.Time
	// Duration is how long a renewal holds.
	Duration time.Duration
	// Versions that the agent wrote on its Lease.
	Versions v1alpha1.ClusterVersions
	// Account is the UID of the ServiceAccount whose token the agent used; empty if it
	// did not say.
	Account types.UID
	// OLMChecked is false until the agent has looked for OLM.
	OLMChecked bool
	// APIServer is the result of the agent's last check.
	APIServer APIServer
	// Veto is what the cluster's owner refuses, as the agent last reported it; nil if
	// that is nothing.
	Veto *v1alpha1.ClusterVeto
}

// Operator is an OperatorInstall of the cluster.
type Operator struct {
	removal.Install
	Ready bool
	// Finalizers are those that are not the agent's.
	Finalizers []string
	// Package and Bundle are what the agent last reported as installed, and Target
	// is the operator's namespace on the cluster. They may be empty.
	Package, Bundle, Target string
}

// Input is everything that the decision rests on.
type Input struct {
	Now       time.Time
	Cluster   *v1alpha1.FleetCluster
	Namespace NamespaceState
	// Remaining is what the API server says keeps a namespace that is being deleted;
	// empty where it says nothing.
	Remaining string
	// AccessInSync is true when Role, RoleBinding and ResourceQuota are as they should
	// be, and the ServiceAccount where there is one, and the OperatorScan exists.
	AccessInSync bool
	// HubVersion is the version of the hub that decides.
	HubVersion string
	// Account is the UID of the ServiceAccount; empty if there is none.
	Account types.UID
	// AccountGoneAt is when the hub first saw that the ServiceAccount is gone, by its own
	// clock. Zero: there is one, or there was none before, as for a new cluster.
	AccountGoneAt time.Time
	Lease         Lease
	Operators     []Operator
	// Freeze is the FleetFreeze of the cluster; nil if there is none.
	Freeze *v1alpha1.FleetFreeze
}

// Action is one thing to do on the hub.
type Action string

const (
	// AddFinalizer comes before anything that deletion would have to undo.
	AddFinalizer Action = "AddFinalizer"
	// CreateNamespace makes the cluster's namespace.
	CreateNamespace Action = "CreateNamespace"
	// ApplyAccess makes Role, RoleBinding, ResourceQuota and OperatorScan, and sets the labels of the
	// ServiceAccount where there is one.
	ApplyAccess Action = "ApplyAccess"
	// CreateAccount makes the ServiceAccount.
	CreateAccount Action = "CreateAccount"
	// DeleteNamespace deletes the cluster's namespace.
	DeleteNamespace Action = "DeleteNamespace"
	// RemoveFinalizer lets the FleetCluster go.
	RemoveFinalizer Action = "RemoveFinalizer"
)

// Decision is what to do now, in order, and what to report.
type Decision struct {
	Actions  []Action
	Removals []removal.Step
	// LeftBehind is to be recorded before the removals are carried out; nil where
	// nothing is left behind.
	LeftBehind *LeftBehind
	Status     v1alpha1.FleetClusterStatus
	// RecheckAfter is when time alone may change the verdict; zero: never.
	RecheckAfter time.Duration
}

// Next decides.
//
//	            ┌─ namespace foreign ──▶ stalled, touches nothing
//	joining ────┼─ namespace absent ───▶ namespace, access ────────▶ waits for the agent
//	            └─ lease fresh ────────▶ online until it expires, ready while its API server answers
//	offboarding: installs removed by policy, or by the hub once the agent's time
//	             is over ─▶ namespace deleted ─▶ gone
func Next(in Input) Decision {
	d := Decision{Status: *in.Cluster.Status.DeepCopy()}
	d.Status.Operators = count(in.Operators)
	if in.Lease.Found {
		d.Status.Versions = bounded(in.Lease.Versions)
	}
	d.RecheckAfter = soonest(setHibernating(in, &d.Status), setLiveness(in, &d.Status))
	setVersion(in, &d.Status)
	d.Status.StaleSince = staleSince(in)
	setVeto(in, &d.Status)
	setFreeze(in, &d.Status)
	if in.Cluster.DeletionTimestamp != nil {
		offboard(in, &d)
	} else {
		join(in, &d)
	}
	return d
}

// bounded cuts what an agent wrote to the API's limits: the API server would refuse the whole status.
func bounded(v v1alpha1.ClusterVersions) v1alpha1.ClusterVersions {
	for _, text := range []*string{&v.Agent, &v.Kubernetes, &v.OLM} {
		*text = phrase.Truncate(phrase.OneLine(*text), maxVersion)
	}
	return v
}

// maxVersion is the API's limit.
const maxVersion = 128

func count(operators []Operator) v1alpha1.InstallCounts {
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
