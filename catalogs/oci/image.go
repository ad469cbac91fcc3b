// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// ConfigsLabel is the label of a catalog image with the path of the folder that contains the catalog.
const ConfigsLabel = "operators.operatorframework.io.index.configs.v1"

// openImage returns the files of the catalog image with a digest, from the cache or from the registry.
func (c *Client) openImage(ctx context.Context, s Source, digest string) (catalogs.Files, error) {
	if digest == "" {
		return nil, fmt.Errorf("%w: open %s: a digest is needed", ErrBadSource, s)
	}
	cacheKey := digest
	if login := s.Access.Key(); login != "" {
		cacheKey += "-" + login
	}
	if files, ok := c.openCached(cacheKey); ok {
		return files, nil
	}
	img, err := c.fetchImage(ctx, s.Image, digest, s.Access)
	if err != nil {
		return nil, err
	}
	folder, err := readLabel(img, ConfigsLabel)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s, err)
	}
	if folder == "" {
		return nil, fmt.Errorf("%w: image %s has no label %s", catalogs.ErrNotCatalog, s, ConfigsLabel)
	}
	files := openImageFolder(img, folder, c.options.MaxBytes, catalogs.ErrNotCatalog)
	return c.wrapWithCache(cacheKey, files), nil
}

func readLabel(img v1.Image, name string) (string, error) {
	config, err := readConfig(img)
	if err != nil {
		return "", err
	}
	return config.Config.Labels[name], nil
}

// maxConfig bounds the configuration of an image, which is read as a whole, in bytes. The configurations of real
// images are far smaller.
const maxConfig = 4 << 20

// readConfig returns the configuration of an image, whose size is bounded.
func readConfig(img v1.Image) (*v1.ConfigFile, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return nil, fmt.Errorf("fetch image manifest: %w", classify(err))
	}
	if size := manifest.Config.Size; size < 0 || size > maxConfig { // a negative size would read without limit
		return nil, fmt.Errorf("%w: the configuration of the image has %d bytes, and may have at most %d", ErrTooLarge,
			size, maxConfig)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("fetch image configuration: %w", classify(err))
	}
	return config, nil
}

// openImageFolder returns the files in one folder of an image. A file in an upper layer hides a file of the same name
// in lower layers, and a whiteout hides the path that it names. So layers are read from the top. Errors wrap
// invalidErr if the image contains something that an image of its kind must not contain.
func openImageFolder(img v1.Image, folder string, limit int64, invalidErr error) catalogs.Files {
	return func(visit func(string, io.Reader) error) error {
		layers, err := img.Layers()
		if err != nil {
			return fmt.Errorf("list layers: %w", classify(err))
		}
		slices.Reverse(layers)
		u := &union{
			folder: cleanPath(folder), invalidErr: invalidErr, hidden: map[string]bool{}, visit: visit,
			limit: limit, budget: &budget{remaining: limit},
		}
		for _, l := range layers {
			if err := u.readLayer(l); err != nil {
				return err
			}
		}
		return u.visitErr
	}
}

// openExactImage returns all files of an image, including hidden files. Errors wrap invalidErr if programs could
// unpack the image in different ways: if it has links or devices (even hidden ones, because a file can be written
// through a link), a name and its whiteout in one layer, or attributes of an overlay file system, or if its layers
// differ from the layers in its configuration, because runtimes use the configuration to find layers that they have
// already unpacked.
func openExactImage(img v1.Image, diffIDs []v1.Hash, limit int64, invalidErr error) catalogs.Files {
	return func(visit func(string, io.Reader) error) error {
		layers, err := img.Layers()
		if err != nil {
			return fmt.Errorf("list layers: %w", classify(err))
		}
		if len(layers) != len(diffIDs) {
			return fmt.Errorf("%w: it has %d layers, but its configuration names %d", invalidErr, len(layers),
				len(diffIDs))
		}
		u := &union{
			exact: true, invalidErr: invalidErr, hidden: map[string]bool{}, visit: visit, limit: limit,
			budget: &budget{remaining: limit},
		}
		for i, l := range slices.Backward(layers) {
			u.diffID = diffIDs[i]
			if err := u.readLayer(l); err != nil {
				return err
			}
		}
		return u.visitErr
	}
}

