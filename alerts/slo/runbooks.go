// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"regexp"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
)

// DefaultRunbooks is the folder with the pages that the project publishes, one page for each alert.
const DefaultRunbooks = "https://github.com/bellwether-dev/bellwether/blob/main/docs/runbooks"

// AnnotationRunbook is the annotation with the link of an alert.
const AnnotationRunbook = "runbook_url"

// OwnSLIs is the section of a runbook about SLIs that only one operator has.
const OwnSLIs = "own"

var webAddress = regexp.MustCompile("^https?://[^\\s\"{}`\\\\]+$")

// CheckRunbookURL returns an error if alerts cannot link to pages in the folder. The URL may be empty.
func CheckRunbookURL(url string) error {
	if url == "" || webAddress.MatchString(url) {
		return nil
	}
	return fmt.Errorf("%w: runbook URL %q: it must be an http or https URL", ErrAlert, url)
}

// IsAboutSLI reports whether the alert with a name is about one SLI of an operator.
func IsAboutSLI(alert string) bool {
	switch alert {
	case AlertOperator, AlertRelease, AlertSLIAbsent, AlertExhausted:
		return true
	}
	return false
}

// RunbookAnchor returns the suffix for the URL of an operator's own runbook:
// the heading of an alert, or of the SLI that the alert is about.
func RunbookAnchor(alert string) string {
	if IsAboutSLI(alert) {
		return `#{{ reReplaceAll ":.*" "" $labels.sli }}`
	}
	return "#" + alert
}

// FindSection returns the section of a runbook about an SLI: the SLI's name,
// "probe" for all probes, and OwnSLIs for all SLIs that only one operator has.
func FindSection(sli string) string {
	if !isBuiltin(sli) {
		return OwnSLIs
	}
	name, _, _ := strings.Cut(sli, ":")
	return name
}

// Sections returns the sections of the SLIs, in the order of SLIs, with OwnSLIs last.
func Sections() []string {
	var out []string
	for _, sli := range SLIs() {
		out = append(out, FindSection(sli.Name))
	}
	return append(out, OwnSLIs)
}

// buildSection returns a template of the section about the SLI of an alert, which gives the same as FindSection.
func buildSection() string {
	var known []string
	for _, sli := range SLIs() {
		pattern := regexp.QuoteMeta(sli.Name)
		if sli.Name == Probe {
			pattern += ".+"
		}
		known = append(known, pattern)
	}
	return fmt.Sprintf(`{{ if match %s $labels.sli }}{{ reReplaceAll ":.*" "" $labels.sli }}{{ else }}%s{{ end }}`,
		quote("^("+strings.Join(known, "|")+")$"), OwnSLIs)
}

// addRunbooks adds links to their pages to the alerts, if the set has a runbook folder.
func (s Set) addRunbooks(groups []monitoringv1.RuleGroup) {
	if s.RunbookURL == "" {
		return
	}
	for _, g := range groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			r.Annotations[AnnotationRunbook] = s.buildRunbookURL(r.Alert, buildSection())
		}
	}
}

// buildRunbookURL returns the link to the page of an alert, with a section
// if the alert is about an SLI. Some alerts about a release have no SLI.
func (s Set) buildRunbookURL(alert, section string) string {
	page := strings.TrimRight(s.RunbookURL, "/") + "/" + alert + ".md"
	switch {
	case alert == AlertRelease:
		return page + "{{ if $labels.sli }}#" + section + "{{ end }}"
	case IsAboutSLI(alert):
		return page + "#" + section
	}
	return page
}
