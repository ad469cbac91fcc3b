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

// Changes are those that other operators go through, by cluster.
//
// Two rollouts may decide at the same time, even two hubs. That not both of them
// admit a cluster rests on an order that each keeps: write the batch entry, then look
// at the others' entries and stamps, then admit. Of two that do so, the later one to
// write sees the entry, or the stamp, of the other.
type Changes map[string][]change

// change is one operator's change of a cluster.
type change struct {
	operator v1alpha1.OperatorReference
	rollout  string
	until    time.Time
	// written says that it was decided, and its stamp was not seen yet.
	written bool
}

// ReadChanges finds the changes of all operators but one. Rollouts have to be read
// before the installs: an entry that is gone from a batch has left its stamp.
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
		if operatorOf(&all[i]) != except {
			changes.addBatch(&all[i], byName)
		}
	}
	return changes
}

// openChange is the ChangeKey of an install that has not succeeded.
const openChange = "open"

// farAhead is how long after its admission a success may be said to be without the
// clock of the agent's cluster being in doubt.
const farAhead = 24 * time.Hour

// ChangeKey is where an install is to be looked for by ChangeKeys: by the hour of its
// success where it has succeeded. It is empty for one that was never admitted.
func ChangeKey(o *v1alpha1.OperatorInstall) string {
	a := o.Spec.Admission
	switch {
	case a == nil:
		return ""
	case o.Status.SucceededHash != a.Hash:
		return openChange
	case o.Status.SucceededAt == nil || !o.Status.SucceededAt.After(a.AdmittedAt.Time):
		return hour(a.AdmittedAt.Time)
	case o.Status.SucceededAt.Sub(a.AdmittedAt.Time) > farAhead:
		return openChange
	}
	return hour(o.Status.SucceededAt.Time)
}

// ChangeKeys are those of all installs whose change may go on, so that ReadChanges finds
// with these installs what it finds with all.
func ChangeKeys(now time.Time, all []v1alpha1.OperatorRollout) []string {
	keys := []string{openChange}
	end := now.Add(farAhead + time.Hour)
	for at := now.Add(-rollouts.LongestGrace(all)); at.Before(end); at = at.Add(time.Hour) {
		keys = append(keys, hour(at))
	}
	return keys
}

func hour(t time.Time) string { return t.UTC().Format("2006-01-02T15") }

func operatorOf(ro *v1alpha1.OperatorRollout) v1alpha1.OperatorReference {
	return v1alpha1.OperatorReference{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name}
}

// addBatch adds the entries of a rollout whose stamp is not to be seen yet.
func (c Changes) addBatch(ro *v1alpha1.OperatorRollout, byName map[string]*v1alpha1.OperatorInstall) {
	if ro.Status.Batch == nil {
		return
	}
	operator := operatorOf(ro)
	for _, e := range ro.Status.Batch.Clusters {
		o := byName[e.Cluster+" "+operator.InstallName()]
		if o == nil || !rollouts.IsSeen(ro, e, rollouts.ObserveInstall(o).Stamp) {
			c.add(e.Cluster, change{operator: operator, rollout: ro.Name, until: rollouts.EntryEnds(e), written: true})
		}
	}
}

// add counts each operator once, by the stamp where there is one.
func (c Changes) add(cluster string, one change) {
	for i, known := range c[cluster] {
		if known.operator == one.operator {
			if known.written && !one.written {
				c[cluster][i] = one
			}
			return
		}
	}
	c[cluster] = append(c[cluster], one)
}

// Busy is the hold of a cluster on which as many other operators change as may, or
// are about to; nil if there is none. An operator that is only about to yields to
// the one with the lower name, which keeps its batch entry.
func (c Changes) Busy(cluster string, self v1alpha1.OperatorReference, limit int) *rollouts.Hold {
	others := c[cluster]
	if limit <= 0 || len(others) < limit {
		return nil
	}
	first, before := slices.MinFunc(others, compare), 0
	for _, o := range others {
		if !o.written || o.operator.Compare(self) < 0 {
			before++
		}
	}
	what := "is being changed"
	if first.written {
		what = "is to be changed"
	}
	message := fmt.Sprintf("operator %s/%s %s there by rollout %s", first.operator.Namespace, first.operator.Name, what,
		first.rollout)
	return &rollouts.Hold{Reason: v1alpha1.ReasonClusterBusy, Message: message, Until: first.until,
		KeepsEntry: before < limit}
}

// compare orders changes: those that go on before those that are to come, then by
// their end.
func compare(a, b change) int {
	if a.written != b.written {
		if b.written {
			return -1
		}
		return 1
	}
	return cmp.Or(a.until.Compare(b.until), a.operator.Compare(b.operator))
}
