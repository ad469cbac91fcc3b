// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// file is an entry of a layer. A name that ends with a slash is a folder.
type file struct {
	name    string
	mode    int64
	content []byte
}

// newLayer builds a layer of files and their folders. Everything belongs to root.
func newLayer(at time.Time, files []file) (v1.Layer, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	written := map[string]bool{}
	for _, f := range files {
		for _, entry := range f.listEntries() {
			if written[entry.name] {
				continue
			}
			if err := writeEntry(archive, at, entry); err != nil {
				return nil, err
			}
			written[entry.name] = true
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("end archive: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(out.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("make layer: %w", err)
	}
	return layer, nil
}

// listEntries returns the folders of a file, the outermost folder first, and then the file
// itself, which can be a folder too.
func (f file) listEntries() []file {
	f.name = strings.TrimPrefix(f.name, "/")
	var entries []file
	for i, c := range f.name {
		if c == '/' && i+1 < len(f.name) {
			entries = append(entries, file{name: f.name[:i+1], mode: 0o755})
		}
	}
	return append(entries, f)
}

// writeEntry writes one entry into an archive.
func writeEntry(archive *tar.Writer, at time.Time, f file) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at,
		Format: tar.FormatPAX}
	if strings.HasSuffix(f.name, "/") {
		header.Typeflag = tar.TypeDir
	}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("write header of %s: %w", f.name, err)
	}
	if _, err := archive.Write(f.content); err != nil {
		return fmt.Errorf("write %s: %w", f.name, err)
	}
	return nil
}

// Unpack writes the files of an image below a folder, as a container engine does. It returns
// the path of the program that the image runs. It ignores links and devices, which
// Bellwether's images do not have.
func Unpack(img v1.Image, dir string) (string, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return "", fmt.Errorf("read configuration: %w", err)
	}
	if len(config.Config.Entrypoint) != 1 {
		return "", fmt.Errorf("the entry point is %q, want one program", config.Config.Entrypoint)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("open folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	content := mutate.Extract(img)
	defer func() { _ = content.Close() }()
	archive := tar.NewReader(content)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, filepath.FromSlash(config.Config.Entrypoint[0])), nil
		}
		if err != nil {
			return "", fmt.Errorf("read layers: %w", err)
		}
		if err := unpackEntry(root, header, archive); err != nil {
			return "", fmt.Errorf("unpack %s: %w", header.Name, err)
		}
	}
}

// unpackEntry writes one folder or file of an archive. It ignores other kinds of entries.
func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(strings.Trim(header.Name, "/"))
	mode := header.FileInfo().Mode().Perm()
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, mode|0o700)
	case tar.TypeReg:
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	}
	return nil
}