// union is the state of reading an image layer by layer, from the top.
type union struct {
	folder     string
	invalidErr error
	// exact makes the checks of openExactImage. diffID is then the digest of the present layer's archive.
	exact  bool
	diffID v1.Hash
	// hidden are the files and folders that upper layers replaced or removed.
	hidden map[string]bool
	visit  func(string, io.Reader) error
	limit  int64
	budget *budget
	// layerNames are the names in the present layer; the value is true for folders.
	layerNames map[string]bool
	// files and content count the entries, and their bytes, of the layers that were read.
	files   int
	content int64
	// visitErr is the first error of visit. Reading continues to the end of the layer, because only its digest shows
	// whether the content or the transfer is wrong.
	visitErr error
}

// readLayer reads a layer, and verifies its size and digest.
func (u *union) readLayer(l v1.Layer) error {
	digest, err := l.Digest()
	if err != nil {
		return fmt.Errorf("read layer digest: %w", classify(err))
	}
	size, err := l.Size()
	if err != nil {
		return fmt.Errorf("read layer size: %w", classify(err))
	}
	if size > u.limit {
		return fmt.Errorf("%w: layer %s has %d bytes", ErrTooLarge, digest, size)
	}
	blob, err := l.Compressed()
	if err != nil {
		return fmt.Errorf("fetch layer %s: %w", digest, classify(err))
	}
	verified := &verifiedBody{ReadCloser: blob, verifier: newVerifier(digest, size)}
	defer func() { _ = verified.Close() }()

	readErr := u.readArchive(verified)
	if _, err := io.Copy(io.Discard, verified); err != nil {
		return fmt.Errorf("fetch layer %s: %w", digest, classify(err))
	}
	if readErr != nil {
		return fmt.Errorf("read layer %s: %w", digest, readErr)
	}
	return nil
}

// readArchive visits the files in the archive of a layer, and records the paths that the layer hides.
func (u *union) readArchive(blob io.Reader) error {
	plain, closePlain, err := decompress(blob)
	if err != nil {
		return u.wrapArchiveError(err)
	}
	defer closePlain()
	plain = u.budget.limitReader(plain)
	content := sha256.New()
	if u.exact {
		plain = io.TeeReader(plain, content)
	}
	archive := tar.NewReader(plain)
	removed := []string{}
	u.layerNames = map[string]bool{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return u.wrapArchiveError(err)
		}
		if err := u.readEntry(header, archive, &removed); err != nil {
			return err
		}
	}
	if err := u.checkContent(plain, content); err != nil {
		return err
	}
	// A whiteout hides paths of lower layers only.
	for _, name := range removed {
		u.hidden[name] = true
	}
	return nil
}

// checkContent reads a layer to its end, and compares the digest of its content with the image's configuration. It does
// nothing if u.exact is false.
func (u *union) checkContent(rest io.Reader, content hash.Hash) error {
	if !u.exact {
		return nil
	}
	if _, err := io.Copy(io.Discard, rest); err != nil {
		return u.wrapArchiveError(err)
	}
	if got := hex.EncodeToString(content.Sum(nil)); got != u.diffID.Hex {
		return fmt.Errorf("%w: the layer's content is sha256:%s, but the image's configuration names %s",
			u.invalidErr, got, u.diffID)
	}
	return nil
}

func (u *union) wrapArchiveError(err error) error {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, ErrDigestMismatch) {
		return err
	}
	return fmt.Errorf("%w: read archive: %w", u.invalidErr, err)
}

// maxFiles bounds the entries of all layers of an image.
const maxFiles = 50_000

