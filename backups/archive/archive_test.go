// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/bellwether-dev/bellwether/backups/archive"
)

var head = archive.Manifest{Name: "echo.1", Cluster: "prod-1", Operator: "fleet/echo", Bundle: "echo.v1.0.0",
	Version: "1.0.0", TakenAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

// lines returns objects that cannot be compressed completely.
func lines(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`{"metadata":{"name":"e%d"},"spec":{"seed":%d}}`, i, i*i*7919)
	}
	return out
}

func fill(all []string) func(func([]byte) error) ([]archive.Resource, error) {
	return func(add func([]byte) error) ([]archive.Resource, error) {
		for _, line := range all {
			if err := add([]byte(line)); err != nil {
				return nil, err
			}
		}
		return []archive.Resource{{Group: "example.com", Version: "v1", Plural: "echos", Kind: "Echo",
			Objects: int64(len(all))}}, nil
	}
}

func memory(t *testing.T) *blob.Bucket {
	t.Helper()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { _ = bucket.Close() })
	return bucket
}

func write(t *testing.T, bucket *blob.Bucket, all []string, recipients ...age.Recipient) (*archive.Manifest, string) {
	t.Helper()
	m, sum, err := archive.Write(t.Context(), bucket, head, archive.Options{Recipients: recipients}, fill(all))
	if err != nil {
		t.Fatal(err)
	}
	return m, sum
}

func read(ctx context.Context, bucket *blob.Bucket, identities ...age.Identity) ([]string, error) {
	m, _, err := archive.Open(ctx, bucket)
	if err != nil {
		return nil, err
	}
	var out []string
	err = archive.Read(ctx, bucket, m, identities, func(line []byte) error {
		out = append(out, string(line))
		return nil
	})
	return out, err
}

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestWhatIsWrittenCanBeRead(t *testing.T) {
	id := identity(t)
	for name, recipients := range map[string][]age.Recipient{"plain": nil, "encrypted": {id.Recipient()}} {
		t.Run(name, func(t *testing.T) {
			bucket := memory(t)
			m, sum := write(t, bucket, lines(1000), recipients...)
			if m.Objects() != 1000 || m.Content.Encrypted != (len(recipients) > 0) {
				t.Errorf("manifest: %+v", m)
			}
			if err := archive.Verify(t.Context(), bucket, sum); err != nil {
				t.Errorf("verify: %v", err)
			}
			got, err := read(t.Context(), bucket, id)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines(1000), got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASecondBackupInTheSameFolderReplacesTheFirst(t *testing.T) {
	bucket := memory(t)
	write(t, bucket, lines(10), identity(t).Recipient())
	_, sum := write(t, bucket, lines(3))
	if err := archive.Verify(t.Context(), bucket, sum); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"manifest.json", "objects.jsonl.zst"}, files(t, bucket)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func files(t *testing.T, bucket *blob.Bucket) []string {
	t.Helper()
	var out []string
	page, _, err := bucket.ListPage(t.Context(), blob.FirstPageToken, 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range page {
		out = append(out, file.Key)
	}
	return out
}

func TestABackupThatFailsLeavesNothing(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		limit int64
		fill  func(func([]byte) error) ([]archive.Resource, error)
		want  error
	}{
		"the source fails": {want: broken, fill: func(add func([]byte) error) ([]archive.Resource, error) {
			return nil, errors.Join(add([]byte(lines(1)[0])), broken)
		}},
		"it is too large": {want: archive.ErrTooLarge, limit: 1000, fill: fill(lines(10_000))},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := memory(t)
			_, _, err := archive.Write(t.Context(), bucket, head, archive.Options{MaxBytes: test.limit}, test.fill)
			if !errors.Is(err, test.want) {
				t.Errorf("error: %v, want %v", err, test.want)
			}
			if left := files(t, bucket); len(left) > 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
}

func TestACancelledBackupIsNone(t *testing.T) {
	bucket := memory(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := archive.Write(ctx, bucket, head, archive.Options{},
		func(add func([]byte) error) ([]archive.Resource, error) {
			cancel()
			return nil, add([]byte(lines(1)[0]))
		})
	if err == nil {
		t.Fatal("no error")
	}
	if _, _, err := archive.Open(t.Context(), bucket); !errors.Is(err, archive.ErrNoBackup) {
		t.Errorf("open: %v, want %v", err, archive.ErrNoBackup)
	}
}

func TestDamagedBackupsAreRefused(t *testing.T) {
	const content = "objects.jsonl.zst"
	id, other := identity(t), identity(t)
	replace := func(old, now string) func([]byte) []byte {
		return func(text []byte) []byte { return []byte(strings.Replace(string(text), old, now, 1)) }
	}
	flip := func(text []byte) []byte { text[len(text)/2] ^= 1; return text }
	for name, test := range map[string]struct {
		file      string
		change    func([]byte) []byte // nil removes the file
		encrypted bool
		identity  *age.X25519Identity
		want      error
	}{
		"truncated": {file: content, want: archive.ErrDamaged,
			change: func(text []byte) []byte { return text[:len(text)-7] }},
		"altered":                     {file: content, want: archive.ErrDamaged, change: flip},
		"something was appended":      {file: content, want: archive.ErrDamaged, change: func(t []byte) []byte { return append(t, "x"...) }},
		"content removed":             {file: content, want: archive.ErrDamaged},
		"manifest removed":            {file: archive.ManifestName, want: archive.ErrNoBackup},
		"manifest with another count": {file: archive.ManifestName, want: archive.ErrDamaged, change: replace(`"objects": 100`, `"objects": 99`)},
		"manifest of another format":  {file: archive.ManifestName, want: archive.ErrDamaged, change: replace(`"format": 1`, `"format": 2`)},
		"manifest cut":                {file: archive.ManifestName, want: archive.ErrDamaged, change: func(t []byte) []byte { return t[:40] }},
		"altered and encrypted":       {file: content + ".age", encrypted: true, identity: id, want: archive.ErrDamaged, change: flip},
		"another identity": {file: archive.ManifestName, encrypted: true, identity: other, want: archive.ErrIdentity,
			change: func(t []byte) []byte { return t }},
		"no identity": {file: archive.ManifestName, encrypted: true, want: archive.ErrIdentity,
			change: func(t []byte) []byte { return t }},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := memory(t)
			var recipients []age.Recipient
			if test.encrypted {
				recipients = append(recipients, id.Recipient())
			}
			_, sum := write(t, bucket, lines(100), recipients...)
			damage(t, bucket, test.file, test.change)
			var identities []age.Identity
			if test.identity != nil {
				identities = append(identities, test.identity)
			}
			if _, err := read(t.Context(), bucket, identities...); !errors.Is(err, test.want) {
				t.Errorf("read: %v, want %v", err, test.want)
			}
			err := archive.Verify(t.Context(), bucket, sum)
			if err == nil && !errors.Is(test.want, archive.ErrIdentity) {
				t.Error("verify: no error")
			}
		})
	}
}

func damage(t *testing.T, bucket *blob.Bucket, file string, change func([]byte) []byte) {
	t.Helper()
	text, err := bucket.ReadAll(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if change == nil {
		err = bucket.Delete(t.Context(), file)
	} else {
		err = bucket.WriteAll(t.Context(), file, change(text), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRecipientsAreParsed(t *testing.T) {
	id := identity(t)
	if got, err := archive.ParseRecipients([]string{id.Recipient().String()}); err != nil || len(got) != 1 {
		t.Errorf("parse: %v, %v", got, err)
	}
	if _, err := archive.ParseRecipients([]string{"age1nonsense"}); err == nil {
		t.Error("nonsense was parsed")
	}
}
