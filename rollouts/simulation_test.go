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
	// disturbed says that clusters go offline although the release is bad.
	disturbed bool
	// good are releases that succeed everywhere, by hash.
	good map[string]bool
	// operator is its name, and peer another one on the same clusters; nil if there
	// is none.
	operator string
	peer     *simulation
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

func (s *simulation) log(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("%s ", s.now.Format("15:04:05"))+fmt.Sprintf(format, args...))
}

// violate records the first invariant that does not hold.
func (s *simulation) violate(format string, args ...any) {
	if s.broken == "" {
		s.broken = fmt.Sprintf(format, args...)
		s.log("VIOLATED: %s", s.broken)
	}
}

func (s *simulation) present() installs { return s.installs[len(s.installs)-1] }

func (s *simulation) clusters() fleet { return s.fleet[len(s.fleet)-1] }

func (r *rollout) now() *v1alpha1.OperatorRollout { return r.history[len(r.history)-1] }

func (s *simulation) latest() *rollout { return s.rollouts[len(s.rollouts)-1] }

// putInstall writes an install; a nil change deletes it.
func (s *simulation) putInstall(cluster string, change func(*install)) {
	next := maps.Clone(s.present())
	s.writes++
	if change == nil {
		delete(next, cluster)
		s.installs = append(s.installs, next)
		return
	}
	at, exists := next[cluster]
	if !exists {
		s.uids++
		at = install{Install: rollouts.Install{Cluster: cluster}, uid: s.uids}
	}
	change(&at)
	switch {
	case at.Ready || !at.isUpdated():
		at.unreadySince = time.Time{}
	case at.unreadySince.IsZero():
		at.unreadySince = s.now
	}
	at.rv = len(s.installs) + 1
	next[cluster] = at
	s.installs = append(s.installs, next)
}

func (s *simulation) putCluster(name string, change func(*rollouts.Cluster)) {
	next := maps.Clone(s.clusters())
	if change == nil {
		delete(next, name)
	} else {
		c := next[name]
		c.Labels = maps.Clone(c.Labels)
		change(&c)
		next[name] = c
	}
	s.fleet = append(s.fleet, next)
	s.writes++
}

// putRollout writes a rollout if it is still at the version that was read.
func (s *simulation) putRollout(r *rollout, read string, change func(*v1alpha1.OperatorRollout)) bool {
	if r.now().ResourceVersion != read {
		return false
	}
	next := r.now().DeepCopy()
	change(next)
	next.ResourceVersion = strconv.Itoa(len(r.history) + 1)
	r.history = append(r.history, next)
	s.writes++
	return true
}

func (s *simulation) startRollout(strategy v1alpha1.RolloutStrategy) {
	n := len(s.rollouts) + 1
	ro := &v1alpha1.OperatorRollout{}
	ro.Name, ro.UID, ro.ResourceVersion = fmt.Sprintf("echo-%d", n), types.UID(fmt.Sprintf("uid-%d", n)), "1"
	ro.Spec = v1alpha1.OperatorRolloutSpec{
		Operator: v1alpha1.LocalReference{Name: s.operator}, Revision: int64(n),
		Release:  v1alpha1.Release{Package: "echo", Version: fmt.Sprintf("1.%d.0", n)},
		Strategy: strategy,
	}
	ro.Spec.ClusterSelector.MatchLabels = map[string]string{"fleet": "yes"}
	s.rollouts = append(s.rollouts, &rollout{
		history: []*v1alpha1.OperatorRollout{ro}, ever: map[string]map[string]bool{},
		touched: map[string]map[string]bool{},
	})
	s.writes++
	s.log("start %s with %d waves", ro.Name, len(strategy.Waves))
}

func (s *simulation) setOnline(name string, online bool) {
	s.putCluster(name, func(c *rollouts.Cluster) {
		if online && !c.Online {
			c.OnlineSince = s.now
		}
		c.Online = online
	})
}

// entry is the ledger's entry for the stamp that an install carries now.
func (s *simulation) entry(i install) *ledgerEntry {
	return s.ledger[ledgerKey{i.Cluster, i.uid, i.Stamp.RolloutUID}]
}

