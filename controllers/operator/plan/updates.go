// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/target"
)

// chooseVersion chooses a version from the range, or from the channel's head on down, and why it is that one.
func (p *pass) chooseVersion() (*catalogs.Bundle, string, *conditions.Summary) {
	choice, err := target.Choose(target.Input{
		Operator: p.Operator, Offered: p.offered, Rollouts: p.Rollouts, Installed: p.installed(),
	})
	p.setAvailable(choice.Waiting)
	if err != nil {
		return nil, "", p.choiceProblem(choice, err)
	}
	return choice.Bundle, choice.Reason, nil
}

// installed is what the selected clusters run, each once.
func (p *pass) installed() []catalogs.Installed {
	list := map[catalogs.Installed]bool{}
	for name := range p.selected {
		if i, found := p.byName[name]; found {
			list[i.Installed] = true
		}
	}
	return slices.SortedFunc(maps.Keys(list), func(a, b catalogs.Installed) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
}

// setAvailable reports the version that waits for an approval, and decides to announce one that has begun to.
func (p *pass) setAvailable(waits *target.Update) {
	if waits == nil {
		return
	}
	now := &v1alpha1.AvailableVersion{Version: waits.Bundle.VersionString(), Update: waits.Kind,
		Since: metav1.Time{Time: p.Now.UTC()}.Rfc3339Copy(), Reason: phrase.Truncate(waits.Reason, maxTargetReason)}
	if before := p.Operator.Status.Available; before != nil && before.Version == now.Version {
		now.Since = before.Since
	} else {
		p.decision.Announce = now
	}
	p.decision.Status.Available = now
}

// choiceProblem is what a person has to know where no version can be chosen.
func (p *pass) choiceProblem(choice target.Choice, err error) *conditions.Summary {
	var s conditions.Summary
	switch {
	case errors.Is(err, catalogs.ErrNotRange):
		s = stalled(v1alpha1.ReasonInvalidSpec, "spec.version: "+err.Error())
	case errors.Is(err, target.ErrNeedsApproval):
		s = waiting(v1alpha1.ReasonWaiting, fmt.Sprintf("%v: approve the version with `%s`, or change spec.updates",
			err, p.approveCommand()))
	case errors.Is(err, target.ErrDowngrade):
		s = stalled(v1alpha1.ReasonNoUpgradePath, err.Error()+p.wayDown())
		if b, blocked := p.blocks[choice.Last.Version]; blocked {
			s = stalled(v1alpha1.ReasonVersionBlocked, fmt.Sprintf("%v; the former is blocked: %s; publish a newer "+
				"version, or roll back by hand as status.packages of the OperatorCatalog describes", err,
				blockReason(b)))
		}
	case errors.Is(err, catalogs.ErrNoVersion):
		if b := p.blockedInRange(); b != nil {
			return b
		}
		s = stalled(v1alpha1.ReasonUnknownVersion, err.Error()+": correct spec.version, or publish such a version")
	default:
		return targetProblem(err)
	}
	return &s
}

// wayDown says what to do about a range that is lower than what was rolled out last.
func (p *pass) wayDown() string {
	return fmt.Sprintf(": write a range that includes the version that the clusters run; or take the clusters back to "+
		"the version before it with `bellwether rollout rollback %s --reason TEXT`: a range is then accepted if it "+
		"has that version or a higher one", p.Operator.Name)
}

// blockedInRange says that the range has nothing but versions that are blocked or held, and what to do about the
// highest of them; nil where it has none.
func (p *pass) blockedInRange() *conditions.Summary {
	versions, err := catalogs.ParseRange(p.Operator.Spec.Version)
	if err != nil {
		return nil
	}
	byVersion := slices.SortedFunc(maps.Keys(p.blocks), func(a, b string) int { return catalogs.CompareVersions(b, a) })
	for _, version := range byVersion {
		v, err := semver.ParseTolerant(version)
		if err != nil || !versions.Contains(v) {
			continue
		}
		if h, held := p.holdOf(version); held {
			s := stalled(v1alpha1.ReasonVersionHeld, fmt.Sprintf("no version in %q can be rolled out; %s",
				p.Operator.Spec.Version, p.heldMessage(h)))
			return &s
		}
		s := stalled(v1alpha1.ReasonVersionBlocked, fmt.Sprintf("no version in %q can be rolled out; version %s is "+
			"blocked: %s; publish a newer version in the range, or write another range into spec.version",
			p.Operator.Spec.Version, version, blockReason(p.blocks[version])))
		return &s
	}
	return nil
}

func (p *pass) approveCommand() string {
	version := "VERSION"
	if a := p.decision.Status.Available; a != nil {
		version = a.Version
	}
	return target.ApproveCommand(p.Operator.Name, version)
}

// waitsForApproval is a note on the version that waits, beside the state of the target.
func (p *pass) waitsForApproval() string {
	a := p.decision.Status.Available
	if a == nil {
		return ""
	}
	return fmt.Sprintf("; version %s waits for an approval since %s: %s; approve it with `%s`", a.Version,
		phrase.Time(a.Since.Time), a.Reason, p.approveCommand())
}
