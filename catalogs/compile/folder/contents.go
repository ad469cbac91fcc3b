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
	// fetchAhead is how many bundles of a package are fetched before they are needed, because registries are slow.
	fetchAhead = 4
	// readAhead is how many of the fetched bundles are decoded before they are needed. A decoded bundle takes twenty
	// times the memory of its files.
	readAhead = 1
)

// Contents reads the bundles of a ladder one after another, the lowest version first, and a few ahead. It implements
// compile.Contents: each version can be requested once, in that order.
type Contents struct {
	cancel      context.CancelFunc
	versions    []string
	index       map[string]int
	reads       []pendingRead
	fetchCount  int // number of reads that were started
	decodeCount int // number of reads that can decode
}

// pendingRead is a bundle that is being read.
type pendingRead struct {
	// start fetches the bundle, decodes it after decode is closed, and sends it to done.
	start  func()
	decode chan struct{}
	done   chan readResult
}

// readResult is the result of a pendingRead. isAvailable is false if a retired bundle cannot be read.
type readResult struct {
	content     compile.Content
	isAvailable bool
	err         error
}

// Contents returns the bundles of a ladder: those that it offers, and the retired bundles that still exist. dir is
// the folder of the ladder file. The caller must close the result.
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
	out := &Contents{cancel: cancel, versions: versions, index: map[string]int{},
		reads: make([]pendingRead, len(versions))}
	for i, v := range versions {
		out.index[v] = i
	}
	for _, offered := range l.Bundles {
		out.addRead(ctx, offered.Version, func(decode <-chan struct{}) readResult {
			content, err := b.readContent(ctx, root, offered.Image, offered.Path, decode)
			if err != nil {
				err = fmt.Errorf("read version %s of package %q: %w", offered.Version, l.Package, err)
			}
			return readResult{content: content, isAvailable: true, err: err}
		})
	}
	for _, retired := range l.Retired {
		out.addRead(ctx, retired.Version, func(decode <-chan struct{}) readResult {
			// Retired bundles might not exist; they are needed for comparisons only.
			content, err := b.readContent(ctx, root, retired.Image, retired.Path, decode)
			return readResult{content: content, isAvailable: err == nil, err: ctx.Err()}
		})
	}
	return out, nil
}

// addRead adds the read of a version; it runs after start was called.
func (c *Contents) addRead(ctx context.Context, version string, read func(decode <-chan struct{}) readResult) {
	r := pendingRead{decode: make(chan struct{}), done: make(chan readResult, 1)}
	r.start = func() {
		select {
		case <-ctx.Done():
			r.done <- readResult{err: ctx.Err()}
		default:
			r.done <- read(r.decode)
		}
	}
	c.reads[c.index[version]] = r
}

// Close cancels reads that are in progress.
func (c *Contents) Close() { c.cancel() }

// Content implements compile.Contents. It starts to fetch and decode the next versions too. It returns false for an
// unknown version and for a version that was already requested.
func (c *Contents) Content(version string) (compile.Content, bool, error) {
	i, ok := c.index[version]
	if !ok || c.reads[i].done == nil {
		return compile.Content{}, false, nil
	}
	for ; c.fetchCount < min(i+1+fetchAhead, len(c.reads)); c.fetchCount++ {
		go c.reads[c.fetchCount].start()
	}
	for ; c.decodeCount < min(i+1+readAhead, len(c.reads)); c.decodeCount++ {
		close(c.reads[c.decodeCount].decode)
	}
	out := <-c.reads[i].done
	c.reads[i].done = nil // each version is requested once, so the result is not kept
	return out.content, out.isAvailable, out.err
}

// VisitBundles calls visit for every available bundle of a ladder, the lowest version first, until there is an error.
func (b *Bundles) VisitBundles(ctx context.Context, dir string, l *ladder.Ladder,
	visit func(compile.Content) error) error {
	contents, err := b.Contents(ctx, dir, l)
	if err != nil {
		return err
	}
	defer contents.Close()
	for _, version := range slices.Clone(contents.versions) {
		content, isAvailable, err := contents.Content(version)
		if err == nil && isAvailable {
			err = visit(content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
