// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// OneArg takes exactly one argument and names it where it is missing.
func OneArg(what string) cobra.PositionalArgs { return ExactArgs(what) }

// ExactArgs takes exactly the arguments that it is given the meanings of.
func ExactArgs(what ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		usage := "usage: " + c.UseLine()
		switch {
		case len(args) < len(what):
			return exit.Hintf(usage, "missing argument: %s", strings.Join(what[len(args):], " and "))
		case len(args) > len(what):
			return exit.Hintf(usage, "unexpected argument %q", args[len(what)])
		}
		return nil
	}
}

// NoArgs takes no argument. Cobra's function of this name says that the argument is an
// unknown command.
func NoArgs(c *cobra.Command, args []string) error { return ExactArgs()(c, args) }

// AtMostOne takes one argument or none.
func AtMostOne(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exit.Hintf("usage: "+c.UseLine(), "unexpected argument %q", args[1])
	}
	return nil
}

// ParseSelector parses a label selector, and says what is wrong with one that is
// not valid.
func ParseSelector(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, exit.Hintf("use the form env=prod,region!=eu", "invalid label selector %q: %w", text, err)
	}
	return selector, nil
}
