// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// ChoiceInput has the data that the choice of a target version depends on. The hub and the preview of the command line
// use the same code.
type ChoiceInput struct {
	// Operator has a range or no version in spec.version.
	Operator *v1alpha1.ManagedOperator
	// Offered is the package without blocked and held versions.
	Offered *catalogs.Package
	// Rollouts are the rollouts of the operator, in any order.
	Rollouts []v1alpha1.OperatorRollout
	// Installed are the bundles that the selected clusters run. They count if no rollout has reached a cluster.
	Installed []catalogs.Installed
}

// Choice has the version that is rolled out, and the version that waits for an approval.
type Choice struct {
	// Bundle is the bundle to roll out; nil if there is an error.
	Bundle *catalogs.Bundle
	// Reason is why this bundle was chosen.
	Reason string
	// Waiting is the highest version above the bundle that needs an approval; nil if there is none.
	Waiting *WaitingUpdate
	// Last is the version that the kinds of updates are relative to; its Name is empty for a first installation.
	Last catalogs.Installed
}

// WaitingUpdate is a version that needs an approval.
type WaitingUpdate struct {
	Bundle *catalogs.Bundle
	Kind   v1alpha1.UpdateKind
	// Reason is why it needs an approval.
	Reason string
}

var (
	// ErrNeedsApproval means that all versions of the range need an approval. Choice.Waiting is one of them.
	ErrNeedsApproval = errors.New("every version that could be chosen needs an approval")
	// ErrDowngrade means that all versions of the range are lower than the version that was rolled out last.
	ErrDowngrade = errors.New("a range never takes clusters to a lower version")
)

// ChooseTarget returns the highest version of the channel that spec.version permits, that is reachable by an upgrade
// from the last version, and whose update is Automatic or approved. The last version is the version of the newest
// rollout that reached a cluster, also of a rollback, or else the highest version that a selected cluster runs. The
// first version needs no approval, because a person has just written the spec. If no higher version may be rolled out,
// the last version stays the target.
//
// Without a range, the channel's head comes first, independent of its version. With a range, a version below the last
// version is never chosen, and a version that is lower than a rolled back version always needs an approval. Versions
// that another version skips are chosen only if the range has no other versions.
//
// Errors wrap ErrNeedsApproval, ErrDowngrade, catalogs.ErrNotRange, catalogs.ErrNoVersion, catalogs.ErrNoChannel
// or catalogs.ErrInvalidPackage.
func ChooseTarget(in ChoiceInput) (Choice, error) {
	c := chooser{ChoiceInput: in, last: findLastInstalled(in)}
	candidates, err := c.listCandidates()
	if err != nil {
		return Choice{Last: c.last}, err
	}
	choice := c.choose(candidates, c.isReachable)
	if choice.Bundle == nil && choice.Waiting == nil {
		// No version is reachable from the last version. The operator reports which clusters have no path.
		choice = c.choose(candidates, func(*catalogs.Bundle) bool { return true })
	}
	if choice.Bundle == nil {
		return choice, fmt.Errorf("%w: %s", ErrNeedsApproval, choice.Waiting.Reason)
	}
	return choice, nil
}

// chooser is one run of ChooseTarget.
type chooser struct {
	ChoiceInput

	// last is the version that was rolled out last; its Name is empty for a first installation.
	last catalogs.Installed
	// versions is the range; nil if there is no range. Then head is the channel's head.
	versions *catalogs.Range
	head     *catalogs.Bundle
}

// HeldBlocks returns the held versions of an operator as blocks, which is the form in which agents get versions that
// must not be installed.
func HeldBlocks(o *v1alpha1.ManagedOperator) []v1alpha1.VersionBlock {
	var list []v1alpha1.VersionBlock
	for _, h := range o.Spec.Holds {
		if h.IsOfVersion() {
			list = append(list, v1alpha1.VersionBlock{Package: o.Spec.Package, Version: h.Version,
				Reason: phrase.Truncate("held for ManagedOperator "+o.Name+": "+h.Reason, maxBlockReason)})
		}
	}
	return list
}

// ApproveCommand returns the command that approves a version of an operator.
func ApproveCommand(operator, version string) string {
	return fmt.Sprintf("bellwether operator approve %s %s --reason TEXT", operator, version)
}

// maxBlockReason is the API's limit for the reason of a block.
const maxBlockReason = 512

