// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// extent is a piece of a spool.
type extent struct {
	offset int64
	size   int32
}

// spool keeps encoded messages.
type spool interface {
	io.ReaderAt
	// write adds a piece. A file takes them from several goroutines at a time, memory from one.
	write(p []byte) (extent, error)
}

// memory is a spool for views, which are small.
type memory struct {
	data []byte
}

func (m *memory) write(p []byte) (extent, error) {
	e := extent{int64(len(m.data)), int32(len(p))}
	m.data = append(m.data, p...)
	return e, nil
}

func (m *memory) ReadAt(p []byte, offset int64) (int, error) {
	n := copy(p, m.data[offset:])
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

// file is a spool for whole catalogs. The system keeps as much of it in memory as it has no better use for.
type file struct {
	*os.File
	end atomic.Int64
}

// newFile creates a file that has no name and so goes when it is closed, however the process ends.
func newFile(dir string) (*file, error) {
	f, err := os.CreateTemp(dir, "bellwether-catalog-*")
	if err != nil {
		return nil, fmt.Errorf("create spool: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, fmt.Errorf("create spool: %w", errors.Join(err, f.Close()))
	}
	return &file{File: f}, nil
}

func (f *file) write(p []byte) (extent, error) {
	e := extent{f.end.Add(int64(len(p))) - int64(len(p)), int32(len(p))}
	if _, err := f.WriteAt(p, e.offset); err != nil {
		return extent{}, fmt.Errorf("write spool: %w", err)
	}
	return e, nil
}
