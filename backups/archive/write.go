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

// Options say how a backup is written.
type Options struct {
	// Recipients that the backup is encrypted for; none: it is not encrypted.
	Recipients []age.Recipient
	// MaxBytes is how large the file with the objects may become in the store.
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
	// window bounds what zstd keeps in memory.
	window = 1 << 20
	// partSize is how much of a file is held in memory for an object store. S3 takes
	// no smaller parts but the last, and no more than 10,000 of them.
	partSize = 8 << 20
	// deleteTimeout bounds the removal of a backup that failed.
	deleteTimeout = 30 * time.Second
)

// Write writes a backup to a bucket. Fill adds the objects, and returns their
// resources. A backup that fails is removed again. The second result is the
// SHA-256 of the manifest.
func Write(ctx context.Context, bucket *blob.Bucket, head Manifest, o Options,
	fill func(add func(line []byte) error) ([]Resource, error)) (*Manifest, string, error) {
	m := head
	m.Format = format
	m.Content.File, m.Content.Encrypted = "objects.jsonl.zst", len(o.Recipients) > 0
	if m.Content.Encrypted {
		m.Content.File += ".age"
	}
	if err := Remove(ctx, bucket); err != nil {
		return nil, "", err
	}
	sum, err := write(ctx, bucket, &m, o, fill)
	if err != nil {
		// What was written must go even if the caller has been told to stop.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
		defer cancel()
		return nil, "", errors.Join(err, Remove(ctx, bucket))
	}
	return &m, sum, nil
}

func write(ctx context.Context, bucket *blob.Bucket, m *Manifest, o Options,
	fill func(add func(line []byte) error) ([]Resource, error)) (string, error) {
	if err := writeContent(ctx, bucket, m, o, fill); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode manifest: %w", err)
	}
	if err := bucket.WriteAll(ctx, ManifestName, text, nil); err != nil {
		return "", storeError("write manifest", err)
	}
	return hexOf(text), nil
}

func writeContent(ctx context.Context, bucket *blob.Bucket, m *Manifest, o Options,
	fill func(add func(line []byte) error) ([]Resource, error)) error {
	// A writer whose context is cancelled before it is closed leaves nothing.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	file, err := bucket.NewWriter(ctx, m.Content.File,
		&blob.WriterOptions{BufferSize: partSize, MaxConcurrency: 1, ContentType: "application/octet-stream"})
	if err != nil {
		return storeError("create "+m.Content.File, err)
	}
	stored := &meter{w: &storeWriter{file}, hash: sha256.New(), limit: o.MaxBytes}
	err = writeLines(stored, m, o, fill)
	if err != nil {
		cancel()
		_ = file.Close() // it was cancelled, so it always fails
		return err
	}
	if err := file.Close(); err != nil {
		return storeError("write "+m.Content.File, err)
	}
	m.Content.Bytes, m.Content.SHA256 = stored.bytes, stored.sum()
	return nil
}

func writeLines(out io.Writer, m *Manifest, o Options,
	fill func(add func(line []byte) error) ([]Resource, error)) error {
	encrypted := io.WriteCloser(nopCloser{out})
	if len(o.Recipients) > 0 {
		var err error
		if encrypted, err = age.Encrypt(out, o.Recipients...); err != nil {
			return fmt.Errorf("encrypt: %w", err)
		}
	}
	compressed, err := zstd.NewWriter(encrypted, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window),
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
	m.Content.PlainBytes, m.Content.PlainSHA256 = plain.bytes, plain.sum()
	return nil
}

// Remove removes a backup, the manifest first, so that what is left of it where
// that fails is no backup. It removes all that is in the folder: a program that was
// killed can have left a temporary file there. It is no error if there is nothing.
func Remove(ctx context.Context, bucket *blob.Bucket) error {
	names := []string{ManifestName}
	for files := bucket.List(nil); ; {
		file, err := files.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return storeError("list files", err)
		}
		if file.Key != ManifestName {
			names = append(names, file.Key)
		}
	}
	for _, name := range names {
		if err := bucket.Delete(ctx, name); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return storeError("remove "+name, err)
		}
	}
	return nil
}

func storeError(what string, err error) error { return fmt.Errorf("%w: %s: %w", ErrStore, what, err) }

// storeWriter marks errors as those of the store.
type storeWriter struct{ w io.Writer }

func (s *storeWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		return n, storeError("write", err)
	}
	return n, nil
}

// meter counts and hashes what goes through it, and fails above a limit that is
// not zero.
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

func (m *meter) sum() string { return hex.EncodeToString(m.hash.Sum(nil)) }

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func hexOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
