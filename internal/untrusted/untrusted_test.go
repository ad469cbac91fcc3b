// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/internal/untrusted"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

// ways are all that decode YAML.
var ways = map[string]func([]byte) error{
	"ToJSON": func(text []byte) error { _, err := untrusted.ToJSON(text); return err },
	"Unmarshal": func(text []byte) error {
		var into any
		return untrusted.Unmarshal(text, &into)
	},
	"UnmarshalStrict": func(text []byte) error {
		var into any
		return untrusted.UnmarshalStrict(text, &into)
	},
}

// TestAliasBombs shows first what the library makes of each bomb: a thousand times its size.
func TestAliasBombs(t *testing.T) {
	plain := untrustedtest.AliasBomb("x")
	for name, bomb := range map[string]string{
		"plain":         plain,
		"after a break": strings.ReplaceAll(plain, ": &a", ":\r   &a"),
		"UTF-16":        untrustedtest.UTF16(plain),
	} {
		t.Run(name, func(t *testing.T) {
			taken := untrustedtest.Allocated(func() {
				if _, err := yaml.YAMLToJSON([]byte(bomb)); err != nil {
					t.Errorf("not a bomb: %v", err)
				}
			})
			if taken < 16<<20 {
				t.Errorf("the library takes %d bytes: not a bomb", taken)
			}
			for way, decode := range ways {
				untrustedtest.Bound(t, len(bomb), 1<<20, 200, func() {
					if err := decode([]byte(bomb)); !errors.Is(err, untrusted.ErrRefused) {
						t.Errorf("%s: %v", way, err)
					}
				})
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		text, says string
	}{
		"an unknown alias":       {"a: &b c\nd: *a\n", "may have aliases"},
		"an alias of itself":     {"a: &a\n  b: *a\n", "line 1: an anchor has an alias of itself"},
		"many values":            {"[" + strings.Repeat("a,", 300_000) + "a]", "250000 keys and values"},
		"many lines":             {strings.Repeat("- a\n", 150_000), "250000 keys and values"},
		"nested lists":           {strings.Repeat("- ", 9_000) + "a" + strings.Repeat("\n- b", 250_000), "250000"},
		"a long text":            {"a: " + strings.Repeat("x", 9<<20), "larger than 8 MiB"},
		"escapes":                {"a: '" + strings.Repeat("<", 3<<20) + "'", "larger than 16 MiB as JSON"},
		"bytes that are no text": {"a: \xff\xfe\n", "not UTF-8"},
		"a zero byte":            {"a: b\x00\n", "not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := untrusted.ToJSON([]byte(test.text))
			if !errors.Is(err, untrusted.ErrRefused) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %.200v, want %q", err, test.says)
			}
		})
	}
}

func TestRead(t *testing.T) {
	for name, text := range map[string]string{
		"an anchor only":         "a: &a b\n",
		"the signs in text":      "a: 'this & that * those'\nnote: |\n  *bold* &amp; <<: *a\n",
		"a condition":            "rule: self.a && !self.b &&self.c\n",
		"commas in long text":    "a: '" + strings.Repeat("well, ", 20_000) + "'\n",
		"JSON":                   `{"a": "&a *a"}`,
		"an ampersand at an end": "a: b &\n",
	} {
		t.Run(name, func(t *testing.T) {
			for way, decode := range ways {
				if err := decode([]byte(text)); err != nil {
					t.Errorf("%s: %v", way, err)
				}
			}
		})
	}
}

// TestAliases has sigs.k8s.io/yaml, with which opm and OLM read, say what each document is.
func TestAliases(t *testing.T) {
	item := "{" + strings.Repeat("a: b, ", 9) + "c: d}"
	for name, test := range map[string]struct{ text, says string }{
		"a value":                    {text: "a: &a b\nc: *a\n"},
		"a list":                     {text: "a: &a [1, 2]\nc: *a\n"},
		"a merge":                    {text: "a: &a {x: y}\nb: {<<: *a, z: 1}\n"},
		"a merge that is overridden": {text: "a: &a {x: y}\nb: {<<: *a, x: z}\n"},
		"merges of several":          {text: "a: &a {x: y}\nb: &b {x: z}\nc: {<<: [*a, *b]}\n"},
		"a key":                      {text: "a: &a b\nc: {*a : d}\n"},
		"as many as is permitted":    {text: "a: &a {x: y}\nb: [" + strings.Repeat("*a, ", 40_000) + "]\n"},
		"too many": {text: "a: &a {x: y, z: y, u: y}\nb: [" + strings.Repeat("*a, ", 40_000) + "]\n",
			says: "250000 keys and values, with its aliases expanded"},
		"too long": {text: "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a, ", 8) + "]\n",
			says: "8 MiB, with its aliases expanded"},
		"a field twice": {text: "a: &a " + strings.ReplaceAll(item, "a: b, a: b", "a: b, e: b, a: b") + "\nb: *a\n",
			says: `line 1: the field "a" is there twice`},
		"a key twice": {text: "a: &a b\nc: {*a : d, b: e}\n", says: `the field "b" is there twice`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := untrusted.ToJSON([]byte(test.text))
			if test.says != "" {
				if !errors.Is(err, untrusted.ErrRefused) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %.200v, want %q", err, test.says)
				}
				return
			}
			want, wantErr := yaml.YAMLToJSON([]byte(test.text))
			if err != nil || wantErr != nil || string(got) != string(want) {
				t.Errorf("got %.200s, %v, want %.200s, %v", got, err, want, wantErr)
			}
		})
	}
}

