// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	slothv1 "github.com/slok/sloth/pkg/kubernetes/api/sloth/v1"
	prometheusv1 "github.com/slok/sloth/pkg/prometheus/api/v1"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// kindServiceLevel is the kind of sloth's objects in Kubernetes.
const kindServiceLevel = "PrometheusServiceLevel"

// slothSLO is the used part of an SLO of sloth, in either of its formats. Bellwether
// replaces its alerts, so of its alerting only the disabled alerts are read.
type slothSLO struct {
	name      string
	objective float64
	labels    map[string]string
	// bad and total are the queries of sli.events, and ratio is the query of sli.raw.
	bad, total, ratio string
	plugins           []string
	noPage, noTicket  bool
	// unused are the settings that no rule uses.
	unused unused
}

// slothAlert contains the settings of an SLO for its pages or for its tickets.
type slothAlert struct{ labels, annotations map[string]string }

// setUnused collects the alert settings of an SLO that are ignored, all
// except whether alerts are disabled, and the plugins that are dropped.
func (s *slothSLO) setUnused(description, name string, all, page, ticket slothAlert) {
	labels := maps.Clone(s.labels)
	delete(labels, labelMinRequests)
	delete(labels, labelUnit)
	u := &s.unused
	u.add("description", description != "")
	u.addNames("labels", slices.Sorted(maps.Keys(labels)))
	u.add("alerting.name", name != "")
	for _, alert := range []struct {
		field string
		texts slothAlert
	}{{"alerting", all}, {"page_alert", page}, {"ticket_alert", ticket}} {
		u.addNames(alert.field+".labels", slices.Sorted(maps.Keys(alert.texts.labels)))
		u.addNames(alert.field+".annotations", slices.Sorted(maps.Keys(alert.texts.annotations)))
	}
	u.addNames("plugins", s.plugins)
}

// readSloth adds the SLOs of a file in sloth's own format to the set.
func readSloth(into *set, text []byte) error {
	var file prometheusv1.Spec
	if err := untrusted.UnmarshalStrict(text, &file); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	slos := make([]slothSLO, len(file.SLOs))
	for i, s := range file.SLOs {
		slos[i] = slothSLO{name: s.Name, objective: s.Objective, labels: s.Labels,
			noPage: s.Alerting.PageAlert.Disable, noTicket: s.Alerting.TicketAlert.Disable}
		if s.SLI.Events != nil {
			slos[i].bad, slos[i].total = s.SLI.Events.ErrorQuery, s.SLI.Events.TotalQuery
		}
		if s.SLI.Raw != nil {
			slos[i].ratio = s.SLI.Raw.ErrorRatioQuery
		}
		for _, p := range slices.Concat(file.SLOPlugins.Chain, s.Plugins.Chain) {
			slos[i].plugins = append(slos[i].plugins, p.ID)
		}
		slos[i].setUnused(s.Description, s.Alerting.Name, slothAlert{s.Alerting.Labels, s.Alerting.Annotations},
			slothAlert{s.Alerting.PageAlert.Labels, s.Alerting.PageAlert.Annotations},
			slothAlert{s.Alerting.TicketAlert.Labels, s.Alerting.TicketAlert.Annotations})
	}
	return into.addSloth(file.Service, file.Labels, slos)
}

// readServiceLevel adds the SLOs of a PrometheusServiceLevel to the set.
func readServiceLevel(into *set, text []byte) error {
	var object slothv1.PrometheusServiceLevel
	if err := untrusted.UnmarshalStrict(text, &object); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	slos := make([]slothSLO, len(object.Spec.SLOs))
	for i, s := range object.Spec.SLOs {
		slos[i] = slothSLO{name: s.Name, objective: s.Objective, labels: s.Labels,
			noPage: s.Alerting.PageAlert.Disable, noTicket: s.Alerting.TicketAlert.Disable}
		if s.SLI.Events != nil {
			slos[i].bad, slos[i].total = s.SLI.Events.ErrorQuery, s.SLI.Events.TotalQuery
		}
		if s.SLI.Raw != nil {
			slos[i].ratio = s.SLI.Raw.ErrorRatioQuery
		}
		for _, plugins := range []*slothv1.SLOPlugins{object.Spec.SLOPlugins, s.Plugins} {
			if plugins == nil {
				continue
			}
			for _, p := range plugins.Chain {
				slos[i].plugins = append(slos[i].plugins, p.ID)
			}
		}
		slos[i].setUnused(s.Description, s.Alerting.Name, slothAlert{s.Alerting.Labels, s.Alerting.Annotations},
			slothAlert{s.Alerting.PageAlert.Labels, s.Alerting.PageAlert.Annotations},
			slothAlert{s.Alerting.TicketAlert.Labels, s.Alerting.TicketAlert.Annotations})
	}
	return into.addSloth(object.Spec.Service, object.Spec.Labels, slos)
}

