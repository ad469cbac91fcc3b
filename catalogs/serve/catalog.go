// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"sync"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// Catalog is a whole catalog, ready to be served. Only its index is in memory; the bundles are in a file without a
// name.
type Catalog struct {
	content *store
	file    *file
}

// Load reads a catalog on all cores and prepares all its answers. dir is the folder for the file; empty means the
// system's folder for temporary files. Errors are those of catalogs.ReadEach and of the file.
func Load(hash string, files catalogs.Files, dir string) (c *Catalog, err error) {
	f, err := newFile(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	var mu sync.Mutex
	all := bodies{}
	packages, err := catalogs.ReadEach(files, func(pkg string, b *catalogs.Bundle) error {
		stored, err := newBody(f, pkg, b)
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
	content, err := assemble(hash, packages, all, f)
	if err != nil {
		return nil, err
	}
	return &Catalog{content: content, file: f}, nil
}

// Packages is how many packages the catalog has.
func (c *Catalog) Packages() int { return len(c.content.names) }

// Close gives the file back to the system. The catalog must no longer be served.
func (c *Catalog) Close() error { return c.file.Close() }
