// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Judge follows the OperatorInstalls of one operator, in the order in which the hub's API server wrote them. It decides
// by what is written there alone, and shares no code with the planner.
type Judge struct {
	// Waves are the waves of the strategy, in order.
	Waves []string
	// Limits is how many clusters of a wave may be changed at a time. Waves that are not there have no limit.
	Limits map[string]int
	// Deadline is that of every wave: an admission that took longer has failed, and is counted no more.
	Deadline time.Duration
	// Confined are bundles that no cluster may be admitted to but those of the first wave.
	Confined []string

	installs map[string]*v1alpha1.OperatorInstall
	admitted map[string]map[string]bool
	faults   []string
}

// See takes in the next version of an OperatorInstall, which was written by now; or several that were read together.
func (j *Judge) See(now time.Time, installs ...*v1alpha1.OperatorInstall) {
	if j.installs == nil {
		j.installs, j.admitted = map[string]*v1alpha1.OperatorInstall{}, map[string]map[string]bool{}
	}
	for _, oi := range installs {
		j.installs[oi.Spec.Cluster] = oi
		if a := oi.Spec.Admission; a != nil {
			j.judgeAdmission(oi.Spec.Cluster, a)
		}
	}
	j.judgeConcurrency(now)
	j.judgeOrder()
}

// judgeAdmission remembers what a cluster was admitted to.
func (j *Judge) judgeAdmission(cluster string, a *v1alpha1.Admission) {
	if j.admitted[cluster] == nil {
		j.admitted[cluster] = map[string]bool{}
	}
	j.admitted[cluster][a.Release.Bundle] = true
	if slices.Contains(j.Confined, a.Release.Bundle) && a.Wave != j.Waves[0] {
		j.fault("%s was admitted to %s in wave %s, which is confined to wave %s", cluster, a.Release.Bundle, a.Wave,
			j.Waves[0])
	}
}

// Admitted tells whether a cluster was ever admitted to a bundle.
func (j *Judge) Admitted(cluster, bundle string) bool { return j.admitted[cluster][bundle] }

// Faults are what must not have happened, each once.
func (j *Judge) Faults() []string { return j.faults }

func (j *Judge) fault(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(j.faults, text) {
		j.faults = append(j.faults, text)
	}
}

// judgeConcurrency counts the clusters of each wave that were admitted and have neither succeeded nor failed.
func (j *Judge) judgeConcurrency(now time.Time) {
	for wave, limit := range j.Limits {
		var changing []string
		for name, oi := range j.installs {
			if a := oi.Spec.Admission; a != nil && a.Wave == wave && j.isChanging(now, oi) {
				changing = append(changing, name)
			}
		}
		if len(changing) > limit {
			slices.Sort(changing)
			j.fault("%d clusters of wave %s are changed at a time, the limit is %d: %v", len(changing), wave, limit,
				changing)
		}
	}
}

// isChanging tells whether an admission has neither succeeded nor failed.
func (j *Judge) isChanging(now time.Time, oi *v1alpha1.OperatorInstall) bool {
	a := oi.Spec.Admission
	stalled := conditions.Get(oi.Status.Conditions, v1alpha1.ConditionStalled)
	hasStalled := stalled.Status == metav1.ConditionTrue && stalled.ObservedGeneration == oi.Generation
	return oi.Status.SucceededHash != a.Hash && !hasStalled && now.Before(a.AdmittedAt.Add(j.Deadline))
}

// judgeOrder holds that no cluster is admitted to a release before every cluster of the earlier waves runs it.
func (j *Judge) judgeOrder() {
	for name, later := range j.installs {
		a := later.Spec.Admission
		if a == nil {
			continue
		}
		for other, earlier := range j.installs {
			b, place := earlier.Spec.Admission, slices.Index(j.Waves, earlier.Labels[v1alpha1.LabelWave])
			if place < 0 || place >= slices.Index(j.Waves, a.Wave) {
				continue
			}
			if b == nil || b.Revision < a.Revision || b.Revision == a.Revision &&
				earlier.Status.SucceededHash != a.Hash {
				j.fault("%s (wave %s) was admitted to revision %d before %s ran it", name, a.Wave, a.Revision, other)
			}
		}
	}
}
