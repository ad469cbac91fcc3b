// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/view"
)

// Output formats of -o.
const (
	outputTable = ""
	outputWide  = "wide"
	outputJSON  = "json"
	outputYAML  = "yaml"
	outputName  = "name"
)

// output is the value of -o.
type output struct {
	format  string
	allowed []string
}

func (o *output) add(c *cobra.Command, allowed ...string) {
	o.allowed = allowed
	usage := "Output format: "
	for i, format := range allowed {
		if i > 0 {
			usage += ", "
		}
		usage += format
	}
	c.Flags().StringVarP(&o.format, "output", "o", "", usage+".")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

func (o *output) check() error {
	if o.format == outputTable {
		return nil
	}
	for _, format := range o.allowed {
		if o.format == format {
			return nil
		}
	}
	return hintf(fmt.Sprintf("choose one of %v, or leave it out for a table", o.allowed),
		"-o %s is not an output format of this command", o.format)
}

func (o *output) table() bool { return o.format == outputTable || o.format == outputWide }
func (o *output) wide() bool  { return o.format == outputWide }

// object prints an object or a list of the API.
func (o *output) object(w io.Writer, obj runtime.Object) error {
	var printer printers.ResourcePrinter
	switch o.format {
	case outputJSON:
		printer = &printers.JSONPrinter{}
	case outputYAML:
		printer = &printers.YAMLPrinter{}
	case outputName:
		printer = &printers.NamePrinter{}
	default:
		return fmt.Errorf("print an object as %q: %w", o.format, o.check())
	}
	if err := setKinds(obj); err != nil {
		return err
	}
	printer = &printers.OmitManagedFieldsPrinter{Delegate: printers.NewTypeSetter(scheme).ToPrinter(printer)}
	one := func(obj runtime.Object) error {
		if err := printer.PrintObj(obj, w); err != nil {
			return fmt.Errorf("print object: %w", err)
		}
		return nil
	}
	if o.format == outputName && meta.IsListType(obj) { // which the printer for names does not take
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
		kind, err := apiutil.GVKForObject(item, scheme)
		if err != nil {
			return fmt.Errorf("find the kind of a list's items: %w", err)
		}
		item.GetObjectKind().SetGroupVersionKind(kind)
		return nil
	})
}

// value prints what is no object of the API.
func (o *output) value(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "    ")
	if err == nil && o.format == outputYAML {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("print value: %w", err)
	}
	if o.format == outputJSON {
		text = append(text, '\n')
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("print value: %w", err)
	}
	return nil
}

// list prints a list of the API: a table, what to say when it is empty, or the
// list in another format.
func (a *app) list(o *output, list runtime.Object, table *view.Table, none string) error {
	if !o.table() {
		return o.object(a.streams.Out, list)
	}
	if len(table.Rows) == 0 {
		a.warn("%s\n", none)
		return nil
	}
	a.table(o, table)
	return nil
}

// table prints a table; a wide one is never cut.
func (a *app) table(o *output, t *view.Table) {
	style := a.style()
	if o.wide() {
		style.Width = 0
	}
	a.say("%s", t.Render(style))
}
