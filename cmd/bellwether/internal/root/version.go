// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/explain/remedy"
	"github.com/bellwether-dev/bellwether/version"
)

func (a *app) versionCommand() *cobra.Command {
	var out command.Output
	c := &cobra.Command{
		Use: "version", Short: "Print the versions of bellwether and of the built-in chart", Args: command.NoArgs,
		Example: "  bellwether version -o json",
		RunE: func(*cobra.Command, []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			ch, err := charts.Load()
			if err != nil {
				return err
			}
			info := version.Get()
			v := struct {
				version.Info
				Chart string `json:"chart"`
			}{info, ch.AppVersion()}
			if !out.Table() {
				return out.Value(a.Streams.Out, v)
			}
			a.Say("bellwether %s\nbuilt-in hub and agent: %s\n%s\n", info, v.Chart, v.Go)
			return nil
		},
	}
	out.Add(c, command.OutputJSON, command.OutputYAML)
	return c
}

// docsCommand writes the reference that the repository keeps.
func (a *app) docsCommand() *cobra.Command {
	var reasons string
	c := &cobra.Command{
		Use: "docs DIR", Short: "Write the reference of all commands as Markdown",
		Args: command.OneArg("the folder to write to"), Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			root.DisableAutoGenTag = true
			fenceIndented(root)
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // documentation is for everyone
				return fmt.Errorf("make folder: %w", err)
			}
			if err := doc.GenMarkdownTree(root, args[0]); err != nil {
				return fmt.Errorf("write command reference: %w", err)
			}
			if reasons == "" {
				return nil
			}
			//nolint:gosec // as above
			if err := os.WriteFile(filepath.Clean(reasons), []byte(remedy.Markdown()),
				0o644); err != nil {
				return fmt.Errorf("write reference of reasons: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&reasons, "reasons", "", "Write the reference of condition reasons to this file.")
	return c
}

var indented = regexp.MustCompile(`(?m)(?:^  .*(?:\n+|$))+`)

// fenceIndented makes code blocks of the indented lines of all help texts. Markdown would join them into a paragraph.
func fenceIndented(c *cobra.Command) {
	c.Long = indented.ReplaceAllStringFunc(c.Long, func(block string) string {
		text := strings.TrimRight(block, "\n")
		return "```\n" + text + "\n```" + block[len(text):]
	})
	for _, child := range c.Commands() {
		fenceIndented(child)
	}
}
