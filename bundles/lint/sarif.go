// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

const (
	// Repository is the address of Bellwether's source code.
	Repository = "https://github.com/bellwether-dev/bellwether/"
	// rulesURL is the page about all rules. The id of each rule is an anchor in it.
	rulesURL = Repository + "blob/main/docs/reference/rules.md"
)

// sarifLevels maps severities to their names in SARIF.
var sarifLevels = map[Severity]string{Error: "error", Warning: "warning", Info: "note"}

// SARIF returns the report in the Static Analysis Results Interchange Format 2.1.0, which code hosts show beside the
// code. Waived findings are included as suppressed results. program is the version of bellwether.
func (r *Report) SARIF(program string) ([]byte, error) {
	run := NewSARIF(program)
	for _, rule := range r.Rules {
		level := sarifLevels[rule.Severity]
		run.AddRule(rule.ID).WithName(rule.ID).WithDescription(rule.Title).
			WithFullDescription(sarif.NewMultiformatMessageString().WithText(rule.Why).WithMarkdown(rule.Why)).
			WithMarkdownHelp(rule.Why + "\n\n**Fix:** " + rule.Fix).WithHelpURI(rulesURL + "#" + rule.ID).
			WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(level))
	}
	for _, f := range r.Findings {
		r.addResult(run, f)
	}
	for _, w := range r.Waived {
		r.addResult(run, w.Finding).AddSuppression(sarif.NewSuppression().WithKind("external").WithStatus("accepted").
			WithJustification(fmt.Sprintf("%s (until %s)", w.Waiver.Reason, w.Waiver.Expires)))
	}
	return EncodeSARIF(run)
}

// NewSARIF returns a run without rules and results. program is the version of bellwether.
func NewSARIF(program string) *sarif.Run {
	run := sarif.NewRunWithInformationURI("bellwether", strings.TrimSuffix(Repository, "/"))
	run.Tool.Driver.WithVersion(program)
	return run
}

// EncodeSARIF encodes a report with one run.
func EncodeSARIF(run *sarif.Run) ([]byte, error) {
	report := sarif.NewReport()
	report.AddRun(run)
	var out bytes.Buffer
	if err := report.PrettyWrite(&out); err != nil {
		return nil, fmt.Errorf("encode SARIF: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// addResult adds a finding to a run and returns the result. A finding about the whole bundle is placed at the file of
// annotations, because code hosts ignore results without a place.
func (r *Report) addResult(run *sarif.Run, f Finding) *sarif.Result {
	if f.File == "" {
		f.File, f.Line = annotationsFile, 1
	}
	physical := sarif.NewPhysicalLocation().
		WithArtifactLocation(sarif.NewSimpleArtifactLocation((&url.URL{Path: r.formatFile(f)}).String()))
	if f.Line > 0 {
		physical.WithRegion(sarif.NewRegion().WithStartLine(f.Line))
	}
	location := sarif.NewLocationWithPhysicalLocation(physical)
	if f.Path != "" {
		location.AddLogicalLocation(sarif.NewLogicalLocation().WithFullyQualifiedName(f.Path).WithKind("member"))
	}
	return run.CreateResultForRule(f.Rule).WithLevel(sarifLevels[f.Severity]).
		WithMessage(sarif.NewTextMessage(f.Message)).AddLocation(location)
}
