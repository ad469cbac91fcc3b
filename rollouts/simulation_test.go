// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// simulation is the truth of a simulated fleet. Everything that a hub sees is one
// of its past or present states.
type simulation struct {
	rng *rand.Rand
	now time.Time
	// installs and fleet are histories; the last entry is the present.
	installs []installs
	fleet    []fleet
	rollouts []*rollout
	agents   map[string]*agent
	ledger   map[ledgerKey]*ledgerEntry
	// left holds the clusters that were ever taken out of the selection.
	left map[string]bool
	// bad is a release that succeeds nowhere or, where it dies, does not stay
	// Ready anywhere.
	bad, dies bool
	// lastRan is the hash of the release that succeeded last on each cluster, and
	// before what that was when the cluster was first admitted to a bad release.
	lastRan, before map[string]string
	// disturbed is true if clusters go offline although the release is bad.
	disturbed bool
	// good are releases that succeed everywhere, by hash.
	good map[string]bool
	// has are the versions on clusters. refuses are the clusters that cannot be taken over. Both are nil if there is
	// no take-over.
	has     map[string]string
	refuses map[string]bool
	// operator is its name, and peer another one on the same clusters; nil if there
	// is none.
	operator string
	peer     *simulation
	// depends is true if the other operator must be Ready on a cluster first.
	depends bool
	// windows are open at times, by the name of a schedule.
	windows map[string]schedule
	// active is the hub that is not held up just now.
	active int
	measurements
	// policies are the platform team's policies, each with its own generation.
	policies    []v1alpha1.RolloutPolicy
	generations int64
	writes      int
	uids        int
	trace       []string
	broken      string
}

type installs map[string]install

type fleet map[string]rollouts.Cluster

// install is an OperatorInstall as the API server has it.
type install struct {
	rollouts.Install
	rv, uid  int
	revision int64
	// unreadySince is from when on an updated one is not Ready.
	unreadySince time.Time
}

// isUpdated reports whether the release of its stamp is installed.
func (i install) isUpdated() bool { return i.Stamp.Hash != "" && i.SucceededHash == i.Stamp.Hash }

// rollout is an OperatorRollout with its history.
type rollout struct {
	history []*v1alpha1.OperatorRollout
	// ever are the clusters that were ever in a wave once it was planned.
	ever map[string]map[string]bool
	// touched are the clusters that were ever admitted, by wave.
	touched map[string]map[string]bool
}

type ledgerKey struct {
	cluster    string
	uid        int
	rolloutUID string
}

// ledgerEntry is the real result of an admission.
type ledgerEntry struct {
	at          time.Time
	released    bool
	succeededAt time.Time
	succeededRV int
}

type outcome int

const (
	success outcome = iota
	stallThenRecover
	stall
	silence
	// recovery makes an updated cluster Ready again. death makes it permanently not Ready.
	recovery
	death
)

// agent works on the newest stamp it saw.
type agent struct {
	acted   int64
	stamp   rollouts.Stamp
	uid     int
	due     time.Time
	outcome outcome
}

func (sim *simulation) log(format string, args ...any) {
	sim.trace = append(sim.trace, fmt.Sprintf("%s ", sim.now.Format("15:04:05"))+fmt.Sprintf(format, args...))
}

// violate records the first invariant that does not hold.
func (sim *simulation) violate(format string, args ...any) {
	if sim.broken == "" {
		sim.broken = fmt.Sprintf(format, args...)
		sim.log("VIOLATED: %s", sim.broken)
	}
}

func (sim *simulation) present() installs { return sim.installs[len(sim.installs)-1] }

func (sim *simulation) clusters() fleet { return sim.fleet[len(sim.fleet)-1] }

func (r *rollout) now() *v1alpha1.OperatorRollout { return r.history[len(r.history)-1] }

func (sim *simulation) latest() *rollout { return sim.rollouts[len(sim.rollouts)-1] }

