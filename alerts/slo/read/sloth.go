// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
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
	}
	return into.addSloth(file.Service, slos)
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
	}
	return into.addSloth(object.Spec.Service, slos)
}

// addSloth adds the SLOs of a service. Those that cannot be read are refused.
func (s *set) addSloth(service string, slos []slothSLO) error {
	if service == "" {
		return fmt.Errorf("%w: it has no service", ErrFormat)
	}
	if len(slos) == 0 {
		return fmt.Errorf("%w: it has no slos", ErrFormat)
	}
	for _, one := range slos {
		s.refuse("slo "+one.name, s.addSlothSLO(service, one))
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
	sli, err := one.sli()
	if err != nil {
		return err
	}
	if sli.MinRequests, err = minRequests(one.labels[labelMinRequests], one.ratio != ""); err != nil {
		return fmt.Errorf("label %s: %w", labelMinRequests, err)
	}
	return s.add(service, slo.Objective{SLI: one.name, Target: target, Alerts: one.alerts()}, sli)
}

// labelMinRequests is a label of an SLO of sloth that has OwnSLI.MinRequests.
const labelMinRequests = "bellwether_min_requests"

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

func (one slothSLO) sli() (slo.OwnSLI, error) {
	var queries [3]string
	for i, query := range []string{one.bad, one.total, one.ratio} {
		var err error
		if queries[i], err = fillWindow(query); err != nil {
			return slo.OwnSLI{}, err
		}
	}
	bad, total, ratio := queries[0], queries[1], queries[2]
	switch {
	case ratio != "" && bad == "" && total == "":
		return ofRatio(one.name, ratio)
	case ratio == "" && bad != "" && total != "":
		return ofRequests(one.name, bad, total)
	}
	return slo.OwnSLI{}, fmt.Errorf("%w: only sli.events or sli.raw can be read, one of them", ErrUnsupported)
}

// canDropPlugin tells whether an SLO means the same without a plugin of sloth: the
// core ones validate, write the rules that Bellwether's take the place of, or print.
func canDropPlugin(id string) bool { return strings.HasPrefix(id, "sloth.dev/core/") }

// fillWindow replaces the one variable of sloth's templates.
func fillWindow(query string) (string, error) {
	query = strings.NewReplacer("{{.window}}", slo.Lookback, "{{ .window }}", slo.Lookback).Replace(query)
	if strings.Contains(query, "{{") {
		return "", fmt.Errorf("%w: %q has a template other than {{.window}}", ErrUnsupported, query)
	}
	return query, nil
}
