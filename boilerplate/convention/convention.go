// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package convention reads conventions, which are versioned folders of files with parameters, and renders them into the
// files of a repository. Its inputs are the files of a convention and the values of parameters. It has no side effects:
// it must not run programs or read the clock or the environment, and the same inputs give the same bytes.
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

	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// Limits of a convention and of its rendered files.
const (
	MaxFileBytes = 1 << 20
	MaxBytes     = 16 << 20
	MaxFiles     = 2000
)

// APIVersion is the apiVersion of all files of this format.
const APIVersion = "boilerplate.bellwether.dev/v1alpha1"

// Names of files in the folder of a convention.
const (
	ManifestName   = "convention.yaml"
	MigrationsName = "migrations.yaml"
	ReadmeName     = "README.md"
)

// ErrInvalid is wrapped by all errors about the content of a convention and about values of parameters.
var ErrInvalid = errors.New("invalid convention")

// Kind says who changes a rendered file: the convention or the repository.
type Kind string

// The kinds of files.
const (
	Owned  Kind = "owned"  // rewritten by each update; must not be edited by hand
	Shared Kind = "shared" // belongs to the repository, except for marked regions
	Merged Kind = "merged" // changed by both sides; updates are merged three ways
	Once   Kind = "once"   // written if it is missing; belongs to the repository afterwards
)

// Convention is a parsed convention: the fields of convention.yaml, and the other files of the folder.
type Convention struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
	// Requires are names of conventions that the repository must also subscribe to.
	Requires   []string    `json:"requires,omitempty"`
	Parameters []Parameter `json:"parameters,omitempty"`
	Files      []File      `json:"files"`
	// Replaces are paths that this convention takes over from earlier conventions, as CONVENTION/PATH.
	Replaces []string `json:"replaces,omitempty"`

	Migrations []Migration `json:"-"` // from migrations.yaml
	Digest     string      `json:"-"` // the SHA-256 of the names and contents of all files
	contents   map[string][]byte
}

// File is a file that a convention brings into a repository.
type File struct {
	Path     string `json:"path"`     // in the repository
	Template string `json:"template"` // in the convention; rendered if it ends with .tmpl, and copied otherwise
	Kind     Kind   `json:"kind"`
	Mode     string `json:"mode,omitempty"` // 0644, the default, or 0755
	When     string `json:"when,omitempty"` // a parameter; the file is rendered only if its value is true or not empty
}

// Migration describes the changes for repositories in a version of a convention.
type Migration struct {
	To    string   `json:"to"`
	Notes []string `json:"notes,omitempty"` // texts for users about the changes; the commit message contains them
	// Rename gives files new paths, and keeps the edits of users.
	Rename map[string]string `json:"rename,omitempty"`
	// RenameParameters gives parameters new names.
	RenameParameters map[string]string `json:"renameParameters,omitempty"`
	// Set gives values to parameters that the repository has no value for, such as the old default if the
	// default changed.
	Set map[string]any `json:"set,omitempty"`
}

// newInvalidError returns an error about the content of a convention.
func newInvalidError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// Load reads a convention. Errors wrap ErrInvalid, or are errors of the file system.
func Load(files fs.FS) (*Convention, error) {
	contents, err := readFiles(files)
	if err != nil {
		return nil, err
	}
	return FromFiles(contents)
}

// FromFiles parses a convention from the contents of its files. Errors wrap ErrInvalid.
func FromFiles(contents map[string][]byte) (*Convention, error) {
	if err := checkContents(contents); err != nil {
		return nil, err
	}
	c := &Convention{contents: contents, Digest: computeDigest(contents)}
	if err := untrusted.UnmarshalStrict(contents[ManifestName], c); err != nil {
		return nil, newInvalidError("%s: %w", ManifestName, err)
	}
	if text, ok := contents[MigrationsName]; ok {
		var list struct {
			Migrations []Migration `json:"migrations"`
		}
		if err := untrusted.UnmarshalStrict(text, &list); err != nil {
			return nil, newInvalidError("%s: %w", MigrationsName, err)
		}
		c.Migrations = list.Migrations
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("convention %s: %w", c.Name, err)
	}
	return c, nil
}

// readFiles reads all files of a convention. It returns an error if they exceed the limits.
func readFiles(files fs.FS) (map[string][]byte, error) {
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
			return newInvalidError("%s is a link or a device, and only files are read", name)
		}
		if total += info.Size(); total > MaxBytes || len(contents) == MaxFiles {
			return newInvalidError("it has more than %d files or %d bytes", MaxFiles, MaxBytes)
		}
		contents[name], err = fs.ReadFile(files, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read convention: %w", err)
	}
	return contents, nil
}

// checkContents checks the sizes and names of the files, and that the required files exist.
func checkContents(contents map[string][]byte) error {
	total := 0
	for name, text := range contents {
		total += len(text)
		if len(text) > MaxFileBytes {
			return newInvalidError("%s has %d bytes, and may have at most %d", name, len(text), MaxFileBytes)
		}
		if strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
			return newInvalidError("the name of %s begins with a dot: name it without, and set the path in %s", name,
				ManifestName)
		}
	}
	if total > MaxBytes || len(contents) > MaxFiles {
		return newInvalidError("it has %d files and %d bytes, and may have at most %d and %d", len(contents), total,
			MaxFiles, MaxBytes)
	}
	for _, name := range []string{ManifestName, ReadmeName} {
		if contents[name] == nil {
			return newInvalidError("it has no %s", name)
		}
	}
	return nil
}

