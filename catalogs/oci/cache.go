// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/catalogs"
)

const cacheSuffix = ".catalog.tar.gz"

func (c *Client) cachePath(key string) string {
	return filepath.Join(c.options.CacheDir, strings.ReplaceAll(key, ":", "-")+cacheSuffix)
}

// openCached returns the cached catalog with that key; false if no earlier walk read the catalog to its end and
// verified it.
func (c *Client) openCached(key string) (catalogs.Files, bool) {
	if c.options.CacheDir == "" || strings.ContainsAny(key, `/\`) { // the key must not lead out of the folder
		return nil, false
	}
	file := c.cachePath(key)
	now := time.Now()
	// evict needs the time of the last use. If the time cannot be written, the catalog is only downloaded again.
	if err := os.Chtimes(file, now, now); err != nil {
		return nil, false
	}
	return func(visit func(string, io.Reader) error) error {
		err := walkCached(file, visit)
		if err != nil {
			// A cached catalog that cannot be read is removed, so that the next walk reads from the registry.
			_ = os.Remove(file)
		}
		return err
	}, true
}

// walkCached visits the files in a cached archive.
func walkCached(file string, visit func(string, io.Reader) error) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("open cached catalog: %w", err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("read cached catalog: %w", err)
	}
	archive := tar.NewReader(z)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			// gzip compares the checksum at the end of the file, behind the end of the archive.
			if _, err = io.Copy(io.Discard, z); err == nil { //nolint:gosec // nothing is kept of it
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("read cached catalog: %w", err)
		}
		if err := visit(header.Name, archive); err != nil {
			return err
		}
	}
}

// wrapWithCache returns files that also write what a walk reads to the cache. The cache keeps the catalog only after
// a complete walk. Errors of the cache are ignored, because the content is available without the cache.
func (c *Client) wrapWithCache(key string, files catalogs.Files) catalogs.Files {
	if c.options.CacheDir == "" {
		return files
	}
	return func(visit func(string, io.Reader) error) error {
		w, err := c.newCacheWriter(key)
		if err != nil {
			return files(visit)
		}
		defer w.discard()
		err = files(func(name string, content io.Reader) error {
			return w.writeFile(name, content, visit)
		})
		if err == nil && w.commit() == nil {
			c.evict()
		}
		return err
	}
}

// cacheWriter writes an archive to a temporary file and moves it to its destination when it is complete, so that the
// cache contains only complete catalogs.
type cacheWriter struct {
	path    string
	temp    *os.File
	zip     *gzip.Writer
	archive *tar.Writer
	spool   *os.File
	err     error
}

// newCacheWriter creates the temporary files for a catalog. The caller must call discard.
func (c *Client) newCacheWriter(key string) (*cacheWriter, error) {
	if err := os.MkdirAll(c.options.CacheDir, 0o750); err != nil {
		return nil, err
	}
	temp, err := os.CreateTemp(c.options.CacheDir, ".catalog-*")
	if err != nil {
		return nil, err
	}
	spool, err := os.CreateTemp(c.options.CacheDir, ".file-*")
	if err != nil {
		return nil, errors.Join(err, temp.Close(), os.Remove(temp.Name()))
	}
	zip, err := gzip.NewWriterLevel(temp, gzip.BestSpeed)
	if err != nil {
		panic(err) // BestSpeed is a level.
	}
	return &cacheWriter{path: c.cachePath(key), temp: temp, zip: zip, archive: tar.NewWriter(zip), spool: spool}, nil
}

// writeFile passes a file to visit and adds the file to the archive. The content is first written to a spool file,
// because an archive needs the size of a file before its content. Errors of the cache are kept in w.err.
func (w *cacheWriter) writeFile(name string, content io.Reader, visit func(string, io.Reader) error) error {
	spooled := &spoolReader{r: content, w: w}
	if w.err == nil {
		w.err = errors.Join(w.spool.Truncate(0), rewind(w.spool))
	}
	if err := visit(name, spooled); err != nil {
		return err
	}
	// visit need not read the whole file, but the cache needs all of it.
	if _, err := io.Copy(io.Discard, spooled); err != nil {
		return err
	}
	if w.err == nil {
		w.err = w.appendFile(name, spooled.n)
	}
	return nil
}

// appendFile appends the content of the spool file, which has size bytes, to the archive.
func (w *cacheWriter) appendFile(name string, size int64) error {
	if err := rewind(w.spool); err != nil {
		return err
	}
	if err := w.archive.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o640,
		Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := io.CopyN(w.archive, w.spool, size)
	return err
}

func rewind(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// spoolReader reads r, and copies what it reads to the spool file of w. n is the number of bytes that were read.
type spoolReader struct {
	r io.Reader
	w *cacheWriter
	n int64
}

func (s *spoolReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	if s.w.err == nil {
		_, s.w.err = s.w.spool.Write(p[:n])
	}
	return n, err
}

// commit completes the archive and moves it to its destination. It returns the first error of the cache.
func (w *cacheWriter) commit() error {
	err := errors.Join(w.err, w.archive.Close(), w.zip.Close(), w.temp.Sync(), w.temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(w.temp.Name(), w.path)
}

// discard removes the temporary files; after a commit only the spool file is left.
func (w *cacheWriter) discard() {
	for _, f := range []*os.File{w.temp, w.spool} {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}

// evict removes the catalogs that were not used for the longest time, with their signatures, until CacheEntries
// catalogs are left. It also removes the temporary files of killed processes, which are older than an hour.
func (c *Client) evict() {
	entries, err := os.ReadDir(c.options.CacheDir)
	if err != nil {
		return
	}
	type cachedFile struct {
		path string
		used time.Time
	}
	var cached []cachedFile
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		file := filepath.Join(c.options.CacheDir, e.Name())
		switch {
		case strings.HasSuffix(e.Name(), cacheSuffix):
			cached = append(cached, cachedFile{file, info.ModTime()})
		case strings.HasPrefix(e.Name(), ".") && time.Since(info.ModTime()) > time.Hour:
			_ = os.Remove(file)
		}
	}
	slices.SortFunc(cached, func(a, b cachedFile) int { return b.used.Compare(a.used) })
	for _, old := range cached[min(len(cached), c.options.CacheEntries):] {
		_ = os.Remove(old.path)
		// The name of the signature has the digest only, without the key of the login.
		parts := strings.SplitN(strings.TrimSuffix(filepath.Base(old.path), cacheSuffix), "-", 3)
		_ = os.Remove(filepath.Join(c.options.CacheDir, strings.Join(parts[:min(2, len(parts))], "-")+signatureSuffix))
	}
}
