// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"sync"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// Catalog is a whole catalog, ready to be served. Its index is in memory, its bundles are in a temporary file.
type Catalog struct {
	content *content
	file    *fileStore
}

// Load reads a catalog on all cores and prepares all responses. dir is the folder for the temporary file; empty means
// the system's folder for temporary files. Errors are those of catalogs.ReadEach and of the file.
func Load(hash string, files catalogs.Files, dir string) (c *Catalog, err error) {
	f, err := newFileStore(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	var mu sync.Mutex
	all := map[bundleKey]*storedBundle{}
	packages, err := catalogs.ReadEach(files, func(pkg string, b *catalogs.Bundle) error {
		stored, err := storeBundle(f, pkg, b)
		if err != nil {
			return fmt.Errorf("convert package %q: bundle %q: %w", pkg, b.Name, err)
		}
		mu.Lock()
		defer mu.Unlock()
		all[bundleKey{pkg, b.Name}] = stored
		return nil
	})
	if err != nil {
		return nil, err
	}
	content, err := buildContent(hash, packages, all, f)
	if err != nil {
		return nil, err
	}
	return &Catalog{content: content, file: f}, nil
}

// Packages returns the number of packages in the catalog.
func (c *Catalog) Packages() int { return len(c.content.names) }

// Close removes the temporary file. The catalog must not be served after that.
func (c *Catalog) Close() error { return c.file.Close() }
