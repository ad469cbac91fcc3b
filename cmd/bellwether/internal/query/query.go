// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package query has the command that asks the hub's inventory what the fleet was at a time.
package query

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/inventory"
)

const queryLong = `Query the inventory: what the fleet is, and what it was at an earlier time.

The hub records its clusters, operators, rollouts, gates and decisions if it runs with
--inventory-file. A query is either the name of a question with its arguments, or a SELECT
statement in the SQL of SQLite on the views of the inventory. Without arguments, the
command lists the questions; --views lists the views and their columns.

A view such as installs has the rows that were true at the time of --at, by default now. A
view such as installs_history has all rows up to that time, each with valid_from and
valid_to. The column observed_until says until when a row was observed: if it is earlier
than --at, the cluster did not report at that time, or the hub did not run.

You see the operators of the namespaces whose ManagedOperators you may list. --inventory is
the address of the hub's inventory, which identifies you by the token in your kubeconfig.`

const queryExample = `  bellwether query who-ran operator=echo version=1.2.0 --at 2026-11-24T10:00Z
  bellwether query changes-on-cluster cluster=prod-1 since=-1d
  bellwether query approvals since=2026-11-01 -o csv
  bellwether query "SELECT version, count(*) AS clusters FROM installs GROUP BY version"`

// outputCSV is the output format for a table with commas.
const outputCSV = "csv"

// app is the environment of the commands in this package.
type app struct{ *command.Env }

type options struct {
	at      string
	isViews bool
	server  serverFlags
	out     command.Output
}

// Command returns the command query.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	var o options
	c := &cobra.Command{
		Use: "query [QUESTION [NAME=VALUE...] | SQL]", Short: "Ask what the fleet was at a time, in SQL or by name",
		Long: queryLong, Example: queryExample, Args: cobra.ArbitraryArgs,
		ValidArgsFunction: completeQuestions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.out.Check(); err != nil {
				return err
			}
			switch {
			case o.isViews && len(args) > 0:
				return exit.Hintf("leave out one of them", "--views and a query exclude each other")
			case o.isViews:
				return a.printViews(&o.out)
			case len(args) == 0:
				return a.printQuestions(&o.out)
			default:
				return a.query(c.Context(), &o, args)
			}
		},
	}
	c.Flags().StringVar(&o.at, "at", "", "The `TIME` that the query is about, for example 2026-11-24T10:00Z, "+
		"2026-11-24, -2h or -7d. Default: now.")
	c.Flags().BoolVar(&o.isViews, "views", false, "List the views and their columns.")
	o.server.add(c)
	o.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, outputCSV)
	return c
}