// findLastInstalled returns the last version: see ChooseTarget. Its Name is empty if there is none.
func findLastInstalled(in ChoiceInput) catalogs.Installed {
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

// hasReachedClusters reports whether clusters run, or begin to run, the version of a rollout. A rollout that was
// rolled back does not count.
func hasReachedClusters(r *v1alpha1.OperatorRollout) bool {
	switch {
	case r.Status.Phase == v1alpha1.RolloutRolledBack, r.Spec.Release.AsInstalled: // a take-over brings no version
		return false
	case r.Spec.Rollback != nil, r.Status.Phase == v1alpha1.RolloutSucceeded:
		return true
	}
	return slices.ContainsFunc(r.Status.Waves, func(w v1alpha1.WaveStatus) bool {
		// A cluster that went offline after its admission is deferred.
		return w.StartedAt != nil && w.InProgress+w.Succeeded+w.Failed+w.Deferred > 0
	})
}

// choose returns the choice of the first candidate that meets a condition and needs no approval. Waiting is the first
// candidate before it that needs an approval.
func (c *chooser) choose(candidates []*catalogs.Bundle, meets func(*catalogs.Bundle) bool) Choice {
	choice := Choice{Last: c.last}
	for _, b := range candidates {
		if !meets(b) {
			continue
		}
		update := c.findNeededApproval(b)
		if update == nil {
			choice.Bundle, choice.Reason = b, c.explainChoice(b)
			return choice
		}
		if choice.Waiting == nil {
			choice.Waiting = update
		}
	}
	return choice
}

// listCandidates returns the versions that can become the target if approvals permit it, the best version first. It
// also sets the range or, without a range, the channel's head.
func (c *chooser) listCandidates() ([]*catalogs.Bundle, error) {
	spec := c.Operator.Spec
	if spec.Version == "" {
		return c.listFromHead()
	}
	versions, err := catalogs.ParseRange(spec.Version)
	if err != nil {
		return nil, err
	}
	all, err := c.Offered.OfferedBundles(spec.Channel)
	if err != nil {
		return nil, err
	}
	c.versions = &versions
	inRange := filterBundles(all, func(b *catalogs.Bundle) bool { return versions.Contains(b.Version) })
	if len(inRange) == 0 {
		return nil, c.explainEmptyRange(all)
	}
	inRange = c.dropSkipped(inRange)
	higher := filterBundles(inRange, func(b *catalogs.Bundle) bool { return c.compareToLast(b) >= 0 })
	if len(higher) == 0 {
		return nil, fmt.Errorf("%w: %s was rolled out last, and the highest version in the range is %s", ErrDowngrade,
			c.formatLast(), inRange[0].VersionString())
	}
	return higher, nil
}

// listFromHead returns the channel's head. If the head needs an approval, the last version and the versions between the
// last version and the head follow, without pre-releases.
func (c *chooser) listFromHead() ([]*catalogs.Bundle, error) {
	var err error
	if c.head, err = c.Offered.Head(c.Operator.Spec.Channel); err != nil {
		return nil, err
	}
	if c.findNeededApproval(c.head) == nil {
		return []*catalogs.Bundle{c.head}, nil
	}
	all, err := c.Offered.OfferedBundles(c.Operator.Spec.Channel)
	if err != nil {
		return nil, err
	}
	lower := filterBundles(c.dropSkipped(all), func(b *catalogs.Bundle) bool {
		isPrerelease := len(b.Version.Pre) > 0
		isBetween := c.compareToLast(b) > 0 && bundles.CompareVersions(b.Version, c.head.Version) < 0
		return b != c.head && (c.isLast(b) || isBetween && !isPrerelease)
	})
	return append([]*catalogs.Bundle{c.head}, lower...), nil
}

// dropSkipped removes the versions that other versions skip, because their author does not want them installed. The
// last version stays. If no version would be left, all stay.
func (c *chooser) dropSkipped(list []*catalogs.Bundle) []*catalogs.Bundle {
	channel, err := c.Offered.Channel(c.Operator.Spec.Channel)
	if err != nil {
		return list
	}
	notSkipped := filterBundles(list, func(b *catalogs.Bundle) bool { return c.isLast(b) || !channel.Skips(b.Name) })
	if len(notSkipped) == 0 {
		return list
	}
	return notSkipped
}

// isLast reports whether the bundle is the last version.
func (c *chooser) isLast(b *catalogs.Bundle) bool { return b.Name == c.last.Name }

// compareToLast compares a bundle with the last version. Every bundle is higher if there is no last version, or if the
// last version has neither a version nor a conventional name.
func (c *chooser) compareToLast(b *catalogs.Bundle) int {
	if c.isLast(b) {
		return 0
	}
	v, isKnown := c.readLastVersion()
	if !isKnown {
		return 1
	}
	// Two bundles with the same version are rebuilds. Their names distinguish them.
	return cmp.Or(bundles.CompareVersions(b.Version, v), cmp.Compare(b.Name, c.last.Name))
}

// formatLast returns the text for the last version.
func (c *chooser) formatLast() string { return cmp.Or(c.last.Version, c.last.Name) }

// readLastVersion returns the last version, and whether it is known. It comes from the package, or else from the
// installed bundle.
func (c *chooser) readLastVersion() (semver.Version, bool) {
	if b, ok := c.Offered.Bundles[c.last.Name]; ok {
		return b.Version, true
	}
	if c.last.Name == "" {
		return semver.Version{}, false
	}
	return c.last.SemVer()
}

// isReachable reports whether the last version can be upgraded to a bundle. The channel's head counts as reachable: if
// no cluster has a path to it, the operator reports that.
func (c *chooser) isReachable(b *catalogs.Bundle) bool {
	if c.last.Name == "" || b == c.head {
		return true
	}
	_, err := c.Offered.PathFrom(c.Operator.Spec.Channel, c.last, b.Name)
	return err == nil
}

// findNeededApproval returns the approval that a version needs and does not have. It returns nil if the version may be
// rolled out: the first version, a version that is not higher than the last version, and an approved version need none.
func (c *chooser) findNeededApproval(b *catalogs.Bundle) *WaitingUpdate {
	if c.last.Name == "" || c.compareToLast(b) <= 0 || c.isApproved(b) {
		return nil
	}
	u := &WaitingUpdate{Bundle: b, Kind: c.classifyUpdate(b)}
	if rolledBack, isRolledBackAbove := c.findRolledBackAbove(b); isRolledBackAbove {
		u.Reason = fmt.Sprintf("%s is lower than %s, which was rolled back, and higher than %s", b.VersionString(),
			rolledBack, c.formatLast())
		return u
	}
	if c.Operator.Spec.Updates.Policy(u.Kind) == v1alpha1.UpdateAutomatic {
		return nil
	}
	u.Reason = fmt.Sprintf("%s is a %s update of %s, and spec.updates.%s is %s", b.VersionString(),
		formatUpdateKind(u.Kind), c.formatLast(), formatUpdateKind(u.Kind), v1alpha1.UpdateApproval)
	return u
}

// isApproved reports whether a person approved the version.
func (c *chooser) isApproved(b *catalogs.Bundle) bool {
	u := c.Operator.Spec.Updates
	return u != nil && u.Approved != nil && u.Approved.Version == b.VersionString()
}

// findRolledBackAbove returns the highest version above a bundle that was rolled back and is held, and whether there
// is one. A lower version does not correct that version, so it is not rolled out without an approval. Holds by a
// person do not count.
func (c *chooser) findRolledBackAbove(b *catalogs.Bundle) (string, bool) {
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

// isInRange reports whether there is a range and it contains the version.
func (c *chooser) isInRange(version string) bool {
	v, err := semver.ParseTolerant(version)
	return c.versions != nil && err == nil && c.versions.Contains(v)
}

// classifyUpdate returns the kind of the update from the last version to a bundle.
func (c *chooser) classifyUpdate(b *catalogs.Bundle) v1alpha1.UpdateKind {
	v, isKnown := c.readLastVersion()
	switch {
	case !isKnown, v.Major != b.Version.Major:
		return v1alpha1.UpdateMajor
	case v.Minor != b.Version.Minor:
		return v1alpha1.UpdateMinor
	}
	return v1alpha1.UpdatePatch
}

// formatUpdateKind returns the kind of an update as a lower-case word.
func formatUpdateKind(k v1alpha1.UpdateKind) string {
	return map[v1alpha1.UpdateKind]string{v1alpha1.UpdatePatch: "patch", v1alpha1.UpdateMinor: "minor",
		v1alpha1.UpdateMajor: "major"}[k]
}

// explainChoice says why a version is the target.
func (c *chooser) explainChoice(b *catalogs.Bundle) string {
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
		approval := c.Operator.Spec.Updates.Approved
		return fmt.Sprintf("%s; approved by %s: %s", subject, approval.By,
			phrase.Truncate(approval.Reason, maxChoiceReason))
	}
	return fmt.Sprintf("%s; %s updates, as from %s, are %s", subject, formatUpdateKind(c.classifyUpdate(b)),
		c.formatLast(), v1alpha1.UpdateAutomatic)
}

// maxChoiceReason is the maximum length of an approval's reason in the reason of a target.
const maxChoiceReason = 128

// maxListedVersions is the maximum number of versions in a message.
const maxListedVersions = 6

// explainEmptyRange returns the error for a range without a version. It lists the nearest versions.
func (c *chooser) explainEmptyRange(all []*catalogs.Bundle) error {
	var versions []semver.Version
	var excluded []string
	for _, b := range all {
		versions = append(versions, b.Version)
		if c.versions.ExcludesPrerelease(b.Version) {
			excluded = append(excluded, b.VersionString())
		}
	}
	var nearest []string
	for _, v := range c.versions.Nearest(versions) {
		nearest = append(nearest, v.String())
	}
	text := "the nearest are " + phrase.First(nearest, maxListedVersions)
	if len(nearest) == 1 {
		text = "the nearest is " + nearest[0]
	}
	if len(excluded) > 0 {
		text += fmt.Sprintf("; %s would be, and a range has a pre-release only if it names one of the same version, "+
			"such as >=%s", phrase.First(excluded, maxListedVersions), excluded[0])
	}
	return fmt.Errorf("%w in %q in channel %q of package %q: %s", catalogs.ErrNoVersion, c.Operator.Spec.Version,
		cmp.Or(c.Operator.Spec.Channel, c.Offered.DefaultChannel), c.Offered.Name, text)
}

// filterBundles returns the bundles for which keep returns true.
func filterBundles(list []*catalogs.Bundle, keep func(*catalogs.Bundle) bool) []*catalogs.Bundle {
	var out []*catalogs.Bundle
	for _, b := range list {
		if keep(b) {
			out = append(out, b)
		}
	}
	return out
}
