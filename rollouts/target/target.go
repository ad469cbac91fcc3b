// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package target chooses the version of a channel that a ManagedOperator is brought to, where its spec names a range of
// versions or none. Its inputs are the spec, the catalog's package without the versions that must not be installed,
// and the operator's rollouts. It is pure: the hub and the preview on the command line ask it the same question.
package target

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Input is what the choice depends on.
type Input struct {
	// Operator has a range or nothing in spec.version.
	Operator *v1alpha1.ManagedOperator
	// Offered is the package without blocked and held versions.
	Offered *catalogs.Package
	// Rollouts of the operator, in any order.
	Rollouts []v1alpha1.OperatorRollout
	// Installed is what the selected clusters run. It counts where no rollout has brought anything to a cluster.
	Installed []catalogs.Installed
}

// Choice is the version that is rolled out, and the one that waits for an approval.
type Choice struct {
	// Bundle to roll out; nil with an error.
	Bundle *catalogs.Bundle
	// Reason is why it is this one.
	Reason string
	// Waiting is the highest version above the bundle that needs an approval; nil where there is none.
	Waiting *Update
	// Last is the version from which steps were judged; its Name is empty for a first installation.
	Last catalogs.Installed
}

// Update is a version that needs an approval.
type Update struct {
	Bundle *catalogs.Bundle
	Kind   v1alpha1.UpdateKind
	// Reason is why it needs an approval.
	Reason string
}

var (
	// ErrNeedsApproval says that the range has only versions that need an approval. Choice.Waiting is one.
	ErrNeedsApproval = errors.New("every version that could be chosen needs an approval")
	// ErrDowngrade says that all versions of the range are lower than the one that was rolled out last.
	ErrDowngrade = errors.New("a range never takes clusters to a lower version")
)

// Choose chooses the highest version of the channel that spec.version permits, that the last one can be upgraded to,
// and whose update is Automatic or approved. The steps are judged from the last version: that of the newest rollout
// which has brought one to a cluster, a rollback included; or else the highest that a selected cluster runs. The first
// version needs no approval, since a person has just written the spec. The last version itself stays the target where
// nothing higher may be rolled out.
//
// Without a range, the channel's head comes first, whatever its version is. With a range, nothing below the last
// version is chosen, and a version that is lower than one that was rolled back needs an approval, whatever the policy
// is. Versions that another one skips are chosen only from a range that has no others.
//
// Errors wrap ErrNeedsApproval, ErrDowngrade, catalogs.ErrNotRange, catalogs.ErrNoVersion, catalogs.ErrNoChannel or
// catalogs.ErrInvalidPackage.
func Choose(in Input) (Choice, error) {
	c := chooser{Input: in, last: last(in)}
	candidates, err := c.candidates()
	if err != nil {
		return Choice{Last: c.last}, err
	}
	choice := c.choose(candidates, c.isReachable)
	if choice.Bundle == nil && choice.Waiting == nil {
		// Nothing is reachable from there. The clusters show whether they have a path.
		choice = c.choose(candidates, func(*catalogs.Bundle) bool { return true })
	}
	if choice.Bundle == nil {
		return choice, fmt.Errorf("%w: %s", ErrNeedsApproval, choice.Waiting.Reason)
	}
	return choice, nil
}

type chooser struct {
	Input

	// last was rolled out last; its Name is empty for a first installation.
	last catalogs.Installed
	// versions is the range; nil without one. Then head is the channel's head.
	versions *catalogs.Range
	head     *catalogs.Bundle
}

// Held are the held versions of an operator in the form of blocks, as agents know of versions that must not be
// installed.
func Held(o *v1alpha1.ManagedOperator) []v1alpha1.VersionBlock {
	var list []v1alpha1.VersionBlock
	for _, h := range o.Spec.Holds {
		if h.IsOfVersion() {
			list = append(list, v1alpha1.VersionBlock{Package: o.Spec.Package, Version: h.Version,
				Reason: phrase.Truncate("held for ManagedOperator "+o.Name+": "+h.Reason, maxBlockReason)})
		}
	}
	return list
}

// ApproveCommand is what a person runs to approve a version of an operator.
func ApproveCommand(operator, version string) string {
	return fmt.Sprintf("bellwether operator approve %s %s --reason TEXT", operator, version)
}

// maxBlockReason is the API's bound on the reason of a block.
const maxBlockReason = 512

// last is what steps are judged from.
func last(in Input) catalogs.Installed {
	var newest *v1alpha1.OperatorRollout
	for i := range in.Rollouts {
		r := &in.Rollouts[i]
		if hasReachedClusters(r) && (newest == nil || r.Spec.Revision > newest.Spec.Revision) {
			newest = r
		}
	}
	if newest != nil {
		return catalogs.Installed{Name: newest.Spec.Release.Bundle, Version: newest.Spec.Release.Version}
	}
	var highest catalogs.Installed
	for _, i := range in.Installed {
		if i.Name != "" && (highest.Name == "" || catalogs.CompareVersions(i.Version, highest.Version) > 0) {
			highest = i
		}
	}
	return highest
}

