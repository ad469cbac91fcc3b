// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Entry is a file of an archive.
type Entry struct {
	Name string
	// File is the path of the content on this machine.
	File string
	Mode fs.FileMode
}

// TarGz writes a compressed tar archive. All files have the same time and belong to root.
func TarGz(to io.Writer, at time.Time, entries []Entry) error {
	compressed := gzip.NewWriter(to)
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		content, err := os.ReadFile(e.File)
		if err != nil {
			return fmt.Errorf("read %s: %w", e.Name, err)
		}
		if err := writeEntry(archive, at, file{name: e.Name, mode: int64(e.Mode), content: content}); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// Zip writes a ZIP archive. All files have the same time.
func Zip(to io.Writer, at time.Time, entries []Entry) error {
	archive := zip.NewWriter(to)
	for _, e := range entries {
		content, err := os.ReadFile(e.File)
		if err != nil {
			return fmt.Errorf("read %s: %w", e.Name, err)
		}
		header := &zip.FileHeader{Name: e.Name, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(e.Mode)
		w, err := archive.CreateHeader(header)
		if err != nil {
			return fmt.Errorf("write %s: %w", e.Name, err)
		}
		if _, err := w.Write(content); err != nil {
			return fmt.Errorf("write %s: %w", e.Name, err)
		}
	}
	return archive.Close()
}
