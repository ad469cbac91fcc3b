// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Expand replaces $(NAME) by the value of NAME, as Kubernetes does in command,
// args and env: an unknown name is left as it is, and $$ stands for one $.
func Expand(s string, values map[string]string) string {
	var out strings.Builder
	for {
		before, after, ok := strings.Cut(s, "$")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		s = after
		switch {
		case strings.HasPrefix(s, "$"):
			out.WriteByte('$')
			s = s[1:]
		case strings.HasPrefix(s, "("):
			name, rest, closed := strings.Cut(s[1:], ")")
			value, known := values[name]
			switch {
			case !closed:
				out.WriteString("$(")
				s = s[1:]
			case known:
				out.WriteString(value)
				s = rest
			default:
				out.WriteString("$(" + name + ")")
				s = rest
			}
		default:
			out.WriteByte('$')
		}
	}
}

// Arguments returns what the program that stands for c's image is called with:
// the rest of the command, of which the program takes the first place, and args.
func Arguments(c *corev1.Container, values map[string]string, mounts Mounts) []string {
	var raw []string
	if len(c.Command) > 1 {
		raw = append(raw, c.Command[1:]...)
	}
	raw = append(raw, c.Args...)
	args := make([]string, 0, len(raw))
	for _, a := range raw {
		args = append(args, mounts.Rewrite(Expand(a, values)))
	}
	return args
}
