// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// maxVersions is the API's bound on status.versions.
const maxVersions = 50

// count fills in the parts of the status that need no decision.
func (p *pass) count() {
	status := &p.decision.Status
	status.Clusters = v1alpha1.ClusterCounts{Selected: int32(len(p.selected))}
	versions := map[string]int32{}
	for name, cluster := range p.selected {
		install, found := p.byName[name]
		switch {
		case !cluster.Online:
			status.Clusters.Offline++
		case found && install.Ready:
			status.Clusters.Ready++
		}
	}
	for _, install := range p.Installs {
		if install.Installed.Name != "" {
			versions[versionText(install.Installed)]++
		}
	}
	status.Versions = mostUsed(versions)
	status.Rollout = nil
	if p.newest != nil {
		status.Clusters.Updated = p.updated(p.newest.Spec.Release)
		status.Rollout = &v1alpha1.RolloutSummary{
			Name: p.newest.Name, Revision: p.newest.Spec.Revision,
			Phase: cmp.Or(p.newest.Status.Phase, v1alpha1.RolloutPending), StrategyOutdated: p.isStrategyOutdated(),
		}
	}
}

// succeeded counts the selected clusters on which a release was ever installed with its settings, whatever has
// become of it.
func (p *pass) succeeded(release v1alpha1.Release) int {
	hash := release.Hash()
	return p.countInstalls(func(i Install) bool { return i.SucceededHash == hash })
}

// updated counts the selected clusters on which a release was installed with its settings and, as the agent last
// saw it, is installed still. One that takes over what is installed counts wherever it has succeeded.
func (p *pass) updated(release v1alpha1.Release) int32 {
	hash := release.Hash()
	return int32(p.countInstalls(func(i Install) bool {
		return i.SucceededHash == hash && (release.AsInstalled || i.Installed.Name == release.Bundle)
	}))
}

// countInstalls counts the selected clusters whose install meets a condition.
func (p *pass) countInstalls(meets func(Install) bool) int {
	n := 0
	for name := range p.selected {
		if install, found := p.byName[name]; found && meets(install) {
			n++
		}
	}
	return n
}

// staleReports names the selected clusters without a current report, so that
// their old state is not read as current.
func (p *pass) staleReports() string {
	var old []string
	for name, cluster := range p.selected {
		if _, found := p.byName[name]; !found || cluster.Online {
			continue
		}
		if !cluster.OfflineSince.IsZero() {
			name += " (since " + phrase.Time(cluster.OfflineSince) + ")"
		}
		old = append(old, name)
	}
	if len(old) == 0 {
		return ""
	}
	return "; no current report from " + phrase.First(sorted(old), maxNamed)
}

func mostUsed(versions map[string]int32) []v1alpha1.VersionCount {
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

// summarizeRollout summarizes the newest rollout, which is the one that the
// spec asks for.
func (p *pass) summarizeRollout(release v1alpha1.Release) conditions.Summary {
	r := p.newest
	text := fmt.Sprintf("rollout %s %s", r.Name, release.Purpose())
	if r.Status.Message != "" {
		text += ": " + r.Status.Message
	}
	if isUnobserved(r) {
		return stalled(v1alpha1.ReasonNotObserved, text)
	}
	switch r.Status.Phase {
	case v1alpha1.RolloutHalted:
		return stalled(v1alpha1.ReasonHalted, text)
	case v1alpha1.RolloutAborted:
		return stalled(v1alpha1.ReasonAborted, text+
			"; change the version or the settings, or set spec.restart, to start another rollout")
	case v1alpha1.RolloutPaused:
		return waiting(v1alpha1.ReasonPaused, text)
	case v1alpha1.RolloutSucceeded:
		return p.summarizeSucceeded(release)
	case v1alpha1.RolloutPending, v1alpha1.RolloutProgressing, v1alpha1.RolloutSuperseded,
		v1alpha1.RolloutRolledBack:
	}
	return waiting(v1alpha1.ReasonProgressing, text)
}

// isIgnored tells whether a cluster joined late and is left to the next
// rollout.
func (p *pass) isIgnored(install Install) bool {
	return p.newest.Spec.Strategy.LateJoiners == v1alpha1.LateIgnore && install.Rollout != p.newest.Name
}

// summarizeSucceeded summarizes after a rollout has succeeded: clusters may
// have joined since, and deferred ones may be outdated.
func (p *pass) summarizeSucceeded(release v1alpha1.Release) conditions.Summary {
	var outdated, deferred, unready []string
	hash := release.Hash()
	for name, cluster := range p.selected {
		install, found := p.byName[name]
		switch {
		case found && install.SucceededHash == hash && install.Ready:
		case !cluster.Online || cluster.Paused:
			deferred = append(deferred, name)
		case found && install.SucceededHash == hash:
			unready = append(unready, name)
		case p.isIgnored(install):
		default:
			outdated = append(outdated, name)
		}
	}
	text := fmt.Sprintf("%s %s %s", phrase.Part(int(p.updated(release)), len(p.selected), "cluster"),
		phrase.Word(len(p.selected), "runs", "run"), release.Version)
	if len(deferred) > 0 {
		text += fmt.Sprintf("; deferred because offline or paused: %s", phrase.First(sorted(deferred), maxNamed))
	}
	switch {
	case len(outdated) > 0:
		return waiting(v1alpha1.ReasonProgressing, fmt.Sprintf("%s; not updated yet: %s", text,
			phrase.First(sorted(outdated), maxNamed)))
	case len(unready) > 0:
		return waiting(v1alpha1.ReasonClustersNotReady, fmt.Sprintf("%s; no longer Ready: %s", text,
			phrase.First(sorted(unready), maxNamed)))
	case p.updated(release) == 0: // those that ran it are gone: nothing shows that it works anywhere
		return waiting(v1alpha1.ReasonClustersNotReady, text+"; no cluster runs it now")
	default:
		return conditions.Summary{State: conditions.Current, Reason: v1alpha1.ReasonSucceeded, Message: text}
	}
}
