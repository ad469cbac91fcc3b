// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oncall has the commands for people on call. It reads the hub, Prometheus and Alertmanager. Package handover
// makes the report from this data.
package oncall

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/explain/handover"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command oncall with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.NewParent("oncall", "Report what the next person on call has to know", []string{"on-call"},
		a.newHandoverCommand())
}

const handoverLong = `Write the report of a shift for the next person on call, as Markdown: first what
is open now, then what happened in the shift. It has the alerts of Bellwether's
rules, rollouts, held versions, error budgets, silences, vetoes and freezes,
offline clusters and closed change windows.

Alerts and error budgets come from Prometheus, silences from Alertmanager, and
everything else from the hub. If one of them cannot be read, the report says so in
each section that needs it, and the command fails after it has written the report.
Without an address of Prometheus or Alertmanager, the report says so, and the
command does not fail.

The shift is the last 12 hours. Set --since, or --from and --to, for another one.
Times are RFC 3339 such as 2026-11-22T08:00:00Z, or "2026-11-22 08:00" or 08:00 in
the time zone of --time-zone.

All namespaces are reported. With -n, only the operators of that namespace are, and
what is not about an operator.`

// handoverOptions are the flags of the report.
type handoverOptions struct {
	out          command.Output
	prometheus   command.PrometheusFlags
	alertmanager command.AlertmanagerFlags
	shift        shiftFlags
	limit        int
	scope        command.Scope
}

func (o *handoverOptions) addFlags(c *cobra.Command) {
	o.out.Add(c, command.OutputMarkdown, command.OutputJSON, command.OutputYAML)
	o.prometheus.Add(c)
	o.alertmanager.Add(c)
	o.shift.addFlags(c)
	o.scope.Add(c)
	c.Flags().IntVar(&o.limit, "limit", 20, "The maximum length of each list. 0 means no limit.")
}

func (a *app) newHandoverCommand() *cobra.Command {
	var o handoverOptions
	c := &cobra.Command{
		Use: "handover", Short: "Report what is open, and what happened in the last shift", Long: handoverLong,
		Args: command.NoArgs,
		Example: "  bellwether oncall handover --prometheus http://localhost:9090 " +
			"--alertmanager http://localhost:9093\n" +
			"  bellwether oncall handover --from 20:00 --to 08:00 --time-zone Europe/Berlin\n" +
			"  bellwether oncall handover --since 168h -o json > handover.json",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.out.Check(); err != nil {
				return err
			}
			if o.limit < 0 {
				return exit.Hintf("use 0 for no limit", "invalid value %d of --limit", o.limit)
			}
			in, err := o.shift.computeShift(a.Now().Truncate(time.Second))
			if err != nil {
				return err
			}
			if in.Namespace, err = o.scope.ReadNamespace(a.Env); err != nil {
				return err
			}
			in.Most, in.Program = o.limit, a.Self
			failed := a.readInput(c.Context(), &o, &in)
			if err := c.Context().Err(); err != nil { // interrupted
				return err
			}
			if err := a.printReport(&o.out, handover.New(in)); err != nil {
				return err
			}
			if len(failed) > 0 {
				return exit.Hintf("its sections say why", "the report is not complete: cannot read %s",
					strings.Join(failed, ", "))
			}
			return nil
		},
	}
	o.addFlags(c)
	return c
}

// printReport prints a report. Without -o, the report is Markdown with lines that fit the terminal.
func (a *app) printReport(out *command.Output, report handover.Report) error {
	switch out.Format {
	case command.OutputTable: // the default; this report has no table
		a.Say("%s", report.Markdown(a.Style().Width))
		return nil
	case command.OutputMarkdown:
		a.Say("%s", report.Markdown(0))
		return nil
	}
	return out.Value(a.Streams.Out, report)
}

// shiftFlags are the flags that select the time of the report.
type shiftFlags struct {
	from, to, zone string
	since          time.Duration
}

// Limits of a shift.
const (
	defaultShift  = 12 * time.Hour
	shortestShift = time.Minute
	longestShift  = 31 * 24 * time.Hour
)

func (f *shiftFlags) addFlags(c *cobra.Command) {
	c.Flags().DurationVar(&f.since, "since", 0, "The length of the shift, which ends now or at --to. Default: 12h.")
	c.Flags().StringVar(&f.from, "from", "", "The `TIME` at which the shift began.")
	c.Flags().StringVar(&f.to, "to", "", "The `TIME` at which the shift ended. Default: now.")
	c.Flags().StringVar(&f.zone, "time-zone", "UTC",
		"The time zone of times without one, and of the report: a `NAME` such as Europe/Berlin, or Local.")
}

// computeShift returns an input with the start, the end and the time zone of the shift.
func (f *shiftFlags) computeShift(now time.Time) (handover.Input, error) {
	in := handover.Input{Now: now, To: now}
	var err error
	if in.Zone, err = time.LoadLocation(f.zone); err != nil {
		return in, exit.Hintf("use a name of the IANA time zone database such as Europe/Berlin, UTC or Local",
			"invalid value %q of --time-zone", f.zone)
	}
	if f.to != "" {
		if in.To, err = parseTime("--to", f.to, now, in.Zone); err != nil {
			return in, err
		}
	}
	switch {
	case f.from != "" && f.since != 0:
		return in, exit.Hintf("set only one of them", "--from and --since exclude each other")
	case f.from != "":
		if in.From, err = parseTime("--from", f.from, in.To, in.Zone); err != nil {
			return in, err
		}
	default:
		in.From = in.To.Add(-cmp.Or(f.since, defaultShift))
	}
	switch length := in.To.Sub(in.From); {
	case in.To.After(now):
		return in, exit.Hintf("leave --to out for a shift that ends now", "the shift ends in the future, at %s",
			in.To.Format(time.RFC3339))
	case length < shortestShift || now.Sub(in.From) > longestShift:
		return in, exit.Hintf("use at least 1m, and begin at most 744h (31 days) ago",
			"invalid shift from %s to %s", in.From.Format(time.RFC3339), in.To.Format(time.RFC3339))
	}
	return in, nil
}

// parseTime parses the value of a flag. A time of day is the last such time that is not after notAfter; for --from it
// must be before notAfter, because a shift has a length.
func parseTime(flag, text string, notAfter time.Time, zone *time.Location) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05"} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	at, err := time.Parse("15:04", text)
	if err != nil {
		return at, exit.Hintf("use a time such as 2026-11-22T08:00:00Z, \"2026-11-22 08:00\" or 08:00",
			"invalid value %q of %s", text, flag)
	}
	day := notAfter.In(zone)
	at = time.Date(day.Year(), day.Month(), day.Day(), at.Hour(), at.Minute(), 0, 0, zone)
	isEmptyShift := flag == "--from" && at.Equal(notAfter)
	if at.After(notAfter) || isEmptyShift {
		at = time.Date(day.Year(), day.Month(), day.Day()-1, at.Hour(), at.Minute(), 0, 0, zone)
	}
	return at, nil
}

// formatSource returns the name and address of a server, for an error.
func formatSource(name, address string) string { return fmt.Sprintf("%s at %s", name, address) }
