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
	// maxLine limits the size of an object. etcd does not store objects of this size.
	maxLine = 16 << 20
	// maxManifest limits the size of the manifest.
	maxManifest = 1 << 20
)

// Open reads and checks the manifest of a backup. The second result is the SHA-256 of the manifest. It returns
// ErrNoBackup if there is no manifest.
func Open(ctx context.Context, bucket *blob.Bucket) (*Manifest, string, error) {
	attributes, err := bucket.Attributes(ctx, ManifestName)
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return nil, "", fmt.Errorf("%w: there is no %s", ErrNoBackup, ManifestName)
	case err != nil:
		return nil, "", wrapStoreError("read manifest", err)
	case attributes.Size > maxManifest:
		return nil, "", fmt.Errorf("%w: %s has more than %d bytes", ErrDamaged, ManifestName, maxManifest)
	}
	text, err := bucket.ReadAll(ctx, ManifestName)
	if err != nil {
		return nil, "", wrapStoreError("read manifest", err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, "", fmt.Errorf("%w: decode manifest: %w", ErrDamaged, err)
	}
	if m.Format != formatVersion {
		return nil, "", fmt.Errorf("%w: format %d, and this program reads format %d", ErrDamaged, m.Format,
			formatVersion)
	}
	return &m, hashText(text), nil
}

// Check reads the file with the objects from the store, and compares its size and checksum with the manifest. It
// needs no identity.
func Check(ctx context.Context, bucket *blob.Bucket, m *Manifest) error {
	file, err := openContent(ctx, bucket, m)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	stored := &meter{w: io.Discard, hash: sha256.New()}
	if _, err := io.Copy(stored, file); err != nil {
		return wrapStoreError("read "+m.Content.File, err)
	}
	return stored.check(m.Content.File, m.Content.Bytes, m.Content.SHA256)
}

// openContent opens the file with the objects.
func openContent(ctx context.Context, bucket *blob.Bucket, m *Manifest) (io.ReadCloser, error) {
	file, err := bucket.NewReader(ctx, m.Content.File, nil)
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return nil, fmt.Errorf("%w: there is no %s", ErrDamaged, m.Content.File)
	case err != nil:
		return nil, wrapStoreError("read "+m.Content.File, err)
	}
	return file, nil
}

// check returns ErrDamaged if the size or the checksum differs. name is the name of the data for the message.
func (m *meter) check(name string, bytes int64, sum string) error {
	if m.bytes != bytes || m.hexSum() != sum {
		return fmt.Errorf("%w: %s has %d bytes with SHA-256 %s, and the manifest says %d bytes with %s", ErrDamaged,
			name, m.bytes, m.hexSum(), bytes, sum)
	}
	return nil
}

// Read calls each for every object of a backup, in the order in which the objects were saved. It returns ErrDamaged
// at the end if the content differs from the manifest, so the caller must not rely on the objects before Read returns
// nil. The line is valid until each returns.
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
		zstd.WithDecoderMaxWindow(windowSize))
	if err != nil {
		return fmt.Errorf("%w: decompress: %w", ErrDamaged, err)
	}
	defer lines.Close()
	if err := readLines(lines, m, each); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, raw); err != nil { // the rest of the file counts for the checksum
		return err
	}
	return stored.check(m.Content.File, m.Content.Bytes, m.Content.SHA256)
}

// storeReader marks errors of the store.
type storeReader struct{ r io.Reader }

func (s storeReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, wrapStoreError("read", err)
	}
	return n, err
}

// decrypt returns the decrypted data; the data itself if it is not encrypted.
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

// readLines calls each for every line, and returns ErrDamaged if the number or the checksum of the lines differs from
// the manifest.
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
	return plain.check("its content", m.Content.PlainBytes, m.Content.PlainSHA256)
}

// Verify reads a backup back as completely as possible without an identity, and returns ErrDamaged if it differs from
// what was written. manifestSHA256 is the checksum of the written manifest. It checks
// only the stored file of an encrypted backup, and not the lines in it.
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
