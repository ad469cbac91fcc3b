// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// chooseVersion returns a version from the range in the spec, or from the channel's head downwards, and why this
// version was chosen, or a problem. It also reports the version that waits for an approval.
func (p *pass) chooseVersion() (*catalogs.Bundle, string, *conditions.Summary) {
	choice, err := ChooseTarget(ChoiceInput{
		Operator: p.Operator, Offered: p.offered, Rollouts: p.Rollouts, Installed: p.listInstalled(),
	})
	p.setAvailable(choice.Waiting)
	if err != nil {
		return nil, "", p.explainChoiceError(choice, err)
	}
	return choice.Bundle, choice.Reason, nil
}

// listInstalled returns the installed bundles of the selected clusters, without duplicates.
func (p *pass) listInstalled() []catalogs.Installed {
	list := map[catalogs.Installed]bool{}
	for name := range p.selected {
		if i, found := p.installByCluster[name]; found {
			list[i.Installed] = true
		}
	}
	return slices.SortedFunc(maps.Keys(list), func(a, b catalogs.Installed) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
}

// setAvailable reports the version that waits for an approval, and announces a version that begins to wait. It does
// nothing if update is nil.
func (p *pass) setAvailable(update *WaitingUpdate) {
	if update == nil {
		return
	}
	available := &v1alpha1.AvailableVersion{Version: update.Bundle.VersionString(), Update: update.Kind,
		Since: metav1.Time{Time: p.Now.UTC()}.Rfc3339Copy(), Reason: phrase.Truncate(update.Reason, maxTargetReason)}
	if previous := p.Operator.Status.Available; previous != nil && previous.Version == available.Version {
		available.Since = previous.Since
	} else {
		p.decision.Announce = available
	}
	p.decision.Status.Available = available
}

// explainChoiceError returns the problem for an error of the choice of a version, with what a person can do.
func (p *pass) explainChoiceError(choice Choice, err error) *conditions.Summary {
	var s conditions.Summary
	switch {
	case errors.Is(err, catalogs.ErrNotRange):
		s = newStalled(v1alpha1.ReasonInvalidSpec, "spec.version: "+err.Error())
	case errors.Is(err, ErrNeedsApproval):
		s = newWaiting(v1alpha1.ReasonWaiting, fmt.Sprintf("%v: approve the version with `%s`, or change spec.updates",
			err, p.buildApproveCommand()))
	case errors.Is(err, ErrDowngrade):
		s = newStalled(v1alpha1.ReasonNoUpgradePath, err.Error()+p.explainDowngrade())
		if b, blocked := p.blocks[choice.Last.Version]; blocked {
			s = newStalled(v1alpha1.ReasonVersionBlocked, fmt.Sprintf("%v; the former is blocked: %s; publish a newer "+
				"version, or roll back by hand as status.packages of the OperatorCatalog describes", err,
				formatBlockReason(b)))
		}
	case errors.Is(err, catalogs.ErrNoVersion):
		if problem := p.checkBlockedRange(); problem != nil { // the range has blocked versions
			return problem
		}
		s = newStalled(v1alpha1.ReasonUnknownVersion, err.Error()+": correct spec.version, or publish such a version")
	default:
		return explainTargetError(err)
	}
	return &s
}

// explainDowngrade says what a person can do about a range below the version of the last rollout.
func (p *pass) explainDowngrade() string {
	return fmt.Sprintf(": write a range that includes the version that the clusters run; or take the clusters back to "+
		"the version before it with `bellwether rollout rollback %s --reason TEXT`: a range is then accepted if it "+
		"has that version or a higher one", p.Operator.Name)
}

// checkBlockedRange returns a problem if the range has blocked or held versions: it says what a person can do about
// the highest of these versions. Otherwise it returns nil.
func (p *pass) checkBlockedRange() *conditions.Summary {
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
		if h, held := p.findVersionHold(version); held {
			s := newStalled(v1alpha1.ReasonVersionHeld, fmt.Sprintf("no version in %q can be rolled out; %s",
				p.Operator.Spec.Version, p.explainHold(h)))
			return &s
		}
		s := newStalled(v1alpha1.ReasonVersionBlocked, fmt.Sprintf("no version in %q can be rolled out; version %s is "+
			"blocked: %s; publish a newer version in the range, or write another range into spec.version",
			p.Operator.Spec.Version, version, formatBlockReason(p.blocks[version])))
		return &s
	}
	return nil
}

// buildApproveCommand returns the command that approves the available version.
func (p *pass) buildApproveCommand() string {
	version := "VERSION"
	if a := p.decision.Status.Available; a != nil {
		version = a.Version
	}
	return ApproveCommand(p.Operator.Name, version)
}

// noteWaitingApproval returns a note on the version that waits for an approval. It returns "" if there is none.
func (p *pass) noteWaitingApproval() string {
	a := p.decision.Status.Available
	if a == nil {
		return ""
	}
	return fmt.Sprintf("; version %s waits for an approval since %s: %s; approve it with `%s`", a.Version,
		phrase.Time(a.Since.Time), a.Reason, p.buildApproveCommand())
}
