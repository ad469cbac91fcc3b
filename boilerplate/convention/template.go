// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package convention

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// functions are those of templates, besides the permitted ones of text/template. None makes its result much longer
// than its arguments.
var functions = template.FuncMap{
	"lower": strings.ToLower, "upper": strings.ToUpper, "quote": strconv.Quote, "base": path.Base,
	"trimPrefix": func(prefix, text string) string { return strings.TrimPrefix(text, prefix) },
	"trimSuffix": func(suffix, text string) string { return strings.TrimSuffix(text, suffix) },
	"contains":   func(part, text string) bool { return strings.Contains(text, part) },
	"join":       func(separator string, items []string) string { return strings.Join(items, separator) },
	"has":        func(item string, items []string) bool { return slices.Contains(items, item) },
}

// permitted are the functions of text/template that templates may call.
var permitted = []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len"}

// maxDepth bounds how deep blocks and calls are nested, and with it the time and memory that a template takes.
const maxDepth = 4

// execute renders a template. A template comes from outside: it can loop over parameters only, cannot call another
// template, and calls no function that makes much of little.
func execute(name string, text []byte, values map[string]any) ([]byte, error) {
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Funcs(functions).Parse(string(text))
	if err != nil {
		return nil, invalid("%w", err)
	}
	if len(t.Templates()) > 1 {
		return nil, invalid("template %s defines other templates", name)
	}
	if t.Tree == nil {
		return nil, nil
	}
	if err := checkNodes(t.Root, 0); err != nil {
		return nil, invalid("template %s: %w", name, err)
	}
	out := &boundedBuffer{}
	if err := t.Execute(out, values); err != nil {
		return nil, invalid("%w", err)
	}
	return out.Bytes(), nil
}

// checkNodes refuses what is not known to be harmless.
func checkNodes(list *parse.ListNode, depth int) error {
	if list == nil {
		return nil
	}
	if depth > maxDepth {
		return errors.New("it is nested too deeply")
	}
	for _, node := range list.Nodes {
		var err error
		switch n := node.(type) {
		case *parse.TextNode, *parse.CommentNode:
		case *parse.ActionNode:
			err = checkPipe(n.Pipe, 0)
		case *parse.IfNode:
			err = checkBranch(&n.BranchNode, depth)
		case *parse.WithNode:
			err = checkBranch(&n.BranchNode, depth)
		case *parse.RangeNode:
			err = errors.Join(checkRange(n.Pipe), checkBranch(&n.BranchNode, depth))
		default:
			err = errors.New("it has " + node.String() + ", which templates of conventions may not have")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkBranch(n *parse.BranchNode, depth int) error {
	return errors.Join(checkPipe(n.Pipe, 0), checkNodes(n.List, depth+1), checkNodes(n.ElseList, depth+1))
}

// checkRange permits loops over one parameter alone.
func checkRange(pipe *parse.PipeNode) error {
	if len(pipe.Cmds) == 1 && len(pipe.Cmds[0].Args) == 1 {
		switch pipe.Cmds[0].Args[0].(type) {
		case *parse.FieldNode, *parse.VariableNode:
			return nil
		}
	}
	return errors.New("it loops over something else than a parameter: " + pipe.String())
}

func checkPipe(pipe *parse.PipeNode, depth int) error {
	if depth > maxDepth || pipe.IsAssign {
		return errors.New("it has " + pipe.String() + ", which templates of conventions may not have")
	}
	for _, command := range pipe.Cmds {
		for _, arg := range command.Args {
			if err := checkArgument(arg, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkArgument(arg parse.Node, depth int) error {
	switch a := arg.(type) {
	case *parse.IdentifierNode:
		if _, ok := functions[a.Ident]; !ok && !slices.Contains(permitted, a.Ident) {
			return errors.New("it calls " + a.Ident + ", which templates of conventions may not call")
		}
	case *parse.PipeNode:
		return checkPipe(a, depth+1)
	case *parse.ChainNode:
		return errors.New("it has " + a.String() + ", which templates of conventions may not have")
	}
	return nil
}

// boundedBuffer holds the text of one file.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxFileBytes {
		return 0, invalid("what is rendered has more than %d bytes", MaxFileBytes)
	}
	return b.Buffer.Write(p)
}
