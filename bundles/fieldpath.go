// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"fmt"
	"strings"
)

// FieldPath formats a path of field names and list indexes as Kubernetes does: spec.versions[0].schema. Names with a
// dot or a slash are put in brackets: metadata.annotations[a.b/c].
func FieldPath(path ...any) string {
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
