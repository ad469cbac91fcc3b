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

// Builtin is the source of the conventions of this program.
const Builtin = "builtin"

// OCI begins the sources that are in a registry.
const OCI = "oci://"

// DateLayout is the form of dates.
const DateLayout = "2006-01-02"

// ErrInvalid is wrapped by all errors of this package.
var ErrInvalid = errors.New("invalid subscription")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// Subscription is the content of .boilerplate.yaml.
type Subscription struct {
	APIVersion  string `yaml:"apiVersion"`
	Kind        string `yaml:"kind"`
	Conventions []Use  `yaml:"conventions"`
	// Keys are paths of public keys in the repository. Where there are any, conventions in registries have to be signed
	// by one of them.
	Keys       []string       `yaml:"keys,omitempty"`
	Parameters map[string]any `yaml:"parameters,omitempty"`
	Exceptions []Exception    `yaml:"exceptions,omitempty"`
}

// Use is a convention that a repository subscribes to.
type Use struct {
	Name string `yaml:"name"`
	// Source is builtin, oci://REFERENCE, or a folder relative to the repository.
	Source  string `yaml:"source"`
	Version string `yaml:"version,omitempty"`
	// Digest is that of the manifest in the registry, or of the convention's content.
	Digest string `yaml:"digest,omitempty"`
}

// Exception keeps the repository's own version of a file, or of a region of a shared file, until a day.
type Exception struct {
	Path    string `yaml:"path"`
	Region  string `yaml:"region,omitempty"`
	Reason  string `yaml:"reason"`
	Expires string `yaml:"expires"`
	// Line is where it is in the file.
	Line int `yaml:"-"`
}

// Expired reports whether the exception no longer holds: it does until the end of its last day in UTC.
func (e Exception) Expired(now time.Time) bool { return e.DaysLeft(now) < 0 }

// DaysLeft returns how many days the exception still holds after today; below zero once it has expired.
func (e Exception) DaysLeft(now time.Time) int {
	last, err := time.Parse(DateLayout, e.Expires)
	if err != nil {
		return -1
	}
	const day = 24 * time.Hour
	return int(last.Sub(now.UTC().Truncate(day)) / day)
}

// Parse reads .boilerplate.yaml. The error wraps ErrInvalid, and names the line.
func Parse(text []byte) (*Subscription, error) {
	s := &Subscription{}
	node, err := decode(text, s)
	if err != nil {
		return nil, err
	}
	if err := checkKind(s.APIVersion, s.Kind, "Subscription"); err != nil {
		return nil, err
	}
	for i, n := range items(node, "exceptions") {
		s.Exceptions[i].Line = n.Line
	}
	for i, n := range items(node, "conventions") {
		if err := s.checkUse(i); err != nil {
			return nil, fmt.Errorf("line %d: %w", n.Line, err)
		}
	}
	for _, e := range s.Exceptions {
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

// decode refuses what is dangerous or has unknown fields, and returns the document as it is written.
func decode(text []byte, into any) (*yaml.Node, error) {
	if err := untrusted.CheckYAML(text); err != nil {
		return nil, invalid("%w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		return nil, invalid("%s", strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n  ", " "), "yaml: "))
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil || document.Kind != yaml.DocumentNode {
		return nil, invalid("it is no document")
	}
	return document.Content[0], nil
}

func checkKind(apiVersion, kind, want string) error {
	if apiVersion != convention.APIVersion || kind != want {
		return invalid("it is of %q %q, and has to be of %s %s", apiVersion, kind, convention.APIVersion, want)
	}
	return nil
}

// items are the nodes of a list in a mapping.
func items(mapping *yaml.Node, name string) []*yaml.Node {
	if list := child(mapping, name); list != nil {
		return list.Content
	}
	return nil
}

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
	if _, err := time.Parse(DateLayout, e.Expires); err != nil {
		return invalid("the exception for %s: expires %q is no date such as 2027-01-31", e.Path, e.Expires)
	}
	return nil
}

// Use returns the entry of a convention, or nil.
func (s *Subscription) Use(name string) *Use {
	for i := range s.Conventions {
		if s.Conventions[i].Name == name {
			return &s.Conventions[i]
		}
	}
	return nil
}

// Write returns the text of a subscription. What the previous text has in comments, order and style stays.
func (s *Subscription) Write(previous []byte) ([]byte, error) {
	s.APIVersion, s.Kind = convention.APIVersion, "Subscription"
	var wanted yaml.Node
	if err := wanted.Encode(s); err != nil {
		return nil, invalid("encode: %w", err)
	}
	document := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{&wanted}}
	if len(bytes.TrimSpace(previous)) > 0 {
		var old yaml.Node
		if err := yaml.Unmarshal(previous, &old); err != nil {
			return nil, invalid("%w", err)
		}
		document = &old
		document.Content[0] = merge(old.Content[0], &wanted)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2) //nolint:mnd // as people write YAML
	if err := errors.Join(encoder.Encode(document), encoder.Close()); err != nil {
		return nil, invalid("encode: %w", err)
	}
	return out.Bytes(), nil
}

// merge returns the wanted node with comments, order and style of the old one.
func merge(old, wanted *yaml.Node) *yaml.Node {
	if old.Kind != wanted.Kind || old.Kind == yaml.AliasNode {
		return withComments(old, wanted)
	}
	switch old.Kind {
	case yaml.ScalarNode:
		if old.Value == wanted.Value {
			return old
		}
		return withComments(old, wanted)
	case yaml.SequenceNode:
		return mergeList(old, wanted)
	}
	return mergeMapping(old, wanted)
}

func mergeList(old, wanted *yaml.Node) *yaml.Node {
	out := *old
	out.Content = nil
	for i, item := range wanted.Content {
		if previous := sameItem(old, item, i); previous != nil {
			item = merge(previous, item)
		}
		out.Content = append(out.Content, item)
	}
	return &out
}

func mergeMapping(old, wanted *yaml.Node) *yaml.Node {
	out := *old
	out.Content = nil
	for i := 0; i+1 < len(old.Content); i += 2 {
		if value := child(wanted, old.Content[i].Value); value != nil {
			out.Content = append(out.Content, old.Content[i], merge(old.Content[i+1], value))
		}
	}
	for i := 0; i+1 < len(wanted.Content); i += 2 {
		if child(old, wanted.Content[i].Value) == nil {
			out.Content = append(out.Content, wanted.Content[i], wanted.Content[i+1])
		}
	}
	return &out
}

func withComments(old, wanted *yaml.Node) *yaml.Node {
	wanted.HeadComment, wanted.LineComment, wanted.FootComment = old.HeadComment, old.LineComment, old.FootComment
	return wanted
}

// sameItem is the item of a list that another one is the next version of: that with its name, or that at its place.
func sameItem(old, item *yaml.Node, i int) *yaml.Node {
	if item.Kind == yaml.MappingNode {
		if name := child(item, "name"); name != nil {
			for _, o := range old.Content {
				if found := child(o, "name"); found != nil && found.Value == name.Value {
					return o
				}
			}
			return nil
		}
	}
	if i < len(old.Content) {
		return old.Content[i]
	}
	return nil
}