// putInstall writes an install; a nil change deletes it.
func (sim *simulation) putInstall(cluster string, change func(*install)) {
	next := maps.Clone(sim.present())
	sim.writes++
	if change == nil {
		delete(next, cluster)
		sim.installs = append(sim.installs, next)
		return
	}
	at, exists := next[cluster]
	if !exists {
		sim.uids++
		at = install{Install: rollouts.Install{Cluster: cluster}, uid: sim.uids}
	}
	change(&at)
	switch {
	case at.Ready || !at.isUpdated():
		at.unreadySince = time.Time{}
	case at.unreadySince.IsZero():
		at.unreadySince = sim.now
	}
	at.rv = len(sim.installs) + 1
	next[cluster] = at
	sim.installs = append(sim.installs, next)
}

func (sim *simulation) putCluster(name string, change func(*rollouts.Cluster)) {
	next := maps.Clone(sim.clusters())
	if change == nil {
		delete(next, name)
	} else {
		c := next[name]
		c.Labels = maps.Clone(c.Labels)
		change(&c)
		next[name] = c
	}
	sim.fleet = append(sim.fleet, next)
	sim.writes++
}

// putRollout writes a rollout if it is still at the version that was read.
func (sim *simulation) putRollout(r *rollout, read string, change func(*v1alpha1.OperatorRollout)) bool {
	if r.now().ResourceVersion != read {
		return false
	}
	next := r.now().DeepCopy()
	change(next)
	next.ResourceVersion = strconv.Itoa(len(r.history) + 1)
	r.history = append(r.history, next)
	sim.writes++
	return true
}

func (sim *simulation) startRollout(strategy v1alpha1.RolloutStrategy) {
	n := len(sim.rollouts) + 1
	ro := &v1alpha1.OperatorRollout{}
	ro.Name, ro.UID, ro.ResourceVersion = fmt.Sprintf("echo-%d", n), types.UID(fmt.Sprintf("uid-%d", n)), "1"
	ro.Spec = v1alpha1.OperatorRolloutSpec{
		Operator: v1alpha1.LocalReference{Name: sim.operator}, Revision: int64(n),
		Release:  v1alpha1.Release{Package: "echo", Version: fmt.Sprintf("1.%d.0", n)},
		Strategy: strategy,
	}
	ro.Spec.ClusterSelector.MatchLabels = map[string]string{"fleet": "yes"}
	sim.rollouts = append(sim.rollouts, &rollout{
		history: []*v1alpha1.OperatorRollout{ro}, ever: map[string]map[string]bool{},
		touched: map[string]map[string]bool{},
	})
	sim.writes++
	sim.log("start %s with %d waves", ro.Name, len(strategy.Waves))
}

func (sim *simulation) setOnline(name string, online bool) {
	sim.putCluster(name, func(c *rollouts.Cluster) {
		if online && !c.Online {
			c.OnlineSince = sim.now
		}
		c.Online = online
	})
}

// entry is the ledger's entry for the stamp that an install carries now.
func (sim *simulation) entry(i install) *ledgerEntry {
	return sim.ledger[ledgerKey{i.Cluster, i.uid, i.Stamp.RolloutUID}]
}

// work lets the agent of a cluster do one thing.
func (sim *simulation) work(cluster string) {
	i, exists := sim.present()[cluster]
	c, enrolled := sim.clusters()[cluster]
	if exists && (i.Deleting || !enrolled) {
		if c.Online || !enrolled {
			sim.putInstall(cluster, nil)
			sim.log("%s: install is gone", cluster)
		}
		return
	}
	if !exists || !c.Online || i.Stamp.RolloutUID == "" {
		return
	}
	a := sim.agents[cluster]
	if a == nil || a.uid != i.uid {
		a = &agent{uid: i.uid}
		sim.agents[cluster] = a
	}
	if i.revision < a.acted {
		sim.violate("%s: the stamp went back from revision %d to %d", cluster, a.acted, i.revision)
		return
	}
	if a.stamp != i.Stamp {
		a.acted, a.stamp = i.revision, i.Stamp
		a.outcome, a.due = sim.fate()
		if sim.good[i.Stamp.Hash] {
			a.outcome, a.due = success, sim.now.Add(time.Duration(5+sim.rng.IntN(60))*time.Second)
		}
		if sim.isRefused(cluster, i) {
			a.outcome = stall
		}
		return
	}
	if !a.due.IsZero() && !sim.now.Before(a.due) {
		sim.report(cluster, a, i)
	}
}

