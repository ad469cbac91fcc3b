// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
)

// oneArg takes exactly one argument and names it where it is missing.
func oneArg(what string) cobra.PositionalArgs { return exactArgs(what) }

// exactArgs takes exactly the arguments that it is given the meanings of.
func exactArgs(what ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		usage := "usage: " + c.UseLine()
		switch {
		case len(args) < len(what):
			return hintf(usage, "give %s", strings.Join(what[len(args):], " and "))
		case len(args) > len(what):
			return hintf(usage, "%q is one argument too many", args[len(what)])
		}
		return nil
	}
}

// atMostOne takes one argument or none.
func atMostOne(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return hintf("usage: "+c.UseLine(), "%q is one argument too many", args[1])
	}
	return nil
}

func parseSelector(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, hintf("write it as env=prod,region!=eu", "the selector %q is not one: %w", text, err)
	}
	return selector, nil
}