// hasReachedClusters tells whether clusters run, or begin to run, what a rollout brings. One that was rolled back has
// left nothing.
func hasReachedClusters(r *v1alpha1.OperatorRollout) bool {
	switch {
	case r.Status.Phase == v1alpha1.RolloutRolledBack, r.Spec.Release.AsInstalled: // that brings no version
		return false
	case r.Spec.Rollback != nil, r.Status.Phase == v1alpha1.RolloutSucceeded:
		return true
	}
	return slices.ContainsFunc(r.Status.Waves, func(w v1alpha1.WaveStatus) bool {
		// A cluster that was admitted and is offline since then is deferred.
		return w.StartedAt != nil && w.InProgress+w.Succeeded+w.Failed+w.Deferred > 0
	})
}

// choose takes the first of the candidates that meets a condition and needs no approval.
func (c *chooser) choose(candidates []*catalogs.Bundle, meets func(*catalogs.Bundle) bool) Choice {
	choice := Choice{Last: c.last}
	for _, b := range candidates {
		if !meets(b) {
			continue
		}
		needs := c.approvalFor(b)
		if needs == nil {
			choice.Bundle, choice.Reason = b, c.reason(b)
			return choice
		}
		if choice.Waiting == nil {
			choice.Waiting = needs
		}
	}
	return choice
}

// candidates are the versions that may become the target, as far as approvals permit: the best one first.
func (c *chooser) candidates() ([]*catalogs.Bundle, error) {
	spec := c.Operator.Spec
	if spec.Version == "" {
		return c.fromHead()
	}
	versions, err := catalogs.ParseRange(spec.Version)
	if err != nil {
		return nil, err
	}
	all, err := c.Offered.OfferedBy(spec.Channel)
	if err != nil {
		return nil, err
	}
	c.versions = &versions
	inRange := filter(all, func(b *catalogs.Bundle) bool { return versions.Contains(b.Version) })
	if len(inRange) == 0 {
		return nil, c.noneInRange(all)
	}
	inRange = c.withoutSkipped(inRange)
	higher := filter(inRange, func(b *catalogs.Bundle) bool { return c.compareToLast(b) >= 0 })
	if len(higher) == 0 {
		return nil, fmt.Errorf("%w: %s was rolled out last, and the highest version in the range is %s", ErrDowngrade,
			c.lastText(), inRange[0].VersionString())
	}
	return higher, nil
}

// fromHead are the channel's head, and below it what is between it and the last version.
func (c *chooser) fromHead() ([]*catalogs.Bundle, error) {
	var err error
	if c.head, err = c.Offered.Target(c.Operator.Spec.Channel, ""); err != nil {
		return nil, err
	}
	if c.approvalFor(c.head) == nil {
		return []*catalogs.Bundle{c.head}, nil
	}
	all, err := c.Offered.OfferedBy(c.Operator.Spec.Channel)
	if err != nil {
		return nil, err
	}
	lower := filter(c.withoutSkipped(all), func(b *catalogs.Bundle) bool {
		return b != c.head && (c.isLast(b) || len(b.Version.Pre) == 0 && c.compareToLast(b) > 0 &&
			registryv1.CompareVersions(b.Version, c.head.Version) < 0)
	})
	return append([]*catalogs.Bundle{c.head}, lower...), nil
}

// withoutSkipped leaves out what other versions skip, since their author wants nobody to install it, unless nothing is
// left. What was rolled out last stays.
func (c *chooser) withoutSkipped(list []*catalogs.Bundle) []*catalogs.Bundle {
	channel, err := c.Offered.Channel(c.Operator.Spec.Channel)
	if err != nil {
		return list
	}
	solid := filter(list, func(b *catalogs.Bundle) bool { return c.isLast(b) || !channel.Skips(b.Name) })
	if len(solid) == 0 {
		return list
	}
	return solid
}

func (c *chooser) isLast(b *catalogs.Bundle) bool { return b.Name == c.last.Name }

// compareToLast orders a bundle and the last version. Every bundle is higher if there is none, or if it has neither a
// version nor a conventional name.
func (c *chooser) compareToLast(b *catalogs.Bundle) int {
	if c.isLast(b) {
		return 0
	}
	v, known := c.lastVersion()
	if !known {
		return 1
	}
	// Two bundles of one version are rebuilds, which are told apart by their names.
	return cmp.Or(registryv1.CompareVersions(b.Version, v), cmp.Compare(b.Name, c.last.Name))
}

func (c *chooser) lastText() string { return cmp.Or(c.last.Version, c.last.Name) }

func (c *chooser) lastVersion() (semver.Version, bool) {
	if b, ok := c.Offered.Bundles[c.last.Name]; ok {
		return b.Version, true
	}
	if c.last.Name == "" {
		return semver.Version{}, false
	}
	return c.last.SemVer()
}

// isReachable tells whether the last version can be upgraded to a bundle. The channel's head counts as reachable: if no
// cluster has a path to it, the operator says so.
func (c *chooser) isReachable(b *catalogs.Bundle) bool {
	if c.last.Name == "" || b == c.head {
		return true
	}
	_, err := c.Offered.PathFrom(c.Operator.Spec.Channel, c.last, b.Name)
	return err == nil
}

