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

// Format returns the text of the file with the present ladder. The comments are those of the text that was parsed; a
// comment on a version is removed with the version. The same ladder and the same comments give the same text. The
// error wraps ErrInvalid if the ladder is not valid.
func (f *File) Format() ([]byte, error) {
	if err := f.Ladder.Check(); err != nil {
		return nil, fmt.Errorf("format %s: %w", f.Name, err)
	}
	var fresh yaml.Node
	if err := fresh.Encode(f.Ladder); err != nil {
		return nil, fmt.Errorf("format %s: %w", f.Name, err)
	}
	document := cloneNode(f.document)
	mergeMapping(document.Content[0], &fresh)
	text, err := encode(document)
	if err != nil {
		return nil, fmt.Errorf("format %s: %w", f.Name, err)
	}
	// The YAML library can make mistakes with comments at unusual places. An error is better than a wrong text.
	reparsed, err := Parse(f.Name, text)
	if err != nil {
		return nil, fmt.Errorf("format %s: its comments cannot be kept: %w", f.Name, err)
	}
	if !reflect.DeepEqual(reparsed.Ladder.normalize(), f.Ladder.normalize()) {
		return nil, fmt.Errorf("%w: format %s: its comments cannot be kept: edit the file manually", ErrInvalid, f.Name)
	}
	return text, nil
}

// normalize makes ladders comparable: it replaces empty lists by nil.
func (l *Ladder) normalize() *Ladder {
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

// encode returns the YAML text of a ladder or of a document.
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
	return addBlankLines(out.Bytes()), nil
}

// addBlankLines adds a blank line before each list of the top level and each comment of the top level, because the YAML
// library writes none. A comment stays beside the line that follows it.
func addBlankLines(text []byte) []byte {
	var out, comment bytes.Buffer
	previous := ""
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			comment.WriteString(line)
			continue
		}
		isListStart := line != "" && !strings.ContainsAny(line[:1], " \t\n-") &&
			strings.HasSuffix(strings.TrimSpace(line), ":")
		// A comment on an item of a list stays beside the item.
		isCommented := comment.Len() > 0 && !strings.HasPrefix(line, "-")
		isSeparated := out.Len() == 0 || previous == "\n" || line == "\n"
		if !isSeparated && (isListStart || isCommented) {
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

func cloneNode(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out.Content[i] = cloneNode(c)
	}
	return &out
}

// mergeMapping replaces the fields of old by the fields of fresh and keeps the comments. It removes fields that fresh
// does not have, except empty fields.
func mergeMapping(old, fresh *yaml.Node) {
	if len(old.Content) == 0 { // it was written as {}
		old.Style &^= yaml.FlowStyle
	}
	var content []*yaml.Node
	// A field that exists and is empty is kept, because it can have comments.
	for i := 0; i+1 < len(old.Content); i += 2 {
		key, value := old.Content[i], old.Content[i+1]
		next := findChild(fresh, key.Value)
		switch {
		case next != nil:
			mergeNode(value, next)
			content = append(content, key, value)
		case isEmpty(value):
			content = append(content, key, value)
		case value.Kind == yaml.SequenceNode: // the list is now empty, and stays only for its comments
			value.Content, value.Style = nil, value.Style|yaml.FlowStyle
			if key.HeadComment+value.HeadComment+key.FootComment != "" {
				content = append(content, key, value)
			}
		}
	}
	old.Content = addFields(content, fresh)
}

// addFields adds the fields that are missing in content, each after the field that precedes it in fresh.
func addFields(content []*yaml.Node, fresh *yaml.Node) []*yaml.Node {
	next := 0
	for i := 0; i+1 < len(fresh.Content); i += 2 {
		index := 0
		for index < len(content) && content[index].Value != fresh.Content[i].Value {
			index += 2
		}
		if index >= len(content) {
			index = next
			content = slices.Insert(content, index, fresh.Content[i], fresh.Content[i+1])
		}
		next = index + 2
		// Existing empty fields are not in fresh, and keep their place.
		for next < len(content) && findChild(fresh, content[next].Value) == nil {
			next += 2
		}
	}
	return content
}

// isEmpty reports whether a node is an empty list or mapping, an empty text, or null.
func isEmpty(n *yaml.Node) bool {
	return len(n.Content) == 0 && (n.Kind != yaml.ScalarNode || n.Value == "" || n.Tag == "!!null")
}

// mergeNode replaces the content of old by the content of fresh and keeps the comments.
func mergeNode(old, fresh *yaml.Node) {
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

// mergeSequence replaces the items of old by the items of fresh. Items with the same subject are merged, so that they
// keep their comments.
func mergeSequence(old, fresh *yaml.Node) {
	if len(old.Content) == 0 { // it was written as []
		old.Style &^= yaml.FlowStyle
	}
	oldBySubject := map[string]*yaml.Node{}
	for _, item := range old.Content {
		oldBySubject[getSubject(item)] = item
	}
	content := make([]*yaml.Node, 0, len(fresh.Content))
	for _, item := range fresh.Content {
		if oldItem, ok := oldBySubject[getSubject(item)]; ok {
			mergeNode(oldItem, item)
			item = oldItem
		}
		content = append(content, item)
	}
	old.Content = content
}

// getSubject returns the text that identifies an item of a list: its version, channel or package; the value itself in
// a list of plain values.
func getSubject(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode {
		return n.Value
	}
	for _, field := range []string{"version", "channel", "package"} {
		if v := findChild(n, field); v != nil && v.Value != "" {
			return field + " " + v.Value
		}
	}
	return ""
}
