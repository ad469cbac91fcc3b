// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// ManifestsDir and MetadataDir are the names of the two folders of a bundle.
const (
	ManifestsDir = "manifests"
	MetadataDir  = "metadata"

	annotationsFile  = MetadataDir + "/annotations.yaml"
	dependenciesFile = MetadataDir + "/dependencies.yaml"
	propertiesFile   = MetadataDir + "/properties.yaml"

	// MaxBytes is the maximum size of all files of a bundle. Bundles that OLM can install are much smaller.
	MaxBytes = 32 << 20
	// MaxValues is the maximum number of keys and values in all manifests of a bundle. It bounds the memory: a value
	// takes up to 350 bytes in a CRD, because each schema is a large structure. Published bundles have about ten
	// thousand values.
	MaxValues = 300_000
	// MaxCSVValues is the maximum number of keys and values in a ClusterServiceVersion, where a value takes up to
	// 600 bytes.
	MaxCSVValues = 80_000
)

// Read reads a bundle folder. Errors wrap ErrNotBundle or ErrTooLarge, or are errors of the file system.
func Read(fsys fs.FS) (*Bundle, error) {
	r := reader{fs: fsys, remaining: MaxBytes}
	b := &Bundle{}
	var err error
	if b.Annotations, err = r.readAnnotations(); err != nil {
		return nil, err
	}
	folder := ManifestsFolder(b.Annotations)
	if !fs.ValidPath(folder) {
		return nil, fmt.Errorf("%w: %s: %s is %q, which is no folder of the bundle", ErrNotBundle, annotationsFile,
			AnnotationManifests, folder)
	}
	if err := refuseLinks(fsys, folder); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(fsys, folder)
	if err != nil {
		return nil, fmt.Errorf("%w: list manifests: %w", ErrNotBundle, err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !IsManifest(e.Name()) {
			continue
		}
		file := path.Join(folder, e.Name())
		text, err := r.readRegular(file)
		if err != nil {
			return nil, err
		}
		if err := b.addFile(file, text); err != nil {
			return nil, err
		}
	}
	if b.Dependencies, err = r.readProperties(dependenciesFile, "dependencies"); err != nil {
		return nil, err
	}
	if b.Properties, err = r.readProperties(propertiesFile, "properties"); err != nil {
		return nil, err
	}
	if err := b.assemble(); err != nil {
		return nil, err
	}
	return b, nil
}

// ManifestsFolder returns the folder of the manifests that the annotations of a bundle name, or the default folder.
// Some bundles name the folder relative to the root of the image, as /manifests/; the leading slash is removed.
func ManifestsFolder(annotations map[string]string) string {
	return path.Clean(cmp.Or(strings.TrimLeft(annotations[AnnotationManifests], "/"), ManifestsDir))
}

// IsManifest reports whether a file in the folder of manifests is a manifest, by the extension of its name.
func IsManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// reader reads files up to a total size.
type reader struct {
	fs        fs.FS
	remaining int64
}

// Open opens a regular file of a bundle. For any other type of file the error wraps ErrNotBundle: opening a named pipe
// blocks until a process writes to it, and a link, also of a parent folder, can lead out of the bundle.
func Open(files fs.FS, name string) (fs.File, error) {
	if err := refuseLinks(files, path.Dir(name)); err != nil {
		return nil, err
	}
	info, err := fs.Lstat(files, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", name, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, newLinkError(name)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrNotBundle, name)
	}
	return openRegular(files, name)
}

// openRegular opens a file without checks. The caller must have checked that it is a regular file.
func openRegular(files fs.FS, name string) (fs.File, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return f, nil
}

// refuseLinks returns an error if the file or one of its parent folders is a link.
func refuseLinks(files fs.FS, name string) error {
	for part := name; part != "." && part != "/"; part = path.Dir(part) {
		if info, err := fs.Lstat(files, part); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return newLinkError(part)
		}
	}
	return nil
}

// newLinkError returns the error for a link in a bundle.
func newLinkError(name string) error {
	return fmt.Errorf("%w: %s is a link: a bundle has files only", ErrNotBundle, name)
}

// readFile checks that a file of the bundle is regular and not behind a link, and reads it.
func (r *reader) readFile(name string) ([]byte, error) {
	f, err := Open(r.fs, name)
	if err != nil {
		return nil, err
	}
	return r.readContent(f, name)
}

