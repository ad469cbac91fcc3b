// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/engines/olmv0/try"
)

func TestHostPort(t *testing.T) {
	for text, want := range map[string]struct {
		host string
		port int
		ok   bool
	}{
		"":                {"", 0, true},
		"172.18.0.1":      {"172.18.0.1", 0, true},
		"172.18.0.1:9000": {"172.18.0.1", 9000, true},
		"laptop.lan":      {"laptop.lan", 0, true},
		"fd00::1":         {"fd00::1", 0, true},
		"[fd00::1]:9000":  {"fd00::1", 9000, true},
		"host:port":       {"", 0, false},
		"a:b:c":           {"", 0, false},
	} {
		host, port, err := splitHostPort(text)
		if (err == nil) != want.ok || want.ok && (host != want.host || port != want.port) {
			t.Errorf("%q: %q %d (%v)", text, host, port, err)
		}
	}
}

func TestLocalAddress(t *testing.T) {
	if got, err := findLocalAddress(t.Context(), "https://127.0.0.1:6443"); err != nil || got != "127.0.0.1" {
		t.Errorf("%q (%v): the way to the loopback interface begins there", got, err)
	}
}

func TestWithDigest(t *testing.T) {
	const digest = "sha256:abc"
	for _, image := range []string{"r.example.com:5000/b/echo:1.0.0", "r.example.com:5000/b/echo",
		"r.example.com:5000/b/echo@sha256:old", "r.example.com:5000/b/echo:1.0.0@sha256:old"} {
		if got := bundles.PinImage(image, digest); got != "r.example.com:5000/b/echo@sha256:abc" {
			t.Errorf("%s becomes %s", image, got)
		}
	}
}

func TestTrialText(t *testing.T) {
	r := &try.Report{Bundle: "echo.v1.1.0", From: "echo.v1.0.0", Complete: true, Pods: try.Pods{Total: 1, Stubs: 1},
		Examples: []try.Example{{Kind: "Echo", Name: "hello", Of: "echo.v1.0.0", State: try.NoStatus,
			Message: "no program has written its status"}}, Notes: []string{"A note."}}
	want := `
Examples
  Echo/hello (echo.v1.0.0)  NoStatus  no program has written its status

Notes
  A note.

The upgrade from echo.v1.0.0 to echo.v1.1.0 passed. Pods are stubs: that the operator works is not shown.
`
	if got := formatTrial(r, term.Style{}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.Problems = []string{"a", "b"}
	if got := formatTrial(r, term.Style{}); !strings.HasSuffix(got, "echo.v1.1.0 did not pass: 2 problems.\n") {
		t.Error(got)
	}
}
