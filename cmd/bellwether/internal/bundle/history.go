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
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
)

// history reads the published versions that a bundle is compared with. Each is reduced as soon as it was read, so that
// only those that are being read take much memory.
type history struct {
	client  *oci.Client
	access  *registry.Flags
	of      *bundles.Bundle
	archive *crd.Archive
	// progress counts versions; it may be nil.
	progress *command.Progress
	count    atomic.Int64
}

// publishedVersions are those of one place.
type publishedVersions struct {
	bundles    []*bundles.Bundle
	unreadable []lint.Unreadable
}

// read reads the versions at one place: a folder of bundle folders, one
// bundle, or a catalog.
func (h *history) read(ctx context.Context, place string) (publishedVersions, error) {
	h.progress.Doing("reading " + place)
	h.count.Store(0)
	if IsDirectory(place) {
		folders, err := bundleFolders(place)
		if err != nil {
			return publishedVersions{}, err
		}
		if len(folders) > 0 {
			return h.readFolders(ctx, folders)
		}
	} else if err := registry.CheckImageName(place); err != nil {
		return publishedVersions{}, err
	}
	found, err := h.readCatalog(ctx, place)
	if err == nil || !errors.Is(err, catalogs.ErrNotCatalog) {
		return found, err
	}
	if IsDirectory(place) {
		return publishedVersions{}, exit.Hint(err, "use a folder with one bundle folder for each version, or a catalog")
	}
	objects, imageErr := h.client.BundleObjects(ctx, place, h.access.Access())
	if imageErr != nil {
		return publishedVersions{}, err
	}
	b, err := fromManifests(objects)
	if err != nil {
		return publishedVersions{}, err
	}
	return publishedVersions{bundles: present(h.reduce(b, 1))}, nil
}

// reduce returns nil for the bundle itself. total is how many versions there are, or 0 if that is not known.
func (h *history) reduce(b *bundles.Bundle, total int) *bundles.Bundle {
	h.progress.Count(int(h.count.Add(1)), total, "versions")
	return lint.Reduce(h.archive, h.of, b)
}

// bundleFolders are the folder itself if it is a bundle, or else the bundles
// right below it.
func bundleFolders(place string) ([]string, error) {
	const mark = bundles.MetadataDir + "/annotations.yaml"
	if _, err := os.Stat(filepath.Join(place, mark)); err == nil {
		return []string{place}, nil
	}
	marks, err := fs.Glob(os.DirFS(place), "*/"+mark)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range marks {
		out = append(out, filepath.Join(place, path.Dir(path.Dir(m))))
	}
	return out, nil
}

func (h *history) readFolders(ctx context.Context, folders []string) (publishedVersions, error) {
	found := newGathering()
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
			return found.add(folder, b, err)
		})
	}
	if err := group.Wait(); err != nil {
		return publishedVersions{}, err
	}
	return found.versions(folders), nil
}

// readCatalog reads every version of the package that a catalog has.
func (h *history) readCatalog(ctx context.Context, place string) (publishedVersions, error) {
	files, err := h.access.Open(ctx, place)
	if err != nil {
		return publishedVersions{}, err
	}
	if h.of.Package == "" {
		return publishedVersions{}, exit.Hintf("lint the bundle's folder instead",
			"the input has no package name, so its history in a catalog cannot be found")
	}
	found := newGathering()
	p, err := catalogs.ReadEachOf(files, h.of.Package, func(b *catalogs.Bundle) error {
		if len(b.Objects) == 0 {
			return nil
		}
		return found.add(h.readObjects(b.Name, b.Objects, 0))
	})
	if errors.Is(err, catalogs.ErrNoPackage) {
		return publishedVersions{}, nil // the first version ever
	}
	if err != nil {
		return publishedVersions{}, err
	}
	if err := h.readImages(ctx, p, found); err != nil {
		return publishedVersions{}, err
	}
	for name, b := range found.bundles {
		if b != nil {
			b.Channels = p.ChannelsOf(name)
		}
	}
	var names []string
	for name := range p.Bundles {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare)
	return found.versions(names), nil
}

// readObjects reads a version out of the manifests that a catalog carries.
func (h *history) readObjects(name string, objects [][]byte, total int) (string, *bundles.Bundle, error) {
	b, err := bundles.FromManifests(objects, map[string]string{registryv1.AnnotationPackage: h.of.Package})
	if err != nil {
		return name, nil, err
	}
	return name, h.reduce(b, total), nil
}

// readImages reads the versions whose manifests a catalog does not carry.
func (h *history) readImages(ctx context.Context, p *catalogs.Package, found *gathering) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lintFetches)
	decoding := make(chan struct{}, runtime.GOMAXPROCS(0))
	for name, b := range p.Bundles {
		if found.has(name) {
			continue
		}
		group.Go(func() error {
			objects, err := h.client.BundleObjects(ctx, b.Image, h.access.Access())
			if err != nil {
				return found.add(name, nil, err)
			}
			decoding <- struct{}{}
			defer func() { <-decoding }()
			return found.add(h.readObjects(name, objects, len(p.Bundles)))
		})
	}
	return group.Wait()
}

// gathering holds versions by the name of where they come from. Versions that were published with errors are set apart:
// they must not prevent the comparison with all others.
type gathering struct {
	mu sync.Mutex
	// bundles are nil for what is the bundle itself.
	bundles map[string]*bundles.Bundle
	wrong   map[string]error
}

func newGathering() *gathering {
	return &gathering{bundles: map[string]*bundles.Bundle{}, wrong: map[string]error{}}
}

// add adds what became of a version. It returns an error that is not about the version, such as that a registry does
// not answer.
func (g *gathering) add(name string, b *bundles.Bundle, err error) error {
	if err != nil && !isBadBundle(err) {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bundles[name], g.wrong[name] = b, err
	return nil
}

func (g *gathering) has(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.bundles[name]
	return ok
}

// versions returns all, in the order of names.
func (g *gathering) versions(names []string) publishedVersions {
	var out publishedVersions
	for _, name := range names {
		if err := g.wrong[name]; err != nil {
			out.unreadable = append(out.unreadable, lint.Unreadable{Name: name, Err: err})
		} else {
			out.bundles = append(out.bundles, present(g.bundles[name])...)
		}
	}
	return out
}

func present(b *bundles.Bundle) []*bundles.Bundle {
	if b == nil {
		return nil
	}
	return []*bundles.Bundle{b}
}

// isBadBundle says whether an error is about the content of a bundle, and not about reading it.
func isBadBundle(err error) bool {
	return errors.Is(err, bundles.ErrNotBundle) || errors.Is(err, bundles.ErrTooLarge) ||
		errors.Is(err, oci.ErrNotBundle) || errors.Is(err, oci.ErrTooLarge)
}
