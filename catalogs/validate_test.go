// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// chain returns a package in whose channels each bundle is replaced by the next bundle.
func chain(bundles, channels int) *catalogs.Package {
	p := &catalogs.Package{Name: "p", DefaultChannel: "c0", Channels: map[string]*catalogs.Channel{},
		Bundles: map[string]*catalogs.Bundle{}}
	var entries []catalogs.Entry
	for i := range bundles {
		name := fmt.Sprintf("p.v1.%d.0", i)
		p.Bundles[name] = &catalogs.Bundle{Name: name, Version: semver.Version{Major: 1, Minor: uint64(i)}}
		e := catalogs.Entry{Name: name}
		if i > 0 {
			e.Replaces = fmt.Sprintf("p.v1.%d.0", i-1)
		}
		entries = append(entries, e)
	}
	for i := range channels {
		name := fmt.Sprintf("c%d", i)
		p.Channels[name] = &catalogs.Channel{Name: name, Entries: entries}
	}
	return p
}

// TestSizeOfAPackage checks the limits, because a package is validated for each catalog that is read, and its paths
// are searched after that.
func TestSizeOfAPackage(t *testing.T) {
	blocked := chain(1, 1)
	blocked.Blocks = map[string]catalogs.Block{}
	for i := range 10_001 {
		blocked.Blocks[fmt.Sprintf("p.v2.%d.0", i)] = catalogs.Block{Reason: "broken"}
	}
	for name, tc := range map[string]struct {
		p    *catalogs.Package
		says string
	}{
		"as many as permitted": {chain(10_000, 5), ""},
		"too many bundles":     {chain(10_001, 1), "it has 10001 bundles, and at most 10000 are permitted"},
		"too many entries":     {chain(9_000, 6), "its channels have 54000 entries together, and at most 50000"},
		"too many blocks":      {blocked, "it has 10001 blocks, and at most 10000 are permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.p.Validate()
			if tc.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, catalogs.ErrInvalidPackage) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %.300v", err)
			}
		})
	}
}

// TestFirstEntryOfAName: the walk from the head uses the first of two entries with the same name, as upgrades do.
func TestFirstEntryOfAName(t *testing.T) {
	p := chain(3, 1)
	c := p.Channels["c0"]
	c.Entries = append(c.Entries, catalogs.Entry{Name: "p.v1.2.0", Replaces: "p.v1.0.0"})
	err := p.Validate()
	if err == nil || !strings.Contains(err.Error(), `entry "p.v1.2.0" is there twice`) ||
		strings.Contains(err.Error(), "never meets") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkValidate(b *testing.B) {
	p := chain(10_000, 5)
	for b.Loop() {
		if err := p.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}
