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

func (c *Client) cachePath(digest string) string {
	return filepath.Join(c.options.CacheDir, strings.ReplaceAll(digest, ":", "-")+cacheSuffix)
}

// cached returns a catalog that a former walk has read to its end and verified.
func (c *Client) cached(digest string) (catalogs.Files, bool) {
	if c.options.CacheDir == "" || strings.ContainsAny(digest, `/\`) {
		return nil, false
	}
	file := c.cachePath(digest)
	now := time.Now()
	// The time of last use decides what is evicted; failing to note it costs a download at worst.
	if err := os.Chtimes(file, now, now); err != nil {
		return nil, false
	}
	return func(visit func(string, io.Reader) error) error {
		err := walkCached(file, visit)
		if err != nil {
			// If anything is wrong with it, the registry's copy is used.
			_ = os.Remove(file)
		}
		return err
	}, true
}

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
			// The checksum is at the end.
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

// caching writes what a walk reads into the cache. Only a walk that reaches the end leaves something there; trouble
// with the cache itself is nobody's trouble, the content is there anyway.
func (c *Client) caching(digest string, files catalogs.Files) catalogs.Files {
	if c.options.CacheDir == "" {
		return files
	}
	return func(visit func(string, io.Reader) error) error {
		w, err := c.newCacheWriter(digest)
		if err != nil {
			return files(visit)
		}
		defer w.discard()
		err = files(func(name string, content io.Reader) error {
			return w.file(name, content, visit)
		})
		if err == nil && w.commit() == nil {
			c.evict()
		}
		return err
	}
}

// cacheWriter writes an archive next to its destination and moves it there in the end, so that a cached catalog is
// always a whole one.
type cacheWriter struct {
	path    string
	temp    *os.File
	zip     *gzip.Writer
	archive *tar.Writer
	spool   *os.File
	err     error
}

func (c *Client) newCacheWriter(digest string) (*cacheWriter, error) {
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
	return &cacheWriter{path: c.cachePath(digest), temp: temp, zip: zip, archive: tar.NewWriter(zip), spool: spool}, nil
}

// file lets the visitor read while the content goes to a spool file: an archive wants to know sizes in advance.
func (w *cacheWriter) file(name string, content io.Reader, visit func(string, io.Reader) error) error {
	spooled := &spoolReader{r: content, w: w}
	if w.err == nil {
		w.err = errors.Join(w.spool.Truncate(0), rewind(w.spool))
	}
	if err := visit(name, spooled); err != nil {
		return err
	}
	// A visitor need not read everything, the cache does.
	if _, err := io.Copy(io.Discard, spooled); err != nil {
		return err
	}
	if w.err == nil {
		w.err = w.append(name, spooled.n)
	}
	return nil
}

func (w *cacheWriter) append(name string, size int64) error {
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

func (w *cacheWriter) commit() error {
	err := errors.Join(w.err, w.archive.Close(), w.zip.Close(), w.temp.Sync(), w.temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(w.temp.Name(), w.path)
}

// discard removes what is left over; after a commit that is the spool file only.
func (w *cacheWriter) discard() {
	for _, f := range []*os.File{w.temp, w.spool} {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}

// evict removes the catalogs that were not used for the longest time, and what a killed process left behind.
func (c *Client) evict() {
	entries, err := os.ReadDir(c.options.CacheDir)
	if err != nil {
		return
	}
	type aged struct {
		path string
		used time.Time
	}
	var whole []aged
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		file := filepath.Join(c.options.CacheDir, e.Name())
		switch {
		case strings.HasSuffix(e.Name(), cacheSuffix):
			whole = append(whole, aged{file, info.ModTime()})
		case strings.HasPrefix(e.Name(), ".") && time.Since(info.ModTime()) > time.Hour:
			_ = os.Remove(file)
		}
	}
	slices.SortFunc(whole, func(a, b aged) int { return b.used.Compare(a.used) })
	for _, old := range whole[min(len(whole), c.options.CacheEntries):] {
		_ = os.Remove(old.path)
		// The digest, without the login that it was read with.
		parts := strings.SplitN(strings.TrimSuffix(filepath.Base(old.path), cacheSuffix), "-", 3)
		_ = os.Remove(filepath.Join(c.options.CacheDir, strings.Join(parts[:min(2, len(parts))], "-")+signatureSuffix))
	}
}
