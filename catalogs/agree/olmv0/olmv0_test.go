// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/cache"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/sirupsen/logrus"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
)

func read(t testing.TB, notation string) *catalogs.Package {
	t.Helper()
	p, err := catalogs.ReadPackage(catalogs.SingleFile("graph", strings.NewReader(catalogtest.Graph("p", notation))),
		"p")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNext(t *testing.T) {
	const chain = "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0"
	deprecate := func(p *catalogs.Package, bundle string) {
		p.Bundles[bundle].Properties = append(p.Bundles[bundle].Properties,
			bundles.Property{Type: "olm.deprecated", Value: []byte("{}")})
	}
	for name, tc := range map[string]struct {
		graph     string
		change    func(*catalogs.Package)
		installed catalogs.Installed
		want      string
		err       error
	}{
		"fresh": {graph: chain, want: "p.v1.2.0"},
		"one hop": {graph: chain, installed: catalogs.Installed{Name: "p.v1.0.0"},
			want: "p.v1.1.0"},
		"at the head": {graph: chain, installed: catalogs.Installed{Name: "p.v1.2.0"}},
		"unknown":     {graph: chain, installed: catalogs.Installed{Name: "p.v0.9.0"}},
		"skips": {graph: "1.0.0\n1.2.0 skips 1.0.0",
			installed: catalogs.Installed{Name: "p.v1.0.0"}, want: "p.v1.2.0"},
		"never to what is skipped": {graph: "1.0.0\n1.1.0 skips 1.0.0\n1.2.0 skips 1.1.0",
			installed: catalogs.Installed{Name: "p.v1.0.0"}},
		"a range, by the CSV's version": {graph: chain + " range <1.0.0",
			installed: catalogs.Installed{Name: "other", Version: "0.5.0"}, want: "p.v1.2.0"},
		"a range, by the name": {graph: chain + " range <1.0.0",
			installed: catalogs.Installed{Name: "p.v0.5.0"}, want: "p.v1.2.0"},
		"a range that holds the head": {graph: chain + " range <=1.2.0",
			installed: catalogs.Installed{Name: "p.v1.2.0"}},
		"no version is 0.0.0": {graph: chain + " range <0.0.1",
			installed: catalogs.Installed{Name: "other"}, want: "p.v1.2.0"},
		"what is nearest to the head": {graph: "1.0.0\n1.2.0 replaces 1.0.0\n1.1.0 replaces 1.2.0 range <1.2.0",
			installed: catalogs.Installed{Name: "p.v1.0.0"}, want: "p.v1.1.0"},
		"downwards, if told so": {graph: "1.2.0\n1.1.0 replaces 1.2.0",
			installed: catalogs.Installed{Name: "p.v1.2.0"}, want: "p.v1.1.0"},
		"never to what is olm.deprecated": {graph: chain,
			change:    func(p *catalogs.Package) { deprecate(p, "p.v1.1.0") },
			installed: catalogs.Installed{Name: "p.v1.0.0"}},
		"past what is olm.deprecated": {graph: chain + " range <1.2.0",
			change:    func(p *catalogs.Package) { deprecate(p, "p.v1.2.0") },
			installed: catalogs.Installed{Name: "p.v1.0.0"}, want: "p.v1.1.0"},
		"nothing that could be installed": {graph: "1.0.0",
			change: func(p *catalogs.Package) { deprecate(p, "p.v1.0.0") }, err: ErrNothing},
		"two heads": {graph: chain,
			change:    func(p *catalogs.Package) { p.Channels["stable"].Entries[2].Replaces = "" },
			installed: catalogs.Installed{Name: "p.v1.0.0"}, err: ErrRefused},
		"a circle": {graph: chain,
			change: func(p *catalogs.Package) { p.Channels["stable"].Entries[0].Replaces = "p.v1.2.0" },
			err:    ErrRefused},
		"a channel name that OLM stumbles over": {graph: chain, change: func(p *catalogs.Package) {
			p.Channels["a/b"], p.DefaultChannel = &catalogs.Channel{Name: "a/b", Entries: p.Channels["stable"].Entries},
				"a/b"
		}, installed: catalogs.Installed{Name: "p.v1.0.0"}, err: ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			p := read(t, tc.graph)
			if tc.change != nil {
				tc.change(p)
			}
			c, err := New(p, "")
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Next(tc.installed)
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %q (%v), want %q (%v)", got, err, tc.want, tc.err)
			}
			again, errAgain := c.Next(tc.installed)
			if again != got || fmt.Sprint(errAgain) != fmt.Sprint(err) {
				t.Errorf("asked again: got %q (%v), first %q (%v)", again, errAgain, got, err)
			}
		})
	}
	if _, err := New(read(t, chain), "none"); !errors.Is(err, catalogs.ErrNoChannel) {
		t.Errorf("no such channel: got %v", err)
	}
}

// TestShortcutsKeepAnswers compares the answers on random graphs with the answers of OLM's resolver without
// shortcuts: in a separate call, with OLM's cache, all channels, and every property by which it
// distinguishes providers.
func TestShortcutsKeepAnswers(t *testing.T) {
	moves, refusals := 0, 0
	for seed := range uint64(400) {
		p := random(rand.New(rand.NewPCG(seed, 3)))
		for channel := range p.Channels {
			c, err := New(p, channel)
			if err != nil {
				t.Fatal(err)
			}
			asked := []catalogs.Installed{{}, {Name: "p.v0.1.0"}, {Name: "other", Version: "1.2.5"}}
			for name := range p.Bundles {
				asked = append(asked, catalogs.Installed{Name: name})
			}
			for i, answer := range c.NextForAll(asked...) {
				installed, got, err := asked[i], answer.Next, answer.Err
				want, wantErr := whole(p, channel, installed)
				if got != want || (err == nil) != (wantErr == nil) {
					t.Fatalf("seed %d, channel %s: from %q: got %q (%v), want %q (%v)", seed, channel, installed.Name,
						got, err, want, wantErr)
				}
				if got != "" {
					moves++
				}
				if errors.Is(err, ErrRefused) {
					refusals++
				}
			}
		}
	}
	if moves < 1000 || refusals < 100 {
		t.Errorf("%d moves and %d refusals: the graphs do not try enough", moves, refusals)
	}
}

