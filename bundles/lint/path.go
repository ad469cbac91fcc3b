// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strconv"
	"strings"
)

// parsePath reads what bundles.FieldPath writes.
func parsePath(text string) []any {
	var out []any
	for text != "" {
		end := strings.IndexAny(text, ".[")
		switch {
		case end < 0:
			return append(out, text)
		case end > 0:
			out, text = append(out, text[:end]), text[end:]
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

// maxText limits how much of a foreign text is included in a message.
const maxText = 300

// clip shortens a foreign text to one line.
func clip(text string) string {
	line := []rune(strings.TrimSuffix(strings.Join(strings.Fields(text), " "), "."))
	if len(line) > maxText {
		return string(line[:maxText-1]) + "…"
	}
	return string(line)
}
