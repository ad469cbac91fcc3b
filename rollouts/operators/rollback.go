// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// ensureRollback starts the rollback of the newest rollout if that ended as RolledBack, and returns a summary while a
// rollback starts or runs. It needs no catalog: a rollback must not depend on a registry or on the current spec. It
// returns nil if no rollback is in progress, or if a person must decide about the rollback.
func (p *pass) ensureRollback() *conditions.Summary {
	newest := p.newest
	switch {
	case newest == nil:
		return nil
	case newest.Spec.Rollback == nil && newest.Status.Phase == v1alpha1.RolloutRolledBack:
		return p.startRollback()
	case newest.Spec.Rollback == nil || !isRunning(newest) || p.needsReplacement():
		return nil
	}
	switch newest.Status.Phase {
	case v1alpha1.RolloutHalted, v1alpha1.RolloutPaused:
		return nil // a person must decide
	}
	s := newWaiting(v1alpha1.ReasonRollingBack, p.describeRollback())
	return &s
}

// startRollback creates the rollback of the newest rollout and returns a summary. It also holds the version, so that
// the version is not rolled out again when the rollback is the newest rollout. Without a previous release on any
// cluster, no rollback is created.
func (p *pass) startRollback() *conditions.Summary {
	rollout := p.newest
	spec, hasPrevious := rollouts.NewRollback(rollout, p.listAdmitted())
	if !hasPrevious {
		s := newWaiting(v1alpha1.ReasonRollingBack,
			fmt.Sprintf("rollout %s ended to be rolled back, and no cluster is "+
				"known to have run anything before", rollout.Name))
		return &s
	}
	p.addHold(rollout, spec)
	spec.Revision, spec.Resumed = p.computeNextRevision(), p.readResumedRevision()
	rollback := p.buildRollout(rollout.Spec.Release)
	rollback.Spec = spec
	p.decision.Create = rollback
	p.decision.Status.Rollout = &v1alpha1.RolloutSummary{
		Name: rollback.Name, Revision: spec.Revision, Phase: v1alpha1.RolloutPending,
	}
	s := newWaiting(v1alpha1.ReasonRollingBack, fmt.Sprintf("rollout %s starts: it %s", rollback.Name,
		rollouts.RollbackText(rollback)))
	return &s
}

// listAdmitted returns the installs of selected clusters, without installs that are being deleted.
func (p *pass) listAdmitted() []rollouts.Install {
	list := make([]rollouts.Install, 0, len(p.Installs))
	for _, i := range p.Installs {
		if _, selected := p.selected[i.Cluster]; selected && !i.Deleting {
			list = append(list, i.Admitted)
		}
	}
	return list
}

// isUnfinishedRollbackTo reports whether the newest rollout is a rollback to the release and has not succeeded. Then
// clusters need no upgrade path to the release.
func (p *pass) isUnfinishedRollbackTo(release v1alpha1.Release) bool {
	return p.newest != nil && p.newest.Spec.Rollback != nil &&
		p.newest.Status.Phase != v1alpha1.RolloutSucceeded && p.newest.Spec.Release.Hash() == release.Hash()
}

// describeRollback describes the state of the newest rollout, which is a rollback.
func (p *pass) describeRollback() string {
	text := fmt.Sprintf("rollout %s %s", p.newest.Name, rollouts.RollbackText(p.newest))
	if m := p.newest.Status.Message; m != "" {
		text += "; " + m
	}
	return text
}

// noteRollbackState returns a note on the state of the newest rollout if that is a rollback. Otherwise it returns "".
func (p *pass) noteRollbackState() string {
	if p.newest == nil || p.newest.Spec.Rollback == nil {
		return ""
	}
	return fmt.Sprintf("; rollback %s is %s: %s", p.newest.Name, p.newest.Status.Phase, p.newest.Status.Message)
}

// maxHolds and maxHoldReason are the API's limits for spec.holds.
const (
	maxHolds      = 20
	maxHoldReason = 512
)

// addHold adds a hold of the release of a rollout. If clusters ran the same version with other settings before, only
// the settings are held. If there are too many holds, the oldest holds are dropped.
func (p *pass) addHold(rollout *v1alpha1.OperatorRollout, rollback v1alpha1.OperatorRolloutSpec) {
	h := rollouts.NewHold(rollout, rollback.Release)
	h.Reason = phrase.Truncate("it was rolled back: "+rollback.Rollback.Reason, maxHoldReason)
	if rollout.Status.EndedAt != nil {
		h.Since = *rollout.Status.EndedAt
	}
	holds := slices.DeleteFunc(slices.Clone(p.listHolds()),
		func(o v1alpha1.VersionHold) bool { return isSameHold(o, h) })
	holds = append(holds, h)
	holds = holds[max(len(holds)-maxHolds, 0):]
	if !equality.Semantic.DeepEqual(holds, p.Operator.Spec.Holds) {
		p.decision.Holds = &holds
	}
}

