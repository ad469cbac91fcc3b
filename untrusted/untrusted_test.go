// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/untrusted"
	"github.com/bellwether-dev/bellwether/untrusted/untrustedtest"
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
		"an alias":               {"a: &a b\nc: *a\n", "line 2: the alias *a is not allowed"},
		"a merge":                {"a: &a {x: y}\nb: {<<: *a}\n", "alias *a"},
		"an unknown alias":       {"a: &b c\nd: *a\n", "may have aliases"},
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
			// What is allocated in all is more than what is kept at any time.
			untrustedtest.Bound(t, 0, 200<<20, 0, func() {
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
			// Nothing can become larger than by the escapes of JSON.
			if len(converted) > 8*len(text)+16 {
				t.Errorf("%d bytes became %d", len(text), len(converted))
			}
		})
	})
}
