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

// readable writes a template of an annotation as a person reads it: capital letters
// stand for labels and values. A template with a choice gives a text for each branch.
func readable(text string) ([]string, error) {
	tree := parse.New("annotation")
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse("{{ $labels := . }}{{ $value := . }}"+text, "", "", map[string]*parse.Tree{}); err != nil {
		return nil, fmt.Errorf("read annotation: %w", err)
	}
	out := branches(tree.Root, "")
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], strings.ToUpper(series.OperatorNamespace)+"/"+
			strings.ToUpper(series.Operator), "OPERATOR")
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// branches are the texts that a node can become. Dot is what a dot in it stands for.
func branches(node parse.Node, dot string) []string {
	switch n := node.(type) {
	case *parse.TextNode:
		return []string{string(n.Text)}
	case *parse.ActionNode:
		if len(n.Pipe.Decl) > 0 {
			return []string{""}
		}
		return []string{wordOf(n.Pipe, dot)}
	case *parse.IfNode:
		return append(branches(n.List, dot), branches(n.ElseList, dot)...)
	case *parse.WithNode:
		return append(branches(n.List, wordOf(n.Pipe, dot)), branches(n.ElseList, dot)...)
	case *parse.RangeNode: // as with one result
		return branches(n.List, dot)[:1]
	case *parse.ListNode:
		if n != nil {
			return branchesOf(n.Nodes, dot)
		}
		return []string{""} // there is no else
	}
	return []string{"..."}
}

// branchesOf are the texts that nodes can become one after the other.
func branchesOf(nodes []parse.Node, dot string) []string {
	out := []string{""}
	for _, node := range nodes {
		var next []string
		for _, before := range out {
			for _, after := range branches(node, dot) {
				next = append(next, before+after)
			}
		}
		out = next
	}
	return out
}

// wordOf is the word for what a pipe gives: the label in capital letters, or N.
func wordOf(pipe *parse.PipeNode, dot string) string {
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
				word = wordOf(a, dot)
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
