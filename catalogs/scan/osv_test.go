// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs/scan"
)

func TestTargetOf(t *testing.T) {
	for purl, want := range map[string]scan.Target{
		"pkg:golang/github.com/a/b/v2@v2.1.0#sub": {Ecosystem: "Go", Name: "github.com/a/b/v2", Version: "2.1.0"},
		"pkg:golang/stdlib@go1.22.1":              {Ecosystem: "Go", Name: "stdlib", Version: "1.22.1"},
		"pkg:npm/%40scope/left@1.0.0":             {Ecosystem: "npm", Name: "@scope/left", Version: "1.0.0"},
		"pkg:pypi/Foo_Bar@1.0":                    {Ecosystem: "PyPI", Name: "foo-bar", Version: "1.0"},
		"pkg:maven/org.a/b@1.0":                   {Ecosystem: "Maven", Name: "org.a:b", Version: "1.0"},
		"pkg:deb/debian/libssl3@3.0?distro=debian-12.5&upstream=openssl@3.1": {Ecosystem: "Debian:12",
			Name: "openssl", Version: "3.1"},
		"pkg:deb/ubuntu/curl@7?distro=ubuntu-22.04": {Ecosystem: "Ubuntu:22.04", Name: "curl", Version: "7"},
		"pkg:apk/alpine/libcrypto3@3.1-r0?distro=alpine-3.19.1&upstream=openssl": {Ecosystem: "Alpine:v3.19",
			Name: "openssl", Version: "3.1-r0"},
		"pkg:apk/wolfi/curl@8-r0": {Ecosystem: "Wolfi", Name: "curl", Version: "8-r0"},
		"pkg:rpm/redhat/openssl@3.0.7-27.el9?epoch=1&distro=rhel-9.4": {
			Ecosystem: "Red Hat:enterprise_linux:9", Name: "openssl", Version: "1:3.0.7-27.el9"},
		"pkg:rpm/rocky/curl@7-1?distro=rocky-9": {Ecosystem: "Rocky Linux:9", Name: "curl", Version: "7-1"},
	} {
		got, err := scan.ParseTarget(purl)
		if err != nil || got != want {
			t.Errorf("%s: %+v (%v), want %+v", purl, got, err, want)
		}
	}
}

func TestTargetOfRefuses(t *testing.T) {
	for purl, want := range map[string]string{
		"":                                       "no package URL",
		"openssl":                                "invalid package URL",
		"pkg:golang/example.com/app@(devel)":     "no version",
		"pkg:golang/example.com/app":             "no version",
		"pkg:generic/openssl@3":                  `type "generic" are not known`,
		"pkg:deb/debian/curl@7":                  "does not say the release of debian",
		"pkg:deb/debian/curl@7?distro=bookworm":  "does not say the release of debian",
		"pkg:rpm/fedora/curl@7?distro=fedora-40": `distribution "fedora" are not known`,
	} {
		_, err := scan.ParseTarget(purl)
		if !errors.Is(err, scan.ErrNotCompared) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", purl, err, want)
		}
	}
}

// record returns a record of OSV about the package p in an ecosystem.
func record(id, ecosystem, affected string) string {
	return fmt.Sprintf(`{"id": %q, "modified": "2099-01-01T00:00:00Z", "affected": [{"package":
		{"ecosystem": %q, "name": "p"}, %s}]}`, id, ecosystem, affected)
}

func readDocument(t *testing.T, wanted scan.Target, records ...string) *scan.Database {
	t.Helper()
	files := fstest.MapFS{}
	for i, text := range records {
		files[fmt.Sprintf("sub/%d.json", i)] = &fstest.MapFile{Data: []byte(text)}
	}
	d, err := scan.ReadDatabase(files, []scan.Target{wanted})
	if err != nil {
		t.Fatalf("read database: %v", err)
	}
	return d
}

func events(kind string, events ...string) string {
	var list []string
	for _, e := range events {
		name, version, _ := strings.Cut(e, " ")
		list = append(list, fmt.Sprintf(`{%q: %q}`, name, version))
	}
	return fmt.Sprintf(`"ranges": [{"type": %q, "events": [%s]}]`, kind, strings.Join(list, ", "))
}

