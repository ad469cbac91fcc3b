// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package read makes sets of objectives from files: OperatorSLOs, OpenSLO v1, and
// sloth's prometheus/v1 and PrometheusServiceLevels. It takes their text and gives
// a slo.Set; it opens nothing. What a file asks for and the rules cannot do is an
// error, never left out.
package read

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	slothv1 "github.com/slok/sloth/pkg/kubernetes/api/sloth/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// ErrFormat says that a file is none of those that can be read, or is not well formed.
var ErrFormat = errors.New("not a file of objectives")

// ErrUnsupported says that a file is fine and asks for what cannot be done.
var ErrUnsupported = errors.New("not supported")

// set is what is read into.
type set struct {
	*slo.Set
	// namespace is that of operators whose file does not name one.
	namespace string
	report    Report
}

// Report is what there is to say about a file that was read.
type Report struct {
	// Refused has an error for each SLO that is not in the set, with its name, and for each
	// object that SLOs refer to and that is invalid.
	Refused []error
	// Notes say what a file has that no rule is made of, and what was taken for granted. They are in lower case.
	Notes []string
	// Given is what the file says of what exists.
	Given Given
}

// File adds the objectives of a file to a set. A file has one or more YAML
// documents; the format of each one follows from what it says of itself: version
// (sloth) or apiVersion. ManagedOperators and EndpointProbes in it only tell what exists. Operators are in the given
// namespace, unless an OperatorSLO has one, or a service is written as NAMESPACE/NAME.
//
// An SLO that cannot be read is left out and does not affect the others: the report
// has an error for each of them. The other error is about the whole
// file, from which nothing is added then.
func File(all *slo.Set, namespace string, text []byte) (Report, error) {
	documents, err := split(text)
	if err != nil {
		return Report{}, err
	}
	into := &set{Set: all, namespace: namespace}
	var openSLOs []document // they refer to each other
	for _, doc := range documents {
		if doc.format == formatOpenSLO {
			openSLOs = append(openSLOs, doc)
		}
	}
	readOpenSLO(into, openSLOs)
	for _, doc := range documents {
		switch doc.format {
		case formatOperatorSLO:
			into.refuse("OperatorSLO "+doc.name, readOperatorSLO(into, doc.text))
		case formatSloth:
			into.refuse("service "+doc.name, readSloth(into, doc.text))
		case formatServiceLevel:
			into.refuse("PrometheusServiceLevel "+doc.name, readServiceLevel(into, doc.text))
		case formatOperator:
			into.refuse(kindOperator+" "+doc.name, into.report.Given.readOperator(doc.text, namespace))
		case formatProbe:
			into.refuse(kindProbe+" "+doc.name, into.report.Given.readProbe(doc.text))
		}
	}
	return into.report, nil
}

// format is what a document is.
type format int

const (
	formatOperatorSLO format = iota
	formatOpenSLO
	formatSloth
	formatServiceLevel
	formatOperator
	formatProbe
)

// document is one of those in a file.
type document struct {
	format format
	// name is what it calls itself: metadata.name, or sloth's service. kind is that of an object.
	name, kind string
	text       []byte
}

// split returns the documents of a file, and those in its lists.
func split(text []byte) ([]document, error) {
	var out []document
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	line := 1
	for next := 1; ; line = next {
		doc, err := reader.Read()
		next += bytes.Count(doc, []byte("\n")) + 1 // the separator
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		found, err := identify(doc, line)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrFormat)
	}
	return out, nil
}

