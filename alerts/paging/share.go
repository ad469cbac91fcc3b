// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"bytes"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
)

// minSharedBytes is the minimum length of a text that is shared.
const minSharedBytes = 100

// shareTexts writes long values that several receivers have in common only once, with an
// anchor, and replaces repetitions by aliases. PagerDuty receivers have the same texts, which
// would be most of a configuration. Every version of Alertmanager reads YAML with aliases.
func shareTexts(text []byte) ([]byte, error) {
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	s := sharing{firstNodes: map[string]*yamlv3.Node{}, names: map[string]int{}}
	for i, node := range doc.Content[0].Content { // keys and values alternate
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
	// firstNodes has the first node of each long value, by its text.
	firstNodes map[string]*yamlv3.Node
	// names counts the anchors by the keys that they are named after.
	names map[string]int
}

// visit replaces repeated values below a node by aliases.
func (s sharing) visit(node *yamlv3.Node) {
	for i, child := range node.Content {
		if node.Kind != yamlv3.MappingNode {
			s.visit(child)
			continue
		}
		if i%2 == 0 { // a key
			continue
		}
		text := formatNode(child)
		firstNode, known := s.firstNodes[text]
		switch {
		case len(text) < minSharedBytes:
			s.visit(child)
		case !known:
			s.firstNodes[text] = child
			s.visit(child)
		default:
			if firstNode.Anchor == "" {
				key := node.Content[i-1].Value
				s.names[key]++
				firstNode.Anchor = fmt.Sprintf("%s-%d", key, s.names[key])
			}
			node.Content[i] = &yamlv3.Node{Kind: yamlv3.AliasNode, Value: firstNode.Anchor, Alias: firstNode}
		}
	}
}

// formatNode returns a text that is equal for nodes with the same content.
func formatNode(node *yamlv3.Node) string {
	if node.Kind == yamlv3.AliasNode {
		return formatNode(node.Alias)
	}
	out := fmt.Sprintf("%d %s %q", node.Kind, node.Tag, node.Value)
	for _, child := range node.Content {
		out += "\n" + formatNode(child)
	}
	return out + "."
}
