// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package osv finds packages in a database of vulnerabilities in the format of https://ossf.github.io/osv-schema: a
// folder with a JSON file for each record, or with the archives (all.zip) that osv.dev publishes for each ecosystem.
//
// The database is read once and record by record; only records about the wanted packages are kept.
package osv

import (
	"archive/zip"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ossf/osv-schema/bindings/go/osvschema"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	// maxRecord bounds one record: the largest ones of osv.dev have some megabytes.
	maxRecord = 32 << 20
	// maxUnread bounds how many files are named that could not be read.
	maxUnread = 10
)

// ErrNoDatabase says that a folder has no record of OSV at all.
var ErrNoDatabase = errors.New("no vulnerability database")

// Database is what was kept of a database.
type Database struct {
	// Records is how many the database has, and Ecosystems how many of them are about each ecosystem (without
	// releases).
	Records    int
	Ecosystems map[string]int
	// Unread are the first files that could not be read, with the reason; UnreadCount is how many there are.
	Unread      []string
	UnreadCount int

	wanted map[key]bool
	// kept are the records about a package, by the record's id.
	kept map[key]map[string]*osvschema.Vulnerability
}

// key identifies a package in all releases of its ecosystem.
type key struct{ ecosystem, name string }

func (t Target) key() key { return key{base(t.Ecosystem), t.Name} }

// Read reads a database. Errors wrap ErrNoDatabase, or are those of the files. A single file that is no record is not
// an error; see Database.Unread.
func Read(files fs.FS, wanted []Target) (*Database, error) {
	d := &Database{Ecosystems: map[string]int{}, wanted: map[key]bool{},
		kept: map[key]map[string]*osvschema.Vulnerability{}}
	for _, t := range wanted {
		d.wanted[t.key()] = true
	}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() || !entry.Type().IsRegular():
			return nil
		case path.Ext(name) == ".zip":
			return d.readArchive(files, name)
		case path.Ext(name) == ".json":
			return d.readFile(files, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read vulnerability database: %w", err)
	}
	if d.Records == 0 {
		problem := ""
		if len(d.Unread) > 0 {
			problem = ": " + d.Unread[0]
		}
		return nil, fmt.Errorf("%w: no file is a record of OSV (JSON) or an archive of them%s", ErrNoDatabase, problem)
	}
	return d, nil
}

func (d *Database) unread(name string, err error) {
	d.UnreadCount++
	if len(d.Unread) < maxUnread {
		d.Unread = append(d.Unread, fmt.Sprintf("%s: %v", name, err))
	}
}

func (d *Database) readFile(files fs.FS, name string) error {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	d.read(name, f)
	return nil
}

func (d *Database) readArchive(files fs.FS, name string) error {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	at, ok := f.(io.ReaderAt)
	if !ok {
		return fmt.Errorf("%s cannot be read at any place", name)
	}
	archive, err := zip.NewReader(at, info.Size())
	if err != nil {
		d.unread(name, err)
		return nil
	}
	for _, member := range archive.File {
		if path.Ext(member.Name) != ".json" {
			continue
		}
		content, err := member.Open()
		if err != nil {
			d.unread(name+"/"+member.Name, err)
			continue
		}
		d.read(name+"/"+member.Name, content)
		_ = content.Close()
	}
	return nil
}

// outline is what tells whether a record is wanted. Decoding that much takes a fraction of the time of a whole record.
type outline struct {
	ID        string `json:"id"`
	Withdrawn string `json:"withdrawn"`
	Affected  []struct {
		Package struct {
			Ecosystem string `json:"ecosystem"`
			Name      string `json:"name"`
		} `json:"package"`
	} `json:"affected"`
}

var (
	errTooLarge  = fmt.Errorf("more than %d MiB", maxRecord>>20)
	errNotRecord = errors.New("not a record of OSV: it has no id")
)

func (d *Database) read(name string, content io.Reader) {
	text, err := io.ReadAll(io.LimitReader(content, maxRecord+1))
	if err == nil && len(text) > maxRecord {
		err = errTooLarge
	}
	var o outline
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err == nil && o.ID == "" {
		err = errNotRecord
	}
	if err == nil {
		err = d.add(o, text)
	}
	if err != nil {
		d.unread(name, err)
	}
}

func (d *Database) add(o outline, text []byte) error {
	d.Records++
	about := map[key]bool{}
	for _, a := range o.Affected {
		about[key{base(a.Package.Ecosystem), nameIn(a.Package.Ecosystem, a.Package.Name)}] = true
	}
	ecosystems, wanted := map[string]bool{}, []key{}
	for k := range about {
		ecosystems[k.ecosystem] = true
		if d.wanted[k] {
			wanted = append(wanted, k)
		}
	}
	for name := range ecosystems {
		d.Ecosystems[name]++
	}
	if len(wanted) == 0 || o.Withdrawn != "" {
		return nil
	}
	v := &osvschema.Vulnerability{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, v); err != nil {
		return err
	}
	v.Details, v.References, v.Credits = "", nil, nil
	for _, k := range wanted {
		if d.kept[k] == nil {
			d.kept[k] = map[string]*osvschema.Vulnerability{}
		}
		// A folder may have a record twice: by itself, and in an archive.
		known := d.kept[k][v.GetId()]
		if known == nil || known.GetModified().AsTime().Before(v.GetModified().AsTime()) {
			d.kept[k][v.GetId()] = v
		}
	}
	return nil
}

