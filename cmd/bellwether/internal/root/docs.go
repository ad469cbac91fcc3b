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

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/bundles/lint"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
)

// newDocsCommand returns the command that writes the generated parts of the reference.
func (a *app) newDocsCommand() *cobra.Command {
	var pages bool
	c := &cobra.Command{
		Use: "docs DIR", Short: "Write the reference of commands, lint rules and condition reasons as Markdown",
		Args: command.OneArg("the folder to write to"), Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			root, dir := c.Root(), args[0]
			fenceIndented(root)
			commandPages, rulePages := "", ""
			if pages {
				commandPages, rulePages = "cli", "rules"
				err := writePages(root, filepath.Join(dir, commandPages), filepath.Join(dir, rulePages))
				if err != nil {
					return err
				}
			}
			return writeFiles(dir, map[string]string{
				"cli.md":     buildCommandIndex(root, commandPages),
				"rules.md":   lint.Index(rulePages),
				"reasons.md": remedy.Markdown(),
			})
		},
	}
	c.Flags().BoolVar(&pages, "pages", false, "Write a page about each command and each rule as well, for the site.")
	return c
}

// writePages writes a page about each command to the folder commands, and a page about each rule to the folder rules.
func writePages(root *cobra.Command, commands, rules string) error {
	if err := writeFiles(commands, nil); err != nil { // only creates the folder
		return err
	}
	root.DisableAutoGenTag = true
	if err := doc.GenMarkdownTree(root, commands); err != nil {
		return fmt.Errorf("write command reference: %w", err)
	}
	files := map[string]string{}
	for _, rule := range lint.Rules() {
		files[rule.ID+".md"] = rule.Markdown()
	}
	return writeFiles(rules, files)
}

// writeFiles writes files to a folder. It creates the folder if it does not exist.
func writeFiles(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // all users may read the documentation
		return fmt.Errorf("make folder: %w", err)
	}
	for name, text := range files {
		//nolint:gosec // all users may read the documentation
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write reference: %w", err)
		}
	}
	return nil
}

// buildCommandIndex returns the page that lists all commands, with an anchor for each command. pages is the folder of
// their pages, relative to the index; if it is empty, the commands are not links.
func buildCommandIndex(root *cobra.Command, pages string) string {
	var out strings.Builder
	out.WriteString("# Commands\n\nWhat `bellwether` can do. `bellwether COMMAND --help` says more: flags, examples " +
		"and exit codes. This page is written by `make generate`, from the commands themselves; the site has a page " +
		"about each command.\n")
	for _, c := range root.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		fmt.Fprintf(&out, "\n## %s\n\n%s.\n", c.CommandPath(), c.Short)
		if !c.HasAvailableSubCommands() {
			if pages != "" {
				fmt.Fprintf(&out, "\n[More](%s)\n", formatPagePath(c, pages))
			}
			continue
		}
		out.WriteString("\n| command | what it does |\n|---|---|\n")
		writeCommandRows(&out, c, pages)
	}
	return out.String()
}

// writeCommandRows writes a table row for each command below c.
func writeCommandRows(out *strings.Builder, c *cobra.Command, pages string) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		name := "`" + sub.CommandPath() + "`"
		if pages != "" {
			name = fmt.Sprintf("[%s](%s)", name, formatPagePath(sub, pages))
		}
		anchor := strings.ReplaceAll(sub.CommandPath(), " ", "-")
		fmt.Fprintf(out, "| <a id=\"%s\"></a>%s | %s |\n", anchor, name, sub.Short)
		writeCommandRows(out, sub, pages)
	}
}

// formatPagePath returns the path of the file that Cobra writes about a command.
func formatPagePath(c *cobra.Command, pages string) string {
	return pages + "/" + strings.ReplaceAll(c.CommandPath(), " ", "_") + ".md"
}

var indentedBlock = regexp.MustCompile(`(?m)(?:^  .*(?:\n+|$))+`)

// fenceIndented changes the indented lines in all help texts to code blocks. Markdown would
// join these lines to a paragraph.
func fenceIndented(c *cobra.Command) {
	c.Long = indentedBlock.ReplaceAllStringFunc(c.Long, func(block string) string {
		text := strings.TrimRight(block, "\n")
		return "```\n" + text + "\n```" + block[len(text):]
	})
	for _, child := range c.Commands() {
		fenceIndented(child)
	}
}
