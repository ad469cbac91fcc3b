// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// OutputHTML is a page of HTML.
const OutputHTML = "html"

// OutputMarkdown is Markdown.
const OutputMarkdown = "markdown"

// Formats of pictures.
const (
	OutputText    = "text"
	OutputSVG     = "svg"
	OutputMermaid = "mermaid"
	OutputDOT     = "dot"
)

// Output formats of -o.
const (
	OutputTable = ""
	OutputWide  = "wide"
	OutputJSON  = "json"
	OutputYAML  = "yaml"
	OutputName  = "name"
)

// Output is the value of -o.
type Output struct {
	Format  string
	Allowed []string
}

// Add adds the flag --output with the allowed formats.
func (o *Output) Add(c *cobra.Command, allowed ...string) {
	o.Allowed = allowed
	usage := "Output format: "
	for i, format := range allowed {
		if i > 0 {
			usage += ", "
		}
		usage += format
	}
	c.Flags().StringVarP(&o.Format, "output", "o", "", usage+".")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

// Check returns an error if the format is not one of those allowed.
func (o *Output) Check() error {
	if o.Format == OutputTable {
		return nil
	}
	for _, format := range o.Allowed {
		if o.Format == format {
			return nil
		}
	}
	use := "use one of " + strings.Join(o.Allowed, ", ")
	if len(o.Allowed) == 1 {
		use = "use " + o.Allowed[0]
	}
	return exit.Hintf(use, "invalid value %q of -o", o.Format)
}

// Table reports whether a table is to be printed.
func (o *Output) Table() bool { return o.Format == OutputTable || o.Format == OutputWide }

// Wide reports whether a table with all columns is to be printed.
func (o *Output) Wide() bool { return o.Format == OutputWide }

// Object prints an object or a list of the API.
func (o *Output) Object(w io.Writer, obj runtime.Object) error {
	var printer printers.ResourcePrinter
	switch o.Format {
	case OutputJSON:
		printer = &printers.JSONPrinter{}
	case OutputYAML:
		printer = &printers.YAMLPrinter{}
	case OutputName:
		printer = &printers.NamePrinter{}
	default:
		return fmt.Errorf("print an object as %q: %w", o.Format, o.Check())
	}
	if err := setKinds(obj); err != nil {
		return err
	}
	printer = &printers.OmitManagedFieldsPrinter{Delegate: printers.NewTypeSetter(hub.Scheme).ToPrinter(printer)}
	one := func(obj runtime.Object) error {
		if err := printer.PrintObj(obj, w); err != nil {
			return fmt.Errorf("print object: %w", err)
		}
		return nil
	}
	if o.Format == OutputName && meta.IsListType(obj) { // which the printer for names does not take
		return meta.EachListItem(obj, one)
	}
	return one(obj)
}

// setKinds fills in the kinds of a list's items, which a typed client leaves
// out and a reader of the output needs.
func setKinds(obj runtime.Object) error {
	if !meta.IsListType(obj) {
		return nil
	}
	return meta.EachListItem(obj, func(item runtime.Object) error {
		kind, err := apiutil.GVKForObject(item, hub.Scheme)
		if err != nil {
			return fmt.Errorf("find the kind of a list's items: %w", err)
		}
		item.GetObjectKind().SetGroupVersionKind(kind)
		return nil
	})
}

// Value prints what is no object of the API.
func (o *Output) Value(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "    ")
	if err == nil && o.Format == OutputYAML {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("print value: %w", err)
	}
	if o.Format == OutputJSON {
		text = append(text, '\n')
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("print value: %w", err)
	}
	return nil
}

// List prints a list of the API: a table, what to say when it is empty, or the
// list in another format.
func (a *Env) List(o *Output, list runtime.Object, table *term.Table, none string) error {
	if !o.Table() {
		return o.Object(a.Streams.Out, list)
	}
	if len(table.Rows) == 0 {
		a.Warn("%s\n", none)
		return nil
	}
	a.Table(o, table)
	return nil
}

// Table prints a table; a wide one is never cut.
func (a *Env) Table(o *Output, t *term.Table) {
	a.Say("%s", t.Render(a.StyleOf(o)))
}

// StyleOf is the style of an output: a wide one has all columns, and no line of it is broken or cut.
func (a *Env) StyleOf(o *Output) term.Style {
	style := a.Style()
	if o.Wide() {
		style.Width, style.Wide = 0, true
	}
	return style
}
