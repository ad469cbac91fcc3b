// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package read makes sets of objectives from files: OperatorSLOs, OpenSLO v1 and
// sloth's prometheus/v1. It takes their text and gives a slo.Set; it opens
// nothing. What a file asks for and the rules cannot do is an error, never left out.
package read

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ErrFormat says that a file is none of those that can be read, or is not well formed.
var ErrFormat = errors.New("not a file of objectives")

// ErrUnsupported says that a file is fine and asks for what cannot be done.
var ErrUnsupported = errors.New("not supported")

// File adds the objectives of a file to a set. Which format it is follows from
// what it says of itself: version (sloth) or apiVersion.
func File(into *slo.Set, text []byte) error {
	var head struct {
		Version    string `json:"version"`
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	first, _, _ := bytes.Cut(text, []byte("\n---"))
	if err := yaml.Unmarshal(first, &head); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	switch {
	case head.APIVersion == v1alpha1.SchemeGroupVersion.String() || head.APIVersion == "v1" && head.Kind == "List":
		return operatorSLOs(into, text)
	case head.APIVersion == "openslo/v1":
		return openSLO(into, text)
	case head.Version == "prometheus/v1":
		return sloth(into, text)
	}
	return fmt.Errorf("%w: begin it with apiVersion: %s, apiVersion: openslo/v1, or version: prometheus/v1 (sloth)",
		ErrFormat, v1alpha1.SchemeGroupVersion)
}

// operator is the set's operator of that name, which is added if there is none.
func operator(into *slo.Set, name string) *slo.Operator {
	i := slices.IndexFunc(into.Operators, func(o slo.Operator) bool { return o.Name == name })
	if i < 0 {
		into.Operators = append(into.Operators, slo.Operator{Name: name})
		i = len(into.Operators) - 1
	}
	return &into.Operators[i]
}

// slothFile is what is read of a sloth specification; its alerts are replaced by
// Bellwether's, and their names and labels are not kept.
type slothFile struct {
	Service string `json:"service"`
	SLOs    []struct {
		Name      string  `json:"name"`
		Objective float64 `json:"objective"`
		SLI       struct {
			Events *struct {
				Error string `json:"error_query"`
				Total string `json:"total_query"`
			} `json:"events"`
		} `json:"sli"`
	} `json:"slos"`
}

func sloth(into *slo.Set, text []byte) error {
	var file slothFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if file.Service == "" {
		return fmt.Errorf("%w: it has no service", ErrFormat)
	}
	for _, s := range file.SLOs {
		target, err := slo.ParseTarget(decimal(s.Objective))
		if err != nil {
			return fmt.Errorf("slo %s: %w", s.Name, err)
		}
		if s.SLI.Events == nil {
			return fmt.Errorf("slo %s: %w: only sli.events can be read; a raw or plugin SLI says nothing of how many "+
				"requests there were", s.Name, ErrUnsupported)
		}
		bad, err := window(s.SLI.Events.Error)
		if err != nil {
			return fmt.Errorf("slo %s: %w", s.Name, err)
		}
		total, err := window(s.SLI.Events.Total)
		if err != nil {
			return fmt.Errorf("slo %s: %w", s.Name, err)
		}
		add(into, file.Service, slo.Objective{SLI: s.Name, Target: target},
			slo.OwnSLI{Name: s.Name, Bad: bad, Total: total})
	}
	return nil
}

// window fills in sloth's one template variable.
func window(query string) (string, error) {
	query = strings.NewReplacer("{{.window}}", "5m", "{{ .window }}", "5m").Replace(query)
	if strings.Contains(query, "{{") {
		return "", fmt.Errorf("%w: %q has a template other than {{.window}}", ErrUnsupported, query)
	}
	return query, nil
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// add gives an operator an own SLI and its objective.
func add(into *slo.Set, name string, o slo.Objective, sli slo.OwnSLI) {
	op := operator(into, name)
	op.Objectives = append(op.Objectives, o)
	op.Own = append(op.Own, sli)
}