// readRegular reads a file without checks. The caller must have checked that it is a regular file in a folder that is
// not a link; a second check would take as long as reading.
func (r *reader) readRegular(name string) ([]byte, error) {
	f, err := openRegular(r.fs, name)
	if err != nil {
		return nil, err
	}
	return r.readContent(f, name)
}

// readContent reads and closes a file. It returns an error that wraps ErrTooLarge if the total size exceeds the limit.
func (r *reader) readContent(f fs.File, name string) ([]byte, error) {
	defer func() { _ = f.Close() }()
	var text bytes.Buffer
	if info, err := f.Stat(); err == nil { // one allocation is enough
		text.Grow(int(min(info.Size(), r.remaining)) + bytes.MinRead)
	}
	if _, err := text.ReadFrom(io.LimitReader(f, r.remaining+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	r.remaining -= int64(text.Len())
	if r.remaining < 0 {
		return nil, fmt.Errorf("%w: its files have more than %d MiB", ErrTooLarge, MaxBytes>>20)
	}
	return text.Bytes(), nil
}

// readAnnotations reads metadata/annotations.yaml and checks that it names a package and has the right media type.
func (r *reader) readAnnotations() (map[string]string, error) {
	text, err := r.readFile(annotationsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: it has no %s", ErrNotBundle, annotationsFile)
	}
	if err != nil {
		return nil, err
	}
	var in struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := untrusted.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("%w: decode %s: %w: %w", ErrNotBundle, annotationsFile, ErrSyntax, err)
	}
	if in.Annotations[AnnotationPackage] == "" {
		return nil, fmt.Errorf("%w: %s lacks %s", ErrNotBundle, annotationsFile, AnnotationPackage)
	}
	// Many old bundles have no media type.
	mediaType := cmp.Or(in.Annotations[AnnotationMediaType], MediaType)
	if mediaType != MediaType {
		return nil, fmt.Errorf("%w: its media type is %q, not %q", ErrNotBundle, mediaType, MediaType)
	}
	return in.Annotations, nil
}

// readProperties returns the list of properties in the given field of a file; nil if the file does not exist.
func (r *reader) readProperties(name, field string) ([]Property, error) {
	text, err := r.readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	asJSON, err := untrusted.ToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("%w: decode %s: %w: %w", ErrNotBundle, name, ErrSyntax, err)
	}
	var in map[string][]Property
	if err := json.Unmarshal(asJSON, &in); err != nil {
		return nil, fmt.Errorf("%w: decode %s: %w", ErrNotBundle, name, err)
	}
	return in[field], nil
}

// addFile adds all objects of a manifest file.
func (b *Bundle) addFile(file string, text []byte) error {
	return visitDocuments(text, func(line int, document []byte) error { return b.addDocument(file, line, document) })
}

// visitDocuments calls visit for each document of a file, with the line on which the document begins, from 1.
func visitDocuments(text []byte, visit func(line int, document []byte) error) error {
	line := 1
	for _, document := range splitDocuments(text) {
		if err := visit(line, document); err != nil {
			return err
		}
		line += bytes.Count(document, []byte("\n")) + 1 // plus the separator line
	}
	return nil
}

// addDocument parses a document and adds its object; an empty document is ignored. The error wraps ErrTooLarge if the
// bundle then has more than MaxValues values. If b.reduce is set, the reduced object is added.
func (b *Bundle) addDocument(file string, line int, text []byte) error {
	if b.valueCount += untrusted.Values(text); b.valueCount > MaxValues {
		return fmt.Errorf("%w: its manifests have more than %d keys and values", ErrTooLarge, MaxValues)
	}
	o, err := parseObject(file, line, text)
	if err != nil || o == nil {
		return err
	}
	if b.reduce != nil {
		o = b.reduce(o)
	}
	b.Objects = append(b.Objects, o)
	return nil
}

var separatorPattern = regexp.MustCompile(`^---(\s+#.*)?\s*$`)

// splitDocuments splits a YAML file at its separator lines, which can have a comment.
func splitDocuments(text []byte) [][]byte {
	var documents [][]byte
	start, position := 0, 0
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("---")) && separatorPattern.Match(line) {
			documents = append(documents, text[start:position])
			start = position + len(line)
		}
		position += len(line)
	}
	return append(documents, text[start:])
}
