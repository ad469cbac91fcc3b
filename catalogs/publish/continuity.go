// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// Loss is something that a catalog offers and that its replacement does not offer.
type Loss struct {
	Package string `json:"package"`
	Channel string `json:"channel,omitempty"`
	// Bundle is empty if a whole package or channel is lost.
	Bundle string `json:"bundle,omitempty"`
	// Text describes the loss and its effect in one line.
	Text string `json:"text"`
}

func (l Loss) String() string {
	place := "package " + l.Package
	if l.Channel != "" {
		place += ", channel " + l.Channel
	}
	return place + ": " + l.Text
}

// FindLosses compares a catalog with its replacement, and returns losses in a stable order. A missing package is a
// loss. A missing version is a loss unless it is blocked or named in skips, and a missing channel unless all its
// versions are. A version of the old catalog without an upgrade path to the head of its channel is a loss, unless it is
// blocked. A bundle whose version or digest changed is a loss.
func FindLosses(before, after []*catalogs.Package) []Loss {
	afterByName := map[string]*catalogs.Package{}
	for _, p := range after {
		afterByName[p.Name] = p
	}
	var out []Loss
	for _, old := range before {
		p, ok := afterByName[old.Name]
		if !ok {
			out = append(out, Loss{Package: old.Name, Text: "it is gone; clusters that run it get no further upgrade"})
			continue
		}
		out = append(out, findChangedBundles(old, p)...)
		for _, name := range slices.Sorted(maps.Keys(old.Channels)) {
			out = append(out, findChannelLosses(old, p, name)...)
		}
	}
	return out
}

// findChangedBundles returns a loss for each bundle whose version or content changed.
func findChangedBundles(old, p *catalogs.Package) []Loss {
	var out []Loss
	for _, name := range slices.Sorted(maps.Keys(old.Bundles)) {
		oldBundle, newBundle := old.Bundles[name], p.Bundles[name]
		if newBundle == nil {
			continue
		}
		if !oldBundle.Version.Equals(newBundle.Version) {
			out = append(out, Loss{Package: p.Name, Bundle: name,
				Text: fmt.Sprintf("%s was version %s and is now %s", name, oldBundle.VersionString(),
					newBundle.VersionString())})
		}
		a, b := getDigest(oldBundle.Image), getDigest(newBundle.Image)
		if a != "" && b != "" && a != b {
			out = append(out, Loss{Package: p.Name, Bundle: name,
				Text: fmt.Sprintf("version %s was the bundle %s and is now %s", newBundle.VersionString(), a, b)})
		}
	}
	return out
}

// getDigest returns the digest in an image reference. The repository can change, because the bundle could have
// been mirrored.
func getDigest(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// findChannelLosses returns the losses in a channel of the old package: the channel itself, or each version that the
// new channel lacks or has no upgrade path from. Versions that are blocked are no loss.
func findChannelLosses(old, p *catalogs.Package, name string) []Loss {
	oldChannel := old.Channels[name]
	newChannel, ok := p.Channels[name]
	if !ok {
		if areAllBlockedOrSkipped(p, oldChannel) {
			return nil
		}
		return []Loss{{Package: p.Name, Channel: name,
			Text: "it is gone; clusters that follow it get no further upgrade"}}
	}
	installed := make([]catalogs.Installed, 0, len(oldChannel.Entries))
	for _, e := range oldChannel.Entries {
		i := catalogs.Installed{Name: e.Name}
		if b := old.Bundles[e.Name]; b != nil {
			i.Version = b.Version.String()
		}
		installed = append(installed, i)
	}
	routes, err := p.Routes(name, installed...)
	if err != nil {
		return []Loss{{Package: p.Name, Channel: name, Text: err.Error()}}
	}
	head, _ := newChannel.Head() // Routes already found the head.
	var out []Loss
	for _, i := range installed {
		if text := describeLoss(oldChannel, newChannel, p, i, routes[i.Name].Hops, head); text != "" {
			out = append(out, Loss{Package: p.Name, Channel: name, Bundle: i.Name, Text: text})
		}
	}
	return out
}

// areAllBlockedOrSkipped reports whether every version of a channel is blocked or skipped.
func areAllBlockedOrSkipped(p *catalogs.Package, c *catalogs.Channel) bool {
	return !slices.ContainsFunc(c.Entries, func(e catalogs.Entry) bool {
		_, blocked := p.Blocked(e.Name)
		return !blocked && !c.Skips(e.Name)
	})
}

// describeLoss describes what a cluster with a version loses; empty if it loses nothing.
func describeLoss(oldChannel, newChannel *catalogs.Channel, p *catalogs.Package, i catalogs.Installed, hops int,
	head string) string {
	if _, blocked := p.Blocked(i.Name); blocked {
		return ""
	}
	version := cmp.Or(i.Version, i.Name)
	if hops < 0 { // there is no path
		return fmt.Sprintf("there is no upgrade path from %s to the head %s", version, head)
	}
	isSkipped := oldChannel.Skips(i.Name) || newChannel.Skips(i.Name)
	if _, offered := newChannel.Entry(i.Name); !offered && !isSkipped {
		return fmt.Sprintf("%s is no longer offered, and neither blocked nor skipped by name", version)
	}
	return ""
}