// fate draws what becomes of an admission, and when.
func (sim *simulation) fate() (outcome, time.Time) {
	soon := sim.now.Add(time.Duration(5+sim.rng.IntN(60)) * time.Second)
	late := sim.now.Add(time.Duration(100+sim.rng.IntN(500)) * time.Second)
	n := sim.rng.IntN(100)
	switch {
	case sim.dies:
		return success, soon
	case sim.bad && n < 50, !sim.bad && n >= 95:
		return stall, soon
	case sim.bad, !sim.bad && n >= 92:
		return silence, time.Time{}
	case n >= 85:
		return stallThenRecover, soon
	case n >= 78:
		return success, late
	}
	return success, soon
}

func (sim *simulation) report(cluster string, a *agent, i install) {
	e := sim.entry(i)
	a.due = time.Time{}
	switch a.outcome {
	case success:
		anew := !i.isUpdated()
		sim.putInstall(cluster, func(i *install) { i.Stalled, i.Ready, i.SucceededHash = false, true, i.Stamp.Hash })
		e.released = true
		if sim.lastRan != nil {
			sim.lastRan[cluster] = i.Stamp.Hash
		}
		sim.bring(cluster, i)
		if anew {
			e.succeededAt, e.succeededRV = sim.now, sim.present()[cluster].rv
		}
		sim.log("%s: succeeded", cluster)
		if sim.dies && !sim.good[i.Stamp.Hash] {
			a.outcome, a.due = death, sim.now.Add(time.Duration(sim.rng.IntN(30))*time.Second)
		}
	case recovery:
		sim.putInstall(cluster, func(i *install) { i.Stalled, i.Ready = false, true })
		sim.log("%s: is Ready again", cluster)
	case death:
		sim.putInstall(cluster, func(i *install) { i.Ready = false })
		sim.log("%s: is not Ready any more", cluster)
	case stall, stallThenRecover:
		sim.putInstall(cluster, func(i *install) {
			i.Stalled, i.Ready = true, false
			if sim.isRefused(cluster, *i) {
				i.StalledReason = v1alpha1.ReasonNotAdoptable
			}
		})
		e.released = true
		sim.log("%s: stalled", cluster)
		if a.outcome == stallThenRecover {
			a.outcome, a.due = success, sim.now.Add(time.Duration(sim.rng.IntN(200))*time.Second)
		}
	}
}

// pass lets time pass. Pods die on time.
func (sim *simulation) pass(d time.Duration) {
	sim.now = sim.now.Add(d)
	for _, name := range slices.Sorted(maps.Keys(sim.present())) {
		a, i := sim.agents[name], sim.present()[name]
		if a != nil && a.outcome == death && a.uid == i.uid && a.stamp == i.Stamp && !a.due.IsZero() &&
			!sim.now.Before(a.due) {
			sim.report(name, a, i)
		}
	}
}

// sicken makes an updated cluster not Ready, for some time or permanently.
func (sim *simulation) sicken(cluster string) {
	i, a := sim.present()[cluster], sim.agents[cluster]
	if a == nil || a.uid != i.uid || a.stamp != i.Stamp || !i.isUpdated() || !i.Ready ||
		!sim.clusters()[cluster].Online {
		return
	}
	stalls := sim.rng.IntN(3) == 0
	sim.putInstall(cluster, func(i *install) { i.Ready, i.Stalled = false, stalls })
	a.outcome, a.due = recovery, sim.now.Add(time.Duration(5+sim.rng.IntN(100))*time.Second)
	if sim.rng.IntN(8) == 0 {
		a.due = time.Time{}
	}
	sim.log("%s: falls sick until %s", cluster, a.due.Format("15:04:05"))
}

// takeOut lets the operator controller delete installs that are not wanted.
func (sim *simulation) takeOut() {
	for _, name := range slices.Sorted(maps.Keys(sim.present())) {
		c, enrolled := sim.clusters()[name]
		if !sim.present()[name].Deleting && (!enrolled || c.Deleting || c.Labels["fleet"] != "yes") {
			sim.putInstall(name, func(i *install) { i.Deleting = true })
			sim.log("%s: install is being deleted", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sim.clusters())) {
		if _, has := sim.present()[name]; !has && sim.clusters()[name].Deleting {
			sim.putCluster(name, nil)
		}
	}
}
