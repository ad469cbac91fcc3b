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

// OutputHTML is the output format for an HTML page.
const OutputHTML = "html"

// OutputMarkdown is the output format for Markdown.
const OutputMarkdown = "markdown"

// Output formats of graphs.
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

// Output is the value of the flag -o, and its allowed values.
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

// Check returns an error if the format is not an allowed format.
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

// Table reports whether the format is a table.
func (o *Output) Table() bool { return o.Format == OutputTable || o.Format == OutputWide }

// Wide reports whether the format is a table with all columns.
func (o *Output) Wide() bool { return o.Format == OutputWide }

// Object prints an object or a list of the API as JSON, as YAML or by its name.
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
	printObject := func(obj runtime.Object) error {
		if err := printer.PrintObj(obj, w); err != nil {
			return fmt.Errorf("print object: %w", err)
		}
		return nil
	}
	if o.Format == OutputName && meta.IsListType(obj) { // NamePrinter does not accept lists
		return meta.EachListItem(obj, printObject)
	}
	return printObject(obj)
}

// setKinds sets the kind of each item of a list. A typed client omits the kinds, and a
// reader of the output needs them.
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

// Value prints a value that is not an object of the API, as JSON or YAML.
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

// List prints a list of the API: as a table, or in another format. For an empty table it
// prints emptyMessage on stderr.
func (a *Env) List(o *Output, list runtime.Object, table *term.Table, emptyMessage string) error {
	if !o.Table() {
		return o.Object(a.Streams.Out, list)
	}
	if len(table.Rows) == 0 {
		a.Warn("%s\n", emptyMessage)
		return nil
	}
	a.Table(o, table)
	return nil
}

// Table prints a table. A wide table is never cut.
func (a *Env) Table(o *Output, t *term.Table) {
	a.Say("%s", t.Render(a.StyleOf(o)))
}

// StyleOf returns the style for an output. A wide output has all columns, and its lines are not broken or cut.
func (a *Env) StyleOf(o *Output) term.Style {
	style := a.Style()
	if o.Wide() {
		style.Width, style.Wide = 0, true
	}
	return style
}