// random returns a package of two channels. Some packages are invalid, because OLM must reject these too.
func random(r *rand.Rand) *catalogs.Package {
	p := &catalogs.Package{Name: "p", DefaultChannel: "a", Channels: map[string]*catalogs.Channel{},
		Bundles: map[string]*catalogs.Bundle{}}
	name := func(i int) string { return fmt.Sprintf("p.v1.%d.0", i) }
	n := 2 + r.IntN(7)
	for i := range n {
		b := &catalogs.Bundle{Name: name(i), Version: semver.Version{Major: 1, Minor: uint64(i)}}
		if r.IntN(12) == 0 {
			b.Properties = append(b.Properties, bundles.Property{Type: "olm.deprecated", Value: []byte("{}")})
		}
		p.Bundles[b.Name] = b
	}
	for _, channel := range []string{"a", "b"} {
		c := &catalogs.Channel{Name: channel}
		for i := range n {
			e := catalogs.Entry{Name: name(i)}
			if i > 0 && r.IntN(8) > 0 {
				e.Replaces = name(i - 1 - r.IntN(min(i, 2)))
			}
			for j := range i {
				if r.IntN(5) == 0 {
					e.Skips = append(e.Skips, name(j))
				}
			}
			if i > 0 && r.IntN(4) == 0 {
				e.SkipRange = fmt.Sprintf(">=1.%d.0 <1.%d.0", r.IntN(i), i)
			}
			c.Entries = append(c.Entries, e)
		}
		p.Channels[channel] = c
	}
	return p
}

var wholeKey = cache.SourceKey{Name: "catalog", Namespace: namespace}

func whole(p *catalogs.Package, channel string, installed catalogs.Installed) (string, error) {
	provides := func(version string) []*api.Property {
		return []*api.Property{
			{Type: "olm.package", Value: fmt.Sprintf(`{"packageName":%q,"version":%q}`, p.Name, version)},
			{Type: "olm.gvk", Value: `{"group":"example.com","version":"v1","kind":"Thing"}`},
		}
	}
	var entries []*cache.Entry
	for _, c := range p.Channels {
		for _, e := range c.Entries {
			entry := newEntry(e, p.Bundles[e.Name])
			entry.SourceInfo = &cache.OperatorSourceInfo{
				Package: p.Name, Channel: c.Name, Catalog: wholeKey, DefaultChannel: c.Name == p.DefaultChannel,
			}
			entry.Properties = append(entry.Properties, provides(entry.Version.String())...)
			entries = append(entries, &entry)
		}
	}
	sub := &operatorsv1alpha1.Subscription{Spec: &operatorsv1alpha1.SubscriptionSpec{
		CatalogSource: wholeKey.Name, CatalogSourceNamespace: namespace, Package: p.Name, Channel: channel,
	}}
	sub.Namespace, sub.Name, sub.Status.InstalledCSV = namespace, p.Name, installed.Name
	var existing []*cache.Entry
	if installed.Name != "" {
		version, _ := installed.SemVer()
		existing = append(existing, &cache.Entry{
			Name: installed.Name, Version: &version, Properties: provides(version.String()),
			SourceInfo: &cache.OperatorSourceInfo{Catalog: installedKey, Package: p.Name, Subscription: sub},
		})
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	sources := cache.StaticSourceProvider{
		wholeKey:     &cache.Snapshot{Entries: entries},
		installedKey: &cache.Snapshot{Entries: existing},
	}
	found, err := resolver.NewDefaultResolver(cache.New(sources), quiet).Resolve([]string{namespace},
		[]*operatorsv1alpha1.Subscription{sub})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0 || found[0].Name == installed.Name:
		return "", nil
	case len(found) > 1:
		return "", fmt.Errorf("%d bundles", len(found))
	}
	return found[0].Name, nil
}

// BenchmarkNextOfEach queries every version of a channel of 30 versions.
func BenchmarkNextOfEach(b *testing.B) {
	for name, tc := range map[string]struct{ edge, head string }{
		"Chain": {}, "HeadRange": {head: " range <1.29.0"}, "EveryRange": {edge: " range <1.%d.0"},
	} {
		b.Run(name, func(b *testing.B) {
			var text strings.Builder
			for i := range 30 {
				fmt.Fprintf(&text, "1.%d.0 replaces 1.%d.0", i, i-1)
				if tc.edge != "" {
					fmt.Fprintf(&text, tc.edge, i)
				}
				if i == 29 {
					text.WriteString(tc.head)
				}
				text.WriteByte('\n')
			}
			c, err := New(read(b, strings.Replace(text.String(), " replaces 1.-1.0", "", 1)), "stable")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var installed []catalogs.Installed
			for i := range 30 {
				installed = append(installed, catalogs.Installed{Name: fmt.Sprintf("p.v1.%d.0", i)})
			}
			for b.Loop() {
				for _, answer := range c.NextForAll(installed...) {
					if answer.Err != nil {
						b.Fatal(answer.Err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(installed)), "us/answer")
		})
	}
}
