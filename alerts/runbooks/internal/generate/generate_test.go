// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

//go:generate go test -count=1 -run ^TestPages$DOLLAR . -update

var update = flag.Bool("update", false, "write docs/runbooks")

const folder = "../../../../docs/runbooks"

// read returns the text of a page; it is empty if there is no such page.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(read(t, name), got); diff != "" {
		t.Errorf("docs/runbooks/%s; run `make generate` (-file +generated):\n%s", name, diff)
	}
}

func alerts(t *testing.T) []Alert {
	t.Helper()
	out, err := Alerts()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPages compares the generated parts of the pages with the rules. A page without an alert is an error.
func TestPages(t *testing.T) {
	slis := SLIs(read(t, "slis.md"))
	golden(t, "slis.md", slis)
	index, err := Index(alerts(t))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "README.md", index)
	want := []string{"README.md", "embed.go", "slis.md"}
	for _, a := range alerts(t) {
		name := a.Name + ".md"
		want = append(want, name)
		page, err := Page(a, read(t, name), slis)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, page)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(want, e.Name()) {
			t.Errorf("docs/runbooks/%s belongs to no alert: delete it", e.Name())
		}
	}
}

// TestPagesAreWritten reports sections that are not written yet,
// and sections that the generator does not support and would drop.
func TestPagesAreWritten(t *testing.T) {
	for _, a := range alerts(t) {
		written := splitParts(removeGenerated(read(t, a.Name+".md")))
		for _, heading := range Sections {
			if text := written[heading]; text == "" || text == Missing {
				t.Errorf("%s.md: section %q is not written", a.Name, heading)
			}
		}
		if len(written) != len(Sections) {
			t.Errorf("%s.md has %d sections, want %v", a.Name, len(written), Sections)
		}
	}
	written := splitParts(removeGenerated(read(t, "slis.md")))
	for _, sli := range slo.Sections() {
		for _, part := range Parts {
			if text := splitBold(written[sli])[part]; text == "" || text == Missing {
				t.Errorf("slis.md: %s: part %q is not written", sli, part)
			}
		}
	}
	for _, page := range append(alerts(t), Alert{Name: "slis"}, Alert{Name: "README"}) {
		for _, word := range []string{"TODO", "FIXME", "TBD", "lorem"} {
			if strings.Contains(read(t, page.Name+".md"), word) {
				t.Errorf("%s.md has the placeholder %s", page.Name, word)
			}
		}
	}
}
