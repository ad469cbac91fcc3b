// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/backups/store"
)

func TestIsAllowed(t *testing.T) {
	allowed := []string{"file:///var/backups", "s3://bucket/prefix?region=eu-central-1"}
	for url, want := range map[string]bool{
		"file:///var/backups":                                         true,
		"file:///var/backups/":                                        true,
		"file:///var/backups/prod":                                    true,
		"file:///var/backups/../secrets":                              false,
		"file:///var/backups-of-others":                               false,
		"file:///":                                                    false,
		"s3://bucket/prefix?region=eu-central-1":                      true,
		"s3://bucket/prefix/below?region=eu-central-1":                true,
		"s3://bucket/prefix?region=eu-central-1&endpoint=http://evil": false,
		"s3://bucket/other?region=eu-central-1":                       false,
		"s3://another/prefix?region=eu-central-1":                     false,
		"https://bucket/prefix":                                       false,
		"":                                                            false,
		"file://host/var/backups":                                     false,
		"s3://bucket/prefix/../../other/prefix/../x?region=eu-central-1": false,
	} {
		if got := store.IsAllowed(url, allowed); got != want {
			t.Errorf("IsAllowed(%q) = %t, want %t", url, got, want)
		}
	}
}

func TestFolder(t *testing.T) {
	for root, want := range map[string]string{
		"file:///var/backups":    "file:///var/backups/prod/fleet.echo",
		"s3://bucket?region=x":   "s3://bucket/prod/fleet.echo?region=x",
		"s3://bucket/p/?region=": "s3://bucket/p/prod/fleet.echo?region=",
	} {
		if got, err := store.Folder(root, "prod", "fleet.echo"); err != nil || got != want {
			t.Errorf("Folder(%q) = %q, %v, want %q", root, got, err, want)
		}
	}
	for _, element := range []string{"", ".", "..", "a/b", "../other", `a\b`} {
		if got, err := store.Folder("file:///var/backups", "prod", element); !errors.Is(err, store.ErrURL) {
			t.Errorf("the folder %q in prod is %q, %v, want %v", element, got, err, store.ErrURL)
		}
	}
}

func TestURLsThatAreNoStores(t *testing.T) {
	for _, location := range []string{"file://relative/path", "file:///x?y=z", "s3://bucket?color=red", "ftp://x/y",
		":"} {
		if _, err := store.Open(t.Context(), location, store.Credentials{}); !errors.Is(err, store.ErrURL) {
			t.Errorf("%q: %v, want %v", location, err, store.ErrURL)
		}
	}
}

func TestCredentialsNeedBothKeys(t *testing.T) {
	if _, err := store.CredentialsOf(map[string][]byte{store.KeyAccessKeyID: []byte("a")}); err == nil {
		t.Error("no error without a secret key")
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

// TestAStoreThatIsGone checks the error of a store that does not exist.
func TestAStoreThatIsGone(t *testing.T) {
	server := httptest.NewServer(nil)
	address := server.URL
	server.Close()
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	bucket, err := store.Open(t.Context(), "s3://backups?region=us-east-1&pathStyle=true&endpoint="+
		url.QueryEscape(address), store.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close() //nolint:errcheck // the test is over
	if _, _, err := archive.Write(t.Context(), bucket, archive.Manifest{}, archive.Options{},
		objects(1)); !errors.Is(err, archive.ErrStore) {
		t.Errorf("write: %v, want %v", err, archive.ErrStore)
	}
	if _, _, err := archive.Open(t.Context(), bucket); !errors.Is(err, archive.ErrStore) {
		t.Errorf("open: %v, want %v", err, archive.ErrStore)
	}
}

// TestAKilledWriterLeavesNoBackup has the temporary file of a killed program in the
// folder: it is no backup, and the next backup removes it.
func TestAKilledWriterLeavesNoBackup(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "objects.jsonl.zst.185f.tmp")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	bucket, err := store.Open(t.Context(), "file://"+dir, store.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close() //nolint:errcheck // the test is over
	if _, _, err := archive.Open(t.Context(), bucket); !errors.Is(err, archive.ErrNoBackup) {
		t.Errorf("open: %v, want %v", err, archive.ErrNoBackup)
	}
	if _, _, err := archive.Write(t.Context(), bucket, archive.Manifest{}, archive.Options{}, objects(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary file is still there: %v", err)
	}
}