// work lets the agent of a cluster do one thing.
func (s *simulation) work(cluster string) {
	i, exists := s.present()[cluster]
	c, enrolled := s.clusters()[cluster]
	if exists && (i.Deleting || !enrolled) {
		if c.Online || !enrolled {
			s.putInstall(cluster, nil)
			s.log("%s: install is gone", cluster)
		}
		return
	}
	if !exists || !c.Online || i.Stamp.RolloutUID == "" {
		return
	}
	a := s.agents[cluster]
	if a == nil || a.uid != i.uid {
		a = &agent{uid: i.uid}
		s.agents[cluster] = a
	}
	if i.revision < a.acted {
		s.violate("%s: the stamp went back from revision %d to %d", cluster, a.acted, i.revision)
		return
	}
	if a.stamp != i.Stamp {
		a.acted, a.stamp = i.revision, i.Stamp
		a.outcome, a.due = s.fate()
		if s.good[i.Stamp.Hash] {
			a.outcome, a.due = success, s.now.Add(time.Duration(5+s.rng.IntN(60))*time.Second)
		}
		return
	}
	if !a.due.IsZero() && !s.now.Before(a.due) {
		s.report(cluster, a, i)
	}
}

// fate draws what becomes of an admission, and when.
func (s *simulation) fate() (outcome, time.Time) {
	soon := s.now.Add(time.Duration(5+s.rng.IntN(60)) * time.Second)
	late := s.now.Add(time.Duration(100+s.rng.IntN(500)) * time.Second)
	n := s.rng.IntN(100)
	switch {
	case s.dies:
		return success, soon
	case s.bad && n < 50, !s.bad && n >= 95:
		return stall, soon
	case s.bad, !s.bad && n >= 92:
		return silence, time.Time{}
	case n >= 85:
		return stallThenRecover, soon
	case n >= 78:
		return success, late
	}
	return success, soon
}

func (s *simulation) report(cluster string, a *agent, i install) {
	e := s.entry(i)
	a.due = time.Time{}
	switch a.outcome {
	case success:
		anew := !i.isUpdated()
		s.putInstall(cluster, func(i *install) { i.Stalled, i.Ready, i.SucceededHash = false, true, i.Stamp.Hash })
		e.released = true
		if s.lastRan != nil {
			s.lastRan[cluster] = i.Stamp.Hash
		}
		if anew {
			e.succeededAt, e.succeededRV = s.now, s.present()[cluster].rv
		}
		s.log("%s: succeeded", cluster)
		if s.dies && !s.good[i.Stamp.Hash] {
			a.outcome, a.due = death, s.now.Add(time.Duration(s.rng.IntN(30))*time.Second)
		}
	case recovery:
		s.putInstall(cluster, func(i *install) { i.Stalled, i.Ready = false, true })
		s.log("%s: is Ready again", cluster)
	case death:
		s.putInstall(cluster, func(i *install) { i.Ready = false })
		s.log("%s: is not Ready any more", cluster)
	case stall, stallThenRecover:
		s.putInstall(cluster, func(i *install) { i.Stalled, i.Ready = true, false })
		e.released = true
		s.log("%s: stalled", cluster)
		if a.outcome == stallThenRecover {
			a.outcome, a.due = success, s.now.Add(time.Duration(s.rng.IntN(200))*time.Second)
		}
	}
}

// pass lets time pass. Pods die on time.
func (s *simulation) pass(d time.Duration) {
	s.now = s.now.Add(d)
	for _, name := range slices.Sorted(maps.Keys(s.present())) {
		a, i := s.agents[name], s.present()[name]
		if a != nil && a.outcome == death && a.uid == i.uid && a.stamp == i.Stamp && !a.due.IsZero() &&
			!s.now.Before(a.due) {
			s.report(name, a, i)
		}
	}
}

// sicken makes an updated cluster not Ready for a while, or for good.
func (s *simulation) sicken(cluster string) {
	i, a := s.present()[cluster], s.agents[cluster]
	if a == nil || a.uid != i.uid || a.stamp != i.Stamp || !i.isUpdated() || !i.Ready || !s.clusters()[cluster].Online {
		return
	}
	stalls := s.rng.IntN(3) == 0
	s.putInstall(cluster, func(i *install) { i.Ready, i.Stalled = false, stalls })
	a.outcome, a.due = recovery, s.now.Add(time.Duration(5+s.rng.IntN(100))*time.Second)
	if s.rng.IntN(8) == 0 {
		a.due = time.Time{}
	}
	s.log("%s: falls sick until %s", cluster, a.due.Format("15:04:05"))
}

// takeOut lets the operator controller delete installs that are not wanted.
func (s *simulation) takeOut() {
	for _, name := range slices.Sorted(maps.Keys(s.present())) {
		c, enrolled := s.clusters()[name]
		if !s.present()[name].Deleting && (!enrolled || c.Deleting || c.Labels["fleet"] != "yes") {
			s.putInstall(name, func(i *install) { i.Deleting = true })
			s.log("%s: install is being deleted", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.clusters())) {
		if _, has := s.present()[name]; !has && s.clusters()[name].Deleting {
			s.putCluster(name, nil)
		}
	}
}
