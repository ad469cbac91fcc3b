// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// Options configure how a backup is written.
type Options struct {
	// Recipients are the keys that the backup is encrypted for; none means that it is not encrypted.
	Recipients []age.Recipient
	// MaxBytes is the maximum size of the file with the objects in the store.
	MaxBytes int64
}

// ParseRecipients parses public keys of age.
func ParseRecipients(keys []string) ([]age.Recipient, error) {
	var out []age.Recipient
	for _, key := range keys {
		recipient, err := age.ParseX25519Recipient(key)
		if err != nil {
			return nil, fmt.Errorf("parse recipient %q: %w", key, err)
		}
		out = append(out, recipient)
	}
	return out, nil
}

const (
	// windowSize limits the memory of zstd.
	windowSize = 1 << 20
	// partSize is how much of a file is kept in memory for an object store. S3 does not accept smaller parts, except
	// for the last part, and no more than 10,000 parts.
	partSize = 8 << 20
	// deleteTimeout limits the removal of a failed backup.
	deleteTimeout = 30 * time.Second
)

// Write writes a backup to a bucket, and first removes all files of the bucket. head has the fields of the manifest
// that describe the backup; Write sets the format, the resources and the content. fill adds the objects, one line
// each, and returns their resources. After an error, the backup is removed. The second result is the SHA-256 of the
// manifest.
func Write(ctx context.Context, bucket *blob.Bucket, head Manifest, o Options,
	fill func(add func(line []byte) error) ([]Resource, error)) (*Manifest, string, error) {
	m := head
	m.Format = formatVersion
	m.Content.File, m.Content.Encrypted = "objects.jsonl.zst", len(o.Recipients) > 0
	if m.Content.Encrypted {
		m.Content.File += ".age"
	}
	if err := Remove(ctx, bucket); err != nil {
		return nil, "", err
	}
	sum, err := writeFiles(ctx, bucket, &m, o, fill)
	if err != nil {
		// The files must be removed even if ctx has ended.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
		defer cancel()
		return nil, "", errors.Join(err, Remove(ctx, bucket))
	}
	return &m, sum, nil
}

// writeFiles writes the file with the objects, and then the manifest. It returns the SHA-256 of the manifest.
func writeFiles(ctx context.Context, bucket *blob.Bucket, m *Manifest, o Options,
	fill func(add func(line []byte) error) ([]Resource, error)) (string, error) {
	if err := writeContent(ctx, bucket, m, o, fill); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode manifest: %w", err)
	}
	if err := bucket.WriteAll(ctx, ManifestName, text, nil); err != nil {
		return "", wrapStoreError("write manifest", err)
	}
	return hashText(text), nil
}

// writeContent writes the file with the objects, and sets its size and checksum in the manifest.
func writeContent(ctx context.Context, bucket *blob.Bucket, m *Manifest, o Options,
	fill func(add func(line []byte) error) ([]Resource, error)) error {
	// A writer whose context is canceled before it is closed writes no file.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	file, err := bucket.NewWriter(ctx, m.Content.File,
		&blob.WriterOptions{BufferSize: partSize, MaxConcurrency: 1, ContentType: "application/octet-stream"})
	if err != nil {
		return wrapStoreError("create "+m.Content.File, err)
	}
	stored := &meter{w: &storeWriter{file}, hash: sha256.New(), limit: o.MaxBytes}
	err = writeLines(stored, m, o, fill)
	if err != nil {
		cancel()
		_ = file.Close() // it was canceled, so closing always fails
		return err
	}
	if err := file.Close(); err != nil {
		return wrapStoreError("write "+m.Content.File, err)
	}
	m.Content.Bytes, m.Content.SHA256 = stored.bytes, stored.hexSum()
	return nil
}

// writeLines writes the compressed and encrypted lines, and sets the resources and the plain size and checksum in
// the manifest.
func writeLines(out io.Writer, m *Manifest, o Options,
	fill func(add func(line []byte) error) ([]Resource, error)) error {
	encrypted := io.WriteCloser(nopCloser{out})
	if len(o.Recipients) > 0 {
		var err error
		if encrypted, err = age.Encrypt(out, o.Recipients...); err != nil {
			return fmt.Errorf("encrypt: %w", err)
		}
	}
	compressed, err := zstd.NewWriter(encrypted, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(windowSize),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	plain := &meter{w: compressed, hash: sha256.New()}
	m.Resources, err = fill(func(line []byte) error {
		if bytes.IndexByte(line, '\n') >= 0 {
			return errors.New("an object takes more than one line")
		}
		if _, err := plain.Write(line); err != nil {
			return err
		}
		_, err := plain.Write([]byte{'\n'})
		return err
	})
	if err = errors.Join(err, compressed.Close(), encrypted.Close()); err != nil {
		return err
	}
	m.Content.PlainBytes, m.Content.PlainSHA256 = plain.bytes, plain.hexSum()
	return nil
}

// Remove removes a backup, the manifest first, so that the rest is not a backup if the removal fails. It removes
// all files of the folder, because a killed program may have left a temporary file. It returns no error if the
// folder is empty.
func Remove(ctx context.Context, bucket *blob.Bucket) error {
	names := []string{ManifestName}
	for files := bucket.List(nil); ; {
		file, err := files.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return wrapStoreError("list files", err)
		}
		if file.Key != ManifestName {
			names = append(names, file.Key)
		}
	}
	for _, name := range names {
		if err := bucket.Delete(ctx, name); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return wrapStoreError("remove "+name, err)
		}
	}
	return nil
}

// wrapStoreError adds ErrStore and the operation to an error.
func wrapStoreError(operation string, err error) error {
	return fmt.Errorf("%w: %s: %w", ErrStore, operation, err)
}

// storeWriter marks errors of the store.
type storeWriter struct{ w io.Writer }

func (s *storeWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		return n, wrapStoreError("write", err)
	}
	return n, nil
}

// meter counts and hashes the bytes that it writes, and fails above a limit that is not zero.
type meter struct {
	w     io.Writer
	hash  hash.Hash
	bytes int64
	limit int64
}

func (m *meter) Write(p []byte) (int, error) {
	if m.limit > 0 && m.bytes+int64(len(p)) > m.limit {
		return 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, m.limit)
	}
	n, err := m.w.Write(p)
	m.bytes += int64(n)
	m.hash.Write(p[:n])
	return n, err
}

// hexSum returns the checksum as hexadecimal text.
func (m *meter) hexSum() string { return hex.EncodeToString(m.hash.Sum(nil)) }

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// hashText returns the SHA-256 of a text as hexadecimal text.
func hashText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