// approvalFor is the approval that a version needs and does not have; nil if it may be rolled out.
func (c *chooser) approvalFor(b *catalogs.Bundle) *Update {
	if c.last.Name == "" || c.compareToLast(b) <= 0 || c.isApproved(b) {
		return nil
	}
	u := &Update{Bundle: b, Kind: c.kind(b)}
	if held, above := c.rolledBackAbove(b); above {
		u.Reason = fmt.Sprintf("%s is lower than %s, which was rolled back, and higher than %s", b.VersionString(),
			held, c.lastText())
		return u
	}
	if c.Operator.Spec.Updates.Policy(u.Kind) == v1alpha1.UpdateAutomatic {
		return nil
	}
	u.Reason = fmt.Sprintf("%s is a %s update of %s, and spec.updates.%s is %s", b.VersionString(), word(u.Kind),
		c.lastText(), word(u.Kind), v1alpha1.UpdateApproval)
	return u
}

func (c *chooser) isApproved(b *catalogs.Bundle) bool {
	u := c.Operator.Spec.Updates
	return u != nil && u.Approved != nil && u.Approved.Version == b.VersionString()
}

// rolledBackAbove returns the highest version above a bundle that was rolled back and is held. A lower version is not
// the correction of that one, so a range does not lead to it by itself. A hold by a person leaves others alone.
func (c *chooser) rolledBackAbove(b *catalogs.Bundle) (string, bool) {
	var highest string
	for _, h := range c.Operator.Spec.Holds {
		if h.IsByPerson() || !h.IsOfVersion() || !c.isInRange(h.Version) {
			continue
		}
		if catalogs.CompareVersions(h.Version, b.VersionString()) > 0 &&
			(highest == "" || catalogs.CompareVersions(h.Version, highest) > 0) {
			highest = h.Version
		}
	}
	return highest, highest != ""
}

func (c *chooser) isInRange(version string) bool {
	v, err := semver.ParseTolerant(version)
	return c.versions != nil && err == nil && c.versions.Contains(v)
}

// kind is how far a version is from the last one.
func (c *chooser) kind(b *catalogs.Bundle) v1alpha1.UpdateKind {
	v, known := c.lastVersion()
	switch {
	case !known, v.Major != b.Version.Major:
		return v1alpha1.UpdateMajor
	case v.Minor != b.Version.Minor:
		return v1alpha1.UpdateMinor
	}
	return v1alpha1.UpdatePatch
}

func word(k v1alpha1.UpdateKind) string {
	return map[v1alpha1.UpdateKind]string{v1alpha1.UpdatePatch: "patch", v1alpha1.UpdateMinor: "minor",
		v1alpha1.UpdateMajor: "major"}[k]
}

// reason is why a version is the target.
func (c *chooser) reason(b *catalogs.Bundle) string {
	subject := "the head of the channel"
	if c.versions != nil {
		subject = fmt.Sprintf("the highest version in %q that may be rolled out", c.Operator.Spec.Version)
	} else if b != c.head {
		subject = "the highest version of the channel that may be rolled out"
	}
	switch {
	case c.last.Name == "":
		return subject + "; first installation"
	case c.compareToLast(b) <= 0:
		return subject
	case c.isApproved(b):
		by := c.Operator.Spec.Updates.Approved
		return fmt.Sprintf("%s; approved by %s: %s", subject, by.By, phrase.Truncate(by.Reason, maxReason))
	}
	return fmt.Sprintf("%s; %s updates, as from %s, are %s", subject, word(c.kind(b)), c.lastText(),
		v1alpha1.UpdateAutomatic)
}

// maxReason leaves room for the rest of a target's reason in the API.
const maxReason = 128

// maxListed keeps messages short.
const maxListed = 6

// noneInRange names the versions that are nearest to a range that has none.
func (c *chooser) noneInRange(all []*catalogs.Bundle) error {
	var versions []semver.Version
	var left []string
	for _, b := range all {
		versions = append(versions, b.Version)
		if c.versions.LeavesOut(b.Version) {
			left = append(left, b.VersionString())
		}
	}
	var near []string
	for _, v := range c.versions.Nearest(versions) {
		near = append(near, v.String())
	}
	text := "the nearest are " + phrase.First(near, maxListed)
	if len(near) == 1 {
		text = "the nearest is " + near[0]
	}
	if len(left) > 0 {
		text += fmt.Sprintf("; %s would be, and a range has a pre-release only if it names one of the same version, "+
			"such as >=%s", phrase.First(left, maxListed), left[0])
	}
	return fmt.Errorf("%w in %q in channel %q of package %q: %s", catalogs.ErrNoVersion, c.Operator.Spec.Version,
		cmp.Or(c.Operator.Spec.Channel, c.Offered.DefaultChannel), c.Offered.Name, text)
}

func filter(list []*catalogs.Bundle, keep func(*catalogs.Bundle) bool) []*catalogs.Bundle {
	var out []*catalogs.Bundle
	for _, b := range list {
		if keep(b) {
			out = append(out, b)
		}
	}
	return out
}
