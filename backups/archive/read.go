// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

const (
	// maxLine bounds an object: etcd takes none of this size.
	maxLine = 16 << 20
	// maxManifest bounds the manifest.
	maxManifest = 1 << 20
)

// Open reads and checks the manifest of a backup. The second result is its
// SHA-256. It returns ErrNone where there is no manifest.
func Open(ctx context.Context, bucket *blob.Bucket) (*Manifest, string, error) {
	attributes, err := bucket.Attributes(ctx, ManifestName)
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return nil, "", fmt.Errorf("%w: there is no %s", ErrNone, ManifestName)
	case err != nil:
		return nil, "", storeError("read manifest", err)
	case attributes.Size > maxManifest:
		return nil, "", fmt.Errorf("%w: %s has more than %d bytes", ErrDamaged, ManifestName, maxManifest)
	}
	text, err := bucket.ReadAll(ctx, ManifestName)
	if err != nil {
		return nil, "", storeError("read manifest", err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, "", fmt.Errorf("%w: decode manifest: %w", ErrDamaged, err)
	}
	if m.Format != format {
		return nil, "", fmt.Errorf("%w: format %d, and this program reads format %d", ErrDamaged, m.Format, format)
	}
	return &m, hexOf(text), nil
}

// Check reads the file with the objects as it is in the store, and compares its
// size and checksum with the manifest. It needs no identity.
func Check(ctx context.Context, bucket *blob.Bucket, m *Manifest) error {
	file, err := openContent(ctx, bucket, m)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	stored := &meter{w: io.Discard, hash: sha256.New()}
	if _, err := io.Copy(stored, file); err != nil {
		return storeError("read "+m.Content.File, err)
	}
	return stored.matches(m.Content.File, m.Content.Bytes, m.Content.SHA256)
}

func openContent(ctx context.Context, bucket *blob.Bucket, m *Manifest) (io.ReadCloser, error) {
	file, err := bucket.NewReader(ctx, m.Content.File, nil)
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return nil, fmt.Errorf("%w: there is no %s", ErrDamaged, m.Content.File)
	case err != nil:
		return nil, storeError("read "+m.Content.File, err)
	}
	return file, nil
}

func (m *meter) matches(what string, bytes int64, sum string) error {
	if m.bytes != bytes || m.sum() != sum {
		return fmt.Errorf("%w: %s has %d bytes with SHA-256 %s, and the manifest says %d bytes with %s", ErrDamaged,
			what, m.bytes, m.sum(), bytes, sum)
	}
	return nil
}

// Read calls each for every object of a backup, in the order in which they were
// saved. At the end it returns ErrDamaged if the content is not what the manifest
// says: what each received must not be relied on before. The line is valid until
// each returns.
func Read(ctx context.Context, bucket *blob.Bucket, m *Manifest, identities []age.Identity,
	each func(line []byte) error) error {
	file, err := openContent(ctx, bucket, m)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	stored := &meter{w: io.Discard, hash: sha256.New()}
	raw := io.TeeReader(storeReader{file}, stored)
	plain, err := decrypt(raw, m, identities)
	if err != nil {
		return err
	}
	lines, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return fmt.Errorf("%w: decompress: %w", ErrDamaged, err)
	}
	defer lines.Close()
	if err := readLines(lines, m, each); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, raw); err != nil { // what follows the end of the stream
		return err
	}
	return stored.matches(m.Content.File, m.Content.Bytes, m.Content.SHA256)
}

// storeReader marks errors as those of the store.
type storeReader struct{ r io.Reader }

func (s storeReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, storeError("read", err)
	}
	return n, err
}

func decrypt(raw io.Reader, m *Manifest, identities []age.Identity) (io.Reader, error) {
	if !m.Content.Encrypted {
		return raw, nil
	}
	if len(identities) == 0 {
		return nil, fmt.Errorf("%w: the backup is encrypted and no identity was given", ErrIdentity)
	}
	plain, err := age.Decrypt(raw, identities...)
	var none *age.NoIdentityMatchError
	switch {
	case errors.As(err, &none):
		return nil, fmt.Errorf("%w: the backup is not encrypted for it", ErrIdentity)
	case err != nil:
		return nil, fmt.Errorf("%w: decrypt: %w", ErrDamaged, err)
	}
	return plain, nil
}

func readLines(lines io.Reader, m *Manifest, each func(line []byte) error) error {
	plain := &meter{w: io.Discard, hash: sha256.New()}
	scanner := bufio.NewScanner(io.TeeReader(lines, plain))
	scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
	var objects int64
	for scanner.Scan() {
		objects++
		if err := each(scanner.Bytes()); err != nil {
			return err
		}
	}
	switch err := scanner.Err(); {
	case errors.Is(err, ErrStore):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if objects != m.Objects() {
		return fmt.Errorf("%w: it holds %d objects, and the manifest says %d", ErrDamaged, objects, m.Objects())
	}
	return plain.matches("its content", m.Content.PlainBytes, m.Content.PlainSHA256)
}

// Verify reads a backup back as completely as is possible without an identity,
// and compares its manifest with the one that was written.
func Verify(ctx context.Context, bucket *blob.Bucket, manifestSHA256 string) error {
	m, sum, err := Open(ctx, bucket)
	if err != nil {
		return err
	}
	if sum != manifestSHA256 {
		return fmt.Errorf("%w: the manifest has SHA-256 %s, and the one that was written %s", ErrDamaged, sum,
			manifestSHA256)
	}
	if m.Content.Encrypted {
		return Check(ctx, bucket, m)
	}
	return Read(ctx, bucket, m, nil, func([]byte) error { return nil })
}
