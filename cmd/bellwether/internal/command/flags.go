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

// FlagError is an error of pflag with what to do about it. What is wrong with a value is said in the words of a user,
// not in those of the parser.
func FlagError(c *cobra.Command, err error) error {
	help := "see `" + c.CommandPath() + " --help`"
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return exit.Hint(err, help)
	}
	flag := invalid.GetFlag()
	if use, known := valuesOf[flag.Value.Type()]; known {
		help = "use " + use
	}
	return exit.Hintf(help, "invalid value %q of --%s", invalid.GetValue(), flag.Name)
}

// valuesOf says what the values of a type of flag are.
var valuesOf = map[string]string{
	"bool": "true or false", "duration": "a duration such as 30s, 5m or 2h", "float64": "a number such as 14.4",
	"int": "a whole number", "int32": "a whole number", "uint64": "a whole number from 0",
	"stringToString": "KEY=VALUE",
}

// Required refuses a command line without one of these flags.
func Required(c *cobra.Command, names ...string) {
	for _, name := range names {
		_ = c.MarkFlagRequired(name) // for completion
	}
	alsoCheck(c, func(c *cobra.Command) error {
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

// Exclusive refuses a command line with more than one of these flags.
func Exclusive(c *cobra.Command, names ...string) {
	c.MarkFlagsMutuallyExclusive(names...) // for completion
	alsoCheck(c, func(c *cobra.Command) error {
		if given := given(c, names); len(given) > 1 {
			return exit.Hintf("set only one of them", "%s exclude each other", strings.Join(given, " and "))
		}
		return nil
	})
}

// OneRequired refuses a command line with none of these flags.
func OneRequired(c *cobra.Command, names ...string) {
	c.MarkFlagsOneRequired(names...) // for completion
	alsoCheck(c, func(c *cobra.Command) error {
		if len(given(c, names)) > 0 {
			return nil
		}
		var all []string
		for _, name := range names {
			all = append(all, "--"+name)
		}
		return exit.Hintf("set one of them", "none of %s is set", strings.Join(all, ", "))
	})
}

// given are those of the flags that the user set.
func given(c *cobra.Command, names []string) []string {
	var out []string
	for _, name := range names {
		if c.Flags().Changed(name) {
			out = append(out, "--"+name)
		}
	}
	return out
}

// alsoCheck adds a check to that of the arguments. Cobra's own checks of flags come later, and speak of groups.
func alsoCheck(c *cobra.Command, check func(*cobra.Command) error) {
	before := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if before != nil {
			if err := before(c, args); err != nil {
				return err
			}
		}
		return check(c)
	}
}

// Timeout adds the flag --timeout, and refuses one that is over before it began. Where the default is 0, that means no
// timeout.
func Timeout(c *cobra.Command, p *time.Duration, value time.Duration, usage string) {
	c.Flags().DurationVar(p, "timeout", value, usage)
	alsoCheck(c, func(*cobra.Command) error {
		if *p > 0 || *p == value {
			return nil
		}
		return exit.Hintf("use "+valuesOf["duration"], "invalid value %q of --timeout", *p)
	})
}

// ErrorsAre makes a command whose exit status 1 is an answer end with another one after an error of any kind, also of
// its flags and arguments. It comes after everything else that is set on the command.
func (a *Env) ErrorsAre(code int, c *cobra.Command) *cobra.Command {
	as := func(err error) error {
		var answer *exit.CodeError
		if err == nil || errors.As(err, &answer) {
			return err
		}
		a.report(err)
		return &exit.CodeError{Code: code}
	}
	args, run := c.Args, c.RunE
	c.Args = func(c *cobra.Command, given []string) error { return as(args(c, given)) }
	c.RunE = func(c *cobra.Command, given []string) error { return as(run(c, given)) }
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return as(FlagError(c, err)) })
	return c
}
