// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// jsonReport is the JSON format of a report. Fields can be added, but never removed.
type jsonReport struct {
	Bundle   string           `json:"bundle"`
	Package  string           `json:"package,omitempty"`
	Version  string           `json:"version"`
	History  []string         `json:"history"`
	FailOn   Severity         `json:"failOn"`
	Failed   bool             `json:"failed"`
	Counts   map[Severity]int `json:"counts"`
	Findings []Finding        `json:"findings"`
	Waived   []Waived         `json:"waived"`
	// Known are findings in the baseline. Earlier are findings about versions that do not upgrade to the
	// bundle directly.
	Known   []Finding `json:"known,omitempty"`
	Earlier []Finding `json:"earlier,omitempty"`
}

// ParseBaseline returns the findings of a report in JSON, including the findings that were in that report's
// own baseline.
func ParseBaseline(text []byte) ([]Finding, error) {
	var d jsonReport
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("decode report: %w", err)
	}
	if d.Bundle == "" {
		return nil, errors.New("decode report: it names no bundle")
	}
	return slices.Concat(d.Findings, d.Known), nil
}

// JSON returns the report in JSON, for programs. Empty lists of versions and findings are [], not null.
func (r *Report) JSON() ([]byte, error) {
	d := jsonReport{Bundle: r.Bundle, Package: r.Package, Version: r.Version, History: append([]string{}, r.History...),
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
