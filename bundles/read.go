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

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// ManifestsDir and MetadataDir are the two folders of a bundle.
const (
	ManifestsDir = "manifests"
	MetadataDir  = "metadata"

	annotationsFile  = MetadataDir + "/annotations.yaml"
	dependenciesFile = MetadataDir + "/dependencies.yaml"
	propertiesFile   = MetadataDir + "/properties.yaml"

	// MaxBytes bounds the files of one bundle. What OLM can install is well below.
	MaxBytes = 32 << 20
	// MaxValues bounds the keys and values of all manifests of one bundle. A value takes up to 350 bytes in a
	// definition, as each schema is a large structure. Published bundles have some ten thousand values.
	MaxValues = 300_000
	// MaxCSVValues bounds those of a ClusterServiceVersion, where a value takes up to 600 bytes.
	MaxCSVValues = 80_000
)

// Read reads a bundle folder. Errors wrap ErrNotBundle or ErrTooLarge, or are those of the file system.
func Read(fsys fs.FS) (*Bundle, error) {
	r := reader{fs: fsys, left: MaxBytes}
	b := &Bundle{}
	var err error
	if b.Annotations, err = r.annotations(); err != nil {
		return nil, err
	}
	folder := ManifestsFolder(b.Annotations)
	if !fs.ValidPath(folder) {
		return nil, fmt.Errorf("%w: %s: %s is %q, which is no folder of the bundle", ErrNotBundle, annotationsFile,
			registryv1.AnnotationManifests, folder)
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
		text, err := r.regular(file)
		if err != nil {
			return nil, err
		}
		if err := b.addFile(file, text); err != nil {
			return nil, err
		}
	}
	if b.Dependencies, err = r.typed(dependenciesFile, "dependencies"); err != nil {
		return nil, err
	}
	if b.Properties, err = r.typed(propertiesFile, "properties"); err != nil {
		return nil, err
	}
	if err := b.assemble(); err != nil {
		return nil, err
	}
	return b, nil
}

// ManifestsFolder is the folder of the manifests, as the annotations of a bundle name it. Some name it from the root of
// the image, as /manifests/.
func ManifestsFolder(annotations map[string]string) string {
	return path.Clean(cmp.Or(strings.TrimLeft(annotations[registryv1.AnnotationManifests], "/"), ManifestsDir))
}

// IsManifest tells by its name whether OLM takes a file in the folder of manifests for a manifest.
func IsManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// reader reads files within one bound.
type reader struct {
	fs   fs.FS
	left int64
}

// Open opens a regular file of a bundle. The error of anything else wraps ErrNotBundle: to open a named pipe
// would wait for whoever writes to it, and a link, also of a folder, may lead out of the bundle.
func Open(files fs.FS, name string) (fs.File, error) {
	if err := refuseLinks(files, path.Dir(name)); err != nil {
		return nil, err
	}
	info, err := fs.Lstat(files, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", name, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, linkError(name)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrNotBundle, name)
	}
	return open(files, name)
}

// open opens what is known to be a regular file.
func open(files fs.FS, name string) (fs.File, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return f, nil
}

// refuseLinks refuses a name of which the last part or a folder before it is a link.
func refuseLinks(files fs.FS, name string) error {
	for part := name; part != "." && part != "/"; part = path.Dir(part) {
		if info, err := fs.Lstat(files, part); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return linkError(part)
		}
	}
	return nil
}

func linkError(name string) error {
	return fmt.Errorf("%w: %s is a link: a bundle has files only", ErrNotBundle, name)
}

func (r *reader) file(name string) ([]byte, error) {
	f, err := Open(r.fs, name)
	if err != nil {
		return nil, err
	}
	return r.content(f, name)
}

// regular reads what is known to be a regular file, in a folder that is no link: to ask again takes as long as to read.
func (r *reader) regular(name string) ([]byte, error) {
	f, err := open(r.fs, name)
	if err != nil {
		return nil, err
	}
	return r.content(f, name)
}

func (r *reader) content(f fs.File, name string) ([]byte, error) {
	defer func() { _ = f.Close() }()
	var text bytes.Buffer
	if info, err := f.Stat(); err == nil { // then it is read at once
		text.Grow(int(min(info.Size(), r.left)) + bytes.MinRead)
	}
	if _, err := text.ReadFrom(io.LimitReader(f, r.left+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	r.left -= int64(text.Len())
	if r.left < 0 {
		return nil, fmt.Errorf("%w: its files have more than %d MiB", ErrTooLarge, MaxBytes>>20)
	}
	return text.Bytes(), nil
}

func (r *reader) annotations() (map[string]string, error) {
	text, err := r.file(annotationsFile)
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
	if in.Annotations[registryv1.AnnotationPackage] == "" {
		return nil, fmt.Errorf("%w: %s lacks %s", ErrNotBundle, annotationsFile, registryv1.AnnotationPackage)
	}
	// Many old bundles say no more than their package and channels.
	if have := cmp.Or(in.Annotations[registryv1.AnnotationMediaType],
		registryv1.MediaType); have != registryv1.MediaType {
		return nil, fmt.Errorf("%w: its media type is %q, not %q", ErrNotBundle, have, registryv1.MediaType)
	}
	return in.Annotations, nil
}

// typed reads a file of typed values, which need not exist.
func (r *reader) typed(name, field string) ([]registryv1.Property, error) {
	text, err := r.file(name)
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
	var in map[string][]registryv1.Property
	if err := json.Unmarshal(asJSON, &in); err != nil {
		return nil, fmt.Errorf("%w: decode %s: %w", ErrNotBundle, name, err)
	}
	return in[field], nil
}

// addFile adds the documents of a manifest file.
func (b *Bundle) addFile(file string, text []byte) error {
	return eachDocument(text, func(line int, document []byte) error { return b.addDocument(file, line, document) })
}

// eachDocument visits the documents of a file with the lines they begin on.
func eachDocument(text []byte, visit func(line int, document []byte) error) error {
	line := 1
	for _, document := range split(text) {
		if err := visit(line, document); err != nil {
			return err
		}
		line += bytes.Count(document, []byte("\n")) + 1 // the separator
	}
	return nil
}

// addDocument adds the object of a document, if there is one.
func (b *Bundle) addDocument(file string, line int, text []byte) error {
	if b.values += untrusted.Values(text); b.values > MaxValues {
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

var separator = regexp.MustCompile(`^---(\s+#.*)?\s*$`)

// split cuts a YAML file at its separator lines, which may have a comment.
func split(text []byte) [][]byte {
	var documents [][]byte
	start, at := 0, 0
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("---")) && separator.Match(line) {
			documents = append(documents, text[start:at])
			start = at + len(line)
		}
		at += len(line)
	}
	return append(documents, text[start:])
}
