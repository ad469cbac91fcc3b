// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// seeFirst returns the installs that a hub sees of the operator that this operator depends on. It returns nil if there
// is no dependency.
func (sim *simulation) seeFirst(fresh bool) installs {
	if !sim.depends {
		return nil
	}
	history := sim.peer.installs
	if fresh {
		return history[len(history)-1]
	}
	return history[max(0, len(history)-1-sim.rng.IntN(4))]
}

// withDependency is a cluster as a hub sees it that sees this of the other operator.
func (sim *simulation) withDependency(c rollouts.Cluster, first installs) rollouts.Cluster {
	if first == nil {
		return c
	}
	d := holds.Dependency{Installs: map[string]*v1alpha1.OperatorInstall{}}
	d.Name = sim.peer.operator
	if i, exists := first[c.Name]; exists {
		o := i.object(sim.peer)
		d.Installs[c.Name] = &o
	}
	found := []rollouts.Cluster{{Name: c.Name}}
	holds.SetHolds(holds.Input{Now: sim.now, Operator: sim.reference(), Dependencies: []holds.Dependency{d}}, found)
	c.Holds = append(slices.Clone(c.Holds), found[0].Holds...)
	return c
}

// report writes the agent's report about an install that was updated or is Ready.
func (i install) report(o *v1alpha1.OperatorInstall) {
	if i.SucceededHash != "" {
		o.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo.v1.0.0", Version: "1.0.0"}
	}
	if i.Ready {
		o.Status.Conditions = append(o.Status.Conditions,
			metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue})
	}
}

// isMet reports whether the other operator is there, Ready.
func isMet(first installs, cluster string) bool {
	i, exists := first[cluster]
	return exists && i.SucceededHash != "" && i.Ready
}

// checkDependency is called for each new batch entry.
func (sim *simulation) checkDependency(p *hubPass, cluster string) {
	if sim.depends && !isMet(p.first, cluster) {
		sim.violate("%s is to be admitted, and operator %s, which comes first, was not seen to be Ready there", cluster,
			sim.peer.operator)
	}
}

// isWaiting reports whether a cluster waits for the other operator, in truth.
func (sim *simulation) isWaiting(cluster string) bool {
	return sim.depends && !isMet(sim.peer.present(), cluster)
}

// hasWaiting reports whether a selected cluster that is not updated does.
func (sim *simulation) hasWaiting() bool {
	for name, c := range sim.clusters() {
		if c.Labels["fleet"] == "yes" && sim.isWaiting(name) && !sim.present()[name].isUpdated() {
			return true
		}
	}
	return false
}
