// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package subscription parses and writes the files by which a repository subscribes to conventions: .boilerplate.yaml,
// which people write, and .boilerplate/lock.yaml, which describes the last rendering. It has no side effects: input and
// output are texts.
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
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// Paths in a repository.
const (
	File     = ".boilerplate.yaml"
	Folder   = ".boilerplate"
	LockFile = Folder + "/lock.yaml"
	// BaseFolder contains the last rendered texts of files and regions that are merged three ways.
	BaseFolder = Folder + "/base"
)

// Sources of conventions that are not folders: the source for conventions of this program, and the prefix
// for registries.
const (
	Builtin = "builtin"
	OCI     = "oci://"
)

// ErrInvalid is wrapped by all errors of this package.
var ErrInvalid = errors.New("invalid subscription")

// newInvalidError returns an error that wraps ErrInvalid.
func newInvalidError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// Header is the start of each file of this format.
type Header struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
}

// header returns the header, for Decode.
func (h *Header) header() *Header { return h }

// Subscription is the content of .boilerplate.yaml.
type Subscription struct {
	Header      `yaml:",inline"`
	Conventions []Use `yaml:"conventions"`
	// Keys are paths of public keys in the repository. If there are keys, conventions in registries must be signed by
	// one of them.
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
	// Digest is the digest of the manifest in the registry, or of the convention's content.
	Digest string `json:"digest,omitempty" yaml:"digest,omitempty"`
}

// Exception keeps the repository's own version of a file, or of a region of a shared file, until a certain day.
type Exception struct {
	Path    string `json:"path"             yaml:"path"`
	Region  string `json:"region,omitempty" yaml:"region,omitempty"`
	Reason  string `json:"reason"           yaml:"reason"`
	Expires string `json:"expires"          yaml:"expires"`
	Line    int    `json:"-"                yaml:"-"` // the line in the file
}

// IsExpired reports whether the exception has expired. It is valid until the end of its last day in UTC.
func (e Exception) IsExpired(now time.Time) bool { return e.DaysLeft(now) < 0 }

// DaysLeft returns the number of days after today on which the exception is still valid; negative if it has expired.
func (e Exception) DaysLeft(now time.Time) int {
	lastDay, err := time.Parse(time.DateOnly, e.Expires)
	if err != nil {
		return -1
	}
	const day = 24 * time.Hour
	return int(lastDay.Sub(now.UTC().Truncate(day)) / day)
}

// IsExcepted reports whether a valid exception exists for a file, or for a region of the file if region is not empty.
func IsExcepted(exceptions []Exception, path, region string, now time.Time) bool {
	return slices.ContainsFunc(exceptions, func(e Exception) bool {
		return e.Path == path && (e.Region == "" || e.Region == region) && !e.IsExpired(now)
	})
}

// Parse parses .boilerplate.yaml. Errors wrap ErrInvalid, and most of them name the line.
func Parse(text []byte) (*Subscription, error) {
	s := &Subscription{Parameters: map[string]any{}}
	if err := Decode(text, "Subscription", s); err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, newInvalidError("%w", err)
	}
	for i := range s.Conventions {
		if err := s.checkUse(i); err != nil {
			return nil, fmt.Errorf("line %d: %w", findLine(&document, "conventions", i), err)
		}
	}
	for i := range s.Exceptions {
		e := &s.Exceptions[i]
		e.Line = findLine(&document, "exceptions", i)
		if err := e.validate(); err != nil {
			return nil, fmt.Errorf("line %d: %w", e.Line, err)
		}
	}
	for _, key := range s.Keys {
		if err := convention.CheckPath(key); err != nil {
			return nil, newInvalidError("keys: %w", err)
		}
	}
	return s, nil
}

// Decode decodes a document of the given kind. It refuses dangerous YAML, and fields that do not exist in into. Errors
// wrap ErrInvalid.
func Decode(text []byte, kind string, into interface{ header() *Header }) error {
	if err := untrusted.CheckYAML(text); err != nil {
		return newInvalidError("%w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		return newInvalidError("%s", strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n  ", " "), "yaml: "))
	}
	if actual := *into.header(); actual != (Header{convention.APIVersion, kind}) {
		return newInvalidError("it is of %q %q, and must be of %s %s", actual.APIVersion, actual.Kind,
			convention.APIVersion, kind)
	}
	return nil
}

// encode encodes a document of this format.
func encode(document any) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2) // the usual indentation
	if err := errors.Join(encoder.Encode(document), encoder.Close()); err != nil {
		return nil, newInvalidError("encode: %w", err)
	}
	return out.Bytes(), nil
}

