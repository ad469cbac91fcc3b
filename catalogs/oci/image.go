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

// ConfigsLabel names the folder of a catalog image that holds the catalog.
const ConfigsLabel = "operators.operatorframework.io.index.configs.v1"

func (c *Client) openImage(ctx context.Context, s Source, digest string) (catalogs.Files, error) {
	if digest == "" {
		return nil, fmt.Errorf("%w: open %s: a digest is needed", ErrBadSource, s)
	}
	kept := digest
	if login := s.Access.Key(); login != "" {
		kept += "-" + login
	}
	if files, ok := c.cached(kept); ok {
		return files, nil
	}
	img, err := c.image(ctx, s.Image, digest, s.Access)
	if err != nil {
		return nil, err
	}
	folder, err := label(img, ConfigsLabel)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s, err)
	}
	if folder == "" {
		return nil, fmt.Errorf("%w: image %s has no label %s", catalogs.ErrNotCatalog, s, ConfigsLabel)
	}
	files := imageFiles(img, folder, c.options.MaxBytes, catalogs.ErrNotCatalog)
	return c.caching(kept, files), nil
}

func label(img v1.Image, name string) (string, error) {
	config, err := configOf(img)
	if err != nil {
		return "", err
	}
	return config.Config.Labels[name], nil
}

// maxConfig is more than the configuration of any image has. It is read as a whole.
const maxConfig = 4 << 20

func configOf(img v1.Image) (*v1.ConfigFile, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return nil, fmt.Errorf("fetch image manifest: %w", classify(err))
	}
	if size := manifest.Config.Size; size < 0 || size > maxConfig { // a negative one reads without end
		return nil, fmt.Errorf("%w: the configuration of the image has %d bytes, and may have %d", ErrTooLarge, size,
			maxConfig)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("fetch image configuration: %w", classify(err))
	}
	return config, nil
}

// imageFiles are the files in one folder of an image. A file in an upper layer hides one of the same name below, and a
// whiteout hides what it names; so layers are read from the top. wrong is the error for an image that holds what no
// image of its kind holds.
func imageFiles(img v1.Image, folder string, limit int64, wrong error) catalogs.Files {
	return func(visit func(string, io.Reader) error) error {
		layers, err := img.Layers()
		if err != nil {
			return fmt.Errorf("list layers: %w", classify(err))
		}
		slices.Reverse(layers)
		u := &union{
			folder: clean(folder), wrong: wrong, hidden: map[string]bool{}, visit: visit,
			limit: limit, budget: &budget{left: limit},
		}
		for _, l := range layers {
			if err := u.layer(l); err != nil {
				return err
			}
		}
		return u.broken
	}
}

// exactImageFiles are all files of an image, also those whose names begin with a dot. It refuses what some
// program could unpack in another way: links and devices, also where an upper layer hides them, since a file can be
// written through a link; a name and its whiteout in one layer; attributes of an overlay file system; and layers that
// are not those of the configuration, by which runtimes know what they have unpacked already.
func exactImageFiles(img v1.Image, diffIDs []v1.Hash, limit int64, wrong error) catalogs.Files {
	return func(visit func(string, io.Reader) error) error {
		layers, err := img.Layers()
		if err != nil {
			return fmt.Errorf("list layers: %w", classify(err))
		}
		if len(layers) != len(diffIDs) {
			return fmt.Errorf("%w: it has %d layers, but its configuration names %d", wrong, len(layers),
				len(diffIDs))
		}
		u := &union{
			exact: true, wrong: wrong, hidden: map[string]bool{}, visit: visit, limit: limit,
			budget: &budget{left: limit},
		}
		for i, l := range slices.Backward(layers) {
			u.diffID = diffIDs[i]
			if err := u.layer(l); err != nil {
				return err
			}
		}
		return u.broken
	}
}

// union is what the layers above the present one amount to.
type union struct {
	folder string
	wrong  error
	// exact says that there is no second way to read the image, and diffID is the digest of the present layer's archive
	// then; see exactImageFiles.
	exact  bool
	diffID v1.Hash
	// hidden are files and folders that upper layers replaced or removed.
	hidden map[string]bool
	visit  func(string, io.Reader) error
	limit  int64
	budget *budget
	// layerNames are the names in the layer that is being read, and whether each of them is a folder's.
	layerNames map[string]bool
	// files and content count what was met so far.
	files   int
	content int64
	// broken is the visitor's error. Reading goes on to the end of the layer, for its digest decides whether the error
	// is the content's or the transfer's.
	broken error
}

func (u *union) layer(l v1.Layer) error {
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

	readErr := u.archive(verified)
	if _, err := io.Copy(io.Discard, verified); err != nil {
		return fmt.Errorf("fetch layer %s: %w", digest, classify(err))
	}
	if readErr != nil {
		return fmt.Errorf("read layer %s: %w", digest, readErr)
	}
	return nil
}

