// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// OneArg requires exactly one argument. name describes the argument in the error message.
func OneArg(name string) cobra.PositionalArgs { return ExactArgs(name) }

// ExactArgs requires one argument for each name. The names describe the arguments in the error message.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		usage := "usage: " + c.UseLine()
		switch {
		case len(args) < len(names):
			return exit.Hintf(usage, "missing argument: %s", strings.Join(names[len(args):], " and "))
		case len(args) > len(names):
			return exit.Hintf(usage, "unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// NoArgs refuses all arguments. The function of Cobra with this name would report an unknown command instead.
func NoArgs(c *cobra.Command, args []string) error { return ExactArgs()(c, args) }

// AtMostOne requires one argument or none.
func AtMostOne(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exit.Hintf("usage: "+c.UseLine(), "unexpected argument %q", args[1])
	}
	return nil
}

// ParseSelector parses a label selector. The error for an invalid selector has an example.
func ParseSelector(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, exit.Hintf("use the form env=prod,region!=eu", "invalid label selector %q: %w", text, err)
	}
	return selector, nil
}
