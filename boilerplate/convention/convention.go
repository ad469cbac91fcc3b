// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package convention reads conventions, which are versioned folders of files with parameters, and renders them into
// the files of a repository. Its inputs are the files of a convention and the values of parameters. It is pure: it
// runs nothing, knows no clock and no environment, and the same inputs give the same bytes.
package convention

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bellwether-dev/bellwether/untrusted"
)

// Limits of a convention, and of what is rendered from it.
const (
	MaxFileBytes = 1 << 20
	MaxBytes     = 16 << 20
	MaxFiles     = 2000
)

// APIVersion is that of all files of this format.
const APIVersion = "boilerplate.bellwether.dev/v1alpha1"

// Names of files in the folder of a convention.
const (
	ManifestName   = "convention.yaml"
	MigrationsName = "migrations.yaml"
	ReadmeName     = "README.md"
)

// ErrInvalid is wrapped by all errors about the content of a convention and about values of parameters.
var ErrInvalid = errors.New("invalid convention")

// Kind says whose a rendered file is.
type Kind string

// The kinds of files.
const (
	Owned  Kind = "owned"  // rewritten by each update, and never edited by hand
	Shared Kind = "shared" // the repository's, except for marked regions
	Merged Kind = "merged" // of both sides; updates are merged three ways
	Once   Kind = "once"   // written where it is missing, and the repository's from then on
)

// Convention is a convention as it was read: the fields of convention.yaml, and what is beside it.
type Convention struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
	// Requires are names of conventions that have to be subscribed to as well.
	Requires   []string    `json:"requires,omitempty"`
	Parameters []Parameter `json:"parameters,omitempty"`
	Files      []File      `json:"files"`
	// Replaces are paths that this convention takes over from earlier ones, as CONVENTION/PATH.
	Replaces []string `json:"replaces,omitempty"`

	Migrations []Migration `json:"-"` // those of migrations.yaml
	Digest     string      `json:"-"` // the SHA-256 of the names and contents of all files
	contents   map[string][]byte
}

// File is a file that a convention brings.
type File struct {
	Path     string `json:"path"`     // in the repository
	Template string `json:"template"` // in the convention; a template if it ends with .tmpl, and copied otherwise
	Kind     Kind   `json:"kind"`
	Mode     string `json:"mode,omitempty"` // 0644, the default, or 0755
	When     string `json:"when,omitempty"` // a parameter: the file is rendered only where that is true or not empty
}

// Migration says what changed for repositories in a version of a convention.
type Migration struct {
	To    string   `json:"to"`
	Notes []string `json:"notes,omitempty"` // tell users what changed; they are in the message of the commit
	// Rename gives files new paths, and keeps what users wrote in them.
	Rename map[string]string `json:"rename,omitempty"`
	// RenameParameters gives parameters new names.
	RenameParameters map[string]string `json:"renameParameters,omitempty"`
	// Set gives values to parameters that the repository has none for, such as the old default of one that changed.
	Set map[string]any `json:"set,omitempty"`
}

// invalid is an error about the content of a convention.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// Load reads a convention. Errors wrap ErrInvalid, or are those of the file system.
func Load(files fs.FS) (*Convention, error) {
	contents, err := readAll(files)
	if err != nil {
		return nil, err
	}
	return FromFiles(contents)
}

// FromFiles makes a convention of the contents of its files. The error wraps ErrInvalid.
func FromFiles(contents map[string][]byte) (*Convention, error) {
	if err := checkContents(contents); err != nil {
		return nil, err
	}
	c := &Convention{contents: contents, Digest: digest(contents)}
	if err := untrusted.UnmarshalStrict(contents[ManifestName], c); err != nil {
		return nil, invalid("%s: %w", ManifestName, err)
	}
	if text, ok := contents[MigrationsName]; ok {
		var list struct {
			Migrations []Migration `json:"migrations"`
		}
		if err := untrusted.UnmarshalStrict(text, &list); err != nil {
			return nil, invalid("%s: %w", MigrationsName, err)
		}
		c.Migrations = list.Migrations
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("convention %s: %w", c.Name, err)
	}
	return c, nil
}

// readAll reads all files of a convention, within its limits.
func readAll(files fs.FS) (map[string][]byte, error) {
	contents, total := map[string][]byte{}, int64(0)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return invalid("%s is a link or a device, and only files are read", name)
		}
		if total += info.Size(); total > MaxBytes || len(contents) == MaxFiles {
			return invalid("it has more than %d files or %d bytes", MaxFiles, MaxBytes)
		}
		contents[name], err = fs.ReadFile(files, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read convention: %w", err)
	}
	return contents, nil
}