func TestFind(t *testing.T) {
	for name, test := range map[string]struct {
		ecosystem, version string
		affected           string
		// of is the ecosystem of the record; empty means the same ecosystem.
		of    string
		want  bool
		fixed string
		err   string
	}{
		"before the fix": {ecosystem: "Go", version: "1.1.0", affected: events("SEMVER", "introduced 0", "fixed 1.2.0"),
			want: true, fixed: "1.2.0"},
		"the fix": {ecosystem: "Go", version: "1.2.0", affected: events("SEMVER", "introduced 0", "fixed 1.2.0")},
		"a pre-release of the fix": {ecosystem: "Go", version: "1.2.0-rc.1", want: true, fixed: "1.2.0",
			affected: events("SEMVER", "introduced 0", "fixed 1.2.0")},
		"before it was introduced": {ecosystem: "Go", version: "1.0.0", affected: events("SEMVER", "introduced 1.1.0")},
		"introduced again": {ecosystem: "npm", version: "2.5.0", want: true, fixed: "2.6.0", affected: events("SEMVER",
			"introduced 2.0.0", "fixed 2.6.0", "introduced 1.0.0", "fixed 1.5.0")},
		"between two ranges": {ecosystem: "npm", version: "1.7.0", affected: events("SEMVER",
			"introduced 2.0.0", "fixed 2.6.0", "introduced 1.0.0", "fixed 1.5.0")},
		"the last affected": {ecosystem: "PyPI", version: "1.4", want: true,
			affected: events("ECOSYSTEM", "introduced 0", "last_affected 1.4.0")},
		"after the last affected": {ecosystem: "PyPI", version: "1.4.post1",
			affected: events("ECOSYSTEM", "introduced 0", "last_affected 1.4.0")},
		"at the limit": {ecosystem: "Go", version: "2.0.0", affected: events("SEMVER", "introduced 0", "limit 2.0.0")},
		"listed":       {ecosystem: "Foo", version: "1.0", affected: `"versions": ["0.9", "1.0"]`, want: true},
		"not listed":   {ecosystem: "Foo", version: "1.1", affected: `"versions": ["0.9", "1.0"]`},
		"an ecosystem without an order": {ecosystem: "Foo", version: "1.1",
			affected: events("ECOSYSTEM", "introduced 0"), err: "versions of ecosystem Foo cannot be ordered"},
		"no version of the ecosystem": {ecosystem: "Go", version: "master",
			affected: events("SEMVER", "introduced 1.0.0"), err: `version "vmaster"`},
		"only commits": {ecosystem: "Go", version: "1.0.0", affected: events("GIT", "introduced 0"),
			err: "a record lists commits only"},
		"Debian": {ecosystem: "Debian:12", version: "1:2.0-1~deb12u1", want: true, fixed: "1:2.0-1",
			affected: events("ECOSYSTEM", "introduced 0", "fixed 1:2.0-1")},
		"another release": {ecosystem: "Debian:12", of: "Debian:11", version: "1.0",
			affected: events("ECOSYSTEM", "introduced 0")},
		"all releases": {ecosystem: "Debian:12", of: "Debian", version: "1.0", want: true,
			affected: events("ECOSYSTEM", "introduced 0")},
		"part of a release": {ecosystem: "Red Hat:enterprise_linux:9", of: "Red Hat:enterprise_linux:9::baseos",
			version: "1:3.0.7-27.el9", affected: events("ECOSYSTEM", "introduced 0", "fixed 1:3.0.7-28.el9_4"),
			want: true, fixed: "1:3.0.7-28.el9_4"},
		"Alpine": {ecosystem: "Alpine:v3.19", version: "3.1.4-r5", want: true, fixed: "3.1.4-r6",
			affected: events("ECOSYSTEM", "introduced 0", "fixed 3.1.4-r6")},
		"Maven": {ecosystem: "Maven", version: "2.14.1", want: true, fixed: "2.15.0",
			affected: events("ECOSYSTEM", "introduced 2.0-beta9", "fixed 2.15.0")},
	} {
		t.Run(name, func(t *testing.T) {
			target := scan.Target{Ecosystem: test.ecosystem, Name: "p", Version: test.version}
			of := test.of
			if of == "" {
				of = test.ecosystem
			}
			found, err := readDocument(t, target, record("X-1", of, test.affected)).Find(target)
			switch {
			case test.err != "" && (!errors.Is(err, scan.ErrNotCompared) || !strings.Contains(err.Error(), test.err)):
				t.Errorf("error %v, want %q", err, test.err)
			case test.err == "" && err != nil:
				t.Errorf("error %v", err)
			case test.want != (len(found) == 1):
				t.Errorf("found %+v", found)
			case test.want && found[0].Fixed != test.fixed:
				t.Errorf("fixed in %q, want %q", found[0].Fixed, test.fixed)
			}
		})
	}
}

