// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strconv"
	"strings"
)

// fieldPath writes a path as Kubernetes does: spec.versions[0].schema. Names
// with a dot or a slash are put in brackets: metadata.annotations[a.b/c].
func fieldPath(path ...any) string {
	var text strings.Builder
	for _, part := range path {
		switch part := part.(type) {
		case int:
			fmt.Fprintf(&text, "[%d]", part)
		case string:
			if strings.ContainsAny(part, "./") {
				fmt.Fprintf(&text, "[%s]", part)
				continue
			}
			if text.Len() > 0 {
				text.WriteByte('.')
			}
			text.WriteString(part)
		default:
			fmt.Fprintf(&text, "[%v]", part)
		}
	}
	return text.String()
}

// parsePath reads what fieldPath writes.
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
