// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package read makes sets of objectives from files: OperatorSLOs, OpenSLO v1, and sloth's
// prometheus/v1 and PrometheusServiceLevels. It receives the text of the files and fills a slo.Set; it
// opens no files. A setting in a file that the rules cannot implement is an error, and never ignored.
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
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// ErrFormat is wrapped by errors about a file that has an unknown format or is not well formed.
var ErrFormat = errors.New("not a file of objectives")

// ErrUnsupported is wrapped by errors about a valid file with a setting that is not supported.
var ErrUnsupported = errors.New("not supported")

// set is the set that files are read into.
type set struct {
	*slo.Set
	// namespace is the namespace of operators whose file does not name one.
	namespace string
	report    Report
}

// Report describes the result of reading a file.
type Report struct {
	// Refused has an error for each SLO that is not in the set, with
	// its name, and for each invalid object that SLOs refer to.
	Refused []error
	// Notes describe parts of a file that no rule uses, and assumptions that were made. They are in lower case.
	Notes []string
	// Given lists the objects that the file declares to exist.
	Given Given
}

// File adds the objectives of a file to a set. A file has one or more YAML documents; the format
// of each document follows from its field version (sloth) or apiVersion. ManagedOperators and
// EndpointProbes only declare which objects exist. Operators are in the given namespace, unless
// an OperatorSLO has a namespace, or a service is written as NAMESPACE/NAME.
//
// An SLO that cannot be read is left out and does not affect the others: the report has an error for each
// such SLO. The second result is an error about the whole file; then nothing is added from the file.
func File(all *slo.Set, namespace string, text []byte) (Report, error) {
	documents, err := splitDocuments(text)
	if err != nil {
		return Report{}, err
	}
	into := &set{Set: all, namespace: namespace}
	var openSLOs []document // they can refer to each other
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

// format is the format of a document.
type format int

const (
	formatOperatorSLO format = iota
	formatOpenSLO
	formatSloth
	formatServiceLevel
	formatOperator
	formatProbe
)

// document is one document of a file.
type document struct {
	format format
	// name is metadata.name, or sloth's service. kind is the kind of an object.
	name, kind string
	text       []byte
}

// splitDocuments returns the documents of a file, with the items of lists as separate documents.
func splitDocuments(text []byte) ([]document, error) {
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

// identify returns a document with its format, or the items of a list.
// line is the line of the file on which the document begins, for messages.
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
	newDocument := func(f format, name string) ([]document, error) {
		return []document{{format: f, name: name, kind: head.Kind, text: text}}, nil
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
		return newDocument(formatOperatorSLO, head.Metadata.Name)
	case head.APIVersion == api && head.Kind == kindOperator:
		return newDocument(formatOperator, head.Metadata.Name)
	case head.APIVersion == api && head.Kind == kindProbe:
		return newDocument(formatProbe, head.Metadata.Name)
	case head.APIVersion == slothv1.SchemeGroupVersion.String() && head.Kind == kindServiceLevel:
		return newDocument(formatServiceLevel, head.Metadata.Name)
	case head.APIVersion == "openslo/v1":
		return newDocument(formatOpenSLO, head.Metadata.Name)
	case head.Version == "prometheus/v1":
		return newDocument(formatSloth, head.Service)
	}
	return nil, fmt.Errorf("%w: a document with apiVersion %q and kind %q; supported are %s of %s, %s of %s, "+
		"openslo/v1, and version: prometheus/v1 (sloth)", ErrFormat, head.APIVersion, head.Kind, kindSLO,
		v1alpha1.SchemeGroupVersion, kindServiceLevel, slothv1.SchemeGroupVersion)
}

// isBlank reports whether a document contains nothing but comments.
func isBlank(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.HasPrefix(line, []byte("---")) {
			return false
		}
	}
	return true
}

// refuse adds an error, if it is not nil, to the report. name is the name of the object.
func (s *set) refuse(name string, err error) {
	if err != nil {
		s.report.Refused = append(s.report.Refused, fmt.Errorf("%s: %w", name, err))
	}
}

// note adds a note about an object to the report.
func (s *set) note(name, text string) { s.report.Notes = append(s.report.Notes, name+": "+text) }

// unused collects the settings of an object that no rule uses.
type unused []string

// add adds a field if it is set.
func (u *unused) add(field string, isSet bool) {
	if isSet {
		*u = append(*u, field)
	}
}

// addNames adds a field with its unused names, if there are any.
func (u *unused) addNames(field string, names []string) {
	if len(names) > 0 {
		*u = append(*u, fmt.Sprintf("%s (%s)", field, strings.Join(names, ", ")))
	}
}

// noteUnused adds a note with the unused settings of an object, if there are any.
func (s *set) noteUnused(name string, u unused) {
	if len(u) > 0 {
		s.note(name, "not used: "+strings.Join(u, ", "))
	}
}

// addOwnSLI adds an own SLI with its objective to the operator of a service.
func (s *set) addOwnSLI(service string, o slo.Objective, sli slo.OwnSLI) error {
	id := types.NamespacedName{Namespace: s.namespace, Name: service}
	if namespace, name, ok := strings.Cut(service, "/"); ok {
		id = types.NamespacedName{Namespace: namespace, Name: name}
	}
	return s.merge(slo.Operator{Namespace: id.Namespace, Name: id.Name, Objectives: []slo.Objective{o},
		Own: []slo.OwnSLI{sli}})
}

// merge adds the data of another document to an operator. If the result
// is invalid, it returns an error and does not change the operator.
func (s *set) merge(op slo.Operator) error {
	merged := op
	i := slices.IndexFunc(s.Operators, func(o slo.Operator) bool { return o.ID() == op.ID() })
	if i >= 0 {
		existing := s.Operators[i]
		merged.Team = cmp.Or(op.Team, existing.Team)
		merged.Criticality = cmp.Or(op.Criticality, existing.Criticality)
		merged.Objectives = slices.Concat(existing.Objectives, op.Objectives)
		merged.Own = slices.Concat(existing.Own, op.Own)
		merged.Without = slices.Concat(existing.Without, op.Without)
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

func formatDecimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
