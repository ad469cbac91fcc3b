// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

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
	"github.com/bellwether-dev/bellwether/catalogs/blocks"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/target"
)

// Encode returns blocks in a form that can be compared.
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

// readBlocks reads what is blocked, and what the package offers without it.
func (p *pass) readBlocks() {
	name := p.Operator.Spec.Package
	p.blocks = map[string]v1alpha1.VersionBlock{}
	for _, b := range target.Held(p.Operator) {
		p.blocks[b.Version] = b
	}
	for _, b := range blocks.InForce(p.Catalog, p.Package, name) {
		p.blocks[b.Version] = b
	}
	if p.Package != nil {
		p.offered, p.nothingLeft = p.Package.WithBlocked(blocks.Of(slices.Collect(maps.Values(p.blocks)), name)...)
	}
}

// block decides which changes of blocks to write to the newest rollout and to
// the OperatorInstalls. A missing OperatorCatalog removes no block.
func (p *pass) block() {
	if p.Catalog == nil {
		return
	}
	if p.newest != nil && p.newest.Spec.Abort == nil && p.newest.Status.Phase != v1alpha1.RolloutRolledBack {
		if reason := p.newestBlock(); reason != p.newest.Spec.Blocked {
			p.decision.Block = &Block{Rollout: p.newest.Name, Reason: reason}
		}
	}
	if len(p.decision.Recover) > 0 {
		return // the next pass does it, since each write needs the object as it is then
	}
	list := withHeld(blocks.ForInstalls(p.Catalog, p.Package, p.Operator.Spec.Package), target.Held(p.Operator))
	text := Encode(list)
	for _, i := range p.Installs {
		if !i.Deleting && (i.Blocks != text || !equality.Semantic.DeepEqual(i.Holds, p.Operator.Spec.Holds)) {
			key := types.NamespacedName{Namespace: i.Namespace, Name: i.Name}
			p.decision.SetBlocks = append(p.decision.SetBlocks, key)
			p.decision.Blocks = list
		}
	}
}

// maxBlocked is the maximal length of spec.blocked of a rollout.
const maxBlocked = 1024

// newestBlock is why the newest rollout must admit nothing: its version is blocked, or it brings what is held. A hub
// that was restored finds such holds on clusters. Of a hold it says what ends it. It is as long as spec.blocked may be.
func (p *pass) newestBlock() string {
	release := p.newest.Spec.Release
	if b, blocked := p.blocks[release.Version]; blocked {
		return phrase.Truncate(blockReason(b), maxBlocked)
	}
	if h, held := p.holdOfRelease(release); held && p.newest.Spec.Rollback == nil {
		end := "; " + p.endOfHold(h)
		why := fmt.Sprintf("%s: %s", h, strings.TrimSuffix(h.Reason, "."))
		return phrase.Truncate(phrase.Truncate(why, maxBlocked-utf8.RuneCountInString(end))+end, maxBlocked)
	}
	return ""
}

func blockReason(b v1alpha1.VersionBlock) string {
	if b.Instead != "" {
		return fmt.Sprintf("%s (use %s instead)", b.Reason, b.Instead)
	}
	return b.Reason
}

// target returns the wanted version as the channel offers it, and why it is that. A blocked version is never returned,
// even if the channel keeps its entry.
func (p *pass) target() (*catalogs.Bundle, string, *conditions.Summary) {
	spec := p.Operator.Spec
	p.decision.Status.Available = nil
	if h, held := p.holdOf(spec.Version); held {
		s := stalled(v1alpha1.ReasonVersionHeld, p.heldMessage(h))
		return nil, "", &s
	}
	if b, blocked := p.blocks[spec.Version]; blocked && spec.Version != "" {
		s := stalled(v1alpha1.ReasonVersionBlocked, p.blockedMessage(b))
		return nil, "", &s
	}
	if p.offered == nil {
		s := stalled(v1alpha1.ReasonVersionBlocked, fmt.Sprintf(
			"all versions of package %s are blocked: %v; publish another version, or remove a block",
			spec.Package, p.nothingLeft))
		return nil, "", &s
	}
	if _, emptied := p.Package.Channels[spec.Channel]; emptied && p.offered.Channels[spec.Channel] == nil {
		s := stalled(v1alpha1.ReasonVersionBlocked, fmt.Sprintf(
			"every version of channel %s is blocked: set spec.channel to another one, publish another version, or "+
				"remove a block", spec.Channel))
		return nil, "", &s
	}
	if spec.Version == "" || !catalogs.IsExact(spec.Version) {
		return p.chooseVersion()
	}
	bundle, err := p.offered.Target(spec.Channel, spec.Version)
	if err != nil {
		return nil, "", targetProblem(err)
	}
	return bundle, "spec.version names it", nil
}

func (p *pass) blockedMessage(b v1alpha1.VersionBlock) string {
	advice := "set spec.version to another version, or remove it to follow the channel's head"
	if head := p.headVersion(); b.Instead != "" {
		advice = "set spec.version to " + b.Instead
	} else if head != "" {
		advice = fmt.Sprintf("set spec.version to %s, the channel's head, or to another version", head)
	}
	return fmt.Sprintf("version %s is blocked: %s; no cluster is upgraded to it: %s, or remove the block "+
		"from OperatorCatalog %s or from the catalog that it reads",
		b.Version, b.Reason, advice, p.Catalog.Name)
}

// headVersion is the version at the head of the wanted channel; empty if there
// is none.
func (p *pass) headVersion() string {
	if p.offered == nil {
		return ""
	}
	bundle, err := p.offered.Target(p.Operator.Spec.Channel, "")
	if err != nil {
		return ""
	}
	return bundle.VersionString()
}

// clustersOnBlocked names the clusters that run a blocked version.
func (p *pass) clustersOnBlocked() string {
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
			phrase.Word(len(clusters), "runs", "run"), version, blockReason(p.blocks[version]),
			phrase.First(sorted(clusters), maxNamed))
	}
	return text.String()
}

// areAllBlocked tells whether all of the versions are blocked. Clusters that
// run them wait for a newer one.
func (p *pass) areAllBlocked(versions []string) bool {
	return !slices.ContainsFunc(versions, func(v string) bool {
		_, blocked := p.blocks[v]
		return !blocked
	})
}
