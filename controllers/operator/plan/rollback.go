// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/blocks"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// rollBack starts the rollback of the newest rollout where that has ended for one,
// and waits until a rollback has ended. It needs no catalog: the way back must not
// depend on a registry, nor on what the spec asks for by now. It returns nil where
// nothing is being rolled back.
func (p *pass) rollBack() *conditions.Summary {
	newest := p.newest
	switch {
	case newest == nil:
		return nil
	case newest.Spec.Rollback == nil && newest.Status.Phase == v1alpha1.RolloutRolledBack:
		return p.startRollback()
	case newest.Spec.Rollback == nil || !isRunning(newest) || p.replacesNewest():
		return nil
	}
	switch newest.Status.Phase {
	case v1alpha1.RolloutHalted, v1alpha1.RolloutPaused:
		return nil // a person decides what is next
	}
	s := waiting(v1alpha1.ReasonRollingBack, p.rollbackText())
	return &s
}

// startRollback holds the version first, so that nothing rolls it out again once
// the rollback is the newest rollout.
func (p *pass) startRollback() *conditions.Summary {
	of := p.newest
	spec, ok := rollouts.NewRollback(of, p.admitted())
	if !ok {
		s := waiting(v1alpha1.ReasonRollingBack, fmt.Sprintf("rollout %s ended to be rolled back, and no cluster is "+
			"known to have run anything before", of.Name))
		return &s
	}
	p.hold(of, spec)
	spec.Revision, spec.Resumed = p.nextRevision(), p.resumed()
	back := p.nextRollout(of.Spec.Release)
	back.Spec = spec
	p.decision.Create = back
	p.decision.Status.Rollout = &v1alpha1.RolloutSummary{
		Name: back.Name, Revision: spec.Revision, Phase: v1alpha1.RolloutPending,
	}
	s := waiting(v1alpha1.ReasonRollingBack, fmt.Sprintf("rollout %s starts: it %s", back.Name,
		rollouts.RollbackText(back)))
	return &s
}

func (p *pass) admitted() []rollouts.Install {
	list := make([]rollouts.Install, 0, len(p.Installs))
	for _, i := range p.Installs {
		if _, selected := p.selected[i.Cluster]; selected && !i.Deleting {
			list = append(list, i.Admitted)
		}
	}
	return list
}

// isUnfinishedRollbackTo tells whether the newest rollout is a rollback to the
// release that has not succeeded: clusters need no upgrade path for that.
func (p *pass) isUnfinishedRollbackTo(release v1alpha1.Release) bool {
	return p.newest != nil && p.newest.Spec.Rollback != nil &&
		p.newest.Status.Phase != v1alpha1.RolloutSucceeded && p.newest.Spec.Release.Hash() == release.Hash()
}

// rollbackText says how far the rollback has come that is the newest rollout.
func (p *pass) rollbackText() string {
	text := fmt.Sprintf("rollout %s %s", p.newest.Name, rollouts.RollbackText(p.newest))
	if m := p.newest.Status.Message; m != "" {
		text += "; " + m
	}
	return text
}

// stateOfRollback adds to a problem how the rollback ended that is the newest
// rollout.
func (p *pass) stateOfRollback() string {
	if p.newest == nil || p.newest.Spec.Rollback == nil {
		return ""
	}
	return fmt.Sprintf("; rollback %s is %s: %s", p.newest.Name, p.newest.Status.Phase, p.newest.Status.Message)
}

// maxHolds and maxHoldReason are the API's bounds on spec.holds.
const (
	maxHolds      = 20
	maxHoldReason = 512
)

// hold adds a hold of what a rollout brought. Where clusters ran the same version
// before, with other settings, only the settings are held. The newest holds are
// kept.
func (p *pass) hold(of *v1alpha1.OperatorRollout, back v1alpha1.OperatorRolloutSpec) {
	h := rollouts.NewHold(of, back.Release)
	h.Reason = phrase.Truncate("it was rolled back: "+back.Rollback.Reason, maxHoldReason)
	if of.Status.EndedAt != nil {
		h.Since = *of.Status.EndedAt
	}
	holds := slices.DeleteFunc(slices.Clone(p.holds()), func(o v1alpha1.VersionHold) bool { return isSame(o, h) })
	holds = append(holds, h)
	holds = holds[max(len(holds)-maxHolds, 0):]
	if !equality.Semantic.DeepEqual(holds, p.Operator.Spec.Holds) {
		p.decision.Holds = &holds
	}
}

