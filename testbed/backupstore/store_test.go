// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backupstore tests the stores of backups with servers that the product does not need.
package backupstore

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/backups/store"
)

// TestBackupsInEachStore writes, verifies and removes a backup in a folder and on an
// S3 server.
func TestBackupsInEachStore(t *testing.T) {
	backend := s3mem.New()
	if err := backend.CreateBucket("backups"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	defer server.Close()
	for name, root := range map[string]string{
		"folder": "file://" + filepath.Join(t.TempDir(), "backups"),
		"S3":     "s3://backups/fleet?region=us-east-1&pathStyle=true&endpoint=" + url.QueryEscape(server.URL),
	} {
		t.Run(name, func(t *testing.T) {
			location, err := store.Folder(root, "prod-1", "fleet.echo", "one")
			if err != nil {
				t.Fatal(err)
			}
			bucket, err := store.Open(t.Context(), location,
				store.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"})
			if err != nil {
				t.Fatal(err)
			}
			defer bucket.Close() //nolint:errcheck // the test is over
			_, sum, err := archive.Write(t.Context(), bucket, archive.Manifest{}, archive.Options{}, objects(30_000))
			if err != nil {
				t.Fatal(err)
			}
			if err := archive.Verify(t.Context(), bucket, sum); err != nil {
				t.Error(err)
			}
			if err := archive.Remove(t.Context(), bucket); err != nil {
				t.Error(err)
			}
			if _, _, err := archive.Open(t.Context(), bucket); !errors.Is(err, archive.ErrNoBackup) {
				t.Errorf("open what was removed: %v", err)
			}
		})
	}
}

func objects(n int) func(func([]byte) error) ([]archive.Resource, error) {
	return func(add func([]byte) error) ([]archive.Resource, error) {
		for i := range n {
			if err := add(fmt.Appendf(nil, `{"i":%d,"x":"%x"}`, i, i*i*7919)); err != nil {
				return nil, err
			}
		}
		return []archive.Resource{{Version: "v1", Plural: "xs", Kind: "X", Objects: int64(n)}}, nil
	}
}
