// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/redact"
)

// Index says what is in a bundle, and what is not.
type Index struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Created    time.Time `json:"created"`
	// Version of the program that made it.
	Version string `json:"version"`
	// Files in the order in which they were written.
	Files []File `json:"files"`
	// Missing is what could not be read, and why.
	Missing []Missing `json:"missing"`
}

// APIVersion and Kind of an index.
const (
	APIVersion = "supportbundle.bellwether.dev/v1alpha1"
	Kind       = "SupportBundle"
)

// File is one file of a bundle.
type File struct {
	Path string `json:"path"`
	// What is in it, in a few words.
	What  string `json:"what"`
	Bytes int    `json:"bytes"`
	// Note says in which way it is not complete; empty if it is.
	Note string `json:"note,omitempty"`
}

// Missing is something that could not be read.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// bundle writes a tar.gz, and keeps its index. Whatever is written to it is redacted here, so that no caller can forget
// it. The first error of writing is kept, and ends everything.
type bundle struct {
	index  Index
	folder string
	gz     *gzip.Writer
	tar    *tar.Writer
	err    error
}

func newBundle(w io.Writer, created time.Time, version string) *bundle {
	gz := gzip.NewWriter(w)
	return &bundle{gz: gz, tar: tar.NewWriter(gz), folder: "bellwether-support-" + stamp(created),
		index: Index{APIVersion: APIVersion, Kind: Kind, Created: created.UTC(), Version: version,
			Files: []File{}, Missing: []Missing{}}}
}

// stamp is a time for the name of a file.
func stamp(t time.Time) string { return t.UTC().Format("20060102-150405") }

// text adds a file of text.
func (b *bundle) text(name, what, note, text string) {
	text = redact.Text(text)
	b.write(name, []byte(text))
	b.index.Files = append(b.index.Files, File{Path: name, What: what, Bytes: len(text), Note: note})
}

// object adds a file with what becomes an object as JSON.
func (b *bundle) object(name, what, note string, v any) {
	data, err := json.Marshal(v)
	var decoded any
	if err == nil {
		err = json.Unmarshal(data, &decoded)
	}
	if err == nil {
		data, err = json.MarshalIndent(redact.Object(map[string]any{"": decoded})[""], "", "  ")
	}
	if err != nil {
		b.missing(what, err)
		return
	}
	b.write(name, append(data, '\n'))
	b.index.Files = append(b.index.Files, File{Path: name, What: what, Bytes: len(data) + 1, Note: note})
}

// missing notes what could not be read. The error is redacted, too: it may name a URL.
func (b *bundle) missing(what string, err error) {
	b.index.Missing = append(b.index.Missing, Missing{What: what, Why: redact.Text(strings.TrimSpace(err.Error()))})
}

func (b *bundle) write(name string, data []byte) {
	if b.err != nil {
		return
	}
	header := &tar.Header{Name: path.Join(b.folder, name), Mode: 0o600, Size: int64(len(data)),
		ModTime: b.index.Created, Typeflag: tar.TypeReg}
	if err := b.tar.WriteHeader(header); err != nil {
		b.err = fmt.Errorf("write bundle: %w", err)
		return
	}
	if _, err := b.tar.Write(data); err != nil {
		b.err = fmt.Errorf("write bundle: %w", err)
	}
}

// hasRead tells whether there is a file of any cluster: those have a folder.
func (b *bundle) hasRead() bool {
	return slices.ContainsFunc(b.index.Files, func(f File) bool { return strings.Contains(f.Path, "/") })
}

// close writes the index, for programs and for people, and ends the bundle.
func (b *bundle) close() error {
	data, err := json.MarshalIndent(b.index, "", "  ")
	if err != nil {
		return fmt.Errorf("encode index: %w", err)
	}
	b.write("index.json", append(data, '\n'))
	b.write("README.md", []byte(b.index.Markdown()))
	return errors.Join(b.err, b.tar.Close(), b.gz.Close())
}

// Markdown is the index for people.
func (i Index) Markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out,
		"# Support bundle of Bellwether\n\nMade on %s by bellwether %s. Secrets are never read; what looks "+
			"like a credential is replaced by `%s`, and so are the values of environment variables. Look "+
			"through the files before you pass them on: names of clusters, hosts and people are in there.\n\n"+
			"## What is missing\n\n",
		i.Created.UTC().Format("2006-01-02 15:04:05Z"), i.Version, redact.Removed)
	if len(i.Missing) == 0 {
		out.WriteString("Nothing.\n")
	}
	for _, m := range i.Missing {
		fmt.Fprintf(&out, "- %s: %s\n", m.What, strings.Join(strings.Fields(m.Why), " "))
	}
	out.WriteString("\n## What is here\n\n| file | what | bytes |\n|---|---|---|\n")
	for _, f := range i.Files {
		what := f.What
		if f.Note != "" {
			what += "; " + f.Note
		}
		fmt.Fprintf(&out, "| %s | %s | %d |\n", f.Path, what, f.Bytes)
	}
	return out.String()
}
