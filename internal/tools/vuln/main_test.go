// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNotChecked checks that a check that could not be made does not look like a passed check.
func TestNotChecked(t *testing.T) {
	unreachable := fmt.Errorf("%w: refused", errUnreachable)
	for name, c := range map[string]struct {
		err      error
		isHosted bool
		status   int
		says     string
	}{
		"passed":                   {nil, true, 0, ""},
		"failed":                   {errors.New("module .: exit 3"), false, 1, "vuln: module .: exit 3\n"},
		"out of reach":             {unreachable, false, 0, "not checked: " + unreachable.Error() + "\n"},
		"out of reach of a hosted": {unreachable, true, 1, "not checked: " + unreachable.Error() + "\n"},
	} {
		var out strings.Builder
		if status := printResult(&out, c.err, c.isHosted); status != c.status || out.String() != c.says {
			t.Errorf("%s: status %d, %q", name, status, out.String())
		}
	}
}

// TestCheck runs a fake govulncheck against a fake database.
func TestCheck(t *testing.T) {
	const (
		clean     = "echo No vulnerabilities found."
		forbidden = "echo 'GO-2026-0001: the server answers Forbidden: dial tcp: connection refused'; exit 3"
	)
	for name, c := range map[string]struct {
		status      int // of the database
		script      string
		unreachable bool
		fails       bool
		runs        int // of govulncheck
	}{
		"nothing found":                          {status: http.StatusOK, script: clean, runs: 2},
		"a finding that contains Forbidden":      {status: http.StatusOK, script: forbidden, fails: true, runs: 2},
		"a database that refuses":                {status: http.StatusForbidden, script: clean, unreachable: true},
		"findings that nobody could look up":     {status: http.StatusForbidden, script: forbidden, unreachable: true},
		"an index that is not there":             {status: http.StatusNotFound, script: clean, unreachable: true},
		"a govulncheck that cannot read modules": {status: http.StatusOK, script: "exit 1", fails: true, runs: 2},
	} {
		t.Run(name, func(t *testing.T) {
			database := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/index/db.json" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.WriteHeader(c.status)
			}))
			defer database.Close()
			log := filepath.Join(t.TempDir(), "log")
			tool := fake(t, "echo \"$PWD $*\" >>"+log+"\n"+c.script)
			err := checkModules(t.Context(), t.Output(), database.URL, tool, []string{t.TempDir(), t.TempDir()})
			if errors.Is(err, errUnreachable) != c.unreachable {
				t.Errorf("got error %v, want unreachable: %t", err, c.unreachable)
			}
			if failed := err != nil && !errors.Is(err, errUnreachable); failed != c.fails {
				t.Errorf("got error %v, want a failure: %t", err, c.fails)
			}
			ran, _ := os.ReadFile(log) // not there if it never ran
			if got := strings.Count(string(ran), "-db "+database.URL+" ./..."); got != c.runs {
				t.Errorf("govulncheck ran %d times, want %d:\n%s", got, c.runs, ran)
			}
		})
	}
}

func TestReach(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	local := t.TempDir()
	if err := os.MkdirAll(filepath.Join(local, "index"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(local, "index", "db.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		database    string
		unreachable bool
	}{
		"no server":             {gone.URL, true},
		"a folder":              {"file://" + local, false},
		"a folder without data": {"file://" + t.TempDir(), true},
	} {
		if err := fetchIndex(t.Context(), c.database); errors.Is(err, errUnreachable) != c.unreachable {
			t.Errorf("%s: got error %v, want unreachable: %t", name, err, c.unreachable)
		}
	}
	if err := fetchIndex(t.Context(), "https://bad host"); err == nil || errors.Is(err, errUnreachable) {
		t.Errorf("a malformed address: got error %v", err)
	}
}

// fake writes an executable script.
func fake(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "govulncheck")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}
