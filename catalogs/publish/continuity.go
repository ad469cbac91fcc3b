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

// Loss is something that a catalog offers and the one that is to replace it does not.
type Loss struct {
	Package string `json:"package"`
	Channel string `json:"channel,omitempty"`
	// Bundle is empty where a whole package or channel is lost.
	Bundle string `json:"bundle,omitempty"`
	// Text says what is lost and for whom, in one line.
	Text string `json:"text"`
}

func (l Loss) String() string {
	where := "package " + l.Package
	if l.Channel != "" {
		where += ", channel " + l.Channel
	}
	return where + ": " + l.Text
}

// Losses compares a catalog with the one that is to replace it. A package, a channel or a version may only disappear
// where the new catalog blocks it, or names it in the skips of another version; from every version that the old catalog
// has there must be a way to the head of its channel; and a version's bundle never changes. The order is stable.
func Losses(before, after []*catalogs.Package) []Loss {
	now := map[string]*catalogs.Package{}
	for _, p := range after {
		now[p.Name] = p
	}
	var out []Loss
	for _, old := range before {
		p, ok := now[old.Name]
		if !ok {
			out = append(out, Loss{Package: old.Name, Text: "it is gone; clusters that run it get no upgrade any more"})
			continue
		}
		out = append(out, changed(old, p)...)
		for _, name := range slices.Sorted(maps.Keys(old.Channels)) {
			out = append(out, lostInChannel(old, p, name)...)
		}
	}
	return out
}

// changed finds versions that are another bundle than before.
func changed(old, p *catalogs.Package) []Loss {
	var out []Loss
	for _, name := range slices.Sorted(maps.Keys(old.Bundles)) {
		was, is := old.Bundles[name], p.Bundles[name]
		if is == nil {
			continue
		}
		if !was.Version.Equals(is.Version) {
			out = append(out, Loss{Package: p.Name, Bundle: name,
				Text: fmt.Sprintf("%s was version %s and is now %s", name, was.VersionString(), is.VersionString())})
		}
		a, b := digestOf(was.Image), digestOf(is.Image)
		if a != "" && b != "" && a != b {
			out = append(out, Loss{Package: p.Name, Bundle: name,
				Text: fmt.Sprintf("version %s was the bundle %s and is now %s", is.VersionString(), a, b)})
		}
	}
	return out
}

// digestOf is the digest in a reference. What comes before it may change: the bundle may have been mirrored.
func digestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

func lostInChannel(old, p *catalogs.Package, name string) []Loss {
	was := old.Channels[name]
	is, ok := p.Channels[name]
	if !ok {
		if allBlocked(p, was) {
			return nil
		}
		return []Loss{{Package: p.Name, Channel: name, Text: "it is gone; who follows it gets no upgrade any more"}}
	}
	installed := make([]catalogs.Installed, 0, len(was.Entries))
	for _, e := range was.Entries {
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
	head, _ := is.Head() // Routes found it.
	var out []Loss
	for _, i := range installed {
		if text := lost(was, is, p, i, routes[i.Name].Hops, head); text != "" {
			out = append(out, Loss{Package: p.Name, Channel: name, Bundle: i.Name, Text: text})
		}
	}
	return out
}

func allBlocked(p *catalogs.Package, c *catalogs.Channel) bool {
	return !slices.ContainsFunc(c.Entries, func(e catalogs.Entry) bool {
		_, blocked := p.Blocked(e.Name)
		return !blocked && !c.Skips(e.Name)
	})
}

func lost(was, is *catalogs.Channel, p *catalogs.Package, i catalogs.Installed, hops int, head string) string {
	if _, blocked := p.Blocked(i.Name); blocked {
		return ""
	}
	version := cmp.Or(i.Version, i.Name)
	if hops < 0 {
		return fmt.Sprintf("there is no upgrade path from %s to the head %s", version, head)
	}
	if _, offered := is.Entry(i.Name); !offered && !was.Skips(i.Name) && !is.Skips(i.Name) {
		return fmt.Sprintf("%s is no longer offered, and neither blocked nor skipped by name", version)
	}
	return ""
}
