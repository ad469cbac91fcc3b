// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
)

// tree is the root folder of the repository.
const tree = "../../../.."

var (
	// shells are the code blocks with command lines.
	shells = regexp.MustCompile("(?ms)^ *```(?:sh|bash|console)\n(.*?)^ *```")
	// blocks are all code blocks.
	blocks = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	// called matches the name of a command in a sentence, or a command line.
	called = regexp.MustCompile("`((?:kubectl )?bellwether(?: [^`\n]*)?)`")
	// oneWord matches one word of a shell, with quotes, substitutions and variables.
	oneWord = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|\$\([^)]*\)|[^\s'"])+`)
	// ended matches the end of a program's command line: a comment, a pipe, a redirection, or another command.
	ended = regexp.MustCompile(` (?:#|\||\d?>|&&|;|&$).*$`)
	// begins are the places of a line at which a command line of this program can begin.
	begins = regexp.MustCompile(`(?:^|\| |&& |\$\()(?:[A-Z_]+=\S+ )*((?:kubectl )?bellwether .*)$`)
)

// TestDocsNameRealCommands parses each command line of bellwether in the README and the docs with the existing
// commands, flags and arguments. A command in a sentence may have incomplete flags and arguments.
func TestDocsNameRealCommands(t *testing.T) {
	lines, mentions := map[string]bool{}, map[string]bool{}
	whole := New(command.NewEnv("bellwether", genericiooptions.NewTestIOStreamsDiscard()))
	for _, page := range pages(t) {
		text, err := os.ReadFile(path.Join(tree, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range shells.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
				for _, match := range begins.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
					if lines[match[1]] {
						continue
					}
					lines[match[1]] = true
					if err := parse(t, wordsOf(match[1])); err != nil {
						t.Errorf("%s: %s: %v", page, match[1], err)
					}
				}
			}
		}
		for _, match := range called.FindAllStringSubmatch(blocks.ReplaceAllString(string(text), ""), -1) {
			name := strings.ReplaceAll(match[1], "<br />", " ") // in tables of the API
			if mentions[name] {
				continue
			}
			mentions[name] = true
			if err := exists(whole, wordsOf(name)); err != nil {
				t.Errorf("%s: %s: %v", page, name, err)
			}
		}
	}
	if len(lines) < 100 || len(mentions) < 100 {
		t.Errorf("found only %d command lines and %d names of commands", len(lines), len(mentions))
	}
	for _, wrong := range []string{"fleet lst", "fleet", "fleet list --rubbish", "lst"} {
		if err := exists(whole, strings.Fields(wrong)); (err == nil) != (wrong == "fleet") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// pages are the README and the docs, without the reference that the commands themselves write.
func pages(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md"}
	err := fs.WalkDir(os.DirFS(tree), "docs", func(name string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == "docs/reference/cli.md":
			return nil
		case path.Ext(name) == ".md":
			out = append(out, name)
		}
		return nil
	})
	if err != nil || len(out) < 100 {
		t.Fatalf("found only %d pages (%v)", len(out), err)
	}
	return out
}

// wordsOf returns the words of a command line after the name of the program.
func wordsOf(line string) []string {
	line = strings.TrimPrefix(ended.ReplaceAllString(line, ""), "kubectl ")
	words := oneWord.FindAllString(line, -1)[1:]
	for i, word := range words {
		words[i] = strings.Trim(word, `'"`)
	}
	return words
}

// exists checks that a command and its flags exist. Other words after a command are arguments or values; a command that
// only has subcommands must have none.
func exists(root *cobra.Command, words []string) error {
	c, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	for _, word := range rest {
		name, isFlag := strings.CutPrefix(strings.Trim(word, "[]"), "--")
		name, _, _ = strings.Cut(name, "=")
		switch {
		case isFlag && name != "help" && c.Flag(name) == nil:
			return fmt.Errorf("`%s` has no flag --%s", c.CommandPath(), name)
		case !strings.HasPrefix(word, "-") && c.HasSubCommands():
			return fmt.Errorf("there is no command `%s %s`", c.CommandPath(), word)
		}
	}
	return nil
}
