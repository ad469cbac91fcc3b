// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"bufio"
	"errors"
	"fmt"
	"os"
)

// spool is a temporary file with the documents of a package's bundles, one per line. The documents must be complete
// before the head of the package's file can be written, and can be too large for memory.
type spool struct {
	*os.File

	buffer *bufio.Writer
}

func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, ".bundles-*")
	if err != nil {
		return nil, fmt.Errorf("make temporary file: %w", err)
	}
	return &spool{File: f, buffer: bufio.NewWriterSize(f, 64<<10)}, nil
}

func (s *spool) add(document []byte) error {
	_, err := s.buffer.Write(document)
	if err = errors.Join(err, s.buffer.WriteByte('\n')); err != nil {
		return fmt.Errorf("write temporary file: %w", err)
	}
	return nil
}

func (s *spool) flush() error {
	if err := s.buffer.Flush(); err != nil {
		return fmt.Errorf("write temporary file: %w", err)
	}
	return nil
}

// Close closes and removes the file.
func (s *spool) Close() error { return errors.Join(s.File.Close(), os.Remove(s.Name())) }
