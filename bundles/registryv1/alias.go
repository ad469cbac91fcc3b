// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"bytes"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
)

// CheckAliases returns an error for the first alias in a YAML document. Manifests and catalogs are other people's, and
// an alias stands for a copy of what it names: aliases of aliases make gigabytes of a few KiB. Nothing that writes
// manifests writes aliases. Broken YAML is not an error here.
func CheckAliases(document []byte) error {
	if !mayHaveAnchor(document) {
		return nil
	}
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(document, &root); err != nil {
		return nil //nolint:nilerr // whoever decodes the document reports it
	}
	if alias := findAlias(&root); alias != nil {
		return fmt.Errorf("line %d: the alias *%s is not allowed: write out what it stands for", alias.Line,
			alias.Value)
	}
	return nil
}

// mayHaveAnchor looks for an ampersand where a value can begin. Without an anchor there is no alias, and parsing large
// definitions twice takes its time.
func mayHaveAnchor(document []byte) bool {
	for rest, at := document, 0; ; {
		i := bytes.IndexByte(rest, '&')
		if i < 0 {
			return false
		}
		at += i
		begins := at == 0 || bytes.IndexByte([]byte(" \t\n[,{:-"), document[at-1]) >= 0
		ends := at+1 == len(document) || bytes.IndexByte([]byte(" \t\r\n"), document[at+1]) >= 0
		if begins && !ends {
			return true
		}
		at++
		rest = document[at:]
	}
}

func findAlias(n *yamlv3.Node) *yamlv3.Node {
	if n.Kind == yamlv3.AliasNode {
		return n
	}
	for _, child := range n.Content {
		if found := findAlias(child); found != nil {
			return found
		}
	}
	return nil
}