// isSameHold reports whether two holds are of the same version or settings.
func isSameHold(a, b v1alpha1.VersionHold) bool {
	keys := b.Keys()
	return slices.ContainsFunc(a.Keys(), func(key string) bool { return slices.Contains(keys, key) })
}

// reviseHolds removes the hub's own holds of versions that are lower than a version that was rolled out since. It also
// completes holds of earlier versions of the hub, which have only the hash of a release, while the rollout of that
// release exists.
func (p *pass) reviseHolds() {
	if p.decision.Holds != nil {
		return
	}
	holds := slices.DeleteFunc(slices.Clone(p.Operator.Spec.Holds), func(h v1alpha1.VersionHold) bool {
		return !h.IsByPerson() && p.hasNewerRollout(h.Version)
	})
	for i, h := range holds {
		holds[i] = p.completeHold(h)
	}
	if !equality.Semantic.DeepEqual(holds, p.Operator.Spec.Holds) {
		p.decision.Holds = &holds
	}
}

// completeHold returns a hold with the settings of the release that it holds, if these are known.
func (p *pass) completeHold(h v1alpha1.VersionHold) v1alpha1.VersionHold {
	if h.Settings != "" || h.Release == "" || len(h.Changes) > 0 {
		return h // the hold is complete: it has the changes
	}
	for i := range p.Rollouts {
		if rollout := &p.Rollouts[i]; rollout.Spec.Release.Hash() == h.Release {
			return p.completeHoldFromRollout(rollout, h)
		}
	}
	for _, i := range p.Installs { // the rollout was deleted, and a cluster still has its release
		if i.Release != nil && i.Release.Hash() == h.Release {
			h.Settings = i.Release.SettingsHash()
		}
	}
	return h
}

// completeHoldFromRollout returns h with the settings and changes of the release of a rollout. If the rollback is not
// known, the changed settings are not known. Then all settings are held.
func (p *pass) completeHoldFromRollout(rollout *v1alpha1.OperatorRollout, h v1alpha1.VersionHold) v1alpha1.VersionHold {
	rollbackRelease := p.findRollbackRelease(rollout)
	full := rollouts.NewHold(rollout, rollbackRelease)
	h.Settings, h.Changes = full.Settings, full.Changes
	if rollbackRelease.Version == "" {
		h.Settings = rollout.Spec.Release.SettingsHash()
	}
	return h
}

// findRollbackRelease returns the release of the rollback of a rollout, or an empty release if there is no rollback.
func (p *pass) findRollbackRelease(rollout *v1alpha1.OperatorRollout) v1alpha1.Release {
	for i := range p.Rollouts {
		if r := &p.Rollouts[i].Spec; r.Rollback != nil && r.Rollback.Of == rollout.Name {
			return r.Release
		}
	}
	return v1alpha1.Release{}
}

// listHolds returns the holds that are in force after this pass.
func (p *pass) listHolds() []v1alpha1.VersionHold {
	if p.decision.Holds != nil {
		return *p.decision.Holds
	}
	return p.Operator.Spec.Holds
}

// hasNewerRollout reports whether the newest rollout succeeded with a higher version.
func (p *pass) hasNewerRollout(version string) bool {
	newest := p.newest
	return newest != nil && newest.Spec.Rollback == nil && newest.Status.Phase == v1alpha1.RolloutSucceeded &&
		isHigher(newest.Spec.Release.Version, version)
}

