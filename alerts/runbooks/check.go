// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// Errors that Check returns.
var (
	// ErrNoLink means that an alert has no link, or a link that is not a template of a URL.
	ErrNoLink = errors.New("no runbook")
	// ErrNoPage means that the page of a link does not exist, or is the page of another alert.
	ErrNoPage = errors.New("no such runbook")
	// ErrNoSection means that a page has no section about the SLI of an alert.
	ErrNoSection = errors.New("no such section of the runbook")
)

// Check returns the joined errors of alerts without a valid runbook. Each alert needs a link
// for every SLI that it can be about. For links to slo.DefaultRunbooks, the page and the
// section must exist. Other links must only be URLs, because Check does not access the
// network. Links that operators define themselves, which a template chooses, are not checked.
func Check(groups []monitoringv1.RuleGroup) error {
	var errs []error
	for _, g := range groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			for _, sli := range listSLIs(r.Alert) {
				if err := checkLink(r, sli); err != nil {
					errs = append(errs, fmt.Errorf("alert %s (%s): %w", r.Alert, r.Labels[series.Severity], err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// listSLIs returns the values of the label sli that an alert can have: every SLI, probes from both
// vantage points, and an own SLI. For alerts that are not about an SLI it returns one empty value.
func listSLIs(alert string) []string {
	if !slo.IsAboutSLI(alert) {
		return []string{""}
	}
	out := []string{"an-own-sli", slo.Probe + "name:hub"}
	for _, s := range slo.SLIs() {
		name := s.Name
		if name == slo.Probe {
			name += "name"
		}
		out = append(out, name)
	}
	return out
}

// checkLink returns an error if the runbook link of an alert is invalid. sli is the SLI that the alert is about,
// or empty. Of links to other pages than DefaultRunbooks it checks only that they are URLs.
func checkLink(r monitoringv1.Rule, sli string) error {
	link, err := expandLink(r.Annotations[slo.AnnotationRunbook], sli)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoLink, err)
	}
	if link == "" {
		return fmt.Errorf("%w: annotation %s is empty", ErrNoLink, slo.AnnotationRunbook)
	}
	if err := slo.CheckRunbookURL(link); err != nil {
		return fmt.Errorf("%w: %w", ErrNoLink, err)
	}
	target, isOwn := strings.CutPrefix(link, slo.DefaultRunbooks+"/")
	if !isOwn {
		return nil
	}
	file, anchor, _ := strings.Cut(target, "#")
	page, ok := Page(r.Alert)
	if !ok || file != r.Alert+".md" {
		return fmt.Errorf("%w: %s", ErrNoPage, link)
	}
	isOtherSection := sli != "" && anchor != slo.FindSection(sli)
	if isOtherSection || anchor != "" && !listAnchors(page)[anchor] {
		return fmt.Errorf("%w: %s, of SLI %q", ErrNoSection, link, sli)
	}
	return nil
}

// expandLink expands a template of a link as Prometheus does, for an operator
// without its own link. It supports only the functions that links use.
func expandLink(text, sli string) (string, error) {
	t, err := template.New("link").Option("missingkey=zero").Funcs(template.FuncMap{
		"match": regexp.MatchString,
		"reReplaceAll": func(pattern, replacement, text string) (string, error) {
			found, err := regexp.Compile(pattern)
			if err != nil {
				return "", err
			}
			return found.ReplaceAllString(text, replacement), nil
		},
	}).Parse("{{ $labels := . }}" + text)
	if err != nil {
		return "", fmt.Errorf("parse link: %w", err)
	}
	var out strings.Builder
	if err := t.Execute(&out, map[string]string{series.SLI: sli}); err != nil {
		return "", fmt.Errorf("expand link: %w", err)
	}
	return out.String(), nil
}