// identify returns a document, which begins on a line of its file, with its format; of a list, what is in it.
func identify(text []byte, line int) ([]document, error) {
	var head struct {
		Version    string            `json:"version"`
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Service    string            `json:"service"`
		Items      []json.RawMessage `json:"items"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	err := untrusted.AtLine(line, text, func(text []byte) error { return untrusted.Unmarshal(text, &head) })
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	of := func(f format, name string) ([]document, error) {
		return []document{{f, name, head.Kind, text}}, nil
	}
	switch api := v1alpha1.SchemeGroupVersion.String(); {
	case isBlank(text):
		return nil, nil
	case head.Items != nil:
		var out []document
		for _, item := range head.Items {
			found, err := identify(item, 1)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
		return out, nil
	case head.APIVersion == api && head.Kind == kindSLO:
		return of(formatOperatorSLO, head.Metadata.Name)
	case head.APIVersion == api && head.Kind == kindOperator:
		return of(formatOperator, head.Metadata.Name)
	case head.APIVersion == api && head.Kind == kindProbe:
		return of(formatProbe, head.Metadata.Name)
	case head.APIVersion == slothv1.SchemeGroupVersion.String() && head.Kind == kindServiceLevel:
		return of(formatServiceLevel, head.Metadata.Name)
	case head.APIVersion == "openslo/v1":
		return of(formatOpenSLO, head.Metadata.Name)
	case head.Version == "prometheus/v1":
		return of(formatSloth, head.Service)
	}
	return nil, fmt.Errorf("%w: a document with apiVersion %q and kind %q; supported are %s of %s, %s of %s, "+
		"openslo/v1, and version: prometheus/v1 (sloth)", ErrFormat, head.APIVersion, head.Kind, kindSLO,
		v1alpha1.SchemeGroupVersion, kindServiceLevel, slothv1.SchemeGroupVersion)
}

// isBlank tells whether a document has nothing but comments.
func isBlank(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.HasPrefix(line, []byte("---")) {
			return false
		}
	}
	return true
}

// refuse notes an error about what it names.
func (s *set) refuse(name string, err error) {
	if err != nil {
		s.report.Refused = append(s.report.Refused, fmt.Errorf("%s: %w", name, err))
	}
}

// note says something about what it names.
func (s *set) note(name, text string) { s.report.Notes = append(s.report.Notes, name+": "+text) }

// unused collects what a file says of something and no rule is made of.
type unused []string

// add takes a field if it is set.
func (u *unused) add(field string, isSet bool) {
	if isSet {
		*u = append(*u, field)
	}
}

// addNames takes a field with the names in it that are not used.
func (u *unused) addNames(field string, names []string) {
	if len(names) > 0 {
		*u = append(*u, fmt.Sprintf("%s (%s)", field, strings.Join(names, ", ")))
	}
}

// noteUnused says what is not used of what it names.
func (s *set) noteUnused(name string, u unused) {
	if len(u) > 0 {
		s.note(name, "not used: "+strings.Join(u, ", "))
	}
}

// add gives the operator of a service an SLI of its own, with the objective.
func (s *set) add(service string, o slo.Objective, sli slo.OwnSLI) error {
	id := types.NamespacedName{Namespace: s.namespace, Name: service}
	if namespace, name, ok := strings.Cut(service, "/"); ok {
		id = types.NamespacedName{Namespace: namespace, Name: name}
	}
	return s.merge(slo.Operator{Namespace: id.Namespace, Name: id.Name, Objectives: []slo.Objective{o},
		Own: []slo.OwnSLI{sli}})
}

// merge adds to an operator what another document says of it. If no rules can be
// made of both together, the operator stays as it was.
func (s *set) merge(op slo.Operator) error {
	merged := op
	i := slices.IndexFunc(s.Operators, func(o slo.Operator) bool { return o.ID() == op.ID() })
	if i >= 0 {
		before := s.Operators[i]
		merged.Team = cmp.Or(op.Team, before.Team)
		merged.Criticality = cmp.Or(op.Criticality, before.Criticality)
		merged.Objectives = slices.Concat(before.Objectives, op.Objectives)
		merged.Own = slices.Concat(before.Own, op.Own)
		merged.Without = slices.Concat(before.Without, op.Without)
	}
	if err := (slo.Set{Operators: []slo.Operator{merged}}).Check(); err != nil {
		return err
	}
	if i < 0 {
		s.Operators = append(s.Operators, merged)
	} else {
		s.Operators[i] = merged
	}
	return nil
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
