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

// What Check finds.
var (
	// ErrNoLink says that an alert has no link, or one that is no template of a URL.
	ErrNoLink = errors.New("no runbook")
	// ErrNoPage says that the page that an alert links to does not exist, or is another alert's.
	ErrNoPage = errors.New("no such runbook")
	// ErrNoSection says that a page has no section about the SLI of an alert.
	ErrNoSection = errors.New("no such section of the runbook")
)

// Check says which alerts of rules have no runbook, joined: each needs a link, whatever
// SLI it is about. Of links to slo.DefaultRunbooks the page and the section have to
// exist. Other links only have to be URLs, since nothing is read over the network. An
// operator's link of its own, which a template chooses, is not looked at.
func Check(groups []monitoringv1.RuleGroup) error {
	var errs []error
	for _, g := range groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			for _, sli := range slisOf(r.Alert) {
				if err := checkLink(r, sli); err != nil {
					errs = append(errs, fmt.Errorf("alert %s (%s): %w", r.Alert, r.Labels[series.Severity], err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// slisOf are values of the label sli of an alert: those of every SLI, of probes from
// both places, and of an own SLI. Other alerts have one that is empty.
func slisOf(alert string) []string {
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

func checkLink(r monitoringv1.Rule, sli string) error {
	link, err := expand(r.Annotations[slo.AnnotationRunbook], sli)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoLink, err)
	}
	if link == "" {
		return fmt.Errorf("%w: annotation %s is empty", ErrNoLink, slo.AnnotationRunbook)
	}
	if err := slo.CheckRunbookURL(link); err != nil {
		return fmt.Errorf("%w: %w", ErrNoLink, err)
	}
	target, ours := strings.CutPrefix(link, slo.DefaultRunbooks+"/")
	if !ours {
		return nil
	}
	file, anchor, _ := strings.Cut(target, "#")
	page, ok := Page(r.Alert)
	if !ok || file != r.Alert+".md" {
		return fmt.Errorf("%w: %s", ErrNoPage, link)
	}
	if sli != "" && anchor != slo.SectionOf(sli) || anchor != "" && !anchors(page)[anchor] {
		return fmt.Errorf("%w: %s, of SLI %q", ErrNoSection, link, sli)
	}
	return nil
}

// expand does what Prometheus does with a template of an annotation, as far as links
// need it, for an operator without a link of its own.
func expand(text, sli string) (string, error) {
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
