// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"strings"
)

const introduction = `# Runbooks

One page for each alert. Its annotation "runbook_url" is the link to it, and for an alert about an SLI to the section of
that SLI. [SLIs](slis.md) has all of these sections in one page. [How alerts come about](` + guide +
	`#how-alerts-come-about) is in the guide.

What stands between the marks "generated" is made of the rules by "make generate". All other text is written by people,
and kept.

| alert | severity | about | says |
|---|---|---|---|
`

// Index returns the page that lists all other pages.
func Index(alerts []Alert) (string, error) {
	var b strings.Builder
	b.WriteString(introduction)
	for _, a := range alerts {
		summaries, err := a.listTexts("summary")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "| [%s](%[1]s.md) | %s | %s | %s |\n", a.Name, a.listSeverities(), a.describeScope(),
			strings.Join(summaries, ". "))
	}
	return b.String(), nil
}