// addSloth adds the SLOs of a service. It refuses SLOs that cannot be read.
func (s *set) addSloth(service string, labels map[string]string, slos []slothSLO) error {
	if service == "" {
		return fmt.Errorf("%w: it has no service", ErrFormat)
	}
	if len(slos) == 0 {
		return fmt.Errorf("%w: it has no slos", ErrFormat)
	}
	var u unused
	u.addNames("labels", slices.Sorted(maps.Keys(labels)))
	s.noteUnused("service "+service, u)
	for _, entry := range slos {
		s.refuse("slo "+entry.name, s.addSlothSLO(service, entry))
		s.noteUnused("slo "+entry.name, entry.unused)
	}
	return nil
}

// addSlothSLO adds one SLO of a service. It returns an error if the SLO cannot be read.
func (s *set) addSlothSLO(service string, entry slothSLO) error {
	target, err := slo.ParseTarget(formatDecimal(entry.objective))
	if err != nil {
		return err
	}
	for _, id := range entry.plugins {
		if !canDropPlugin(id) {
			return fmt.Errorf("%w: the SLO plugin %q; remove it if the SLO is right without it", ErrUnsupported, id)
		}
	}
	sli, notes, err := entry.readSLI()
	if err != nil {
		return err
	}
	for _, note := range notes {
		s.note("slo "+entry.name, note)
	}
	if sli.MinRequests, err = parseMinRequests(entry.labels[labelMinRequests], entry.ratio != ""); err != nil {
		return fmt.Errorf("label %s: %w", labelMinRequests, err)
	}
	return s.addOwnSLI(service, slo.Objective{SLI: entry.name, Target: target, Alerts: entry.readAlerting()}, sli)
}

// Labels of an SLO of sloth: labelMinRequests has OwnSLI.MinRequests, and labelUnit
// the unit of the queries of requests, if the queries do not show their unit.
const (
	labelMinRequests = "bellwether_min_requests"
	labelUnit        = "bellwether_unit"
)

// readAlerting returns the alerts that are not disabled; empty, which means all, if none is disabled.
func (s slothSLO) readAlerting() slo.Alerting {
	switch {
	case s.noPage && s.noTicket:
		return slo.AlertsNone
	case s.noPage:
		return slo.AlertsTickets
	case s.noTicket:
		return slo.AlertsPages
	}
	return ""
}

// readSLI reads the SLI from the queries. The notes explain how the queries were interpreted.
func (s slothSLO) readSLI() (sli slo.OwnSLI, notes []string, err error) {
	var queries [3]string
	for i, query := range []string{s.bad, s.total, s.ratio} {
		if queries[i], err = fillWindow(query); err != nil {
			return sli, nil, err
		}
	}
	bad, total, ratio := queries[0], queries[1], queries[2]
	givenUnit := s.labels[labelUnit]
	switch {
	case ratio != "" && bad == "" && total == "":
		if givenUnit != "" {
			return sli, nil, fmt.Errorf("label %s: %w: a ratio has no unit", labelUnit, ErrUnsupported)
		}
		sli, err = newRatioSLI(s.name, ratio)
		return sli, nil, err
	case ratio == "" && bad != "" && total != "":
		badQuery, badErr := readRequestQuery("bad requests", bad, givenUnit)
		totalQuery, totalErr := readRequestQuery("all requests", total, givenUnit)
		if err := errors.Join(badErr, totalErr); err != nil {
			return sli, nil, err
		}
		sli, notes = newRequestSLI(s.name, badQuery, totalQuery)
		return sli, notes, nil
	}
	return sli, nil, fmt.Errorf("%w: only sli.events or sli.raw can be read, one of them", ErrUnsupported)
}

// canDropPlugin reports whether an SLO has the same meaning without a plugin of sloth:
// the core plugins validate, write the rules that Bellwether's rules replace, or print.
func canDropPlugin(id string) bool { return strings.HasPrefix(id, "sloth.dev/core/") }

// window is the only variable of sloth's templates. They are Go templates, so spaces in the braces do not matter.
var window = regexp.MustCompile(`\{\{-?\s*\.window\s*-?\}\}`)

// fillWindow replaces the variable by slo.Lookback. It returns an error if another template remains.
func fillWindow(query string) (string, error) {
	query = window.ReplaceAllString(query, slo.Lookback)
	if strings.Contains(query, "{{") {
		return "", fmt.Errorf("%w: %q has a template other than {{.window}}", ErrUnsupported, query)
	}
	return query, nil
}
