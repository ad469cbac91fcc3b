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

	"github.com/bellwether-dev/bellwether/internal/redact"
)

// Index lists the files of a bundle, and the data that is missing.
type Index struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Created    time.Time `json:"created"`
	// Version is the version of the program that made the bundle.
	Version string `json:"version"`
	// Files are the files in the order in which they were written.
	Files []File `json:"files"`
	// Missing is the data that could not be read.
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
	// What is the content of the file in a few words.
	What  string `json:"what"`
	Bytes int    `json:"bytes"`
	// Note says which part of the data is missing; empty if the file is complete.
	Note string `json:"note,omitempty"`
}

// Missing is data that could not be read, and the reason.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// bundle writes a tar.gz and its index. It redacts all data, so that no caller can forget the redaction. After the
// first write error it writes nothing more, and close returns the error.
type bundle struct {
	index  Index
	folder string
	gz     *gzip.Writer
	tar    *tar.Writer
	err    error
}

// newBundle starts a bundle. created is part of the name of its folder.
func newBundle(w io.Writer, created time.Time, version string) *bundle {
	gz := gzip.NewWriter(w)
	return &bundle{gz: gz, tar: tar.NewWriter(gz), folder: "bellwether-support-" + formatStamp(created),
		index: Index{APIVersion: APIVersion, Kind: Kind, Created: created.UTC(), Version: version,
			Files: []File{}, Missing: []Missing{}}}
}

// formatStamp returns a time in the form for file names.
func formatStamp(t time.Time) string { return t.UTC().Format("20060102-150405") }

// addText adds a file with text.
func (b *bundle) addText(name, description, note, text string) {
	text = redact.Text(text)
	b.write(name, []byte(text))
	b.index.Files = append(b.index.Files, File{Path: name, What: description, Bytes: len(text), Note: note})
}

// addObject adds a file with a value as JSON. It converts the value to maps and slices, which the redaction needs.
func (b *bundle) addObject(name, description, note string, v any) {
	data, err := json.Marshal(v)
	var decoded any
	if err == nil {
		err = json.Unmarshal(data, &decoded)
	}
	if err == nil {
		data, err = json.MarshalIndent(redact.Object(map[string]any{"": decoded})[""], "", "  ")
	}
	if err != nil {
		b.addMissing(description, err)
		return
	}
	b.write(name, append(data, '\n'))
	b.index.Files = append(b.index.Files, File{Path: name, What: description, Bytes: len(data) + 1, Note: note})
}

// addMissing adds data that could not be read to the index. The error is redacted too, because it may contain a URL.
func (b *bundle) addMissing(description string, err error) {
	b.index.Missing = append(b.index.Missing, Missing{What: description,
		Why: redact.Text(strings.TrimSpace(err.Error()))})
}

// write writes a file to the tar, and does not redact it.
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

// hasClusterFile reports whether the bundle has a file from a cluster. Only these files are in subfolders.
func (b *bundle) hasClusterFile() bool {
	return slices.ContainsFunc(b.index.Files, func(f File) bool { return strings.Contains(f.Path, "/") })
}

// close writes the index as JSON and as Markdown, and ends the bundle.
func (b *bundle) close() error {
	data, err := json.MarshalIndent(b.index, "", "  ")
	if err != nil {
		return fmt.Errorf("encode index: %w", err)
	}
	b.write("index.json", append(data, '\n'))
	b.write("README.md", []byte(b.index.Markdown()))
	return errors.Join(b.err, b.tar.Close(), b.gz.Close())
}

// Markdown returns the index as Markdown for the user: first the missing data, and then the files.
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
		description := f.What
		if f.Note != "" {
			description += "; " + f.Note
		}
		fmt.Fprintf(&out, "| %s | %s | %d |\n", f.Path, description, f.Bytes)
	}
	return out.String()
}