// computeDigest returns the SHA-256 of the names and contents of all files.
func computeDigest(contents map[string][]byte) string {
	sum := sha256.New()
	for _, name := range sortKeys(contents) {
		fmt.Fprintf(sum, "%x  %q\n", sha256.Sum256(contents[name]), name)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// IsName reports whether a text can be the name of a convention.
func IsName(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }

// validate checks all fields of the convention.
func (c *Convention) validate() error {
	if c.APIVersion != APIVersion || c.Kind != "Convention" {
		return newInvalidError("%s is of %s %s, and must be of %s Convention", ManifestName, c.APIVersion, c.Kind,
			APIVersion)
	}
	if !IsName(c.Name) {
		return newInvalidError("the name %q may contain only small letters, digits and dashes", c.Name)
	}
	if _, err := semver.Parse(c.Version); err != nil {
		return newInvalidError("the version %q does not have the form 1.2.3", c.Version)
	}
	if c.Description == "" || strings.Contains(c.Description, "\n") {
		return newInvalidError("the description is not one line")
	}
	for _, p := range c.Parameters {
		if err := p.validate(); err != nil {
			return err
		}
	}
	if err := c.checkFiles(); err != nil {
		return err
	}
	for _, replaced := range c.Replaces {
		from, file, ok := strings.Cut(replaced, "/")
		if !ok || !IsName(from) || CheckPath(file) != nil {
			return newInvalidError("replaces: %q is not of the form CONVENTION/PATH", replaced)
		}
	}
	return c.checkMigrations()
}

// checkFiles checks the files that the convention brings. Shared and merged files must be text, because only text can
// be merged.
func (c *Convention) checkFiles() error {
	isListed := map[string]bool{}
	for _, f := range c.Files {
		if err := CheckPath(f.Path); err != nil {
			return err
		}
		text, ok := c.contents[f.Template]
		isText := utf8.Valid(text) && !slices.Contains(text, 0)
		switch {
		case isListed[f.Path]:
			return newInvalidError("the path %s is there twice", f.Path)
		case !ok:
			return newInvalidError("%s: there is no file %q", f.Path, f.Template)
		case !slices.Contains([]Kind{Owned, Shared, Merged, Once}, f.Kind):
			return newInvalidError("%s: the kind %q is not owned, shared, merged or once", f.Path, f.Kind)
		case !slices.Contains([]string{"", "0644", "0755"}, f.Mode):
			return newInvalidError("%s: the mode %q is not 0644 or 0755", f.Path, f.Mode)
		case f.When != "" && !slices.ContainsFunc(c.Parameters, func(p Parameter) bool { return p.Name == f.When }):
			return newInvalidError("%s: when: there is no parameter %q", f.Path, f.When)
		case f.Kind != Owned && f.Kind != Once && !isText:
			return newInvalidError("%s is not text, and cannot be %s", f.Path, f.Kind)
		}
		isListed[f.Path] = true
	}
	return nil
}

// checkMigrations checks that the versions of the migrations increase up to the version of the convention, and that the
// paths of renamed files are valid.
func (c *Convention) checkMigrations() error {
	var previous semver.Version
	own := semver.MustParse(c.Version)
	for _, m := range c.Migrations {
		to, err := semver.Parse(m.To)
		if err != nil || !to.GT(previous) || to.GT(own) {
			return newInvalidError("%s: %q is not a version above the one before and at most %s", MigrationsName, m.To,
				c.Version)
		}
		previous = to
		for before, after := range m.Rename {
			if err := errors.Join(CheckPath(before), CheckPath(after)); err != nil {
				return fmt.Errorf("%s: %w", MigrationsName, err)
			}
		}
	}
	return nil
}

// MigrationsSince returns the migrations to versions above the given version, the oldest first; nil if the version is
// invalid.
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

var pathPattern = regexp.MustCompile(`^[A-Za-z0-9._@+/-]{1,255}$`)

// CheckPath returns an error for a path in a repository that is not safe or not portable. A path must be clean and
// relative, must not be in .git or be a file of this program, and must consist of letters, digits and ._@+-/. Errors
// wrap ErrInvalid.
func CheckPath(name string) error {
	if !pathPattern.MatchString(name) || !fs.ValidPath(name) || name == "." {
		return newInvalidError("the path %q is not clean and relative, of letters, digits and ._@+-/", name)
	}
	for i, part := range strings.Split(strings.ToLower(name), "/") {
		isReserved := part == ".git" || i == 0 && (part == ".boilerplate" || part == ".boilerplate.yaml")
		if isReserved || strings.HasSuffix(part, ".") {
			return newInvalidError("the path %q is not one that a convention may write", name)
		}
	}
	return nil
}
