// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// document is a report as JSON. Its fields only ever get more.
type document struct {
	Bundle   string           `json:"bundle"`
	Package  string           `json:"package,omitempty"`
	Version  string           `json:"version"`
	History  []string         `json:"history"`
	FailOn   Severity         `json:"failOn"`
	Failed   bool             `json:"failed"`
	Counts   map[Severity]int `json:"counts"`
	Findings []Finding        `json:"findings"`
	Waived   []Waived         `json:"waived"`
	// Known are in the baseline, Earlier are about versions that do not upgrade to the bundle directly.
	Known   []Finding `json:"known,omitempty"`
	Earlier []Finding `json:"earlier,omitempty"`
}

// ParseBaseline returns the findings of a report that JSON wrote, those that were in its own baseline included.
func ParseBaseline(text []byte) ([]Finding, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("decode report: %w", err)
	}
	if d.Bundle == "" {
		return nil, errors.New("decode report: it names no bundle")
	}
	return slices.Concat(d.Findings, d.Known), nil
}

// JSON is the report for programs. Lists that are empty are there.
func (r *Report) JSON() ([]byte, error) {
	d := document{Bundle: r.Bundle, Package: r.Package, Version: r.Version, History: append([]string{}, r.History...),
		FailOn: r.FailOn,
		Failed: r.Failed(), Counts: map[Severity]int{}, Findings: append([]Finding{}, r.Findings...),
		Waived: append([]Waived{}, r.Waived...), Known: r.Known, Earlier: r.Earlier}
	for _, s := range severities {
		d.Counts[s] = r.Count(s)
	}
	text, err := json.MarshalIndent(d, "", "    ")
	if err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return append(text, '\n'), nil
}
