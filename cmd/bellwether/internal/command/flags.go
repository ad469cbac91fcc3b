// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// ExplainFlagError adds a hint to an error of pflag. An invalid value gets a message that does
// not use the terms of the parser.
func ExplainFlagError(c *cobra.Command, err error) error {
	help := "see `" + c.CommandPath() + " --help`"
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return exit.Hint(err, help)
	}
	flag := invalid.GetFlag()
	if use, ok := valueHints[flag.Value.Type()]; ok {
		help = "use " + use
	}
	return exit.Hintf(help, "invalid value %q of --%s", invalid.GetValue(), flag.Name)
}

// valueHints has the possible values of each type of flag.
var valueHints = map[string]string{
	"bool": "true or false", "duration": "a duration such as 30s, 5m or 2h", "float64": "a number such as 14.4",
	"int": "a whole number", "int32": "a whole number", "uint64": "a whole number from 0",
	"stringToString": "KEY=VALUE",
}

// RequireFlags makes a command refuse a command line that lacks one of these flags.
func RequireFlags(c *cobra.Command, names ...string) {
	for _, name := range names {
		_ = c.MarkFlagRequired(name) // for completion
	}
	addCheck(c, func(c *cobra.Command) error {
		var missing []string
		for _, name := range names {
			if !c.Flags().Changed(name) {
				missing = append(missing, "--"+name)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		return exit.Hintf("usage: "+c.UseLine(), "missing flag %s", strings.Join(missing, ", "))
	})
}

// ExcludeFlags makes a command refuse a command line with more than one of these flags.
func ExcludeFlags(c *cobra.Command, names ...string) {
	c.MarkFlagsMutuallyExclusive(names...) // for completion
	addCheck(c, func(c *cobra.Command) error {
		if given := listGivenFlags(c, names); len(given) > 1 {
			return exit.Hintf("set only one of them", "%s exclude each other", strings.Join(given, " and "))
		}
		return nil
	})
}

// RequireOneFlag makes a command refuse a command line with none of these flags.
func RequireOneFlag(c *cobra.Command, names ...string) {
	c.MarkFlagsOneRequired(names...) // for completion
	addCheck(c, func(c *cobra.Command) error {
		if len(listGivenFlags(c, names)) > 0 {
			return nil
		}
		var all []string
		for _, name := range names {
			all = append(all, "--"+name)
		}
		return exit.Hintf("set one of them", "none of %s is set", strings.Join(all, ", "))
	})
}

// listGivenFlags returns the flags of names that the user set, with "--".
func listGivenFlags(c *cobra.Command, names []string) []string {
	var out []string
	for _, name := range names {
		if c.Flags().Changed(name) {
			out = append(out, "--"+name)
		}
	}
	return out
}

// addCheck makes check run after the check of the arguments. The checks of flags in Cobra run later, and their
// messages describe groups of flags.
func addCheck(c *cobra.Command, check func(*cobra.Command) error) {
	checkArgs := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if checkArgs != nil {
			if err := checkArgs(c, args); err != nil {
				return err
			}
		}
		return check(c)
	}
}

// AddTimeout adds the flag --timeout, and refuses a timeout that is not positive. The default is always accepted; a
// default of 0 means no timeout.
func AddTimeout(c *cobra.Command, p *time.Duration, value time.Duration, usage string) {
	c.Flags().DurationVar(p, "timeout", value, usage)
	addCheck(c, func(*cobra.Command) error {
		if *p > 0 || *p == value {
			return nil
		}
		return exit.Hintf("use "+valueHints["duration"], "invalid value %q of --timeout", *p)
	})
}

// SetErrorCode makes a command end with this exit status after any error that is not a CodeError, also an error of
// its flags and arguments. It is for commands whose exit status 1 is a result. It must be called after all
// other settings of the command.
func (a *Env) SetErrorCode(code int, c *cobra.Command) *cobra.Command {
	setCode := func(err error) error {
		var coded *exit.CodeError
		if err == nil || errors.As(err, &coded) {
			return err
		}
		a.reportError(err)
		return &exit.CodeError{Code: code}
	}
	checkArgs, run := c.Args, c.RunE
	c.Args = func(c *cobra.Command, args []string) error { return setCode(checkArgs(c, args)) }
	c.RunE = func(c *cobra.Command, args []string) error { return setCode(run(c, args)) }
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return setCode(ExplainFlagError(c, err)) })
	return c
}
