// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"bytes"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
)

// leastShared is how many bytes a text has that is written once.
const leastShared = 100

// shareTexts writes long values that receivers have in common once, with an anchor, and then aliases of it. Receivers
// of PagerDuty have the same texts, which would be most of a configuration. Alertmanager reads YAML with aliases, in
// every version.
func shareTexts(text []byte) ([]byte, error) {
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	s := sharing{first: map[string]*yamlv3.Node{}, names: map[string]int{}}
	for i, node := range doc.Content[0].Content {
		if i%2 == 1 && doc.Content[0].Content[i-1].Value == "receivers" {
			s.visit(node)
		}
	}
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&doc); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

type sharing struct {
	// first has each long value by its text.
	first map[string]*yamlv3.Node
	// names count the anchors by the keys that they are named for.
	names map[string]int
}

// visit replaces the values below a node that were there before.
func (s sharing) visit(node *yamlv3.Node) {
	for i, child := range node.Content {
		if node.Kind != yamlv3.MappingNode {
			s.visit(child)
			continue
		}
		if i%2 == 0 {
			continue
		}
		text := textOf(child)
		first, known := s.first[text]
		switch {
		case len(text) < leastShared:
			s.visit(child)
		case !known:
			s.first[text] = child
			s.visit(child)
		default:
			if first.Anchor == "" {
				key := node.Content[i-1].Value
				s.names[key]++
				first.Anchor = fmt.Sprintf("%s-%d", key, s.names[key])
			}
			node.Content[i] = &yamlv3.Node{Kind: yamlv3.AliasNode, Value: first.Anchor, Alias: first}
		}
	}
}

// textOf is the same for nodes with the same content.
func textOf(node *yamlv3.Node) string {
	if node.Kind == yamlv3.AliasNode {
		return textOf(node.Alias)
	}
	out := fmt.Sprintf("%d %s %q", node.Kind, node.Tag, node.Value)
	for _, child := range node.Content {
		out += "\n" + textOf(child)
	}
	return out + "."
}