func (u *union) archive(blob io.Reader) error {
	plain, closePlain, err := decompress(blob)
	if err != nil {
		return u.archiveError(err)
	}
	defer closePlain()
	plain = u.budget.reader(plain)
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
			return u.archiveError(err)
		}
		if err := u.entry(header, archive, &removed); err != nil {
			return err
		}
	}
	if err := u.checkContent(plain, content); err != nil {
		return err
	}
	// A whiteout hides what is below its own layer.
	for _, name := range removed {
		u.hidden[name] = true
	}
	return nil
}

// checkContent reads a layer to its end, and compares what was read with the image's configuration.
func (u *union) checkContent(rest io.Reader, content hash.Hash) error {
	if !u.exact {
		return nil
	}
	if _, err := io.Copy(io.Discard, rest); err != nil {
		return u.archiveError(err)
	}
	if got := hex.EncodeToString(content.Sum(nil)); got != u.diffID.Hex {
		return fmt.Errorf("%w: the layer's content is sha256:%s, but the image's configuration names %s", u.wrong, got,
			u.diffID)
	}
	return nil
}

func (u *union) archiveError(err error) error {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, ErrDigestMismatch) {
		return err
	}
	return fmt.Errorf("%w: read archive: %w", u.wrong, err)
}

// maxFiles bounds the entries of all layers of an image.
const maxFiles = 50_000

const (
	whiteout       = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

func (u *union) entry(header *tar.Header, content io.Reader, removed *[]string) error {
	if slices.Contains(strings.Split(header.Name, "/"), "..") {
		return fmt.Errorf("%w: the archive has a file %q", u.wrong, header.Name)
	}
	// A sparse file says how large it is, and takes no room in the archive.
	u.files, u.content = u.files+1, u.content+header.Size
	if u.files > maxFiles || u.content > u.limit || u.content < 0 {
		return fmt.Errorf("%w: %d files and %d bytes of content, and there is more", ErrTooLarge, u.files, u.content)
	}
	if err := u.checkExact(header); err != nil {
		return err
	}
	name := clean(header.Name)
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	if strings.HasPrefix(base, whiteout) {
		return u.remove(dir, base, removed)
	}
	relative, inside := strings.CutPrefix(name, u.folder+"/")
	if u.folder == "" {
		relative, inside = name, name != ""
	}
	if !inside {
		return nil
	}
	if err := u.unique(name, header.Typeflag == tar.TypeDir); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeDir || !u.exact && strings.HasPrefix(base, ".") || u.isHidden(name) {
		return nil
	}
	u.hidden[name] = true
	if header.Typeflag != tar.TypeReg {
		return fmt.Errorf("%w: %s is a link or a device, only files are read", u.wrong, name)
	}
	if u.broken == nil {
		u.broken = u.visit(relative, content)
	}
	return nil
}

// remove notes what a whiteout removes.
func (u *union) remove(dir, base string, removed *[]string) error {
	if base == opaqueWhiteout {
		*removed = append(*removed, dir)
		return nil
	}
	gone := path.Join(dir, strings.TrimPrefix(base, whiteout))
	*removed = append(*removed, gone)
	if u.exact {
		return u.unique(gone, false)
	}
	return nil
}

func (u *union) checkExact(header *tar.Header) error {
	if !u.exact {
		return nil
	}
	if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
		return fmt.Errorf("%w: %s is a link or a device, only files are read", u.wrong, clean(header.Name))
	}
	for record := range header.PAXRecords {
		if strings.Contains(record, "overlay.") {
			return fmt.Errorf("%w: %s has the attribute %s", u.wrong, clean(header.Name), record)
		}
	}
	return nil
}

// unique refuses a name that the layer has already. Programs differ in which of the two entries they take, so that what
// is checked here could be something else than what is installed. Only folders are repeated by ordinary programs.
func (u *union) unique(name string, isFolder bool) error {
	if wasFolder, again := u.layerNames[name]; again && (!wasFolder || !isFolder) {
		return fmt.Errorf("%w: a layer has more than one entry %s", u.wrong, name)
	}
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if wasFolder, again := u.layerNames[parent]; again && !wasFolder {
			return fmt.Errorf("%w: a layer has %s as a file and as a folder", u.wrong, parent)
		}
	}
	u.layerNames[name] = isFolder
	return nil
}

// isHidden reports whether the file or a folder it is in was replaced or removed further up.
func (u *union) isHidden(name string) bool {
	for ; name != "." && name != ""; name = path.Dir(name) {
		if u.hidden[name] {
			return true
		}
	}
	return false
}

func clean(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

// decompress looks at the content rather than at the media type: registries and build tools disagree about those.
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
