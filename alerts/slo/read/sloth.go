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
	"github.com/bellwether-dev/bellwether/untrusted"
)

// kindServiceLevel is the kind of sloth's objects in Kubernetes.
const kindServiceLevel = "PrometheusServiceLevel"

// slothSLO is what is read of an SLO of sloth, in either of its formats. Its
// alerts are replaced by Bellwether's; of its alerting only what is switched off is
// read.
type slothSLO struct {
	name      string
	objective float64
	labels    map[string]string
	// bad and total are the queries of sli.events, and ratio that of sli.raw.
	bad, total, ratio string
	plugins           []string
	noPage, noTicket  bool
	// unused is what it says and no rule is made of.
	unused unused
}

// slothAlert is what an SLO says of its pages or of its tickets.
type slothAlert struct{ labels, annotations map[string]string }

// setUnused collects what an SLO says of its alerts beside whether there are any, and the plugins that are dropped.
func (one *slothSLO) setUnused(description, name string, all, page, ticket slothAlert) {
	labels := maps.Clone(one.labels)
	delete(labels, labelMinRequests)
	delete(labels, labelUnit)
	u := &one.unused
	u.add("description", description != "")
	u.addNames("labels", slices.Sorted(maps.Keys(labels)))
	u.add("alerting.name", name != "")
	for _, alert := range []struct {
		field string
		of    slothAlert
	}{{"alerting", all}, {"page_alert", page}, {"ticket_alert", ticket}} {
		u.addNames(alert.field+".labels", slices.Sorted(maps.Keys(alert.of.labels)))
		u.addNames(alert.field+".annotations", slices.Sorted(maps.Keys(alert.of.annotations)))
	}
	u.addNames("plugins", one.plugins)
}

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

// addSloth adds the SLOs of a service. Those that cannot be read are refused.
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
	for _, one := range slos {
		s.refuse("slo "+one.name, s.addSlothSLO(service, one))
		s.noteUnused("slo "+one.name, one.unused)
	}
	return nil
}

func (s *set) addSlothSLO(service string, one slothSLO) error {
	target, err := slo.ParseTarget(decimal(one.objective))
	if err != nil {
		return err
	}
	for _, id := range one.plugins {
		if !canDropPlugin(id) {
			return fmt.Errorf("%w: the SLO plugin %q; remove it if the SLO is right without it", ErrUnsupported, id)
		}
	}
	sli, notes, err := one.sli()
	if err != nil {
		return err
	}
	for _, note := range notes {
		s.note("slo "+one.name, note)
	}
	if sli.MinRequests, err = minRequests(one.labels[labelMinRequests], one.ratio != ""); err != nil {
		return fmt.Errorf("label %s: %w", labelMinRequests, err)
	}
	return s.add(service, slo.Objective{SLI: one.name, Target: target, Alerts: one.alerts()}, sli)
}

// Labels of an SLO of sloth: labelMinRequests has OwnSLI.MinRequests, and labelUnit the unit of the queries of
// requests, where they do not say it.
const (
	labelMinRequests = "bellwether_min_requests"
	labelUnit        = "bellwether_unit"
)

// alerts are those that are not switched off.
func (one slothSLO) alerts() slo.Alerting {
	switch {
	case one.noPage && one.noTicket:
		return slo.AlertsNone
	case one.noPage:
		return slo.AlertsTickets
	case one.noTicket:
		return slo.AlertsPages
	}
	return ""
}

// sli reads the queries. The notes say how they were understood.
func (one slothSLO) sli() (sli slo.OwnSLI, notes []string, err error) {
	var queries [3]string
	for i, query := range []string{one.bad, one.total, one.ratio} {
		if queries[i], err = fillWindow(query); err != nil {
			return sli, nil, err
		}
	}
	bad, total, ratio := queries[0], queries[1], queries[2]
	given := one.labels[labelUnit]
	switch {
	case ratio != "" && bad == "" && total == "":
		if given != "" {
			return sli, nil, fmt.Errorf("label %s: %w: a ratio has no unit", labelUnit, ErrUnsupported)
		}
		sli, err = ofRatio(one.name, ratio)
		return sli, nil, err
	case ratio == "" && bad != "" && total != "":
		badQuery, badErr := perSecond("bad requests", bad, given)
		totalQuery, totalErr := perSecond("all requests", total, given)
		if err := errors.Join(badErr, totalErr); err != nil {
			return sli, nil, err
		}
		sli, notes = ofRequests(one.name, badQuery, totalQuery)
		return sli, notes, nil
	}
	return sli, nil, fmt.Errorf("%w: only sli.events or sli.raw can be read, one of them", ErrUnsupported)
}

// canDropPlugin tells whether an SLO means the same without a plugin of sloth: the
// core ones validate, write the rules that Bellwether's take the place of, or print.
func canDropPlugin(id string) bool { return strings.HasPrefix(id, "sloth.dev/core/") }

// window is the one variable of sloth's templates, which are Go's: spaces in the braces do not matter.
var window = regexp.MustCompile(`\{\{-?\s*\.window\s*-?\}\}`)

// fillWindow replaces the variable.
func fillWindow(query string) (string, error) {
	query = window.ReplaceAllString(query, slo.Lookback)
	if strings.Contains(query, "{{") {
		return "", fmt.Errorf("%w: %q has a template other than {{.window}}", ErrUnsupported, query)
	}
	return query, nil
}
