// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/release/image"
)

var at = time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)

// entries are two files that were just written, so that their own times differ each time.
func entries(t *testing.T) []image.Entry {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"program": "#!/bin/sh\n", "LICENSE": "free"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []image.Entry{{Name: "bellwether", File: filepath.Join(dir, "program"), Mode: 0o755},
		{Name: "LICENSE", File: filepath.Join(dir, "LICENSE"), Mode: 0o644}}
}

func TestTheSameFilesGiveTheSameArchive(t *testing.T) {
	for name, pack := range map[string]func(io.Writer, time.Time, []image.Entry) error{
		"tar": image.TarGz, "zip": image.Zip} {
		var first, second bytes.Buffer
		for _, out := range []*bytes.Buffer{&first, &second} {
			if err := pack(out, at, entries(t)); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: another archive of the same files", name)
		}
	}
}

func TestTheProgramStaysExecutable(t *testing.T) {
	var tarred, zipped bytes.Buffer
	if err := image.TarGz(&tarred, at, entries(t)); err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(&tarred)
	if err != nil {
		t.Fatal(err)
	}
	header, err := tar.NewReader(plain).Next()
	if err != nil || header.Name != "bellwether" || header.Mode != 0o755 || !header.ModTime.Equal(at) {
		t.Errorf("tar: first entry %+v, error %v", header, err)
	}
	if err := image.Zip(&zipped, at, entries(t)); err != nil {
		t.Fatal(err)
	}
	read, err := zip.NewReader(bytes.NewReader(zipped.Bytes()), int64(zipped.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if f := read.File[0]; f.Name != "bellwether" || f.Mode().Perm() != 0o755 || !f.Modified.Equal(at) {
		t.Errorf("zip: first entry %+v", f.FileHeader)
	}
}