// isSame tells whether two holds are of the same version or settings.
func isSame(a, b v1alpha1.VersionHold) bool {
	keys := b.Keys()
	return slices.ContainsFunc(a.Keys(), func(key string) bool { return slices.Contains(keys, key) })
}

// reviseHolds removes the holds that the hub made and that have served: a newer version has been rolled out. And it
// completes holds of earlier versions of the hub, which know nothing but the hash of a release, while the rollout of
// that release is there.
func (p *pass) reviseHolds() {
	if p.decision.Holds != nil {
		return
	}
	holds := slices.DeleteFunc(slices.Clone(p.Operator.Spec.Holds), func(h v1alpha1.VersionHold) bool {
		return !h.IsByPerson() && p.isOutlived(h.Version)
	})
	for i, h := range holds {
		holds[i] = p.completed(h)
	}
	if !equality.Semantic.DeepEqual(holds, p.Operator.Spec.Holds) {
		p.decision.Holds = &holds
	}
}

// completed is a hold with the settings of the release that it holds, where these can be known.
func (p *pass) completed(h v1alpha1.VersionHold) v1alpha1.VersionHold {
	if h.Settings != "" || h.Release == "" || len(h.Changes) > 0 {
		return h // it is complete: the hub has written what was changed
	}
	for i := range p.Rollouts {
		if of := &p.Rollouts[i]; of.Spec.Release.Hash() == h.Release {
			return p.completedBy(of, h)
		}
	}
	for _, i := range p.Installs { // the rollout is gone, and a cluster that it reached is not taken back yet
		if i.Release != nil && i.Release.Hash() == h.Release {
			h.Settings = i.Release.SettingsHash()
		}
	}
	return h
}

// completedBy is a hold of the release of a rollout. Which settings that had changed is not known without its rollback:
// then all of them are held.
func (p *pass) completedBy(of *v1alpha1.OperatorRollout, h v1alpha1.VersionHold) v1alpha1.VersionHold {
	before := p.takenBackTo(of)
	full := rollouts.NewHold(of, before)
	h.Settings, h.Changes = full.Settings, full.Changes
	if before.Version == "" {
		h.Settings = of.Spec.Release.SettingsHash()
	}
	return h
}

// takenBackTo is the release that the rollback of a rollout took most clusters to.
func (p *pass) takenBackTo(of *v1alpha1.OperatorRollout) v1alpha1.Release {
	for i := range p.Rollouts {
		if r := &p.Rollouts[i].Spec; r.Rollback != nil && r.Rollback.Of == of.Name {
			return r.Release
		}
	}
	return v1alpha1.Release{}
}

// holds are those that are in force after this pass.
func (p *pass) holds() []v1alpha1.VersionHold {
	if p.decision.Holds != nil {
		return *p.decision.Holds
	}
	return p.Operator.Spec.Holds
}

// isOutlived tells whether a version that is newer was rolled out.
func (p *pass) isOutlived(version string) bool {
	newest := p.newest
	return newest != nil && newest.Spec.Rollback == nil && newest.Status.Phase == v1alpha1.RolloutSucceeded &&
		isHigher(newest.Spec.Release.Version, version)
}

