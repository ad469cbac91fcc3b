// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Encode returns the blocks as a text that can be compared.
func Encode(list []v1alpha1.VersionBlock) string {
	if len(list) == 0 {
		return ""
	}
	text, err := json.Marshal(list)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal blocks: %v", err))
	}
	return string(text)
}

// readBlocks sets blocks, from holds and from the catalog, and offered, the package without the blocked versions. A
// block of the catalog replaces a block from a hold of the same version.
func (p *pass) readBlocks() {
	name := p.Operator.Spec.Package
	p.blocks = map[string]v1alpha1.VersionBlock{}
	for _, b := range HeldBlocks(p.Operator) {
		p.blocks[b.Version] = b
	}
	for _, b := range catalogs.BlocksInForce(p.Catalog, p.Package, name) {
		p.blocks[b.Version] = b
	}
	if p.Package != nil {
		p.offered, p.allBlockedError = p.Package.WithBlocked(catalogs.BlocksOf(slices.Collect(maps.Values(p.blocks)),
			name)...)
	}
}

// setBlocks decides which changes of blocks to write to the newest rollout, and which changes of blocks and holds to
// write to the OperatorInstalls. If the OperatorCatalog is missing, no block is removed.
func (p *pass) setBlocks() {
	if p.Catalog == nil {
		return
	}
	// A rollout that is aborted or rolled back admits no cluster anyway.
	if p.newest != nil && p.newest.Spec.Abort == nil && p.newest.Status.Phase != v1alpha1.RolloutRolledBack {
		if reason := p.explainNewestBlock(); reason != p.newest.Spec.Blocked {
			p.decision.Block = &Block{Rollout: p.newest.Name, Reason: reason}
		}
	}
	if len(p.decision.Recover) > 0 {
		return // the next pass does this, because each write needs the current object
	}
	list := addHeldBlocks(catalogs.BlocksForInstalls(p.Catalog, p.Package, p.Operator.Spec.Package),
		HeldBlocks(p.Operator))
	text := Encode(list)
	for _, i := range p.Installs {
		if !i.Deleting && (i.Blocks != text || !equality.Semantic.DeepEqual(i.Holds, p.Operator.Spec.Holds)) {
			key := types.NamespacedName{Namespace: i.Namespace, Name: i.Name}
			p.decision.SetBlocks = append(p.decision.SetBlocks, key)
			p.decision.Blocks = list
		}
	}
}

// maxBlocked is the API's limit for spec.blocked of a rollout.
const maxBlocked = 1024

// explainNewestBlock says why the newest rollout must admit no clusters: its version is blocked, or its release is
// held. A restored hub finds such holds on clusters. For a hold the text says what ends it. The text fits into
// spec.blocked. It is "" if neither applies.
func (p *pass) explainNewestBlock() string {
	release := p.newest.Spec.Release
	if b, blocked := p.blocks[release.Version]; blocked {
		return phrase.Truncate(formatBlockReason(b), maxBlocked)
	}
	if h, held := p.findReleaseHold(release); held && p.newest.Spec.Rollback == nil {
		end := "; " + p.explainHoldEnd(h)
		why := fmt.Sprintf("%s: %s", h, strings.TrimSuffix(h.Reason, "."))
		return phrase.Truncate(phrase.Truncate(why, maxBlocked-utf8.RuneCountInString(end))+end, maxBlocked)
	}
	return ""
}

// formatBlockReason returns the reason of a block, with the version to use instead.
func formatBlockReason(b v1alpha1.VersionBlock) string {
	if b.Instead != "" {
		return fmt.Sprintf("%s (use %s instead)", b.Reason, b.Instead)
	}
	return b.Reason
}

// chooseTarget returns the bundle of the target version in the channel, and why this version was chosen, or a problem.
// It never returns a blocked version, even if the channel keeps its entry. It also clears the available version in the
// status, which chooseVersion sets again.
func (p *pass) chooseTarget() (*catalogs.Bundle, string, *conditions.Summary) {
	spec := p.Operator.Spec
	p.decision.Status.Available = nil
	if h, held := p.findVersionHold(spec.Version); held {
		s := newStalled(v1alpha1.ReasonVersionHeld, p.explainHold(h))
		return nil, "", &s
	}
	if b, blocked := p.blocks[spec.Version]; blocked && spec.Version != "" {
		s := newStalled(v1alpha1.ReasonVersionBlocked, p.explainBlock(b))
		return nil, "", &s
	}
	if p.offered == nil {
		s := newStalled(v1alpha1.ReasonVersionBlocked, fmt.Sprintf(
			"all versions of package %s are blocked: %v; publish another version, or remove a block",
			spec.Package, p.allBlockedError))
		return nil, "", &s
	}
	if _, isChannel := p.Package.Channels[spec.Channel]; isChannel && p.offered.Channels[spec.Channel] == nil {
		s := newStalled(v1alpha1.ReasonVersionBlocked, fmt.Sprintf(
			"every version of channel %s is blocked: set spec.channel to another one, publish another version, or "+
				"remove a block", spec.Channel))
		return nil, "", &s
	}
	if spec.Version == "" || !catalogs.IsExact(spec.Version) {
		return p.chooseVersion()
	}
	bundle, err := p.offered.Target(spec.Channel, spec.Version)
	if err != nil {
		return nil, "", explainTargetError(err)
	}
	return bundle, "spec.version names it", nil
}

// explainBlock says why the version in the spec is blocked, and what a person can do.
func (p *pass) explainBlock(b v1alpha1.VersionBlock) string {
	advice := "set spec.version to another version, or remove it to follow the channel's head"
	if head := p.readHeadVersion(); b.Instead != "" {
		advice = "set spec.version to " + b.Instead
	} else if head != "" {
		advice = fmt.Sprintf("set spec.version to %s, the channel's head, or to another version", head)
	}
	return fmt.Sprintf("version %s is blocked: %s; no cluster is upgraded to it: %s, or remove the block "+
		"from OperatorCatalog %s or from the catalog that it reads",
		b.Version, b.Reason, advice, p.Catalog.Name)
}

// readHeadVersion returns the version at the head of the channel in the spec. It returns "" if there is none.
func (p *pass) readHeadVersion() string {
	if p.offered == nil {
		return ""
	}
	bundle, err := p.offered.Head(p.Operator.Spec.Channel)
	if err != nil {
		return ""
	}
	return bundle.VersionString()
}

// noteBlockedClusters returns a note that lists the clusters that run a blocked version. It returns "" if there
// are none.
func (p *pass) noteBlockedClusters() string {
	running := map[string][]string{}
	for _, i := range p.Installs {
		if b, blocked := p.blocks[i.Installed.Version]; blocked {
			running[b.Version] = append(running[b.Version], i.Cluster)
		}
	}
	var text strings.Builder
	for _, version := range slices.Sorted(maps.Keys(running)) {
		clusters := running[version]
		fmt.Fprintf(&text, "; %s %s %s, which is blocked (%s): %s", phrase.Count(len(clusters), "cluster"),
			phrase.Word(len(clusters), "runs", "run"), version, formatBlockReason(p.blocks[version]),
			phrase.First(sortNames(clusters), maxNamed))
	}
	return text.String()
}

// areAllBlocked reports whether all these versions are blocked. Clusters that run them wait for a newer version.
func (p *pass) areAllBlocked(versions []string) bool {
	return !slices.ContainsFunc(versions, func(v string) bool {
		_, blocked := p.blocks[v]
		return !blocked
	})
}
