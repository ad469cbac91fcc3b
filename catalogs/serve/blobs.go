// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
)

// blob is the place of data in a blobStore; a size of 0 means that there is no data.
type blob struct {
	offset int64
	size   int32
}

// blobStore keeps encoded messages.
type blobStore interface {
	io.ReaderAt
	// write adds a blob. Several goroutines can write to a fileStore concurrently, but only one to a memoryStore.
	write(data []byte) (blob, error)
}

// readBlobs returns the content of blobs, one after another. It overwrites the buffer and returns a part of it if the
// buffer is large enough; the buffer can be nil.
func readBlobs(from io.ReaderAt, buffer []byte, blobs ...blob) ([]byte, error) {
	size := 0
	for _, b := range blobs {
		size += int(b.size)
	}
	data := slices.Grow(buffer[:0], size)[:size]
	rest := data
	for _, b := range blobs {
		if _, err := from.ReadAt(rest[:b.size], b.offset); err != nil {
			return nil, fmt.Errorf("read bundle: %w", err)
		}
		rest = rest[b.size:]
	}
	return data, nil
}

// memoryStore is for views, which are small.
type memoryStore struct {
	data []byte
}

func (m *memoryStore) write(data []byte) (blob, error) {
	b := blob{int64(len(m.data)), int32(len(data))}
	m.data = append(m.data, data...)
	return b, nil
}

func (m *memoryStore) ReadAt(p []byte, offset int64) (int, error) {
	n := copy(p, m.data[offset:])
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

// fileStore is for whole catalogs. docs/benchmarks.md promises that serving a catalog takes no more memory than
// opm takes, and the bundles alone are larger than that. The operating system caches as much of the file as it
// has free memory.
type fileStore struct {
	*os.File
	size atomic.Int64
}

// newFileStore creates a temporary file in a folder; Close removes the file.
func newFileStore(dir string) (*fileStore, error) {
	f, err := os.CreateTemp(dir, "bellwether-catalog-*")
	if err != nil {
		return nil, fmt.Errorf("create file for bundles: %w", err)
	}
	return &fileStore{File: f}, nil
}

func (f *fileStore) write(data []byte) (blob, error) {
	b := blob{f.size.Add(int64(len(data))) - int64(len(data)), int32(len(data))}
	if _, err := f.WriteAt(data, b.offset); err != nil {
		return blob{}, fmt.Errorf("write bundle: %w", err)
	}
	return b, nil
}

// Close closes and removes the file.
func (f *fileStore) Close() error {
	return errors.Join(f.File.Close(), os.Remove(f.Name()))
}