// nameIn is a package's name in the spelling of TargetOf.
func nameIn(ecosystem, name string) string {
	if base(ecosystem) == ecosystemPyPI {
		return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(name))
	}
	return name
}

// Vulnerability is one that a package has.
type Vulnerability struct {
	// ID is the CVE where there is one, and Aliases are the other names of it, sorted.
	ID       string   `json:"id"`
	Aliases  []string `json:"aliases,omitempty"`
	Severity Severity `json:"severity"`
	// Score is that of CVSS; 0 where there is none.
	Score   float64 `json:"score,omitempty"`
	Summary string  `json:"summary,omitempty"`
	// Fixed is the version in which it is corrected; empty where none is known.
	Fixed string `json:"fixed,omitempty"`
}

// Find returns the vulnerabilities of a package, the worst first. What several records say of the same vulnerability
// is one. An error wraps ErrNotCompared; the vulnerabilities are those that were found all the same.
func (d *Database) Find(t Target) ([]Vulnerability, error) {
	if d.Ecosystems[base(t.Ecosystem)] == 0 {
		return nil, fmt.Errorf("%w: the database has no records of ecosystem %s", ErrNotCompared, base(t.Ecosystem))
	}
	var found []Vulnerability
	var failed error
	for _, v := range d.kept[t.key()] {
		for _, a := range v.GetAffected() {
			in := a.GetPackage()
			if nameIn(in.GetEcosystem(), in.GetName()) != t.Name || !t.covers(in.GetEcosystem()) {
				continue
			}
			judged, err := evaluate(a, t)
			if err != nil {
				failed = fmt.Errorf("%w: %s: %w", ErrNotCompared, v.GetId(), err)
			}
			if judged.affected {
				found = append(found, describe(v, a, judged.fixed))
			}
		}
	}
	return merge(found), failed
}

func describe(v *osvschema.Vulnerability, a *osvschema.Affected, fixed string) Vulnerability {
	out := Vulnerability{ID: v.GetId(), Aliases: slices.Clone(v.GetAliases()), Summary: v.GetSummary(), Fixed: fixed}
	// A record of a distribution names what it is about as upstream; an advisory about several keeps its own name.
	if len(v.GetUpstream()) == 1 {
		out.Aliases = append(out.Aliases, v.GetUpstream()[0])
	}
	out.Severity, out.Score = rate(v, a)
	return out
}

// merge joins what shares a name.
func merge(found []Vulnerability) []Vulnerability {
	slices.SortFunc(found, func(a, b Vulnerability) int { return cmp.Compare(a.ID, b.ID) })
	var out []Vulnerability
	for _, v := range found {
		one := v
		one.Aliases = append(one.Aliases, one.ID)
		out = slices.DeleteFunc(out, func(o Vulnerability) bool {
			if !slices.ContainsFunc(o.Aliases, func(name string) bool { return slices.Contains(one.Aliases, name) }) {
				return false
			}
			one = join(o, one)
			return true
		})
		out = append(out, one)
	}
	for i := range out {
		out[i].name()
	}
	slices.SortFunc(out, func(a, b Vulnerability) int {
		return cmp.Or(a.Severity.Compare(b.Severity), cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func join(a, b Vulnerability) Vulnerability {
	if b.Severity.Compare(a.Severity) < 0 || b.Severity == a.Severity && b.Score > a.Score {
		a.Severity, a.Score = b.Severity, b.Score
	}
	a.Summary, a.Fixed = cmp.Or(a.Summary, b.Summary), cmp.Or(a.Fixed, b.Fixed)
	a.Aliases = append(a.Aliases, b.Aliases...)
	return a
}

// name chooses the id among all names.
func (v *Vulnerability) name() {
	slices.Sort(v.Aliases)
	v.Aliases = slices.Compact(v.Aliases)
	for _, prefix := range []string{"CVE-", "GHSA-"} {
		i := slices.IndexFunc(v.Aliases, func(name string) bool { return strings.HasPrefix(name, prefix) })
		if i >= 0 {
			v.ID = v.Aliases[i]
			break
		}
	}
	v.Aliases = slices.DeleteFunc(v.Aliases, func(name string) bool { return name == v.ID })
	if len(v.Aliases) == 0 {
		v.Aliases = nil
	}
}