// checkContents holds the limits and the names of a convention's files.
func checkContents(contents map[string][]byte) error {
	total := 0
	for name, text := range contents {
		total += len(text)
		if len(text) > MaxFileBytes {
			return invalid("%s has %d bytes, and may have %d", name, len(text), MaxFileBytes)
		}
		if strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
			return invalid("the name of %s begins with a dot: name it without, and set the path in %s", name,
				ManifestName)
		}
	}
	if total > MaxBytes || len(contents) > MaxFiles {
		return invalid("it has %d files and %d bytes, and may have %d and %d", len(contents), total, MaxFiles, MaxBytes)
	}
	for _, name := range []string{ManifestName, ReadmeName} {
		if contents[name] == nil {
			return invalid("it has no %s", name)
		}
	}
	return nil
}

// digest is the SHA-256 of names and contents.
func digest(contents map[string][]byte) string {
	sum := sha256.New()
	for _, name := range sortedKeys(contents) {
		fmt.Fprintf(sum, "%x  %q\n", sha256.Sum256(contents[name]), name)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// IsName reports whether a text can be the name of a convention.
func IsName(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }

func (c *Convention) check() error {
	if c.APIVersion != APIVersion || c.Kind != "Convention" {
		return invalid("%s is of %s %s, and has to be of %s Convention", ManifestName, c.APIVersion, c.Kind, APIVersion)
	}
	if !IsName(c.Name) {
		return invalid("the name %q is not one of small letters, digits and dashes", c.Name)
	}
	if _, err := semver.Parse(c.Version); err != nil {
		return invalid("the version %q is not one of the form 1.2.3", c.Version)
	}
	if c.Description == "" || strings.Contains(c.Description, "\n") {
		return invalid("the description is not one line")
	}
	for _, p := range c.Parameters {
		if err := p.check(); err != nil {
			return err
		}
	}
	if err := c.checkFiles(); err != nil {
		return err
	}
	for _, replaced := range c.Replaces {
		from, file, ok := strings.Cut(replaced, "/")
		if !ok || !IsName(from) || CheckPath(file) != nil {
			return invalid("replaces: %q is not of the form CONVENTION/PATH", replaced)
		}
	}
	return c.checkMigrations()
}

func (c *Convention) checkFiles() error {
	seen := map[string]bool{}
	for _, f := range c.Files {
		if err := CheckPath(f.Path); err != nil {
			return err
		}
		text, ok := c.contents[f.Template]
		switch {
		case seen[f.Path]:
			return invalid("the path %s is there twice", f.Path)
		case !ok:
			return invalid("%s: there is no file %q", f.Path, f.Template)
		case !slices.Contains([]Kind{Owned, Shared, Merged, Once}, f.Kind):
			return invalid("%s: the kind %q is not owned, shared, merged or once", f.Path, f.Kind)
		case !slices.Contains([]string{"", "0644", "0755"}, f.Mode):
			return invalid("%s: the mode %q is not 0644 or 0755", f.Path, f.Mode)
		case f.When != "" && !slices.ContainsFunc(c.Parameters, func(p Parameter) bool { return p.Name == f.When }):
			return invalid("%s: when: there is no parameter %q", f.Path, f.When)
		case f.Kind != Owned && f.Kind != Once && (!utf8.Valid(text) || slices.Contains(text, 0)):
			return invalid("%s is not text, and cannot be %s", f.Path, f.Kind)
		}
		seen[f.Path] = true
	}
	return nil
}

func (c *Convention) checkMigrations() error {
	var last semver.Version
	own := semver.MustParse(c.Version)
	for _, m := range c.Migrations {
		to, err := semver.Parse(m.To)
		if err != nil || !to.GT(last) || to.GT(own) {
			return invalid("%s: %q is not a version above the one before and at most %s", MigrationsName, m.To,
				c.Version)
		}
		last = to
		for before, after := range m.Rename {
			if err := errors.Join(CheckPath(before), CheckPath(after)); err != nil {
				return fmt.Errorf("%s: %w", MigrationsName, err)
			}
		}
	}
	return nil
}

// MigrationsSince returns the migrations above a version, the oldest first.
func (c *Convention) MigrationsSince(version string) []Migration {
	from, err := semver.Parse(version)
	if err != nil {
		return nil
	}
	var out []Migration
	for _, m := range c.Migrations {
		if semver.MustParse(m.To).GT(from) {
			out = append(out, m)
		}
	}
	return out
}

var pathForm = regexp.MustCompile(`^[A-Za-z0-9._@+/-]{1,255}$`)

// CheckPath refuses a path in a repository that is not safe or not the same everywhere: one that is not clean and
// relative, leads out of the repository, into .git or to the files of this program, or has other characters than
// letters, digits and ._@+-/. The error wraps ErrInvalid.
func CheckPath(name string) error {
	if !pathForm.MatchString(name) || !fs.ValidPath(name) || name == "." {
		return invalid("the path %q is not clean and relative, of letters, digits and ._@+-/", name)
	}
	for i, part := range strings.Split(strings.ToLower(name), "/") {
		reserved := part == ".git" || i == 0 && (part == ".boilerplate" || part == ".boilerplate.yaml")
		if reserved || strings.HasSuffix(part, ".") {
			return invalid("the path %q is not one that a convention may write", name)
		}
	}
	return nil
}
