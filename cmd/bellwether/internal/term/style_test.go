// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLines(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		width int
		want  int
	}{
		"one":               {text: "a\n", width: 10, want: 1},
		"two":               {text: "a\nb\n", width: 10, want: 2},
		"wrapped":           {text: "aaaaaaaaaaa\n", width: 10, want: 2},
		"exactly full":      {text: "aaaaaaaaaa\n", width: 10, want: 1},
		"colour is nothing": {text: Style{Colour: true}.Paint(Bad, "aaaaaaaaaa") + "\n", width: 10, want: 1},
		"unknown width":     {text: "aaaaaaaaaaaaaaaaaaaaaa\n", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Lines(test.text, test.width); got != test.want {
				t.Errorf("%d lines, want %d", got, test.want)
			}
		})
	}
}

// TestTableBelow: the text of the last column is below the other columns if it does not fit next to them, and a word is
// not broken.
func TestTableBelow(t *testing.T) {
	const name, version = "openshift-cert-manager-operator", "1.13.1-202409180000"
	table := func(text string) *Table {
		t := &Table{Header: []string{"NAME", "VERSION", "MESSAGE"}, Wrap: true}
		t.Add(PlainCells(name, version, text)...)
		t.Add(PlainCells("a", "b", "short")...)
		return t
	}
	for name, test := range map[string]struct {
		text  string
		width int
		want  string
	}{
		"beside": {"one two three four five six seven eight nine ten eleven", 100, "" +
			"NAME                              VERSION               MESSAGE\n" +
			"openshift-cert-manager-operator   1.13.1-202409180000   one two three four five six seven eight nine\n" +
			"                                                        ten eleven\n" +
			"a                                 b                     short\n"},
		"below": {"one two three four five six seven eight nine ten eleven twelve thirteen fourteen", 80, "" +
			"NAME                              VERSION\n" +
			"openshift-cert-manager-operator   1.13.1-202409180000\n" +
			"    one two three four five six seven eight nine ten eleven twelve thirteen\n" +
			"    fourteen\n" +
			"a                                 b\n" +
			"    short\n"},
		"a long word": {"see https://example.com/a/very/long/address/of/a/page for more", 100, "" +
			"NAME                              VERSION\n" +
			"openshift-cert-manager-operator   1.13.1-202409180000\n" +
			"    see https://example.com/a/very/long/address/of/a/page for more\n" +
			"a                                 b\n" +
			"    short\n"},
	} {
		if diff := cmp.Diff(test.want, table(test.text).Render(Style{Width: test.width})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCommand: a command that does not fit beside its text is on separate lines, which a shell joins.
func TestCommand(t *testing.T) {
	const command = "bellwether rollout approve echo-2 -n default"
	for width, want := range map[int]string{
		0:   "approve it with: " + command + "\n",
		120: "approve it with: " + command + "\n",
		50:  "approve it with:\n    " + command + "\n",
		40:  "approve it with:\n    " + command + "\n",
	} {
		if got := (Style{Width: width}).Command(Plain, "approve it with:", command); got != want {
			t.Errorf("in %d columns it is %q, want %q", width, got, want)
		}
	}
	first, rest := "bellwether "+strings.Repeat("a", 100), strings.Repeat("b", 20)
	want := "    " + first + " \\\n    " + rest + "\n"
	if got := (Style{Width: 120}).CommandLines(Plain, first+" "+rest, "    "); got != want {
		t.Errorf("a long command is %q", got)
	}
}

// TestDigestsAreShortened: a reference that is wider than a line has only the first part of its digest.
func TestDigestsAreShortened(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for columns, want := range map[int]string{0: digest, 80: digest, 40: "sha256:0123456789ab"} {
		if got := Wrap("fetch a@"+digest+": refused", columns); !slices.Contains(strings.Fields(strings.Join(got, " ")),
			"a@"+want+":") {
			t.Errorf("in %d columns it is %q", columns, got)
		}
	}
}
