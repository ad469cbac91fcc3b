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

// world is the truth of a simulated fleet. Everything that a hub sees is one
// of its past or present states.
type world struct {
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
	// disturbed says that clusters go offline although the release is bad.
	disturbed bool
	// good are releases that succeed everywhere, by hash.
	good map[string]bool
	// operator is its name, and peer another one on the same clusters; nil if there
	// is none.
	operator string
	peer     *world
	// depends says that the other operator has to be Ready on a cluster first.
	depends bool
	// windows are open at times, by the name of a schedule.
	windows map[string]schedule
	// active is the hub that is not held up just now.
	active int
	measurements
	// policies are those of the platform team, each with a generation of its own.
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

// isUpdated tells whether the release of its stamp is installed.
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

// ledgerEntry is what became of an admission, in truth.
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
	// recovery makes an updated cluster Ready again, death makes it not Ready for
	// good.
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

func (w *world) log(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%s ", w.now.Format("15:04:05"))+fmt.Sprintf(format, args...))
}

// violate records the first invariant that does not hold.
func (w *world) violate(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
		w.log("VIOLATED: %s", w.broken)
	}
}

func (w *world) present() installs { return w.installs[len(w.installs)-1] }

func (w *world) clusters() fleet { return w.fleet[len(w.fleet)-1] }

func (r *rollout) now() *v1alpha1.OperatorRollout { return r.history[len(r.history)-1] }

func (w *world) latest() *rollout { return w.rollouts[len(w.rollouts)-1] }

// putInstall writes an install; a nil change deletes it.
func (w *world) putInstall(cluster string, change func(*install)) {
	next := maps.Clone(w.present())
	w.writes++
	if change == nil {
		delete(next, cluster)
		w.installs = append(w.installs, next)
		return
	}
	at, exists := next[cluster]
	if !exists {
		w.uids++
		at = install{Install: rollouts.Install{Cluster: cluster}, uid: w.uids}
	}
	change(&at)
	switch {
	case at.Ready || !at.isUpdated():
		at.unreadySince = time.Time{}
	case at.unreadySince.IsZero():
		at.unreadySince = w.now
	}
	at.rv = len(w.installs) + 1
	next[cluster] = at
	w.installs = append(w.installs, next)
}

func (w *world) putCluster(name string, change func(*rollouts.Cluster)) {
	next := maps.Clone(w.clusters())
	if change == nil {
		delete(next, name)
	} else {
		c := next[name]
		c.Labels = maps.Clone(c.Labels)
		change(&c)
		next[name] = c
	}
	w.fleet = append(w.fleet, next)
	w.writes++
}

// putRollout writes a rollout if it is still at the version that was read.
func (w *world) putRollout(r *rollout, read string, change func(*v1alpha1.OperatorRollout)) bool {
	if r.now().ResourceVersion != read {
		return false
	}
	next := r.now().DeepCopy()
	change(next)
	next.ResourceVersion = strconv.Itoa(len(r.history) + 1)
	r.history = append(r.history, next)
	w.writes++
	return true
}

func (w *world) startRollout(strategy v1alpha1.RolloutStrategy) {
	n := len(w.rollouts) + 1
	ro := &v1alpha1.OperatorRollout{}
	ro.Name, ro.UID, ro.ResourceVersion = fmt.Sprintf("echo-%d", n), types.UID(fmt.Sprintf("uid-%d", n)), "1"
	ro.Spec = v1alpha1.OperatorRolloutSpec{
		Operator: v1alpha1.LocalReference{Name: w.operator}, Revision: int64(n),
		Release:  v1alpha1.Release{Package: "echo", Version: fmt.Sprintf("1.%d.0", n)},
		Strategy: strategy,
	}
	ro.Spec.ClusterSelector.MatchLabels = map[string]string{"fleet": "yes"}
	w.rollouts = append(w.rollouts, &rollout{
		history: []*v1alpha1.OperatorRollout{ro}, ever: map[string]map[string]bool{},
		touched: map[string]map[string]bool{},
	})
	w.writes++
	w.log("start %s with %d waves", ro.Name, len(strategy.Waves))
}

func (w *world) setOnline(name string, online bool) {
	w.putCluster(name, func(c *rollouts.Cluster) {
		if online && !c.Online {
			c.OnlineSince = w.now
		}
		c.Online = online
	})
}

// entry is the ledger's entry for the stamp that an install carries now.
func (w *world) entry(i install) *ledgerEntry {
	return w.ledger[ledgerKey{i.Cluster, i.uid, i.Stamp.RolloutUID}]
}

