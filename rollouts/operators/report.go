// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// maxVersions is the API's limit for status.versions.
const maxVersions = 50

// reportCounts sets the counts of clusters, the versions and the newest rollout in the status, which depend on no
// decision. A cluster counts as Ready only while it is online.
func (p *pass) reportCounts() {
	status := &p.decision.Status
	status.Clusters = v1alpha1.ClusterCounts{Selected: int32(len(p.selected))}
	versions := map[string]int32{}
	for name, cluster := range p.selected {
		install, found := p.installByCluster[name]
		switch {
		case !cluster.Online:
			status.Clusters.Offline++
		case found && install.Ready:
			status.Clusters.Ready++
		}
	}
	for _, install := range p.Installs {
		if install.Installed.Name != "" {
			versions[formatVersion(install.Installed)]++
		}
	}
	status.Versions = listMostUsed(versions)
	status.Rollout = nil
	if p.newest != nil {
		status.Clusters.Updated = p.countUpdated(p.newest.Spec.Release)
		status.Rollout = &v1alpha1.RolloutSummary{
			Name: p.newest.Name, Revision: p.newest.Spec.Revision,
			Phase: cmp.Or(p.newest.Status.Phase, v1alpha1.RolloutPending), StrategyOutdated: p.isStrategyOutdated(),
		}
	}
}

// countSucceeded counts the selected clusters on which the release, with its settings, succeeded last, even if it was
// changed later.
func (p *pass) countSucceeded(release v1alpha1.Release) int {
	hash := release.Hash()
	return p.countInstalls(func(i Install) bool { return i.SucceededHash == hash })
}

// countUpdated counts the selected clusters on which the release, with its settings, succeeded last and is still
// installed. A release that takes over the installed operator counts on every cluster where it succeeded.
func (p *pass) countUpdated(release v1alpha1.Release) int32 {
	hash := release.Hash()
	return int32(p.countInstalls(func(i Install) bool {
		return i.SucceededHash == hash && (release.AsInstalled || i.Installed.Name == release.Bundle)
	}))
}

// countInstalls counts the selected clusters whose install meets a condition.
func (p *pass) countInstalls(meets func(Install) bool) int {
	n := 0
	for name := range p.selected {
		if install, found := p.installByCluster[name]; found && meets(install) {
			n++
		}
	}
	return n
}

// noteStaleReports returns a note that lists the offline clusters, so that their old state is not read as current. It
// returns "" if there are none.
func (p *pass) noteStaleReports() string {
	var stale []string
	for name, cluster := range p.selected {
		if _, found := p.installByCluster[name]; !found || cluster.Online {
			continue
		}
		if !cluster.OfflineSince.IsZero() {
			name += " (since " + phrase.Time(cluster.OfflineSince) + ")"
		}
		stale = append(stale, name)
	}
	if len(stale) == 0 {
		return ""
	}
	return "; no current report from " + phrase.First(sortNames(stale), maxNamed)
}

// listMostUsed returns the versions with their numbers of clusters, the most used version first.
func listMostUsed(versions map[string]int32) []v1alpha1.VersionCount {
	names := slices.Collect(maps.Keys(versions))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(versions[b], versions[a]), cmp.Compare(a, b))
	})
	var out []v1alpha1.VersionCount
	for _, name := range names[:min(len(names), maxVersions)] {
		out = append(out, v1alpha1.VersionCount{Version: name, Clusters: versions[name]})
	}
	return out
}

// summarizeRollout returns the state of the newest rollout, which has the release of the spec. After a success, it
// returns the current state of the clusters.
func (p *pass) summarizeRollout(release v1alpha1.Release) conditions.Summary {
	r := p.newest
	text := fmt.Sprintf("rollout %s %s", r.Name, release.Purpose())
	if r.Status.Message != "" {
		text += ": " + r.Status.Message
	}
	if isUnobserved(r) {
		return newStalled(v1alpha1.ReasonNotObserved, text)
	}
	switch r.Status.Phase {
	case v1alpha1.RolloutHalted:
		return newStalled(v1alpha1.ReasonHalted, text)
	case v1alpha1.RolloutAborted:
		return newStalled(v1alpha1.ReasonAborted, text+
			"; change the version or the settings, or set spec.restart, to start another rollout")
	case v1alpha1.RolloutPaused:
		return newWaiting(v1alpha1.ReasonPaused, text)
	case v1alpha1.RolloutSucceeded:
		return p.summarizeSucceeded(release)
	case v1alpha1.RolloutPending, v1alpha1.RolloutProgressing, v1alpha1.RolloutSuperseded,
		v1alpha1.RolloutRolledBack: // the rollout runs, or another rollout follows
	}
	return newWaiting(v1alpha1.ReasonProgressing, text)
}

// isIgnored reports whether a cluster joined late and waits for the next rollout.
func (p *pass) isIgnored(install Install) bool {
	return p.newest.Spec.Strategy.LateJoiners == v1alpha1.LateIgnore && install.Rollout != p.newest.Name
}

// summarizeSucceeded returns the state after a rollout has succeeded. It is Current if a cluster runs the release and
// no selected cluster is outdated or unready. Offline and paused clusters, and late joiners that wait for the next
// rollout, do not count.
func (p *pass) summarizeSucceeded(release v1alpha1.Release) conditions.Summary {
	var outdated, deferred, unready []string
	hash := release.Hash()
	for name, cluster := range p.selected {
		install, found := p.installByCluster[name]
		switch {
		case found && install.SucceededHash == hash && install.Ready: // up to date
		case !cluster.Online || cluster.Paused:
			deferred = append(deferred, name)
		case found && install.SucceededHash == hash:
			unready = append(unready, name)
		case p.isIgnored(install): // waits for the next rollout
		default:
			outdated = append(outdated, name)
		}
	}
	text := fmt.Sprintf("%s %s %s", phrase.Part(int(p.countUpdated(release)), len(p.selected), "cluster"),
		phrase.Word(len(p.selected), "runs", "run"), release.Version)
	if len(deferred) > 0 {
		text += fmt.Sprintf("; deferred because offline or paused: %s", phrase.First(sortNames(deferred), maxNamed))
	}
	switch {
	case len(outdated) > 0:
		return newWaiting(v1alpha1.ReasonProgressing, fmt.Sprintf("%s; not updated yet: %s", text,
			phrase.First(sortNames(outdated), maxNamed)))
	case len(unready) > 0:
		return newWaiting(v1alpha1.ReasonClustersNotReady, fmt.Sprintf("%s; no longer Ready: %s", text,
			phrase.First(sortNames(unready), maxNamed)))
	case p.countUpdated(release) == 0: // no cluster runs the release, so nothing shows that it works
		return newWaiting(v1alpha1.ReasonClustersNotReady, text+"; no cluster runs it now")
	default:
		return conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded, Message: text}
	}
}
