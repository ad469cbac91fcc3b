// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan

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
	// maxRecord bounds one record, in bytes: the largest records of osv.dev have some megabytes.
	maxRecord = 32 << 20
	// maxUnread bounds how many unreadable files are named.
	maxUnread = 10
)

// ErrNoDatabase means that a folder contains no record of OSV.
var ErrNoDatabase = errors.New("no vulnerability database")

// Database contains the kept records of a vulnerability database.
type Database struct {
	// Records is the number of records in the database, and Ecosystems the number of records by ecosystem
	// (without releases).
	Records    int
	Ecosystems map[string]int
	// Unread are the first files that could not be read, with the reason; UnreadCount is the number of all
	// such files.
	Unread      []string
	UnreadCount int

	isWanted map[key]bool
	// kept are the records about a package, by the id of the record.
	kept map[key]map[string]*osvschema.Vulnerability
}

// key identifies a package in all releases of its ecosystem.
type key struct{ ecosystem, name string }

func (t Target) key() key { return key{trimRelease(t.Ecosystem), t.Name} }

// ReadDatabase reads a database, and keeps only the records about the wanted packages. Errors wrap ErrNoDatabase, or
// are errors of the files. A single file that is not a record is not an error; see Database.Unread.
func ReadDatabase(files fs.FS, wanted []Target) (*Database, error) {
	d := &Database{Ecosystems: map[string]int{}, isWanted: map[key]bool{},
		kept: map[key]map[string]*osvschema.Vulnerability{}}
	for _, t := range wanted {
		d.isWanted[t.key()] = true
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

func (d *Database) recordUnread(name string, err error) {
	d.UnreadCount++
	if len(d.Unread) < maxUnread {
		d.Unread = append(d.Unread, fmt.Sprintf("%s: %v", name, err))
	}
}

// readFile reads the record in a file.
func (d *Database) readFile(files fs.FS, name string) error {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	d.readRecord(name, f)
	return nil
}

// readArchive reads the records in a zip archive. An archive or a member that cannot be read is counted as unread.
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
	readerAt, ok := f.(io.ReaderAt)
	if !ok {
		return fmt.Errorf("%s does not support random access", name)
	}
	archive, err := zip.NewReader(readerAt, info.Size())
	if err != nil {
		d.recordUnread(name, err)
		return nil
	}
	for _, member := range archive.File {
		if path.Ext(member.Name) != ".json" {
			continue
		}
		content, err := member.Open()
		if err != nil {
			d.recordUnread(name+"/"+member.Name, err)
			continue
		}
		d.readRecord(name+"/"+member.Name, content)
		_ = content.Close()
	}
	return nil
}

// outline has the fields that decide whether a record is wanted. Decoding them takes a fraction of the time of a
// whole record.
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

// readRecord reads a record and adds it to the database. A file that is not a record is counted as unread.
func (d *Database) readRecord(name string, content io.Reader) {
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
		err = d.addRecord(o, text)
	}
	if err != nil {
		d.recordUnread(name, err)
	}
}

