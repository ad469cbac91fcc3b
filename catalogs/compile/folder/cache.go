// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// maxAge is how long an entry of the cache is kept.
const maxAge = 30 * 24 * time.Hour

// programID identifies this program, because another build might render differently. Empty means unknown.
var programID = sync.OnceValue(func() string {
	name, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", name, info.Size(), info.ModTime().UnixNano())
})

// computeCacheKey returns the hash of everything that the bundles' documents depend on. Empty means that there is no
// cache, or that a file cannot be read; a later read of the file then reports the error.
func (b *Bundles) computeCacheKey(dir string, l *ladder.Ladder, icon *catalogs.Icon) string {
	if b.CacheDir == "" || programID() == "" {
		return ""
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return ""
	}
	defer func() { _ = root.Close() }()
	sum := sha256.New()
	err = json.NewEncoder(sum).Encode([]any{programID(), b.Repository, l, icon})
	for _, bundle := range l.Bundles {
		err = errors.Join(err, hashFolder(sum, root, bundle.Path))
	}
	for _, old := range l.Retired {
		// Retired bundles might not exist.
		if hashFolder(sum, root, old.Path) != nil {
			fmt.Fprintf(sum, "%s is gone\n", old.Version)
		}
	}
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// hashFolder adds the names and contents of all files below a folder to sum. If dir is empty it adds nothing: the
// bundle is an image, whose digest is in the ladder.
func hashFolder(sum hash.Hash, root *os.Root, dir string) error {
	if dir == "" {
		return nil
	}
	return fs.WalkDir(root.FS(), path.Clean(dir), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := root.Open(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		content := sha256.New()
		if _, err := io.Copy(content, f); err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %x\n", name, content.Sum(nil))
		return nil
	})
}

func (b *Bundles) entryPath(key string) string {
	return filepath.Join(b.CacheDir, "rendered", key+".json")
}

// An entry of the cache is a line with a compile.Cacheable, followed by the documents of the bundles, one per line.

// openEntry returns the entry of a key and a reader of its documents; nil if there is no entry.
func (b *Bundles) openEntry(key string) (*compile.Cacheable, io.ReadCloser) {
	if key == "" {
		return nil, nil
	}
	f, err := os.Open(b.entryPath(key))
	if err != nil {
		return nil, nil
	}
	reader := bufio.NewReader(f)
	header, err := reader.ReadBytes('\n')
	var out compile.Cacheable
	if err != nil || json.Unmarshal(header, &out) != nil {
		_ = f.Close()
		return nil, nil
	}
	return &out, struct {
		io.Reader
		io.Closer
	}{reader, f}
}

// storeEntry writes a result and its documents to the cache. A cache that cannot be written is not an error.
func (b *Bundles) storeEntry(key string, c *compile.Cacheable, documents io.ReadSeeker) {
	if key == "" {
		return
	}
	header, err := json.Marshal(c)
	if err != nil || os.MkdirAll(filepath.Dir(b.entryPath(key)), 0o750) != nil {
		return
	}
	if _, err := documents.Seek(0, io.SeekStart); err != nil {
		return
	}
	_ = replaceFileWith(b.entryPath(key), io.MultiReader(bytes.NewReader(append(header, '\n')), documents))
}

// prune removes the entries of the cache that were written more than maxAge ago. It ignores errors.
func (b *Bundles) prune(now time.Time) {
	if b.CacheDir == "" {
		return
	}
	dir := filepath.Dir(b.entryPath(""))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > maxAge {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
