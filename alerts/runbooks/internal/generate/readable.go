// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// expandTemplate returns an annotation template as text for readers, with labels and
// values in capital letters. A template with conditions gives one text for each branch.
func expandTemplate(text string) ([]string, error) {
	tree := parse.New("annotation")
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse("{{ $labels := . }}{{ $value := . }}"+text, "", "", map[string]*parse.Tree{}); err != nil {
		return nil, fmt.Errorf("read annotation: %w", err)
	}
	out := listBranches(tree.Root, "")
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], strings.ToUpper(series.OperatorNamespace)+"/"+
			strings.ToUpper(series.Operator), "OPERATOR")
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// listBranches returns the texts that a node can become. dot is the text for a dot in the node.
func listBranches(node parse.Node, dot string) []string {
	switch n := node.(type) {
	case *parse.TextNode:
		return []string{string(n.Text)}
	case *parse.ActionNode:
		if len(n.Pipe.Decl) > 0 {
			return []string{""}
		}
		return []string{findWord(n.Pipe, dot)}
	case *parse.IfNode:
		return append(listBranches(n.List, dot), listBranches(n.ElseList, dot)...)
	case *parse.WithNode:
		return append(listBranches(n.List, findWord(n.Pipe, dot)), listBranches(n.ElseList, dot)...)
	case *parse.RangeNode: // as with one result
		return listBranches(n.List, dot)[:1]
	case *parse.ListNode:
		if n != nil {
			return combineBranches(n.Nodes, dot)
		}
		return []string{""} // there is no else
	}
	return []string{"..."}
}

// combineBranches returns the texts that a sequence of nodes can become.
func combineBranches(nodes []parse.Node, dot string) []string {
	out := []string{""}
	for _, node := range nodes {
		var next []string
		for _, before := range out {
			for _, after := range listBranches(node, dot) {
				next = append(next, before+after)
			}
		}
		out = next
	}
	return out
}

// findWord returns the word for the result of a pipe: the label in capital letters, or N.
func findWord(pipe *parse.PipeNode, dot string) string {
	word := ""
	for _, command := range pipe.Cmds {
		for _, arg := range command.Args {
			switch a := arg.(type) {
			case *parse.VariableNode:
				word = "N"
				if len(a.Ident) > 1 {
					word = strings.ToUpper(a.Ident[1])
				}
			case *parse.DotNode:
				word = dot
			case *parse.PipeNode:
				word = findWord(a, dot)
			case *parse.ChainNode: // a method of a time
				word = "TIME"
			}
		}
		if command.Args[0].String() == "humanizeDuration" {
			word = "DURATION"
		}
	}
	return word
}
