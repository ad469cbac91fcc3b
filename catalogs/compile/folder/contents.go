// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

const (
	// fetchAhead is how many bundles of a package are fetched before they are needed: registries take their time.
	fetchAhead = 4
	// readAhead is how many of them are decoded before. A decoded bundle takes twenty times the memory of its files.
	readAhead = 1
)

// Contents reads the bundles of a ladder one after another, the lowest version first, and a few ahead. It implements
// compile.Contents: each version can be requested once, in that order.
type Contents struct {
	cancel   context.CancelFunc
	versions []string
	order    map[string]int
	reads    []read
	fetched  int // how many of the reads were started
	decoded  int // how many of them were told to decode
}

// read is a bundle that is being read.
type read struct {
	// start begins to fetch; decode is closed to go on.
	start  func()
	decode chan struct{}
	done   chan outcome
}

// outcome is what became of a read.
type outcome struct {
	content compile.Content
	known   bool
	err     error
}

// Contents returns the bundles of a ladder: those that it offers, and of the retired ones those that are still there.
// dir is the folder of the ladder file. It has to be closed.
func (b *Bundles) Contents(ctx context.Context, dir string, l *ladder.Ladder) (*Contents, error) {
	versions, err := compile.Versions(l)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open catalog folder: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(ctx, func() { _ = root.Close() })
	out := &Contents{cancel: cancel, versions: versions, order: map[string]int{}, reads: make([]read, len(versions))}
	for i, v := range versions {
		out.order[v] = i
	}
	for _, one := range l.Bundles {
		out.add(ctx, one.Version, func(decode <-chan struct{}) outcome {
			content, err := b.content(ctx, root, one.Image, one.Path, decode)
			if err != nil {
				err = fmt.Errorf("read version %s of package %q: %w", one.Version, l.Package, err)
			}
			return outcome{content: content, known: true, err: err}
		})
	}
	for _, old := range l.Retired {
		out.add(ctx, old.Version, func(decode <-chan struct{}) outcome {
			// Retired bundles may no longer exist; they are needed for
			// comparisons only.
			content, err := b.content(ctx, root, old.Image, old.Path, decode)
			return outcome{content: content, known: err == nil, err: ctx.Err()}
		})
	}
	return out, nil
}

func (c *Contents) add(ctx context.Context, version string, run func(decode <-chan struct{}) outcome) {
	r := read{decode: make(chan struct{}), done: make(chan outcome, 1)}
	r.start = func() {
		select {
		case <-ctx.Done():
			r.done <- outcome{err: ctx.Err()}
		default:
			r.done <- run(r.decode)
		}
	}
	c.reads[c.order[version]] = r
}

// Close ends reads that are under way.
func (c *Contents) Close() { c.cancel() }

// Content implements compile.Contents.
func (c *Contents) Content(version string) (compile.Content, bool, error) {
	i, ok := c.order[version]
	if !ok || c.reads[i].done == nil {
		return compile.Content{}, false, nil
	}
	for ; c.fetched < min(i+1+fetchAhead, len(c.reads)); c.fetched++ {
		go c.reads[c.fetched].start()
	}
	for ; c.decoded < min(i+1+readAhead, len(c.reads)); c.decoded++ {
		close(c.reads[c.decoded].decode)
	}
	out := <-c.reads[i].done
	c.reads[i].done = nil // it was requested, and is not kept
	return out.content, out.known, out.err
}

// Each calls take for every bundle of a ladder that is known, the lowest version first, until there is an error.
func (b *Bundles) Each(ctx context.Context, dir string, l *ladder.Ladder, take func(compile.Content) error) error {
	contents, err := b.Contents(ctx, dir, l)
	if err != nil {
		return err
	}
	defer contents.Close()
	for _, version := range slices.Clone(contents.versions) {
		content, known, err := contents.Content(version)
		if err == nil && known {
			err = take(content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