// TestFindJoinsNames finds a vulnerability once, although two databases have a record of it.
func TestFindJoinsNames(t *testing.T) {
	target := scan.Target{Ecosystem: "Go", Name: "example.com/net", Version: "0.7.0"}
	d, err := scan.ReadDatabase(os.DirFS("testdata/osv"), []scan.Target{target})
	if err != nil {
		t.Fatalf("read database: %v", err)
	}
	got, err := d.Find(target)
	want := []scan.Vulnerability{{ID: "CVE-2099-0001", Aliases: []string{"GHSA-aaaa-bbbb-cccc", "GO-2099-0001"},
		Severity: scan.High, Score: 7.5, Summary: "HTTP/2 stream denial of service", Fixed: "0.23.0"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("found (-want +got):\n%s%v", diff, err)
	}
	if diff := cmp.Diff(map[string]int{"Go": 2, "Debian": 1}, d.Ecosystems); diff != "" || d.Records != 3 {
		t.Errorf("%d records of ecosystems (-want +got):\n%s", d.Records, diff)
	}
}

func TestSeverity(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		want  scan.Severity
		score float64
	}{
		"CVSS 3.1": {`"severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]`,
			scan.Critical, 9.8},
		"CVSS 4": {`"severity": [{"type": "CVSS_V4",
			"score": "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N"}]`, scan.Critical, 9.3},
		"CVSS 2": {`"severity": [{"type": "CVSS_V2", "score": "AV:N/AC:L/Au:N/C:P/I:P/A:P"}]`, scan.High,
			7.5},
		"in words of a distribution": {`"severity": [{"type": "Ubuntu", "score": "medium"}]`, scan.Medium, 0},
		"in words":                   {`"database_specific": {"severity": "MODERATE"}`, scan.Medium, 0},
		"an invalid vector":          {`"severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N"}]`, scan.Unknown, 0},
		"none":                       {`"summary": "x"`, scan.Unknown, 0},
	} {
		t.Run(name, func(t *testing.T) {
			target := scan.Target{Ecosystem: "Go", Name: "p", Version: "1.0.0"}
			text := strings.Replace(record("X-1", "Go", events("SEMVER", "introduced 0")), "{", "{"+test.text+",", 1)
			found, err := readDocument(t, target, text).Find(target)
			if err != nil || len(found) != 1 || found[0].Severity != test.want || found[0].Score != test.score {
				t.Errorf("found %+v (%v), want %s %g", found, err, test.want, test.score)
			}
		})
	}
}

func TestReadArchives(t *testing.T) {
	var text bytes.Buffer
	archive := zip.NewWriter(&text)
	for name, content := range map[string]string{
		"X-1.json": record("X-1", "Go", events("SEMVER", "introduced 0")),
		"X-2.json": strings.Replace(record("X-2", "Go", events("SEMVER", "introduced 0")), "{",
			`{"withdrawn": "2099-02-01T00:00:00Z",`, 1),
		"note.txt": "no record",
	} {
		w, err := archive.Create(name)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatalf("write archive: %v", err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatalf("write archive: %v", err)
	}
	target := scan.Target{Ecosystem: "Go", Name: "p", Version: "1.0.0"}
	newer := strings.Replace(record("X-1", "Go", events("SEMVER", "introduced 0", "fixed 1.4.0")), "2099-01",
		"2099-03", 1)
	d, err := scan.ReadDatabase(fstest.MapFS{
		"Go/all.zip":    {Data: text.Bytes()},
		"X-1.json":      {Data: []byte(newer)},
		"broken.json":   {Data: []byte("{")},
		"other.json":    {Data: []byte(`{"name": "no record"}`)},
		"cut/all.zip":   {Data: text.Bytes()[:40]},
		"README.md":     {Data: []byte("text")},
		"Go/other.json": {Data: []byte(record("X-3", "npm", events("SEMVER", "introduced 0")))},
	}, []scan.Target{target})
	if err != nil {
		t.Fatalf("read database: %v", err)
	}
	if d.Records != 4 || d.UnreadCount != 3 || len(d.Unread) != 3 {
		t.Errorf("%d records, not read: %q", d.Records, d.Unread)
	}
	found, err := d.Find(target)
	if err != nil || len(found) != 1 || found[0].Fixed != "1.4.0" {
		t.Errorf("found %+v (%v)", found, err)
	}
	// An ecosystem that the database does not have is not a reason to report a package as clean.
	_, err = d.Find(scan.Target{Ecosystem: "PyPI", Name: "p", Version: "1.0.0"})
	if !errors.Is(err, scan.ErrNotCompared) {
		t.Errorf("another ecosystem: %v", err)
	}
	if _, err := scan.ReadDatabase(fstest.MapFS{"a.txt": {}}, nil); !errors.Is(err, scan.ErrNoDatabase) {
		t.Errorf("no database: %v", err)
	}
}
