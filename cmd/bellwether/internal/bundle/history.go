// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
	"github.com/bellwether-dev/bellwether/bundles/lint"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
)

// historyReader reads the published versions that a bundle is compared with. Each version is reduced immediately
// after it was read, so that only the versions that are currently being read need much memory.
type historyReader struct {
	client *oci.Client
	access *registry.Flags
	// target is the bundle that is linted.
	target  *bundles.Bundle
	archive *crd.Archive
	// progress counts versions; it may be nil.
	progress *command.Progress
	count    atomic.Int64
}

// publishedVersions are the versions from one source.
type publishedVersions struct {
	bundles    []*bundles.Bundle
	unreadable []lint.Unreadable
}

// readSource reads the versions from a source: a folder of bundle folders, one bundle, or a catalog.
func (h *historyReader) readSource(ctx context.Context, source string) (publishedVersions, error) {
	h.progress.Doing("reading " + source)
	h.count.Store(0)
	if IsDirectory(source) {
		folders, err := listBundleFolders(source)
		if err != nil {
			return publishedVersions{}, err
		}
		if len(folders) > 0 {
			return h.readFolders(ctx, folders)
		}
	} else if err := registry.CheckImageName(source); err != nil {
		return publishedVersions{}, err
	}
	found, err := h.readCatalog(ctx, source)
	if err == nil || !errors.Is(err, catalogs.ErrNotCatalog) {
		return found, err
	}
	if IsDirectory(source) {
		return publishedVersions{}, exit.Hint(err, "use a folder with one bundle folder for each version, or a catalog")
	}
	// The source is not a catalog, so it can be the image of a single bundle.
	objects, imageErr := h.client.BundleObjects(ctx, source, h.access.Access())
	if imageErr != nil {
		return publishedVersions{}, err
	}
	b, err := parseManifests(objects)
	if err != nil {
		return publishedVersions{}, err
	}
	return publishedVersions{bundles: sliceIfPresent(h.reduce(b, 1))}, nil
}

// reduce reduces a version to the data that the lint compares. It returns nil if b is the target itself. total is the
// number of versions, or 0 if it is unknown.
func (h *historyReader) reduce(b *bundles.Bundle, total int) *bundles.Bundle {
	h.progress.Count(int(h.count.Add(1)), total, "versions")
	return lint.Reduce(h.archive, h.target, b)
}

// listBundleFolders returns dir if it is a bundle, or else the bundle folders directly in it.
func listBundleFolders(dir string) ([]string, error) {
	const marker = bundles.MetadataDir + "/annotations.yaml"
	if _, err := os.Stat(filepath.Join(dir, marker)); err == nil {
		return []string{dir}, nil
	}
	markers, err := fs.Glob(os.DirFS(dir), "*/"+marker)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range markers {
		out = append(out, filepath.Join(dir, path.Dir(path.Dir(m))))
	}
	return out, nil
}

// readFolders reads the bundle folders in parallel.
func (h *historyReader) readFolders(ctx context.Context, folders []string) (publishedVersions, error) {
	collector := newVersionCollector()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, folder := range folders {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			b, err := bundles.Read(os.DirFS(folder))
			if err == nil {
				b = h.reduce(b, len(folders))
			}
			return collector.addResult(folder, b, err)
		})
	}
	if err := group.Wait(); err != nil {
		return publishedVersions{}, err
	}
	return collector.listVersions(folders), nil
}

// readCatalog reads every version that a catalog has of the target's package.
func (h *historyReader) readCatalog(ctx context.Context, source string) (publishedVersions, error) {
	files, err := h.access.Open(ctx, source)
	if err != nil {
		return publishedVersions{}, err
	}
	if h.target.Package == "" {
		return publishedVersions{}, exit.Hintf("lint the bundle's folder instead",
			"the input has no package name, so its history in a catalog cannot be found")
	}
	collector := newVersionCollector()
	p, err := catalogs.ReadEachInPackage(files, h.target.Package, func(b *catalogs.Bundle) error {
		if len(b.Objects) == 0 {
			return nil // readImages reads the manifests from the image
		}
		return collector.addResult(h.parseObjects(b.Name, b.Objects, 0))
	})
	if errors.Is(err, catalogs.ErrNoPackage) {
		return publishedVersions{}, nil // the target is the first version of the package
	}
	if err != nil {
		return publishedVersions{}, err
	}
	if err := h.readImages(ctx, p, collector); err != nil {
		return publishedVersions{}, err
	}
	for name, b := range collector.bundles {
		if b != nil {
			b.Channels = p.ChannelsOf(name)
		}
	}
	var names []string
	for name := range p.Bundles {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare)
	return collector.listVersions(names), nil
}

// parseObjects parses and reduces a version from its manifests. It returns name too, as the arguments of addResult.
func (h *historyReader) parseObjects(name string, objects [][]byte, total int) (string, *bundles.Bundle, error) {
	b, err := bundles.FromManifests(objects, map[string]string{bundles.AnnotationPackage: h.target.Package})
	if err != nil {
		return name, nil, err
	}
	return name, h.reduce(b, total), nil
}

// readImages reads the versions whose manifests are not in the catalog from their images.
func (h *historyReader) readImages(ctx context.Context, p *catalogs.Package, collector *versionCollector) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxImageFetches)
	// Decoding needs a processor, so it is limited more strictly than the downloads.
	decodeSlots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for name, b := range p.Bundles {
		if collector.has(name) {
			continue
		}
		group.Go(func() error {
			objects, err := h.client.BundleObjects(ctx, b.Image, h.access.Access())
			if err != nil {
				return collector.addResult(name, nil, err)
			}
			decodeSlots <- struct{}{}
			defer func() { <-decodeSlots }()
			return collector.addResult(h.parseObjects(name, objects, len(p.Bundles)))
		})
	}
	return group.Wait()
}

// versionCollector collects versions by name. It stores the errors of invalid versions, because they must not prevent
// the comparison with the other versions.
type versionCollector struct {
	mu sync.Mutex
	// bundles has nil for the version that is the target itself.
	bundles map[string]*bundles.Bundle
	errs    map[string]error
}

func newVersionCollector() *versionCollector {
	return &versionCollector{bundles: map[string]*bundles.Bundle{}, errs: map[string]error{}}
}

// addResult stores a version or its error. It returns errors that are not about the version's
// content, for example if a registry does not answer.
func (c *versionCollector) addResult(name string, b *bundles.Bundle, err error) error {
	if err != nil && !isBadBundle(err) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bundles[name], c.errs[name] = b, err
	return nil
}

func (c *versionCollector) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.bundles[name]
	return ok
}

// listVersions returns the collected versions in the order of names.
func (c *versionCollector) listVersions(names []string) publishedVersions {
	var out publishedVersions
	for _, name := range names {
		if err := c.errs[name]; err != nil {
			out.unreadable = append(out.unreadable, lint.Unreadable{Name: name, Err: err})
		} else {
			out.bundles = append(out.bundles, sliceIfPresent(c.bundles[name])...)
		}
	}
	return out
}

// sliceIfPresent returns a slice with b, or nil if b is nil.
func sliceIfPresent(b *bundles.Bundle) []*bundles.Bundle {
	if b == nil {
		return nil
	}
	return []*bundles.Bundle{b}
}

// isBadBundle reports whether an error is about the content of a bundle, and not about reading it.
func isBadBundle(err error) bool {
	return errors.Is(err, bundles.ErrNotBundle) || errors.Is(err, bundles.ErrTooLarge) ||
		errors.Is(err, oci.ErrNotBundle) || errors.Is(err, oci.ErrTooLarge)
}
