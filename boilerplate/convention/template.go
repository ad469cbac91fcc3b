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

// maxDepth bounds how deep blocks and calls are nested, and with it the time that a template takes.
const maxDepth = 3

// maxWork bounds what all functions of one template read and write.
const maxWork = 16 * MaxFileBytes

// execution renders one template. A template comes from outside: it can loop over lists among the parameters only,
// calls no other template, keeps nothing in variables, and its functions make no more than some megabytes.
type execution struct {
	values map[string]any
	out    bytes.Buffer
	work   int
}

func execute(name string, text []byte, values map[string]any) ([]byte, error) {
	e := &execution{values: values}
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
	if err := e.checkNodes(t.Root, 0); err != nil {
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
		"contains": func(part, text string) (bool, error) {
			return strings.Contains(text, part), e.spend(len(text))
		},
		"join": func(separator string, items []string) (string, error) {
			if err := e.spend((len(separator) + 1) * len(items)); err != nil {
				return "", err
			}
			return bounded(func(separator string) string { return strings.Join(items, separator) })(separator)
		},
		"has": func(item string, items []string) bool { return slices.Contains(items, item) },
	}
}

func (e *execution) spend(bytes int) error {
	if e.work += bytes; e.work > maxWork {
		return errors.New("its functions do more than is permitted")
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

// checkNodes refuses what is not known to be harmless.
func (e *execution) checkNodes(list *parse.ListNode, depth int) error {
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
			err = e.checkPipe(n.Pipe, 0)
		case *parse.IfNode:
			err = e.checkBranch(&n.BranchNode, depth)
		case *parse.WithNode:
			err = e.checkBranch(&n.BranchNode, depth)
		case *parse.RangeNode:
			// A loop over a number could take for ever.
			name, isField := strings.CutPrefix(strings.TrimPrefix(n.Pipe.String(), "$"), ".")
			if _, isList := e.values[name].([]string); !isField || !isList {
				return errors.New("it loops over something else than a list among the parameters: " + n.Pipe.String())
			}
			err = e.checkBranch(&n.BranchNode, depth)
		default:
			err = refused(node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *execution) checkBranch(n *parse.BranchNode, depth int) error {
	return errors.Join(e.checkPipe(n.Pipe, 0), e.checkNodes(n.List, depth+1), e.checkNodes(n.ElseList, depth+1))
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
