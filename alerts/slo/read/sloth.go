// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"slices"
	"strings"

	slothv1 "github.com/slok/sloth/pkg/kubernetes/api/sloth/v1"
	prometheusv1 "github.com/slok/sloth/pkg/prometheus/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// kindServiceLevel is the kind of sloth's objects in Kubernetes.
const kindServiceLevel = "PrometheusServiceLevel"

// slothSLO is what is read of an SLO of sloth, in either of its formats. Its
// alerts are replaced by Bellwether's, and their names and labels are not kept.
type slothSLO struct {
	name      string
	objective float64
	// bad and total are the queries of sli.events; both are empty if the SLI is of
	// another type.
	bad, total string
	plugins    []string
}

func readSloth(into *set, text []byte) error {
	var file prometheusv1.Spec
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	slos := make([]slothSLO, len(file.SLOs))
	for i, s := range file.SLOs {
		slos[i] = slothSLO{name: s.Name, objective: s.Objective}
		if s.SLI.Events != nil {
			slos[i].bad, slos[i].total = s.SLI.Events.ErrorQuery, s.SLI.Events.TotalQuery
		}
		for _, p := range slices.Concat(file.SLOPlugins.Chain, s.Plugins.Chain) {
			slos[i].plugins = append(slos[i].plugins, p.ID)
		}
	}
	return into.addSloth(file.Service, slos)
}

func readServiceLevel(into *set, text []byte) error {
	var object slothv1.PrometheusServiceLevel
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	slos := make([]slothSLO, len(object.Spec.SLOs))
	for i, s := range object.Spec.SLOs {
		slos[i] = slothSLO{name: s.Name, objective: s.Objective}
		if s.SLI.Events != nil {
			slos[i].bad, slos[i].total = s.SLI.Events.ErrorQuery, s.SLI.Events.TotalQuery
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
	if one.bad == "" && one.total == "" {
		return fmt.Errorf("%w: only sli.events can be read; a raw or plugin SLI does not tell how many requests there "+
			"were", ErrUnsupported)
	}
	for _, id := range one.plugins {
		if !canDropPlugin(id) {
			return fmt.Errorf("%w: the SLO plugin %q; remove it if the SLO is right without it", ErrUnsupported, id)
		}
	}
	sli := slo.OwnSLI{Name: one.name}
	if sli.Bad, err = fillWindow(one.bad); err != nil {
		return err
	}
	if sli.Total, err = fillWindow(one.total); err != nil {
		return err
	}
	return s.add(service, slo.Objective{SLI: one.name, Target: target}, sli)
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
