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

// ErrReadInterrupted means that a process ended while it read the content, so that reading it could end this process
// too. It is not read again until a user removes the file that the text names.
var ErrReadInterrupted = errors.New("a process ended while it read this")

const readingSuffix = ".reading"

// activeRead is a digest that this process is reading. Its file exists and is locked during that time. A file that
// exists and is not locked was left by a process that was killed.
type activeRead struct {
	readers int
	lock    *flock.Flock
}

// recordReads returns files that record each walk in the cache directory.
func (c *Client) recordReads(digest string, files catalogs.Files) catalogs.Files {
	return func(visit func(string, io.Reader) error) error {
		end, err := c.beginRead(digest)
		if err != nil {
			return err
		}
		defer end()
		return files(visit)
	}
}

// Decode calls decode, and records during the call that the digest is being read, as walks over the files of
// Open do. Use it for further work on the content that needs much memory. The error is the error of decode, or
// wraps ErrReadInterrupted.
func (c *Client) Decode(digest string, decode func() error) error {
	end, err := c.beginRead(digest)
	if err != nil {
		return err
	}
	defer end()
	return decode()
}

// beginRead records that a digest is being read until end is called. The error wraps ErrReadInterrupted. If there is
// no cache directory, or it cannot be written, nothing is recorded.
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
		lock, err := c.lockDigest(digest)
		if err != nil {
			return nil, err
		}
		r = &activeRead{lock: lock}
		c.reading[digest] = r
	}
	r.readers++
	return func() { c.endRead(digest) }, nil
}

// lockDigest returns the locked file of a digest, or nil if the file cannot be locked. The error
// wraps ErrReadInterrupted.
func (c *Client) lockDigest(digest string) (*flock.Flock, error) {
	if os.MkdirAll(c.options.CacheDir, 0o750) != nil {
		return nil, nil //nolint:nilerr // a folder that cannot be made records nothing
	}
	path := filepath.Join(c.options.CacheDir, strings.ReplaceAll(digest, ":", "-")+readingSuffix)
	lock := flock.New(path)
	// Another process that reads the digest might have locked it. If the folder cannot be written, nothing
	// is recorded.
	if locked, _ := lock.TryLock(); !locked {
		return nil, nil
	}
	// TryLock created the file, unless it already existed. A file with a time was left by a process that was killed.
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

// endRead ends one read of a digest, and removes the record after the last read.
func (c *Client) endRead(digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.reading[digest]
	if !ok {
		return // Close was called earlier
	}
	if r.readers--; r.readers == 0 {
		delete(c.reading, digest)
		r.remove()
	}
}

func (r *activeRead) remove() {
	if r.lock != nil {
		_ = os.Remove(r.lock.Path())
		_ = r.lock.Unlock()
	}
}

// Close ends the records of active reads, because a process that ends normally was not killed by a read. Later reads
// are not recorded.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reading {
		r.remove()
	}
	c.reading = nil
}
