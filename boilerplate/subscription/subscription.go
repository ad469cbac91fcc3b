// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package subscription reads and writes the files by which a repository subscribes to conventions: .boilerplate.yaml,
// which people write, and .boilerplate/lock.yaml, which says what was rendered last. It is pure: texts in, texts out.
package subscription

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// Paths in a repository.
const (
	File     = ".boilerplate.yaml"
	Folder   = ".boilerplate"
	LockFile = Folder + "/lock.yaml"
	// BaseFolder has the texts as they were rendered last, of what is merged three ways.
	BaseFolder = Folder + "/base"
)

// Sources of conventions that are no folders: those of this program, and the start of those in a registry.
const (
	Builtin = "builtin"
	OCI     = "oci://"
)

// ErrInvalid is wrapped by all errors of this package.
var ErrInvalid = errors.New("invalid subscription")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// Header begins each file of this format.
type Header struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
}

func (h *Header) header() *Header { return h }

// Subscription is the content of .boilerplate.yaml.
type Subscription struct {
	Header      `yaml:",inline"`
	Conventions []Use `yaml:"conventions"`
	// Keys are paths of public keys in the repository. Where there are any, conventions in registries have to be signed
	// by one of them.
	Keys       []string       `yaml:"keys,omitempty"`
	Parameters map[string]any `yaml:"parameters,omitempty"`
	Exceptions []Exception    `yaml:"exceptions,omitempty"`
}

// Use is a convention that a repository subscribes to.
type Use struct {
	Name string `json:"name" yaml:"name"`
	// Source is builtin, oci://REFERENCE, or a folder relative to the repository.
	Source  string `json:"source"            yaml:"source"`
	Version string `json:"version,omitempty" yaml:"version,omitempty"`
	// Digest is that of the manifest in the registry, or of the convention's content.
	Digest string `json:"digest,omitempty" yaml:"digest,omitempty"`
}

// Exception keeps the repository's own version of a file, or of a region of a shared file, until a day.
type Exception struct {
	Path    string `json:"path"             yaml:"path"`
	Region  string `json:"region,omitempty" yaml:"region,omitempty"`
	Reason  string `json:"reason"           yaml:"reason"`
	Expires string `json:"expires"          yaml:"expires"`
	Line    int    `json:"-"                yaml:"-"` // where it is in the file
}

// Expired reports whether the exception no longer holds: it does until the end of its last day in UTC.
func (e Exception) Expired(now time.Time) bool { return e.DaysLeft(now) < 0 }

// DaysLeft returns how many days the exception still holds after today; below zero once it has expired.
func (e Exception) DaysLeft(now time.Time) int {
	last, err := time.Parse(time.DateOnly, e.Expires)
	if err != nil {
		return -1
	}
	const day = 24 * time.Hour
	return int(last.Sub(now.UTC().Truncate(day)) / day)
}

// IsExcepted reports whether one of the exceptions holds for a file, or, with a region, for that of the file.
func IsExcepted(exceptions []Exception, path, region string, now time.Time) bool {
	return slices.ContainsFunc(exceptions, func(e Exception) bool {
		return e.Path == path && (e.Region == "" || e.Region == region) && !e.Expired(now)
	})
}

// Parse reads .boilerplate.yaml. The error wraps ErrInvalid, and names the line.
func Parse(text []byte) (*Subscription, error) {
	s := &Subscription{Parameters: map[string]any{}}
	if err := Decode(text, "Subscription", s); err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, invalid("%w", err)
	}
	for i := range s.Conventions {
		if err := s.checkUse(i); err != nil {
			return nil, fmt.Errorf("line %d: %w", line(&document, "conventions", i), err)
		}
	}
	for i := range s.Exceptions {
		e := &s.Exceptions[i]
		e.Line = line(&document, "exceptions", i)
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", e.Line, err)
		}
	}
	for _, key := range s.Keys {
		if err := convention.CheckPath(key); err != nil {
			return nil, invalid("keys: %w", err)
		}
	}
	return s, nil
}

// Decode reads a document of a kind of this format. It refuses what is dangerous, and fields that into has not. The
// error wraps ErrInvalid.
func Decode(text []byte, kind string, into interface{ header() *Header }) error {
	if err := untrusted.CheckYAML(text); err != nil {
		return invalid("%w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		return invalid("%s", strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n  ", " "), "yaml: "))
	}
	if is := *into.header(); is != (Header{convention.APIVersion, kind}) {
		return invalid("it is of %q %q, and has to be of %s %s", is.APIVersion, is.Kind, convention.APIVersion, kind)
	}
	return nil
}