// addHeldBlocks adds blocks for held versions to list, the blocks of the catalog. The result is sorted, without
// duplicates and within the API's limit: blocks of the catalog are dropped to make room for held versions.
func addHeldBlocks(list, held []v1alpha1.VersionBlock) []v1alpha1.VersionBlock {
	list = list[:min(len(list), catalogs.MaxBlocksPerInstall-len(held))]
	for _, b := range held {
		if !slices.ContainsFunc(list, func(o v1alpha1.VersionBlock) bool {
			return o.Package == b.Package && o.Version == b.Version
		}) {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, catalogs.CompareBlocks)
	return list
}

// findVersionHold returns the hold of a whole version, and whether there is one.
func (p *pass) findVersionHold(version string) (v1alpha1.VersionHold, bool) {
	for _, h := range p.Operator.Spec.Holds {
		if version != "" && h.Version == version && h.IsOfVersion() {
			return h, true
		}
	}
	return v1alpha1.VersionHold{}, false
}

// checkHold returns a problem if the release is held. Otherwise it returns nil.
func (p *pass) checkHold(release v1alpha1.Release) *conditions.Summary {
	if h, held := p.findReleaseHold(release); held {
		s := newStalled(v1alpha1.ReasonVersionHeld, p.explainHold(h))
		return &s
	}
	return nil
}

// findReleaseHold returns the hold that covers a release, and whether there is one.
func (p *pass) findReleaseHold(release v1alpha1.Release) (v1alpha1.VersionHold, bool) {
	if release.AsInstalled {
		return v1alpha1.VersionHold{}, false // such a release brings no version
	}
	for _, h := range p.Operator.Spec.Holds {
		if h.Covers(release) {
			return h, true
		}
	}
	return v1alpha1.VersionHold{}, false
}

// explainHold says what is held, why, and how a person can end the hold.
func (p *pass) explainHold(h v1alpha1.VersionHold) string {
	return fmt.Sprintf("%s%s: %s; %s", h, formatSince(h.Since), explainHoldReason(h), p.explainHoldEnd(h))
}

// explainHoldEnd says how a person can end a hold.
func (p *pass) explainHoldEnd(h v1alpha1.VersionHold) string {
	alternative := "change spec.channel or spec.install"
	switch {
	case h.IsOfVersion():
		alternative = "set spec.version to a corrected version"
	case h.IsOfSettings():
		alternative = "change spec.install"
	}
	return fmt.Sprintf("%s, or release the hold with `%s`", alternative, p.buildReleaseCommand(h))
}

// buildReleaseCommand returns the command that releases exactly this hold. If there are several holds with the same
// version, the command also names the rollout.
func (p *pass) buildReleaseCommand(h v1alpha1.VersionHold) string {
	command := fmt.Sprintf("bellwether operator release-hold %s %s", p.Operator.Name, h.Version)
	sameVersion := 0
	for _, o := range p.listHolds() {
		if o.Version == h.Version {
			sameVersion++
		}
	}
	if sameVersion > 1 && !h.IsByPerson() {
		command += " --rollout " + h.Rollout
	}
	return command
}

// explainHoldReason returns the reason of a hold with the held changes.
func explainHoldReason(h v1alpha1.VersionHold) string {
	text := strings.TrimSuffix(h.Reason, ".")
	if len(h.Changes) > 0 {
		text += " (the change: " + strings.Join(h.Changes, "; ") + ")"
	}
	return text
}

// formatSince returns " since TIME", or "" if the time is zero.
func formatSince(t metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + phrase.Time(t.Time)
}

// noteHolds returns a note that lists the holds, because they explain why a version or a change is not rolled out. It
// returns "" if there are none.
func (p *pass) noteHolds() string {
	var subjects []string
	for _, h := range p.listHolds() {
		subject := h.Subject()
		if h.IsOfVersion() {
			subject = h.Version
		}
		subjects = append(subjects, subject)
	}
	if len(subjects) == 0 {
		return ""
	}
	return "; held after a rollback: " + phrase.First(subjects, maxNamed)
}

// reportHolds sets the condition VersionHeld, which describes the holds. It removes the condition if there are none.
func (p *pass) reportHolds() {
	holds := p.listHolds()
	list := &p.decision.Status.Conditions
	if len(holds) == 0 {
		meta.RemoveStatusCondition(list, v1alpha1.ConditionVersionHeld)
		return
	}
	var texts []string
	for _, h := range holds {
		texts = append(texts, describeHold(h))
	}
	conditions.Set(list, p.Operator.Generation, v1alpha1.ConditionVersionHeld, true, v1alpha1.ReasonVersionHeld,
		strings.Join(phrase.Limit(texts, maxNamed), ". ")+fmt.Sprintf(". Release one with `bellwether operator "+
			"release-hold %s VERSION`.", p.Operator.Name))
}

// describeHold describes a hold and its effect in two sentences.
func describeHold(h v1alpha1.VersionHold) string {
	effect := "Exactly this release is not rolled out again"
	switch {
	case h.IsOfVersion():
		effect = "No cluster is brought to it or through it"
	case h.IsOfSettings():
		effect = "The version is not rolled out with these settings again, also not from another channel; with other " +
			"settings it is"
	}
	text := fmt.Sprintf("%s%s: %s. %s", h, formatSince(h.Since), explainHoldReason(h), effect)
	return strings.ToUpper(text[:1]) + text[1:]
}