// TestObjectMeansOneThing has documents that decoders take for different things.
func TestObjectMeansOneThing(t *testing.T) {
	for name, test := range map[string]struct{ text, says string }{
		"a field twice":                   {`{"a": 1, "b": 2, "a": 3}`, `duplicate field "a"`},
		"a field of a field":              {`{"a": {"b": [{"c": 1, "c": 2}]}}`, `duplicate field "a.b[0].c"`},
		"a field, escaped":                {`{"install": 1, "in\u0073tall": 2}`, `duplicate field "install"`},
		"a field in YAML":                 {"a: 1\nb:\n  c: 1\n  c: 2\n", `line 4: the field "c" is there twice`},
		"a field in YAML, quoted":         {"a: 1\n\"a\": 2\n", `line 2: the field "a" is there twice`},
		"a field in YAML's flow style":    {`{a: 1, "a": 2}`, `line 1: the field "a" is there twice`},
		"a document after JSON":           {"{\"a\": 1}\n---\n{\"a\": 2}", "line 3: a second document begins"},
		"a document after YAML":           {"a: 1\n---\na: 2\n", "line 3: a second document begins"},
		"a document after a comment":      {"a: 1\n--- # another\na: 2\n", "line 3: a second document begins"},
		"a document after its end":        {"a: 1\n...\n---\na: 2\n", "line 4: a second document begins"},
		"a document after a line's break": {"a: 1\u2028---\u2028a: 2\n", "a second document begins"},
		"a document in a line":            {"--- {a: 1}\n--- {a: 2}\n", "line 2: a second document begins"},
		"an object after JSON":            {`{"a": 1}{"a": 2}`, "several documents"},
		"a text after JSON":               {`{"a": 1} a`, "several documents"},
		"an object after a comment":       {"# c\n{a: 1}{a: 2}", "several documents"},
		"an object after a tag":           {"!!map {a: 1}{a: 2}", "several documents"},
		"a field before an indentation":   {"  a: 1\na: 2\n", "several documents"},
		"a text after a quoted one":       {"'a' b", "several documents"},
		"bytes in JSON that are no text":  {"{\"a\": \"\xff\"}", "not UTF-8"},
		"JSON in UTF-16":                  {untrustedtest.UTF16(`{"a": 1}`), "not UTF-8"},
		"a zero byte in JSON":             {"{\"a\": \"\x00\"}", "not UTF-8"},
		"a number beyond all":             {`{"a": 1e400}`, ""},
		"a list":                          {`[1]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := untrusted.Object([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.says) ||
				test.says != "" && !errors.Is(err, untrusted.ErrRefused) {
				t.Errorf("got %v, %v, want %q", got, err, test.says)
			}
		})
	}
}

func TestObject(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"JSON":                            {` {"b": [1, 2.5, "x", null], "a": {}} `, `{"a":{},"b":[1,2.5,"x",null]}`},
		"YAML":                            {"b: yes\na: 0x10\n", `{"a":16,"b":true}`},
		"YAML's flow style":               {`{a: b}`, `{"a":"b"}`},
		"a whole number beyond floats":    {`{"a": 9007199254740993}`, `{"a":9007199254740993}`},
		"one in YAML":                     {"a: 9007199254740993\n", `{"a":9007199254740993}`},
		"a mark of the order of bytes":    {"\ufeffa: b\n", `{"a":"b"}`},
		"one before JSON":                 {"\ufeff{\"a\": \"b\"}", `{"a":"b"}`},
		"the start of a document":         {"---\na: b\n", `{"a":"b"}`},
		"the end of a document":           {"a: b\n...\n", `{"a":"b"}`},
		"a second one without content":    {"a: b\n---\n# nothing\n", `{"a":"b"}`},
		"a first one without content":     {"# nothing\n---\na: b\n", `{"a":"b"}`},
		"a text that looks like several":  {"a: |\n  x\n  ---\n  y\n", `{"a":"x\n---\ny\n"}`},
		"a text of JSON with such a line": {`{"a": "x\n---\ny"}`, `{"a":"x\n---\ny"}`},
		"nothing":                         {"", "null"},
		"a comment":                       {"# nothing\n", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := untrusted.Object([]byte(test.text))
			got, marshalErr := json.Marshal(object)
			if err != nil || marshalErr != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestCheckJSON(t *testing.T) {
	for name, test := range map[string]struct {
		text   string
		refuse bool
	}{
		"small":                      {`{"a": [1, "b", {}]}`, false},
		"separators in a string":     {`{"a": "` + strings.Repeat(`,:[{\"\\`, 200_000) + `"}`, false},
		"many empty objects":         {"[" + strings.Repeat("{},", 300_000) + "{}]", true},
		"many values":                {"[" + strings.Repeat("1,", 400_000) + "1]", true},
		"large":                      {`{"a": "` + strings.Repeat("x", 16<<20) + `"}`, true},
		"broken":                     {`{"a": "\`, false},
		"a string that does not end": {`{"a": "` + strings.Repeat(`,`, 500_000), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := untrusted.CheckJSON([]byte(test.text)); errors.Is(err, untrusted.ErrRefused) != test.refuse {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestWorstDocuments are as large as is just permitted, and of what takes the most memory.
func TestWorstDocuments(t *testing.T) {
	for name, text := range map[string]string{
		"YAML":         strings.Repeat("- a\n", 124_000),
		"flow style":   "[" + strings.Repeat("a,", 249_000) + "a]",
		"JSON objects": "[" + strings.Repeat("{},", 199_000) + "{}]",
	} {
		t.Run(name, func(t *testing.T) {
			// The total allocation is larger than the memory in use, because some documents are parsed twice.
			untrustedtest.Bound(t, 0, 240<<20, 0, func() {
				var into any
				if json.Unmarshal([]byte(text), &into) == nil {
					if err := untrusted.CheckJSON([]byte(text)); err != nil {
						t.Error(err)
					}
					return
				}
				if err := untrusted.Unmarshal([]byte(text), &into); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(untrustedtest.AliasBomb("x")))
	f.Add([]byte(untrustedtest.UTF16("a: &a b\nc: *a")))
	f.Add([]byte("a: [b, {c: d}]\n---\ne\n"))
	f.Add([]byte(`{"a": "\u0000<>&"}`))
	f.Add([]byte("a: &a\rb: *a"))
	f.Fuzz(func(t *testing.T, text []byte) {
		// A few bytes can be as deep as the parser permits, which allocates for each level.
		untrustedtest.Bound(t, len(text), 4<<20, 4<<10, func() {
			converted, err := untrusted.ToJSON(text)
			if err != nil {
				return
			}
			if !json.Valid(converted) {
				t.Errorf("%q became %q", text, converted)
			}
			// The escapes of JSON cause the largest growth.
			if len(converted) > 8*len(text)+16 {
				t.Errorf("%d bytes became %d", len(text), len(converted))
			}
		})
	})
}

// TestAtLine has documents that begin on line 11 of a file, and what their errors say of a line.
func TestAtLine(t *testing.T) {
	for name, tc := range map[string]struct {
		document, says string
	}{
		"correct":                  {document: "a: 1\n"},
		"broken at its end":        {"a: 1\nb: [\n", "line 1"},
		"broken in the midst":      {"a: 1\nb: 2\nc: x: y\n", "line 13:"},
		"broken at its begin":      {"a: b: c\n", "line 11:"},
		"a field twice":            {"a: 1\nb: 2\na: 3\n", `line 13: the field "a" is there twice`},
		"a second document":        {"a: 1\n---\nb: 2\n", "line 13: a second document begins"},
		"a separator":              {"---\na: 1\na: 2\n", `line 13: the field "a" is there twice`},
		"broken below a separator": {"---\na: b: c\n", "line 12:"},
		"too large":                {strings.Repeat("- [", 250_000), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			var got map[string]any
			err := untrusted.AtLine(11, []byte(tc.document), func(document []byte) error {
				return untrusted.Unmarshal(document, &got)
			})
			if tc.says == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want one that says %q", err, tc.says)
			}
		})
	}
}