// encode writes a document of this format.
func encode(document any) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2) // as people write YAML
	if err := errors.Join(encoder.Encode(document), encoder.Close()); err != nil {
		return nil, invalid("encode: %w", err)
	}
	return out.Bytes(), nil
}

// line is that of an item of a list; 0 where it is not written there, such as behind an alias.
func line(document *yaml.Node, name string, i int) int {
	if list := child(document.Content[0], name); list != nil && i < len(list.Content) {
		return list.Content[i].Line
	}
	return 0
}

// child is the value of a field of a mapping; nil if there is none.
func child(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func (s *Subscription) checkUse(i int) error {
	u := s.Conventions[i]
	switch {
	case !convention.IsName(u.Name):
		return invalid("the name %q of a convention is not one of small letters, digits and dashes", u.Name)
	case slices.ContainsFunc(s.Conventions[:i], func(o Use) bool { return o.Name == u.Name }):
		return invalid("convention %s is there twice", u.Name)
	case u.Source == "":
		return invalid("convention %s has no source: set %s, a folder, or %sREGISTRY/PATH:TAG", u.Name, Builtin, OCI)
	case u.Digest != "" && !strings.HasPrefix(u.Digest, "sha256:"):
		return invalid("convention %s: the digest %q does not begin with sha256:", u.Name, u.Digest)
	}
	return nil
}

func (e Exception) check() error {
	if err := convention.CheckPath(e.Path); err != nil {
		return invalid("exception: %w", err)
	}
	if strings.TrimSpace(e.Reason) == "" {
		return invalid("the exception for %s has no reason", e.Path)
	}
	if _, err := time.Parse(time.DateOnly, e.Expires); err != nil {
		return invalid("the exception for %s: expires %q is no date such as 2027-01-31", e.Path, e.Expires)
	}
	return nil
}

// Use returns the entry of a convention, or nil.
func (s *Subscription) Use(name string) *Use {
	return find(s.Conventions, func(u Use) bool { return u.Name == name })
}

func find[T any](list []T, match func(T) bool) *T {
	if i := slices.IndexFunc(list, match); i >= 0 {
		return &list[i]
	}
	return nil
}

// Write returns the text of a subscription. What the previous text has in comments, order and style stays.
func (s *Subscription) Write(previous []byte) ([]byte, error) {
	s.Header = Header{convention.APIVersion, "Subscription"}
	var wanted, old yaml.Node
	if err := wanted.Encode(s); err != nil {
		return nil, invalid("encode: %w", err)
	}
	if err := yaml.Unmarshal(previous, &old); err != nil {
		return nil, invalid("%w", err)
	}
	if len(old.Content) == 0 {
		return encode(&wanted)
	}
	old.Content[0] = merge(old.Content[0], &wanted)
	return encode(&old)
}

// merge returns the wanted node with comments, order and style of the old one, which may be nil.
func merge(old, wanted *yaml.Node) *yaml.Node {
	if old == nil || old.Kind != wanted.Kind {
		return wanted
	}
	out := *old
	out.Content = nil
	switch wanted.Kind {
	case yaml.ScalarNode:
		if old.Value != wanted.Value {
			out.Value, out.Tag, out.Style = wanted.Value, wanted.Tag, wanted.Style
		}
	case yaml.SequenceNode:
		for i, item := range wanted.Content {
			out.Content = append(out.Content, merge(sameItem(old, item, i), item))
		}
	case yaml.MappingNode:
		out.Content = mergeFields(old, wanted)
	}
	return &out
}

// mergeFields keeps the order of the old mapping.
func mergeFields(old, wanted *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for i := 0; i+1 < len(old.Content); i += 2 {
		if value := child(wanted, old.Content[i].Value); value != nil {
			out = append(out, old.Content[i], merge(old.Content[i+1], value))
		}
	}
	for i := 0; i+1 < len(wanted.Content); i += 2 {
		if child(old, wanted.Content[i].Value) == nil {
			out = append(out, wanted.Content[i], wanted.Content[i+1])
		}
	}
	return out
}

// sameItem is the item of a list that another one is the next version of: that with its name, or that at its place.
func sameItem(old, item *yaml.Node, i int) *yaml.Node {
	name := child(item, "name")
	for j, o := range old.Content {
		other := child(o, "name")
		if name == nil && i == j || name != nil && other != nil && name.Value == other.Value {
			return o
		}
	}
	return nil
}
