// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"regexp"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
)

// DefaultRunbooks is the folder with the pages that the project publishes, one for
// each alert.
const DefaultRunbooks = "https://github.com/bellwether-dev/bellwether/blob/main/docs/runbooks"

// AnnotationRunbook is the annotation with the link of an alert.
const AnnotationRunbook = "runbook_url"

// OwnSLIs is the section of a runbook about SLIs that only one operator has.
const OwnSLIs = "own"

var webAddress = regexp.MustCompile("^https?://[^\\s\"{}`\\\\]+$")

// CheckRunbookURL says whether alerts can link to pages in a folder. It may be empty.
func CheckRunbookURL(url string) error {
	if url == "" || webAddress.MatchString(url) {
		return nil
	}
	return fmt.Errorf("%w: runbook URL %q: it must be an http or https URL", ErrAlert, url)
}

// IsAboutSLI tells whether the alert of a name is about one SLI of an operator.
func IsAboutSLI(alert string) bool {
	switch alert {
	case AlertOperator, AlertRelease, AlertSLIAbsent, AlertExhausted:
		return true
	}
	return false
}

// Anchor is what follows the URL of an operator's own runbook: the heading of an
// alert, or of the SLI that it is about.
func Anchor(alert string) string {
	if IsAboutSLI(alert) {
		return `#{{ reReplaceAll ":.*" "" $labels.sli }}`
	}
	return "#" + alert
}

// SectionOf is the section of a runbook about an SLI: the SLI's name, "probe" for
// all probes, and OwnSLIs for all SLIs that only one operator has.
func SectionOf(sli string) string {
	if !builtin(sli) {
		return OwnSLIs
	}
	name, _, _ := strings.Cut(sli, ":")
	return name
}

// Sections are the sections of the SLIs, in the order of SLIs, with OwnSLIs last.
func Sections() []string {
	var out []string
	for _, sli := range SLIs() {
		out = append(out, SectionOf(sli.Name))
	}
	return append(out, OwnSLIs)
}

// section is a template of the section about the SLI of an alert.
func section() string {
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

// addRunbooks links the alerts to their pages, if the set has a folder with them.
func (s Set) addRunbooks(groups []monitoringv1.RuleGroup) {
	if s.RunbookURL == "" {
		return
	}
	for _, g := range groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			r.Annotations[AnnotationRunbook] = s.runbook(r.Alert, section())
		}
	}
}

// runbook is the link to the page of an alert, and to the section in it if the alert is
// about an SLI. Not every alert about a release is.
func (s Set) runbook(alert, section string) string {
	page := strings.TrimRight(s.RunbookURL, "/") + "/" + alert + ".md"
	switch {
	case alert == AlertRelease:
		return page + "{{ if $labels.sli }}#" + section + "{{ end }}"
	case IsAboutSLI(alert):
		return page + "#" + section
	}
	return page
}
