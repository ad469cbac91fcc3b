// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silences

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// computeExclusionStart returns when an AlertSilence begins to exclude time from error budgets. It
// is never before the creation, so that a user cannot exclude failures that have already happened.
func computeExclusionStart(s *v1alpha1.AlertSilence) time.Time {
	if begin := readStart(s); begin.After(s.CreationTimestamp.Time) {
		return begin
	}
	return s.CreationTimestamp.Time
}

// reportExclusion sets in the status of an AlertSilence whether it excludes time
// from error budgets now, if it has that setting. Alertmanager is not involved.
func reportExclusion(in Input, s *v1alpha1.AlertSilence, status *v1alpha1.AlertSilenceStatus) {
	if !s.Spec.ExcludeFromBudgets {
		return
	}
	from, until := phrase.Time(computeExclusionStart(s)), phrase.Time(s.Spec.End.Time)
	set := func(excludes bool, reason, message string) {
		conditions.Set(&status.Conditions, s.Generation, v1alpha1.ConditionBudgetsExcluded, excludes, reason, message)
	}
	problem := checkSilence(in, s)
	switch {
	case !s.Spec.End.After(in.Now):
		set(false, v1alpha1.ReasonEnded, "no time after "+until+" is excluded from error budgets")
	case problem.Reason != "":
		set(false, problem.Reason, "no time is excluded from error budgets: "+problem.Message)
	case !isWanted(in, s): // it has not begun, or it is being deleted
		set(false, v1alpha1.ReasonScheduled, "time is excluded from error budgets from "+from+" on")
	default:
		set(true, v1alpha1.ReasonExcluding, "time in which the operators are bad is excluded from their error "+
			"budgets from "+from+" until "+until+"; what is left is shown with it and without it")
	}
}

// Excluded is an operator on a cluster. If the cluster is empty,
// it represents the SLIs of the operator that have no cluster.
type Excluded struct {
	Cluster  string
	Operator types.NamespacedName
}

// Excludes returns the operators whose time an AlertSilence excludes from error budgets
// now, sorted. It is empty unless the silence's condition BudgetsExcluded is True.
func Excludes(s *v1alpha1.AlertSilence, now time.Time, clusters []v1alpha1.FleetCluster,
	installs []v1alpha1.OperatorInstall) []Excluded {
	if !IsExcluding(s, now) {
		return nil
	}
	var selected []string
	if s.Spec.Clusters != nil {
		selected = listClusters(s, clusters)
	}
	found := map[Excluded]bool{}
	for i := range installs {
		cluster, op := installs[i].Spec.Cluster, installs[i].Spec.Operator
		id := types.NamespacedName{Namespace: op.Namespace, Name: op.Name}
		switch {
		case s.Spec.Scope != v1alpha1.SilenceFleet && op.Namespace != s.Namespace: // not silenced
		case len(s.Spec.Operators) > 0 && !slices.Contains(s.Spec.Operators, op.Name): // not silenced
		case s.Spec.Clusters == nil: // all clusters, and the SLIs that have no cluster
			found[Excluded{"", id}], found[Excluded{cluster, id}] = true, true
		case slices.Contains(selected, cluster):
			found[Excluded{cluster, id}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b Excluded) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Operator.Namespace, b.Operator.Namespace),
			cmp.Compare(a.Operator.Name, b.Operator.Name))
	})
}

// IsExcluding reports whether an AlertSilence excludes time from error budgets now.
func IsExcluding(s *v1alpha1.AlertSilence, now time.Time) bool {
	return s.DeletionTimestamp == nil && s.Spec.End.After(now) &&
		conditions.IsTrue(s.Status.Conditions, v1alpha1.ConditionBudgetsExcluded)
}
