// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// ErrReadInterrupted says that a process ended while it read the content, so that reading it may end this one too. It
// is not read again before somebody removes the file that the text names.
var ErrReadInterrupted = errors.New("a process ended while it read this")

const readingSuffix = ".reading"

// reading is a digest that this process reads now. Its file is there and locked for as long. A file that is there and
// not locked was left by a process that was killed.
type reading struct {
	readers int
	lock    *flock.Flock
}

// guard records in the cache directory that files are read, each time that they are.
func (c *Client) guard(digest string, files catalogs.Files) catalogs.Files {
	return func(visit func(string, io.Reader) error) error {
		end, err := c.beginRead(digest)
		if err != nil {
			return err
		}
		defer end()
		return files(visit)
	}
}

// Decode calls decode, and records meanwhile that what has the digest is read, as the files of Open do. It is for work
// on what was read that takes memory as well. The error is that of decode, or wraps ErrReadInterrupted.
func (c *Client) Decode(digest string, decode func() error) error {
	end, err := c.beginRead(digest)
	if err != nil {
		return err
	}
	defer end()
	return decode()
}

// beginRead records that a digest is read until end is called. The error wraps ErrReadInterrupted. Without a cache
// directory, or if that cannot be written, nothing is recorded.
func (c *Client) beginRead(digest string) (end func(), err error) {
	if c.options.CacheDir == "" || digest == "" || strings.ContainsAny(digest, `/\`) {
		return func() {}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading == nil { // closed
		return func() {}, nil
	}
	r, ok := c.reading[digest]
	if !ok {
		lock, err := c.mark(digest)
		if err != nil {
			return nil, err
		}
		r = &reading{lock: lock}
		c.reading[digest] = r
	}
	r.readers++
	return func() { c.endRead(digest) }, nil
}

// mark returns the locked file of a digest, or nil if there can be none.
func (c *Client) mark(digest string) (*flock.Flock, error) {
	if os.MkdirAll(c.options.CacheDir, 0o750) != nil {
		return nil, nil //nolint:nilerr // a folder that cannot be made records nothing
	}
	path := filepath.Join(c.options.CacheDir, strings.ReplaceAll(digest, ":", "-")+readingSuffix)
	lock := flock.New(path)
	// Another process may read it, which has marked it; and a folder that cannot be written records nothing.
	if locked, _ := lock.TryLock(); !locked {
		return nil, nil
	}
	// Locking made the file, unless it was there.
	since, err := os.ReadFile(path)
	if err == nil && len(since) > 0 {
		_ = lock.Unlock()
		return nil, fmt.Errorf("read %s: %w (from %s on): it was killed, or had too little memory. It is not read "+
			"again by itself: publish another catalog, or delete the pod, or the file %s", digest, ErrReadInterrupted,
			since, path)
	}
	if os.WriteFile(path, []byte(time.Now().UTC().Format(time.RFC3339)), 0o600) != nil {
		_ = os.Remove(path)
		_ = lock.Unlock()
		return nil, nil //nolint:nilerr // as above
	}
	return lock, nil
}

func (c *Client) endRead(digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.reading[digest]
	if !ok {
		return // Close was faster
	}
	if r.readers--; r.readers == 0 {
		delete(c.reading, digest)
		r.remove()
	}
}

func (r *reading) remove() {
	if r.lock != nil {
		_ = os.Remove(r.lock.Path())
		_ = r.lock.Unlock()
	}
}

// Close ends the records of what is being read, because a process that ends in order was not killed by it. Nothing
// is recorded afterwards.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reading {
		r.remove()
	}
	c.reading = nil
}
