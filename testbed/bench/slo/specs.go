// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
)

// What sloth reads.
type (
	slothFile struct {
		Version string     `json:"version"`
		Service string     `json:"service"`
		SLOs    []slothSLO `json:"slos"`
	}
	slothSLO struct {
		Name      string        `json:"name"`
		Objective float64       `json:"objective"`
		SLI       slothSLI      `json:"sli"`
		Alerting  slothAlerting `json:"alerting"`
	}
	slothSLI struct {
		Raw    *slothRaw    `json:"raw,omitempty"`
		Events *slothEvents `json:"events,omitempty"`
	}
	slothRaw struct {
		Query string `json:"error_ratio_query"`
	}
	slothEvents struct {
		Error string `json:"error_query"`
		Total string `json:"total_query"`
	}
	slothAlerting struct {
		Name string `json:"name"`
	}
)

// What pyrra reads.
type (
	pyrraFile struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
		Spec       pyrraSpec         `json:"spec"`
	}
	pyrraSpec struct {
		Target    string         `json:"target"`
		Window    string         `json:"window"`
		Indicator pyrraIndicator `json:"indicator"`
	}
	pyrraIndicator struct {
		BoolGauge *pyrraQuery   `json:"bool_gauge,omitempty"`
		Ratio     *pyrraRatio   `json:"ratio,omitempty"`
		Latency   *pyrraLatency `json:"latency,omitempty"`
	}
	pyrraQuery struct {
		Metric   string   `json:"metric"`
		Grouping []string `json:"grouping,omitempty"`
	}
	pyrraRatio struct {
		Errors   pyrraQuery `json:"errors"`
		Total    pyrraQuery `json:"total"`
		Grouping []string   `json:"grouping"`
	}
	pyrraLatency struct {
		Success  pyrraQuery `json:"success"`
		Total    pyrraQuery `json:"total"`
		Grouping []string   `json:"grouping"`
	}
)

// WriteSpecs writes the objectives of so many operators into dir, as sloth and as pyrra read them: sloth/OPERATOR.yaml
// and pyrra/OPERATOR-SLI.yaml. Each is written the way that is the cheapest in that tool, and for all clusters at once;
// an objective for each operator and cluster would be two hundred times as many. In sloth-fleet/fleet.yaml are
// objectives for all operators at once, which is as far as one can go with sloth, for who does without names of
// operators in its labels.
func WriteSpecs(dir string, operators int) error {
	for i := range operators {
		name := fleet.Operator(i)
		for _, o := range objectives() {
			if err := write(filepath.Join(dir, pyrra, name+"-"+o.slug+".yaml"), o.pyrra(name)); err != nil {
				return err
			}
		}
		if err := write(filepath.Join(dir, sloth, name+".yaml"), slothSpec(name, name)); err != nil {
			return err
		}
	}
	return write(filepath.Join(dir, slothFleet, "fleet.yaml"), slothSpec("fleet", ""))
}

func slothSpec(service, operator string) slothFile {
	file := slothFile{Version: "prometheus/v1", Service: service}
	for _, o := range objectives() {
		file.SLOs = append(file.SLOs, o.sloth(operator))
	}
	return file
}

// grouping are the labels that tell what there is to tell apart.
func grouping(s *selector, operator string) []string {
	if operator == "" {
		return []string{series.Cluster, s.owner}
	}
	return []string{series.Cluster}
}

func (o objective) sloth(operator string) slothSLO {
	s := slothSLO{Name: o.slug, Objective: 100 * o.target.Ratio(), Alerting: slothAlerting{Name: "BudgetBurn"}}
	by := func(s *selector) string { return "by (" + strings.Join(grouping(s, operator), ", ") + ")" }
	rate := func(s *selector) string {
		return "sum " + by(s) + " (rate(" + s.of(operator) + "[{{.window}}]))"
	}
	switch {
	case o.gauge != nil:
		s.SLI.Raw = &slothRaw{"1 - avg " + by(o.gauge) + " (avg_over_time(" + o.gauge.of(operator) + "[{{.window}}]))"}
	case o.good != nil:
		s.SLI.Events = &slothEvents{rate(o.total) + " - " + rate(o.good), rate(o.total)}
	default:
		s.SLI.Events = &slothEvents{rate(o.bad), rate(o.total)}
	}
	return s
}

func (o objective) pyrra(operator string) pyrraFile {
	by := []string{series.Cluster}
	query := func(s *selector) pyrraQuery { return pyrraQuery{Metric: s.of(operator)} }
	f := pyrraFile{
		APIVersion: "pyrra.dev/v1alpha1", Kind: "ServiceLevelObjective",
		Metadata: map[string]string{"name": operator + "-" + o.slug, "namespace": "fleet"},
		Spec:     pyrraSpec{Target: o.target.String(), Window: "30d"},
	}
	switch {
	case o.gauge != nil:
		gauge := query(o.gauge)
		gauge.Grouping = by
		f.Spec.Indicator.BoolGauge = &gauge
	case o.good != nil:
		f.Spec.Indicator.Latency = &pyrraLatency{query(o.good), query(o.total), by}
	default:
		f.Spec.Indicator.Ratio = &pyrraRatio{query(o.bad), query(o.total), by}
	}
	return f
}

func write(path string, content any) error {
	text, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Errorf("write objective: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("write objective: %w", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write objective: %w", err)
	}
	return nil
}