// addRecord counts a record, and keeps it if it is about a wanted package and was not withdrawn. It returns an error if
// such a record cannot be decoded.
func (d *Database) addRecord(o outline, text []byte) error {
	d.Records++
	affected := map[key]bool{}
	for _, a := range o.Affected {
		affected[key{trimRelease(a.Package.Ecosystem), normalizeName(a.Package.Ecosystem, a.Package.Name)}] = true
	}
	ecosystems, wanted := map[string]bool{}, []key{}
	for k := range affected {
		ecosystems[k.ecosystem] = true
		if d.isWanted[k] {
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
	v.Details, v.References, v.Credits = "", nil, nil // they are large and not reported
	for _, k := range wanted {
		if d.kept[k] == nil {
			d.kept[k] = map[string]*osvschema.Vulnerability{}
		}
		// A folder can contain a record twice: as a file, and in an archive.
		existing := d.kept[k][v.GetId()]
		if existing == nil || existing.GetModified().AsTime().Before(v.GetModified().AsTime()) {
			d.kept[k][v.GetId()] = v
		}
	}
	return nil
}

// normalizeName returns the name of a package in the spelling of ParseTarget.
func normalizeName(ecosystem, name string) string {
	if trimRelease(ecosystem) == ecosystemPyPI {
		return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(name))
	}
	return name
}

// Vulnerability is a vulnerability of a package.
type Vulnerability struct {
	// ID is the CVE if there is one, and Aliases are its other names, sorted.
	ID       string   `json:"id"`
	Aliases  []string `json:"aliases,omitempty"`
	Severity Severity `json:"severity"`
	// Score is the CVSS score; 0 if there is none.
	Score   float64 `json:"score,omitempty"`
	Summary string  `json:"summary,omitempty"`
	// Fixed is the version that fixes the vulnerability; empty if none is known.
	Fixed string `json:"fixed,omitempty"`
}

// Find returns the vulnerabilities of a package, the worst first, and merges records about the same vulnerability. The
// error wraps ErrNotCompared if the database has no records of the ecosystem, or if a record cannot be evaluated. In
// the latter case the vulnerabilities of the other records are returned too.
func (d *Database) Find(t Target) ([]Vulnerability, error) {
	if d.Ecosystems[trimRelease(t.Ecosystem)] == 0 {
		return nil, fmt.Errorf("%w: the database has no records of ecosystem %s", ErrNotCompared,
			trimRelease(t.Ecosystem))
	}
	var found []Vulnerability
	var problem error
	for _, v := range d.kept[t.key()] {
		for _, a := range v.GetAffected() {
			pkg := a.GetPackage()
			if normalizeName(pkg.GetEcosystem(), pkg.GetName()) != t.Name || !t.isCoveredBy(pkg.GetEcosystem()) {
				continue
			}
			result, err := evaluate(a, t)
			if err != nil {
				problem = fmt.Errorf("%w: %s: %w", ErrNotCompared, v.GetId(), err)
			}
			if result.affected {
				found = append(found, newVulnerability(v, a, result.fixed))
			}
		}
	}
	return mergeVulnerabilities(found), problem
}

// newVulnerability returns the vulnerability of a record for one of its affected packages.
func newVulnerability(v *osvschema.Vulnerability, a *osvschema.Affected, fixed string) Vulnerability {
	out := Vulnerability{ID: v.GetId(), Aliases: slices.Clone(v.GetAliases()), Summary: v.GetSummary(), Fixed: fixed}
	// A record of a distribution names the original vulnerability as upstream. An advisory about several
	// vulnerabilities keeps its own name.
	if len(v.GetUpstream()) == 1 {
		out.Aliases = append(out.Aliases, v.GetUpstream()[0])
	}
	out.Severity, out.Score = rateRecord(v, a)
	return out
}

// mergeVulnerabilities merges vulnerabilities that share a name, and sorts them, the worst first.
func mergeVulnerabilities(found []Vulnerability) []Vulnerability {
	slices.SortFunc(found, func(a, b Vulnerability) int { return cmp.Compare(a.ID, b.ID) })
	var out []Vulnerability
	for _, v := range found {
		merged := v
		// All names are aliases until chooseID.
		merged.Aliases = append(merged.Aliases, merged.ID)
		out = slices.DeleteFunc(out, func(o Vulnerability) bool {
			isShared := func(name string) bool { return slices.Contains(merged.Aliases, name) }
			if !slices.ContainsFunc(o.Aliases, isShared) {
				return false
			}
			merged = mergePair(o, merged)
			return true
		})
		out = append(out, merged)
	}
	for i := range out {
		out[i].chooseID()
	}
	slices.SortFunc(out, func(a, b Vulnerability) int {
		return cmp.Or(a.Severity.Compare(b.Severity), cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// mergePair returns the vulnerability with the names of both and the worse rating. The summary and the fix are those of
// a if a has them.
func mergePair(a, b Vulnerability) Vulnerability {
	isWorse := b.Severity.Compare(a.Severity) < 0
	isHigher := b.Severity == a.Severity && b.Score > a.Score
	if isWorse || isHigher {
		a.Severity, a.Score = b.Severity, b.Score
	}
	a.Summary, a.Fixed = cmp.Or(a.Summary, b.Summary), cmp.Or(a.Fixed, b.Fixed)
	a.Aliases = append(a.Aliases, b.Aliases...)
	return a
}

// chooseID sets the ID to the first CVE among all names, or else to the first GHSA, or else leaves it unchanged. The
// other names become the aliases.
func (v *Vulnerability) chooseID() {
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
