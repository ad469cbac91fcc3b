// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive packs files so that the same files give the same bytes.
package archive

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
	// File is where the content is.
	File string
	Mode fs.FileMode
}

// TarGz writes a compressed tar archive, in which all files are of one time and belong to root.
func TarGz(to io.Writer, at time.Time, entries []Entry) error {
	compressed := gzip.NewWriter(to)
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		content, err := os.ReadFile(e.File)
		if err != nil {
			return fmt.Errorf("read %s: %w", e.Name, err)
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.Name, Mode: int64(e.Mode), Size: int64(len(content)),
			ModTime: at, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", e.Name, err)
		}
		if _, err := archive.Write(content); err != nil {
			return fmt.Errorf("write %s: %w", e.Name, err)
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// Zip writes a ZIP archive, in which all files are of one time.
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
