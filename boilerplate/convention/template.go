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

// permitted are the functions of text/template that templates may call, besides those of execution.functions.
var permitted = []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len"}

// maxDepth bounds how deep blocks and calls are nested.
const maxDepth = 3

// maxWork bounds what all templates of a tree do: how often the steps in them are taken, and what functions read and
// write.
const maxWork = MaxBytes

// execution renders one template. A template comes from outside: it can loop over lists among the parameters only,
// calls no other template, and keeps nothing in variables.
type execution struct {
	*renderer
	values map[string]any
	out    bytes.Buffer
}

func (r *renderer) execute(name string, text []byte, values map[string]any) ([]byte, error) {
	e := &execution{renderer: r, values: values}
	functions := e.functions()
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Funcs(functions).Parse(string(text))
	switch {
	case err != nil:
		return nil, invalid("%w", err)
	case len(t.Templates()) > 1:
		return nil, invalid("template %s defines other templates", name)
	case t.Tree == nil:
		return nil, nil
	}
	if err := e.checkNodes(t.Root, 0, 1); err != nil {
		return nil, invalid("template %s: %w", name, err)
	}
	if err := t.Execute(e, values); err != nil {
		return nil, invalid("%w", err)
	}
	return e.out.Bytes(), nil
}

// functions are those of templates.
func (e *execution) functions() template.FuncMap {
	bounded := func(f func(string) string) func(string) (string, error) {
		return func(text string) (string, error) {
			out := f(text)
			return out, e.spend(len(text) + len(out))
		}
	}
	return template.FuncMap{
		"lower": bounded(strings.ToLower), "upper": bounded(strings.ToUpper), "quote": bounded(strconv.Quote),
		"base":       path.Base,
		"trimPrefix": func(prefix, text string) string { return strings.TrimPrefix(text, prefix) },
		"trimSuffix": func(suffix, text string) string { return strings.TrimSuffix(text, suffix) },
		"join": func(separator string, items []string) (string, error) {
			if err := e.spend((len(separator) + 1) * len(items)); err != nil {
				return "", err
			}
			return bounded(func(separator string) string { return strings.Join(items, separator) })(separator)
		},
		"has": func(item string, items []string) bool { return slices.Contains(items, item) },
	}
}

func (e *execution) spend(work int) error {
	if e.work += work; e.work > maxWork {
		return errors.New("it does more than is permitted: with all other templates, its loops and functions take " +
			"too many steps")
	}
	return nil
}

// Write implements io.Writer for the text of one file.
func (e *execution) Write(p []byte) (int, error) {
	if e.out.Len()+len(p) > MaxFileBytes {
		return 0, invalid("what is rendered has more than %d bytes", MaxFileBytes)
	}
	return e.out.Write(p)
}

func refused(node parse.Node) error {
	return errors.New("it has " + node.String() + ", which templates of conventions may not have")
}

// checkNodes refuses what is not known to be harmless. The nodes are run at most so many times.
func (e *execution) checkNodes(list *parse.ListNode, depth, times int) error {
	if list == nil {
		return nil
	}
	if depth > maxDepth {
		return errors.New("it is nested too deeply")
	}
	if err := e.spend(times * (1 + len(list.Nodes))); err != nil {
		return err
	}
	for _, node := range list.Nodes {
		var err error
		switch n := node.(type) {
		case *parse.TextNode, *parse.CommentNode:
		case *parse.ActionNode:
			err = e.checkPipe(n.Pipe, 0)
		case *parse.IfNode:
			err = e.checkBranch(&n.BranchNode, depth, times)
		case *parse.WithNode:
			err = e.checkBranch(&n.BranchNode, depth, times)
		case *parse.RangeNode:
			// A loop over a number could take for ever.
			name, isField := strings.CutPrefix(strings.TrimPrefix(n.Pipe.String(), "$"), ".")
			items, isList := e.values[name].([]string)
			if !isField || !isList {
				return errors.New("it loops over something else than a list among the parameters: " + n.Pipe.String())
			}
			err = e.checkBranch(&n.BranchNode, depth, times*max(len(items), 1))
		default:
			err = refused(node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *execution) checkBranch(n *parse.BranchNode, depth, times int) error {
	return errors.Join(e.checkPipe(n.Pipe, 0), e.checkNodes(n.List, depth+1, times),
		e.checkNodes(n.ElseList, depth+1, times))
}

func (e *execution) checkPipe(pipe *parse.PipeNode, depth int) error {
	if depth > maxDepth || len(pipe.Decl) > 0 {
		return refused(pipe)
	}
	for _, command := range pipe.Cmds {
		for _, arg := range command.Args {
			if err := e.checkArgument(arg, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *execution) checkArgument(arg parse.Node, depth int) error {
	switch a := arg.(type) {
	case *parse.IdentifierNode:
		if e.functions()[a.Ident] == nil && !slices.Contains(permitted, a.Ident) {
			return errors.New("it calls " + a.Ident + ", which templates of conventions may not call")
		}
	case *parse.PipeNode:
		return e.checkPipe(a, depth+1)
	case *parse.ChainNode:
		return refused(a)
	}
	return nil
}
