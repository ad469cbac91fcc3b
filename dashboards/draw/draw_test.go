// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/dashboards"
	"github.com/bellwether-dev/bellwether/dashboards/draw"
)

// TestPictures compares the pictures of the documentation with the dashboards, and parses them as XML.
func TestPictures(t *testing.T) {
	for _, d := range dashboards.All() {
		data, err := draw.LoadRecorded(*d.Uid)
		if err != nil {
			t.Fatal(err)
		}
		got := string(draw.SVG(d, data))
		want, err := os.ReadFile(filepath.Join("../../docs/images/dashboards",
			strings.TrimSuffix(dashboards.FileName(d), ".json")+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s; run go generate ./dashboards (-want +got):\n%.2000s", *d.Uid, diff)
		}
		titles := 0
		decoder := xml.NewDecoder(strings.NewReader(got))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", *d.Uid, err)
			}
			if start, ok := token.(xml.StartElement); ok && start.Name.Local == "title" {
				titles++
			}
		}
		panels := 0
		for _, p := range d.Panels {
			if p.Panel != nil {
				panels++
			}
		}
		if titles != panels+1 {
			t.Errorf("%s: %d descriptions in the picture of %d panels", *d.Uid, titles-1, panels)
		}
	}
}
