// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
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
}

// JSON is the report for programs. Lists that are empty are there.
func (r *Report) JSON() ([]byte, error) {
	d := document{Bundle: r.Bundle, Package: r.Package, Version: r.Version, History: append([]string{}, r.History...),
		FailOn: r.FailOn,
		Failed: r.Failed(), Counts: map[Severity]int{}, Findings: append([]Finding{}, r.Findings...),
		Waived: append([]Waived{}, r.Waived...)}
	for _, s := range severities {
		d.Counts[s] = r.Count(s)
	}
	text, err := json.MarshalIndent(d, "", "    ")
	if err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return append(text, '\n'), nil
}
