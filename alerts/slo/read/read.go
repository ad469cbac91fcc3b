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

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ErrFormat says that a file is none of those that can be read, or is not well formed.
var ErrFormat = errors.New("not a file of objectives")

// ErrUnsupported says that a file is fine and asks for what cannot be done.
var ErrUnsupported = errors.New("not supported")

// set is what is read into, and the namespace of operators whose file does not
// name one.
type set struct {
	*slo.Set
	namespace string
}

// File adds the objectives of a file to a set. Which format it is follows from
// what it says of itself: version (sloth) or apiVersion. Operators are in the
// given namespace, unless an OperatorSLO has one, or a service is written as
// NAMESPACE/NAME.
func File(all *slo.Set, namespace string, text []byte) error {
	into := &set{all, namespace}
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

// operator returns the set's operator, which is added if it is not there.
func (s *set) operator(id types.NamespacedName) *slo.Operator {
	i := slices.IndexFunc(s.Operators, func(o slo.Operator) bool { return o.ID() == id })
	if i < 0 {
		s.Operators = append(s.Operators, slo.Operator{Namespace: id.Namespace, Name: id.Name})
		i = len(s.Operators) - 1
	}
	return &s.Operators[i]
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

func sloth(into *set, text []byte) error {
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
		into.add(file.Service, slo.Objective{SLI: s.Name, Target: target},
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

// add gives the operator of a service an SLI of its own, with the objective.
func (s *set) add(service string, o slo.Objective, sli slo.OwnSLI) {
	id := types.NamespacedName{Namespace: s.namespace, Name: service}
	if namespace, name, ok := strings.Cut(service, "/"); ok {
		id = types.NamespacedName{Namespace: namespace, Name: name}
	}
	op := s.operator(id)
	op.Objectives = append(op.Objectives, o)
	op.Own = append(op.Own, sli)
}