// withHeld adds blocks to those of the catalog, in order and without duplicates.
func withHeld(list, held []v1alpha1.VersionBlock) []v1alpha1.VersionBlock {
	list = list[:min(len(list), blocks.MaxPerInstall-len(held))]
	for _, b := range held {
		if !slices.ContainsFunc(list, func(o v1alpha1.VersionBlock) bool {
			return o.Package == b.Package && o.Version == b.Version
		}) {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, blocks.Compare)
	return list
}

// holdOf returns the hold of a whole version.
func (p *pass) holdOf(version string) (v1alpha1.VersionHold, bool) {
	for _, h := range p.Operator.Spec.Holds {
		if version != "" && h.Version == version && h.IsOfVersion() {
			return h, true
		}
	}
	return v1alpha1.VersionHold{}, false
}

// heldRelease returns a problem if the release is held.
func (p *pass) heldRelease(release v1alpha1.Release) *conditions.Summary {
	if h, held := p.holdOfRelease(release); held {
		s := stalled(v1alpha1.ReasonVersionHeld, p.heldMessage(h))
		return &s
	}
	return nil
}

// holdOfRelease returns the hold that covers a release.
func (p *pass) holdOfRelease(release v1alpha1.Release) (v1alpha1.VersionHold, bool) {
	if release.AsInstalled {
		return v1alpha1.VersionHold{}, false // it brings no version
	}
	for _, h := range p.Operator.Spec.Holds {
		if h.Covers(release) {
			return h, true
		}
	}
	return v1alpha1.VersionHold{}, false
}

func (p *pass) heldMessage(h v1alpha1.VersionHold) string {
	return fmt.Sprintf("%s%s: %s; %s", h, since(h.Since), reasonOf(h), p.endOfHold(h))
}

// endOfHold is what a person does about a hold.
func (p *pass) endOfHold(h v1alpha1.VersionHold) string {
	instead := "change spec.channel or spec.install"
	switch {
	case h.IsOfVersion():
		instead = "set spec.version to a corrected version"
	case h.IsOfSettings():
		instead = "change spec.install"
	}
	return fmt.Sprintf("%s, or release the hold with `%s`", instead, p.releaseCommand(h))
}

// releaseCommand is how a person releases exactly this hold.
func (p *pass) releaseCommand(h v1alpha1.VersionHold) string {
	command := fmt.Sprintf("bellwether operator release-hold %s %s", p.Operator.Name, h.Version)
	others := 0
	for _, o := range p.holds() {
		if o.Version == h.Version {
			others++
		}
	}
	if others > 1 && !h.IsByPerson() {
		command += " --rollout " + h.Rollout
	}
	return command
}

// reasonOf is why something is held, and what had been changed.
func reasonOf(h v1alpha1.VersionHold) string {
	text := strings.TrimSuffix(h.Reason, ".")
	if len(h.Changes) > 0 {
		text += " (the change: " + strings.Join(h.Changes, "; ") + ")"
	}
	return text
}

func since(t metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + phrase.Time(t.Time)
}

// heldVersions names what is held, for those who wonder why the channel's head, or a change, is not rolled out.
func (p *pass) heldVersions() string {
	var subjects []string
	for _, h := range p.holds() {
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

// reportHolds sets or removes the condition VersionHeld.
func (p *pass) reportHolds() {
	holds := p.holds()
	list := &p.decision.Status.Conditions
	if len(holds) == 0 {
		meta.RemoveStatusCondition(list, v1alpha1.ConditionVersionHeld)
		return
	}
	var texts []string
	for _, h := range holds {
		texts = append(texts, heldText(h))
	}
	conditions.Set(list, p.Operator.Generation, v1alpha1.ConditionVersionHeld, true, v1alpha1.ReasonVersionHeld,
		strings.Join(phrase.Limit(texts, maxNamed), ". ")+fmt.Sprintf(". Release one with `bellwether operator "+
			"release-hold %s VERSION`.", p.Operator.Name))
}

func heldText(h v1alpha1.VersionHold) string {
	effect := "Exactly this release is not rolled out again"
	switch {
	case h.IsOfVersion():
		effect = "No cluster is brought to it or through it"
	case h.IsOfSettings():
		effect = "The version is not rolled out with these settings again, also not from another channel; with other " +
			"settings it is"
	}
	text := fmt.Sprintf("%s%s: %s. %s", h, since(h.Since), reasonOf(h), effect)
	return strings.ToUpper(text[:1]) + text[1:]
}