// findLine returns the line of an item of a list; 0 if the list is not directly in the document, for example behind
// an alias.
func findLine(document *yaml.Node, name string, i int) int {
	if list := findChild(document.Content[0], name); list != nil && i < len(list.Content) {
		return list.Content[i].Line
	}
	return 0
}

// findChild returns the value of a field of a mapping; nil if there is none.
func findChild(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// checkUse checks the i-th convention: its name, which must be unique, its source and its digest.
func (s *Subscription) checkUse(i int) error {
	u := s.Conventions[i]
	switch {
	case !convention.IsName(u.Name):
		return newInvalidError("the name %q of a convention may contain only small letters, digits and dashes",
			u.Name)
	case slices.ContainsFunc(s.Conventions[:i], func(o Use) bool { return o.Name == u.Name }):
		return newInvalidError("convention %s is there twice", u.Name)
	case u.Source == "":
		return newInvalidError("convention %s has no source: set %s, a folder, or %sREGISTRY/PATH:TAG", u.Name, Builtin,
			OCI)
	case u.Digest != "" && !strings.HasPrefix(u.Digest, "sha256:"):
		return newInvalidError("convention %s: the digest %q does not begin with sha256:", u.Name, u.Digest)
	}
	return nil
}

// validate checks the fields of the exception.
func (e Exception) validate() error {
	if err := convention.CheckPath(e.Path); err != nil {
		return newInvalidError("exception: %w", err)
	}
	if strings.TrimSpace(e.Reason) == "" {
		return newInvalidError("the exception for %s has no reason", e.Path)
	}
	if _, err := time.Parse(time.DateOnly, e.Expires); err != nil {
		return newInvalidError("the exception for %s: expires %q is no date such as 2027-01-31", e.Path, e.Expires)
	}
	return nil
}

// Use returns the entry of a convention, or nil.
func (s *Subscription) Use(name string) *Use {
	return findItem(s.Conventions, func(u Use) bool { return u.Name == name })
}

// findItem returns a pointer to the first matching item, or nil.
func findItem[T any](list []T, match func(T) bool) *T {
	if i := slices.IndexFunc(list, match); i >= 0 {
		return &list[i]
	}
	return nil
}

// Write returns the text of a subscription. Comments, order and style of the previous text are kept.
func (s *Subscription) Write(previous []byte) ([]byte, error) {
	s.Header = Header{convention.APIVersion, "Subscription"}
	var wanted, old yaml.Node
	if err := wanted.Encode(s); err != nil {
		return nil, newInvalidError("encode: %w", err)
	}
	if err := yaml.Unmarshal(previous, &old); err != nil {
		return nil, newInvalidError("%w", err)
	}
	if len(old.Content) == 0 {
		return encode(&wanted)
	}
	old.Content[0] = mergeNode(old.Content[0], &wanted)
	return encode(&old)
}

// mergeNode returns a node with the content of the wanted node, and with comments, order and style of the old node. If
// old is nil or of another kind, it returns the wanted node.
func mergeNode(old, wanted *yaml.Node) *yaml.Node {
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
			out.Content = append(out.Content, mergeNode(findPrevious(old, item, i), item))
		}
	case yaml.MappingNode:
		out.Content = mergeFields(old, wanted)
	}
	return &out
}

// mergeFields returns the keys and values of the wanted mapping in the order of the old mapping, followed by
// new fields.
func mergeFields(old, wanted *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for i := 0; i+1 < len(old.Content); i += 2 {
		if value := findChild(wanted, old.Content[i].Value); value != nil {
			out = append(out, old.Content[i], mergeNode(old.Content[i+1], value))
		}
	}
	for i := 0; i+1 < len(wanted.Content); i += 2 {
		if findChild(old, wanted.Content[i].Value) == nil {
			out = append(out, wanted.Content[i], wanted.Content[i+1])
		}
	}
	return out
}

// findPrevious returns the old version of an item of a list: the item with the same name, or the item at the same index
// if items have no names; nil if there is none.
func findPrevious(old, item *yaml.Node, i int) *yaml.Node {
	name := findChild(item, "name")
	for j, o := range old.Content {
		oldName := findChild(o, "name")
		isSameIndex := name == nil && i == j
		isSameName := name != nil && oldName != nil && name.Value == oldName.Value
		if isSameIndex || isSameName {
			return o
		}
	}
	return nil
}
