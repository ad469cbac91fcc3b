// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ladder

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// New returns a file for a new ladder.
func New(name string, l *Ladder) (*File, error) {
	text, err := encode(l)
	if err != nil {
		return nil, err
	}
	return Parse(name, text)
}

// Format writes the file with the ladder as it is now. The comments are those of the text that was parsed; a comment on
// a version leaves with the version. The same ladder and the same comments give the same text. The error wraps
// ErrInvalid if the ladder is not valid.
func (f *File) Format() ([]byte, error) {
	if err := f.Ladder.Check(); err != nil {
		return nil, fmt.Errorf("format %s: %w", f.Name, err)
	}
	var fresh yaml.Node
	if err := fresh.Encode(f.Ladder); err != nil {
		return nil, fmt.Errorf("format %s: %w", f.Name, err)
	}
	document := clone(f.document)
	mergeMapping(document.Content[0], &fresh)
	text, err := encode(document)
	if err != nil {
		return nil, fmt.Errorf("format %s: %w", f.Name, err)
	}
	// Comments at odd places are where a YAML library goes wrong. Better no text than one that means something else.
	again, err := Parse(f.Name, text)
	if err != nil {
		return nil, fmt.Errorf("format %s: its comments cannot be kept: %w", f.Name, err)
	}
	if !reflect.DeepEqual(again.Ladder.normal(), f.Ladder.normal()) {
		return nil, fmt.Errorf("%w: format %s: its comments cannot be kept: edit the file manually", ErrInvalid, f.Name)
	}
	return text, nil
}

// normal makes ladders comparable: a list that is not there is the same as an empty one.
func (l *Ladder) normal() *Ladder {
	out := l.Clone()
	out.Channels, out.Bundles, out.Blocks = slices.Clip(out.Channels), slices.Clip(out.Bundles), slices.Clip(out.Blocks)
	if len(out.Channels) == 0 {
		out.Channels = nil
	}
	if len(out.Bundles) == 0 {
		out.Bundles = nil
	}
	if len(out.Blocks) == 0 {
		out.Blocks = nil
	}
	if len(out.Deprecations) == 0 {
		out.Deprecations = nil
	}
	if len(out.Retired) == 0 {
		out.Retired = nil
	}
	return out
}

func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode ladder: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("encode ladder: %w", err)
	}
	return spaced(out.Bytes()), nil
}

// spaced puts a blank line before each list of the top level, which the YAML library forgets.
func spaced(text []byte) []byte {
	var out, comment bytes.Buffer
	previous := ""
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			comment.WriteString(line)
			continue
		}
		opens := line != "" && !strings.ContainsAny(line[:1], " \t\n-") &&
			strings.HasSuffix(strings.TrimSpace(line), ":")
		if out.Len() > 0 && previous != "\n" && (opens || (comment.Len() > 0 && !strings.HasPrefix(line, "-"))) &&
			line != "\n" {
			out.WriteByte('\n')
		}
		out.Write(comment.Bytes())
		comment.Reset()
		out.WriteString(line)
		previous = line
	}
	if comment.Len() > 0 && out.Len() > 0 && previous != "\n" {
		out.WriteByte('\n')
	}
	out.Write(comment.Bytes())
	return out.Bytes()
}

func clone(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out.Content[i] = clone(c)
	}
	return &out
}

// mergeMapping makes the fields of old those of fresh and keeps the comments.
func mergeMapping(old, fresh *yaml.Node) {
	if len(old.Content) == 0 {
		old.Style &^= yaml.FlowStyle
	}
	var content []*yaml.Node
	// A field that is written out and empty is a place for comments.
	for i := 0; i+1 < len(old.Content); i += 2 {
		key, value := old.Content[i], old.Content[i+1]
		next := child(fresh, key.Value)
		switch {
		case next != nil:
			merge(value, next)
			content = append(content, key, value)
		case isEmpty(value):
			content = append(content, key, value)
		case value.Kind == yaml.SequenceNode:
			value.Content, value.Style = nil, value.Style|yaml.FlowStyle
			if key.HeadComment+value.HeadComment+key.FootComment != "" {
				content = append(content, key, value)
			}
		}
	}
	old.Content = addFields(content, fresh)
}

// addFields adds the fields that are new, each behind the one that comes before it in fresh.
func addFields(content []*yaml.Node, fresh *yaml.Node) []*yaml.Node {
	behind := 0
	for i := 0; i+1 < len(fresh.Content); i += 2 {
		at := 0
		for at < len(content) && content[at].Value != fresh.Content[i].Value {
			at += 2
		}
		if at >= len(content) {
			at = behind
			content = slices.Insert(content, at, fresh.Content[i], fresh.Content[i+1])
		}
		behind = at + 2
		// Fields that are there and empty are not in fresh, and keep their place.
		for behind < len(content) && child(fresh, content[behind].Value) == nil {
			behind += 2
		}
	}
	return content
}

func isEmpty(n *yaml.Node) bool {
	return len(n.Content) == 0 && (n.Kind != yaml.ScalarNode || n.Value == "" || n.Tag == "!!null")
}

func merge(old, fresh *yaml.Node) {
	switch {
	case old.Kind != fresh.Kind:
		head, line, foot := old.HeadComment, old.LineComment, old.FootComment
		*old = *fresh
		old.HeadComment, old.LineComment, old.FootComment = head, line, foot
	case old.Kind == yaml.MappingNode:
		mergeMapping(old, fresh)
	case old.Kind == yaml.SequenceNode:
		mergeSequence(old, fresh)
	case old.Value != fresh.Value:
		old.Value, old.Tag, old.Style = fresh.Value, fresh.Tag, fresh.Style
	}
}

// mergeSequence matches items by what they are about.
func mergeSequence(old, fresh *yaml.Node) {
	if len(old.Content) == 0 {
		old.Style &^= yaml.FlowStyle
	}
	known := map[string]*yaml.Node{}
	for _, item := range old.Content {
		known[subject(item)] = item
	}
	content := make([]*yaml.Node, 0, len(fresh.Content))
	for _, item := range fresh.Content {
		if same, ok := known[subject(item)]; ok {
			merge(same, item)
			item = same
		}
		content = append(content, item)
	}
	old.Content = content
}

// subject is what identifies an item of a list: its version, else its channel or package; of a plain list the value.
func subject(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode {
		return n.Value
	}
	for _, field := range []string{"version", "channel", "package"} {
		if v := child(n, field); v != nil && v.Value != "" {
			return field + " " + v.Value
		}
	}
	return ""
}
