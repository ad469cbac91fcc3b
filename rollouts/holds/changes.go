// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// Changes are the current changes of other operators, by cluster.
//
// Two rollouts can decide at the same time, even on two hubs. They do not both admit a cluster because each keeps this
// order: write the batch entry, then read the entries and stamps of the other rollouts, then admit. So the rollout
// that writes later sees the entry or the stamp of the other rollout.
type Changes map[string][]change

// change is one operator's change of a cluster.
type change struct {
	operator v1alpha1.OperatorReference
	rollout  string
	until    time.Time
	// written is true if the change was decided and its stamp was not seen yet.
	written bool
}

// ReadChanges returns the current and planned changes of all operators except one, by cluster. Rollouts must be read
// before the installs: an entry that is removed from the batch between the two reads has its stamp on the install.
func ReadChanges(now time.Time, except v1alpha1.OperatorReference, all []v1alpha1.OperatorRollout,
	installs []v1alpha1.OperatorInstall, clusters map[string]rollouts.Cluster) Changes {
	byUID := map[types.UID]*v1alpha1.OperatorRollout{}
	for i := range all {
		byUID[all[i].UID] = &all[i]
	}
	changes := Changes{}
	byName := map[string]*v1alpha1.OperatorInstall{}
	for i := range installs {
		o := &installs[i]
		if o.Spec.Operator == except || o.Spec.Admission == nil {
			continue
		}
		byName[o.Spec.Cluster+" "+o.Name] = o
		ro := byUID[types.UID(o.Spec.Admission.RolloutUID)]
		if end := rollouts.ChangingUntil(now, ro, o, clusters[o.Spec.Cluster]); !end.IsZero() {
			changes.add(o.Spec.Cluster, change{operator: o.Spec.Operator, rollout: o.Spec.Admission.Rollout,
				until: end})
		}
	}
	for i := range all {
		if readOperator(&all[i]) != except {
			changes.addBatch(&all[i], byName)
		}
	}
	return changes
}

// openChange is the ChangeKey of an install that has not succeeded.
const openChange = "open"

// farAhead is the maximum time between an admission and its success. If the success is later, the clock of the agent's
// cluster is not trusted.
const farAhead = 24 * time.Hour

// ChangeKey returns the key under which ChangeKeys finds an install: the hour of its success, or openChange if it
// has not succeeded or its success is more than farAhead after the admission. It returns "" if the install was
// never admitted.
func ChangeKey(o *v1alpha1.OperatorInstall) string {
	a := o.Spec.Admission
	switch {
	case a == nil:
		return ""
	case o.Status.SucceededHash != a.Hash:
		return openChange
	case o.Status.SucceededAt == nil || !o.Status.SucceededAt.After(a.AdmittedAt.Time):
		// A success cannot be before the admission, so the clock of the agent's cluster is not trusted.
		return formatHour(a.AdmittedAt.Time)
	case o.Status.SucceededAt.Sub(a.AdmittedAt.Time) > farAhead:
		return openChange
	}
	return formatHour(o.Status.SucceededAt.Time)
}

// ChangeKeys returns the keys of all installs whose change might not be finished: openChange, and the hours from the
// longest grace before now to farAhead after now. ReadChanges returns the same for these installs as for all installs.
func ChangeKeys(now time.Time, all []v1alpha1.OperatorRollout) []string {
	keys := []string{openChange}
	end := now.Add(farAhead + time.Hour)
	for at := now.Add(-rollouts.LongestGrace(all)); at.Before(end); at = at.Add(time.Hour) {
		keys = append(keys, formatHour(at))
	}
	return keys
}

// formatHour formats the hour of a time.
func formatHour(t time.Time) string { return t.UTC().Format("2006-01-02T15") }

// readOperator returns the operator of a rollout.
func readOperator(ro *v1alpha1.OperatorRollout) v1alpha1.OperatorReference {
	return v1alpha1.OperatorReference{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name}
}

// addBatch adds the batch entries of a rollout whose stamps are not visible yet. byName has the admitted installs by
// cluster and name, separated by a space.
func (c Changes) addBatch(ro *v1alpha1.OperatorRollout, byName map[string]*v1alpha1.OperatorInstall) {
	if ro.Status.Batch == nil {
		return
	}
	operator := readOperator(ro)
	for _, e := range ro.Status.Batch.Clusters {
		o := byName[e.Cluster+" "+operator.InstallName()]
		if o == nil || !rollouts.IsStampSeen(ro, e, rollouts.ObserveInstall(o).Stamp) {
			c.add(e.Cluster, change{operator: operator, rollout: ro.Name, until: rollouts.FindEntryExpiry(e),
				written: true})
		}
	}
}

// add adds a change. Each operator counts once; a change with a stamp replaces a batch entry.
func (c Changes) add(cluster string, added change) {
	for i, existing := range c[cluster] {
		if existing.operator == added.operator {
			if existing.written && !added.written {
				c[cluster][i] = added
			}
			return
		}
	}
	c[cluster] = append(c[cluster], added)
}

// FindBusyHold returns the hold of a cluster on which at least limit other operators change or will change soon. It
// returns nil otherwise, and if limit is 0. self is the operator that must wait. Among operators that will change soon,
// the operator with the lower name comes first and keeps its batch entry.
func (c Changes) FindBusyHold(cluster string, self v1alpha1.OperatorReference, limit int) *rollouts.Hold {
	changes := c[cluster]
	if limit <= 0 || len(changes) < limit {
		return nil
	}
	nearest, ahead := slices.MinFunc(changes, compareChanges), 0
	for _, o := range changes {
		if !o.written || o.operator.Compare(self) < 0 {
			ahead++
		}
	}
	state := "is being changed"
	if nearest.written {
		state = "is to be changed"
	}
	message := fmt.Sprintf("operator %s/%s %s there by rollout %s", nearest.operator.Namespace, nearest.operator.Name,
		state, nearest.rollout)
	return &rollouts.Hold{Reason: v1alpha1.ReasonClusterBusy, Message: message, Until: nearest.until,
		KeepsEntry: ahead < limit}
}

// compareChanges orders changes: running changes before planned changes, then by their end.
func compareChanges(a, b change) int {
	if a.written != b.written {
		if b.written {
			return -1
		}
		return 1
	}
	return cmp.Or(a.until.Compare(b.until), a.operator.Compare(b.operator))
}