// work lets the agent of a cluster do one thing.
func (w *world) work(cluster string) {
	i, exists := w.present()[cluster]
	c, enrolled := w.clusters()[cluster]
	if exists && (i.Deleting || !enrolled) {
		if c.Online || !enrolled {
			w.putInstall(cluster, nil)
			w.log("%s: install is gone", cluster)
		}
		return
	}
	if !exists || !c.Online || i.Stamp.RolloutUID == "" {
		return
	}
	a := w.agents[cluster]
	if a == nil || a.uid != i.uid {
		a = &agent{uid: i.uid}
		w.agents[cluster] = a
	}
	if i.revision < a.acted {
		w.violate("%s: the stamp went back from revision %d to %d", cluster, a.acted, i.revision)
		return
	}
	if a.stamp != i.Stamp {
		a.acted, a.stamp = i.revision, i.Stamp
		a.outcome, a.due = w.fate()
		if w.good[i.Stamp.Hash] {
			a.outcome, a.due = success, w.now.Add(time.Duration(5+w.rng.IntN(60))*time.Second)
		}
		return
	}
	if !a.due.IsZero() && !w.now.Before(a.due) {
		w.report(cluster, a, i)
	}
}

// fate draws what becomes of an admission, and when.
func (w *world) fate() (outcome, time.Time) {
	soon := w.now.Add(time.Duration(5+w.rng.IntN(60)) * time.Second)
	late := w.now.Add(time.Duration(100+w.rng.IntN(500)) * time.Second)
	n := w.rng.IntN(100)
	switch {
	case w.dies:
		return success, soon
	case w.bad && n < 50, !w.bad && n >= 95:
		return stall, soon
	case w.bad, !w.bad && n >= 92:
		return silence, time.Time{}
	case n >= 85:
		return stallThenRecover, soon
	case n >= 78:
		return success, late
	}
	return success, soon
}

func (w *world) report(cluster string, a *agent, i install) {
	e := w.entry(i)
	a.due = time.Time{}
	switch a.outcome {
	case success:
		anew := !i.isUpdated()
		w.putInstall(cluster, func(i *install) { i.Stalled, i.Ready, i.SucceededHash = false, true, i.Stamp.Hash })
		e.released = true
		if w.lastRan != nil {
			w.lastRan[cluster] = i.Stamp.Hash
		}
		if anew {
			e.succeededAt, e.succeededRV = w.now, w.present()[cluster].rv
		}
		w.log("%s: succeeded", cluster)
		if w.dies && !w.good[i.Stamp.Hash] {
			a.outcome, a.due = death, w.now.Add(time.Duration(w.rng.IntN(30))*time.Second)
		}
	case recovery:
		w.putInstall(cluster, func(i *install) { i.Stalled, i.Ready = false, true })
		w.log("%s: is Ready again", cluster)
	case death:
		w.putInstall(cluster, func(i *install) { i.Ready = false })
		w.log("%s: is not Ready any more", cluster)
	case stall, stallThenRecover:
		w.putInstall(cluster, func(i *install) { i.Stalled, i.Ready = true, false })
		e.released = true
		w.log("%s: stalled", cluster)
		if a.outcome == stallThenRecover {
			a.outcome, a.due = success, w.now.Add(time.Duration(w.rng.IntN(200))*time.Second)
		}
	}
}

// pass lets time pass. Pods die on time.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for _, name := range slices.Sorted(maps.Keys(w.present())) {
		a, i := w.agents[name], w.present()[name]
		if a != nil && a.outcome == death && a.uid == i.uid && a.stamp == i.Stamp && !a.due.IsZero() &&
			!w.now.Before(a.due) {
			w.report(name, a, i)
		}
	}
}

// sicken makes an updated cluster not Ready for a while, or for good.
func (w *world) sicken(cluster string) {
	i, a := w.present()[cluster], w.agents[cluster]
	if a == nil || a.uid != i.uid || a.stamp != i.Stamp || !i.isUpdated() || !i.Ready || !w.clusters()[cluster].Online {
		return
	}
	stalls := w.rng.IntN(3) == 0
	w.putInstall(cluster, func(i *install) { i.Ready, i.Stalled = false, stalls })
	a.outcome, a.due = recovery, w.now.Add(time.Duration(5+w.rng.IntN(100))*time.Second)
	if w.rng.IntN(8) == 0 {
		a.due = time.Time{}
	}
	w.log("%s: falls sick until %s", cluster, a.due.Format("15:04:05"))
}

// takeOut lets the operator controller delete installs that are not wanted.
func (w *world) takeOut() {
	for _, name := range slices.Sorted(maps.Keys(w.present())) {
		c, enrolled := w.clusters()[name]
		if !w.present()[name].Deleting && (!enrolled || c.Deleting || c.Labels["fleet"] != "yes") {
			w.putInstall(name, func(i *install) { i.Deleting = true })
			w.log("%s: install is being deleted", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.clusters())) {
		if _, has := w.present()[name]; !has && w.clusters()[name].Deleting {
			w.putCluster(name, nil)
		}
	}
}
