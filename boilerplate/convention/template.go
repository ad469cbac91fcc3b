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

// permittedFunctions are the functions of text/template that templates can call, in addition to those of newFunctions.
var permittedFunctions = []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len"}

// maxDepth is the maximum depth of nested blocks and calls.
const maxDepth = 3

// maxWork limits the work of all templates of a tree: the number of executed steps, and the bytes that functions read
// and write.
const maxWork = MaxBytes

// execution renders one template. Templates come from other people, so they are restricted: a template can loop only
// over lists among the parameters, cannot call other templates, and cannot set variables.
type execution struct {
	*renderer
	values map[string]any
	out    bytes.Buffer
}

// execute checks and renders a template. name is for errors, which wrap ErrInvalid. The result is nil for an
// empty template.
func (r *renderer) execute(name string, text []byte, values map[string]any) ([]byte, error) {
	e := &execution{renderer: r, values: values}
	functions := e.newFunctions()
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Funcs(functions).Parse(string(text))
	switch {
	case err != nil:
		return nil, newInvalidError("%w", err)
	case len(t.Templates()) > 1:
		return nil, newInvalidError("template %s defines other templates", name)
	case t.Tree == nil: // the text is empty
		return nil, nil
	}
	if err := e.checkNodes(t.Root, 0, 1); err != nil {
		return nil, newInvalidError("template %s: %w", name, err)
	}
	if err := t.Execute(e, values); err != nil {
		return nil, newInvalidError("%w", err)
	}
	return e.out.Bytes(), nil
}

// newFunctions returns the functions for templates. They count their work.
func (e *execution) newFunctions() template.FuncMap {
	limitWork := func(f func(string) string) func(string) (string, error) {
		return func(text string) (string, error) {
			out := f(text)
			return out, e.addWork(len(text) + len(out))
		}
	}
	return template.FuncMap{
		"lower": limitWork(strings.ToLower), "upper": limitWork(strings.ToUpper), "quote": limitWork(strconv.Quote),
		"base":       path.Base,
		"trimPrefix": func(prefix, text string) string { return strings.TrimPrefix(text, prefix) },
		"trimSuffix": func(suffix, text string) string { return strings.TrimSuffix(text, suffix) },
		"join": func(separator string, items []string) (string, error) {
			if err := e.addWork((len(separator) + 1) * len(items)); err != nil {
				return "", err
			}
			return limitWork(func(separator string) string { return strings.Join(items, separator) })(separator)
		},
		"has": func(item string, items []string) bool { return slices.Contains(items, item) },
	}
}

// addWork adds to the work of all templates. It returns an error if the limit is exceeded.
func (e *execution) addWork(work int) error {
	if e.work += work; e.work > maxWork {
		return errors.New("it does more than is permitted: with all other templates, its loops and functions take " +
			"too many steps")
	}
	return nil
}

// Write implements io.Writer for the text of one file.
func (e *execution) Write(p []byte) (int, error) {
	if e.out.Len()+len(p) > MaxFileBytes {
		return 0, newInvalidError("what is rendered has more than %d bytes", MaxFileBytes)
	}
	return e.out.Write(p)
}

// newRefusedError returns an error about a node that templates must not have.
func newRefusedError(node parse.Node) error {
	return errors.New("it has " + node.String() + ", which templates of conventions must not have")
}

// checkNodes returns an error for nodes that are not known to be harmless. depth is the number of blocks around the
// list, and times is the maximum number of its executions, which is added to the work.
func (e *execution) checkNodes(list *parse.ListNode, depth, times int) error {
	if list == nil {
		return nil
	}
	if depth > maxDepth {
		return errors.New("it is nested too deeply")
	}
	if err := e.addWork(times * (1 + len(list.Nodes))); err != nil {
		return err
	}
	for _, node := range list.Nodes {
		var err error
		switch n := node.(type) {
		case *parse.TextNode, *parse.CommentNode: // these nodes execute nothing
		case *parse.ActionNode:
			err = e.checkPipe(n.Pipe, 0)
		case *parse.IfNode:
			err = e.checkBranch(&n.BranchNode, depth, times)
		case *parse.WithNode:
			err = e.checkBranch(&n.BranchNode, depth, times)
		case *parse.RangeNode:
			// A loop over a number could take forever.
			name, isField := strings.CutPrefix(strings.TrimPrefix(n.Pipe.String(), "$"), ".")
			items, isList := e.values[name].([]string)
			if !isField || !isList {
				return errors.New("it loops over something else than a list among the parameters: " + n.Pipe.String())
			}
			err = e.checkBranch(&n.BranchNode, depth, times*max(len(items), 1))
		default:
			err = newRefusedError(node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkBranch checks both branches of an if, with or range.
func (e *execution) checkBranch(n *parse.BranchNode, depth, times int) error {
	return errors.Join(e.checkPipe(n.Pipe, 0), e.checkNodes(n.List, depth+1, times),
		e.checkNodes(n.ElseList, depth+1, times))
}

// checkPipe checks a pipeline of calls. It refuses variables and deep nesting.
func (e *execution) checkPipe(pipe *parse.PipeNode, depth int) error {
	if depth > maxDepth || len(pipe.Decl) > 0 {
		return newRefusedError(pipe)
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

// checkArgument checks an argument or the function of a call.
func (e *execution) checkArgument(arg parse.Node, depth int) error {
	switch a := arg.(type) {
	case *parse.IdentifierNode:
		if e.newFunctions()[a.Ident] == nil && !slices.Contains(permittedFunctions, a.Ident) {
			return errors.New("it calls " + a.Ident + ", which templates of conventions must not call")
		}
	case *parse.PipeNode:
		return e.checkPipe(a, depth+1)
	case *parse.ChainNode:
		return newRefusedError(a)
	}
	return nil
}