const (
	whiteout       = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// readEntry visits the file of an archive's entry, unless it is hidden or outside the folder. It adds to removed the
// paths that a whiteout removes.
func (u *union) readEntry(header *tar.Header, content io.Reader, removed *[]string) error {
	if slices.Contains(strings.Split(header.Name, "/"), "..") {
		return fmt.Errorf("%w: the archive has a file %q", u.invalidErr, header.Name)
	}
	// The budget does not bound the size of a sparse file, which takes no space in the archive. A sum that overflows is
	// negative.
	u.files, u.content = u.files+1, u.content+header.Size
	if u.files > maxFiles || u.content > u.limit || u.content < 0 {
		return fmt.Errorf("%w: %d files and %d bytes of content, and there is more", ErrTooLarge, u.files, u.content)
	}
	if err := u.checkExact(header); err != nil {
		return err
	}
	name := cleanPath(header.Name)
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	if strings.HasPrefix(base, whiteout) {
		return u.recordWhiteout(dir, base, removed)
	}
	relative, isInside := strings.CutPrefix(name, u.folder+"/")
	if u.folder == "" {
		relative, isInside = name, name != ""
	}
	if !isInside {
		return nil
	}
	isFolder := header.Typeflag == tar.TypeDir
	if err := u.checkUnique(name, isFolder); err != nil {
		return err
	}
	isDotFile := strings.HasPrefix(base, ".")
	isIgnored := isDotFile && !u.exact
	if isFolder || isIgnored || u.isHidden(name) {
		return nil
	}
	u.hidden[name] = true
	if header.Typeflag != tar.TypeReg {
		return fmt.Errorf("%w: %s is a link or a device, only files are read", u.invalidErr, name)
	}
	if u.visitErr == nil {
		u.visitErr = u.visit(relative, content)
	}
	return nil
}

// recordWhiteout adds the path that a whiteout removes to removed.
func (u *union) recordWhiteout(dir, base string, removed *[]string) error {
	if base == opaqueWhiteout {
		*removed = append(*removed, dir)
		return nil
	}
	removedName := path.Join(dir, strings.TrimPrefix(base, whiteout))
	*removed = append(*removed, removedName)
	if u.exact { // a layer must not have a name and its whiteout
		return u.checkUnique(removedName, false)
	}
	return nil
}

// checkExact returns an error if an entry could be unpacked in different ways, unless u.exact is false.
func (u *union) checkExact(header *tar.Header) error {
	if !u.exact {
		return nil
	}
	if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
		return fmt.Errorf("%w: %s is a link or a device, only files are read", u.invalidErr, cleanPath(header.Name))
	}
	for record := range header.PAXRecords {
		if strings.Contains(record, "overlay.") {
			return fmt.Errorf("%w: %s has the attribute %s", u.invalidErr, cleanPath(header.Name), record)
		}
	}
	return nil
}

// checkUnique refuses a name that the layer already has. Programs differ in which of two entries they use, so that
// the installed file could differ from the checked file. Ordinary programs repeat only folders.
func (u *union) checkUnique(name string, isFolder bool) error {
	if otherIsFolder, exists := u.layerNames[name]; exists && (!otherIsFolder || !isFolder) {
		return fmt.Errorf("%w: a layer has more than one entry %s", u.invalidErr, name)
	}
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if parentIsFolder, exists := u.layerNames[parent]; exists && !parentIsFolder {
			return fmt.Errorf("%w: a layer has %s as a file and as a folder", u.invalidErr, parent)
		}
	}
	u.layerNames[name] = isFolder
	return nil
}

// isHidden reports whether an upper layer replaced or removed the file or one of its parent folders.
func (u *union) isHidden(name string) bool {
	for ; name != "." && name != ""; name = path.Dir(name) {
		if u.hidden[name] {
			return true
		}
	}
	return false
}

func cleanPath(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

// decompress returns the decompressed content and a function that closes it. It detects the format by the content,
// because registries and build tools disagree about media types.
func decompress(r io.Reader) (io.Reader, func(), error) {
	buffered := bufio.NewReader(r)
	magic, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, nil, fmt.Errorf("decompress gzip: %w", err)
		}
		return z, func() { _ = z.Close() }, nil
	case string(magic) == "\x28\xb5\x2f\xfd":
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			return nil, nil, fmt.Errorf("decompress zstd: %w", err)
		}
		return z, z.Close, nil
	default:
		return buffered, func() {}, nil
	}
}