// completeQuestions completes the names of questions and of their parameters.
func completeQuestions(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		var names []string
		for _, q := range inventory.Questions() {
			names = append(names, q.Name+"\t"+q.Doc)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	question, _ := inventory.FindQuestion(args[0])
	var names []string
	for _, p := range question.Parameters {
		names = append(names, p.Name+"=\t"+p.Doc)
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// query sends the query of the arguments and prints the answer.
func (a *app) query(ctx context.Context, o *options, args []string) error {
	request, err := parseRequest(args)
	if err != nil {
		return err
	}
	if request.At, err = parseTime(o.at, a.Now()); err != nil {
		return err
	}
	server, err := a.connect(&o.server)
	if err != nil {
		return err
	}
	answer, err := server.query(ctx, request)
	if err != nil {
		return err
	}
	a.warnOfGaps(answer)
	return a.printAnswer(&o.out, answer)
}

// parseRequest returns the query of the arguments of the command line.
func parseRequest(args []string) (inventory.Request, error) {
	if strings.ContainsAny(args[0], " \t\n") {
		if len(args) > 1 {
			return inventory.Request{}, exit.Hintf("put the whole statement in quotes", "unexpected argument %q",
				args[1])
		}
		return inventory.Request{SQL: args[0]}, nil
	}
	request := inventory.Request{Question: args[0], Arguments: map[string]string{}}
	for _, arg := range args[1:] {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return request, exit.Hintf("write it as NAME=VALUE; a SELECT statement has to be in quotes",
				"invalid argument %q", arg)
		}
		request.Arguments[name] = value
	}
	return request, nil
}

// parseTime returns the time of --at; nil if it is not set.
func parseTime(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := inventory.ParseTime(text, now)
	if err != nil {
		return nil, exit.Hintf(inventory.ErrTime.Error(), "invalid value %q of --at", text)
	}
	return &at, nil
}

// tolerance is how long ago the hub's last observation may be without a warning.
const tolerance = time.Minute

// warnOfGaps says if the hub did not observe the fleet at the time of the query, and if rows are missing.
func (a *app) warnOfGaps(answer *inventory.Answer) {
	if until := answer.Observed[inventory.FromHub]; answer.At.Sub(until) > tolerance {
		a.Warn("The hub did not observe the fleet at %s. The answer is what it observed last, at %s.\n",
			term.Instant(answer.At), term.Instant(until))
	}
	if answer.Truncated {
		a.Warn(
			"There are more rows than the first %d, which are shown. Add a condition or a LIMIT.\n",
			len(answer.Rows),
		)
	}
}

// printAnswer prints the rows of an answer.
func (a *app) printAnswer(out *command.Output, answer *inventory.Answer) error {
	switch {
	case out.Format == outputCSV:
		return writeCSV(a.Streams.Out, answer)
	case !out.Table():
		return out.Value(a.Streams.Out, listObjects(answer))
	case len(answer.Rows) == 0:
		a.Warn("No rows.\n")
		return nil
	}
	table := &term.Table{Wrap: out.Wide()}
	for _, name := range answer.Columns {
		table.Header = append(table.Header, strings.ToUpper(name))
	}
	for _, row := range answer.Rows {
		var cells []term.Cell
		for _, value := range row {
			cells = append(cells, term.Cell{Text: formatValue(value, "-")})
		}
		table.Add(cells...)
	}
	a.Say("%s", table.Render(a.StyleOf(out)))
	return nil
}

// formatValue returns the text of a value. null is the text of a missing value.
func formatValue(value any, null string) string {
	if value == nil {
		return null
	}
	return fmt.Sprint(value)
}

// writeCSV writes the rows as CSV, with the names of the columns first. A missing value is empty.
func writeCSV(to io.Writer, answer *inventory.Answer) error {
	w := csv.NewWriter(to)
	_ = w.Write(answer.Columns) // Error returns it
	for _, row := range answer.Rows {
		var texts []string
		for _, value := range row {
			texts = append(texts, formatValue(value, ""))
		}
		_ = w.Write(texts)
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("print rows: %w", err)
	}
	return nil
}

// listObjects returns the rows as objects with a field for each column.
func listObjects(answer *inventory.Answer) []map[string]any {
	objects := make([]map[string]any, 0, len(answer.Rows))
	for _, row := range answer.Rows {
		object := map[string]any{}
		for i, name := range answer.Columns {
			object[name] = row[i]
		}
		objects = append(objects, object)
	}
	return objects
}

// printQuestions prints the questions with their parameters.
func (a *app) printQuestions(out *command.Output) error {
	if !out.Table() {
		return out.Value(a.Streams.Out, inventory.Questions())
	}
	table := &term.Table{Header: []string{"QUESTION", "ARGUMENTS", "ANSWER"}, Wrap: true}
	for _, q := range inventory.Questions() {
		var arguments []string
		for _, p := range q.Parameters {
			text := p.Name + "="
			if p.IsOptional {
				text = "[" + text + "]"
			}
			arguments = append(arguments, text)
		}
		table.Add(term.Cell{Text: q.Name}, term.Cell{Text: strings.Join(arguments, " ")}, term.Cell{Text: q.Doc})
	}
	a.Say("%s", table.Render(a.StyleOf(out)))
	return nil
}

// printViews prints the views and their columns.
func (a *app) printViews(out *command.Output) error {
	if !out.Table() {
		return out.Value(a.Streams.Out, inventory.Views())
	}
	style := a.StyleOf(out)
	for i, v := range inventory.Views() {
		if i > 0 {
			a.Say("\n")
		}
		a.Say("%s", style.Lines(term.Plain, v.Name+": "+phrase.OneLine(v.Doc)))
		table := &term.Table{Wrap: true}
		for _, c := range v.Columns {
			table.Add(
				term.Cell{Text: "  " + c.Name},
				term.Cell{Text: strings.ToLower(string(c.Type))},
				term.Cell{Text: c.Doc},
			)
		}
		a.Say("%s", table.Render(style))
	}
	return nil
}
