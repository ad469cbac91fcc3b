// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// texts are texts that a status may contain, and their escaped forms.
var texts = map[string]string{
	"plain, with Größe and 漢字\n\tand tabs": "plain, with Größe and 漢字\n\tand tabs",
	"\x1b]52;c;cm0gLXJm\a":                 `\u001b]52;c;cm0gLXJm\u0007`,
	"\x1b[2J\x1b[1;1H":                     `\u001b[2J\u001b[1;1H`,
	"a\rb\bc\x7f":                          `a\u000db\u0008c\u007f`,
	"\u009b31m":                            `\u009b31m`,
	"\u202egnp.exe\u2066\u061c\u2028":      `\u202egnp.exe\u2066\u061c\u2028`,
	"\xff\xc3":                             `\xff\xc3`,
}

func TestTextThatActs(t *testing.T) {
	for text, want := range texts {
		got := Escape(text)
		if got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
		if again := Escape(got); again != got {
			t.Errorf("%q is escaped twice: %q", got, again)
		}
		var out bytes.Buffer
		w := &Writer{Writer: &out}
		for i := range len(text) { // byte by byte
			if n, err := w.Write([]byte{text[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if got := out.String(); got != want && !strings.HasSuffix(text, "\xc3") {
			t.Errorf("%q is written as %q, want %q", text, got, want)
		}
	}
}

// TestColoursAreOurs: painted text is coloured, and control characters in the text have no effect.
func TestColoursAreOurs(t *testing.T) {
	var out bytes.Buffer
	s, w := Style{Colour: true}, &Writer{Writer: &out}
	table := &Table{Header: []string{"NAME"}}
	table.Add(Bad.Cell("\x1b[32mhealthy\x1b[0m"), Plain.Cell("x"))
	for _, text := range []string{s.Paint(Good, "ok") + "\n", s.Paint(Bad, "\x1b[32mok\x1b[2J") + "\n",
		table.Render(s)} {
		for i := range len(text) {
			if _, err := w.Write([]byte{text[i]}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := "\x1b[32mok\x1b[0m\n\x1b[31m\\u001b[32mok\\u001b[2J\x1b[0m\n\x1b[2mNAME\x1b[0m\n" +
		"\x1b[31m\\u001b[32mhealthy\\u001b[0m\x1b[0m   x\n"
	if out.String() != want {
		t.Errorf("got %q\nwant %q", out.String(), want)
	}
}

func FuzzEscape(f *testing.F) {
	for text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Escape(text)
		if strings.ContainsFunc(got, needsEscape) || !utf8.ValidString(got) || Escape(got) != got {
			t.Errorf("%q is shown as %q", text, got)
		}
	})
}
