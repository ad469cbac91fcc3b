// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strconv"
	"strings"
)

// parsePath parses a path in the format of bundles.FieldPath into field names (strings) and list indexes (ints). A key
// in brackets that is not a number is a field name.
func parsePath(text string) []any {
	var out []any
	for text != "" {
		nameEnd := strings.IndexAny(text, ".[")
		switch {
		case nameEnd < 0:
			return append(out, text)
		case nameEnd > 0:
			out, text = append(out, text[:nameEnd]), text[nameEnd:]
		case text[0] == '.':
			text = text[1:]
		default:
			var key string
			key, text, _ = strings.Cut(text[1:], "]")
			if i, err := strconv.Atoi(key); err == nil {
				out = append(out, i)
			} else {
				out = append(out, key)
			}
		}
	}
	return out
}

// maxText is the maximum length of a text from another program in a message, in characters.
const maxText = 300

// clip shortens a text from another program to one line of at most maxText characters.
func clip(text string) string {
	line := []rune(strings.TrimSuffix(strings.Join(strings.Fields(text), " "), "."))
	if len(line) > maxText {
		return string(line[:maxText-1]) + "…"
	}
	return string(line)
}
