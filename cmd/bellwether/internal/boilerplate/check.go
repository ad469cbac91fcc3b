// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package boilerplate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/boilerplate/update"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/version"
)

const checkLong = `Check what of a repository has drifted from its conventions. The command compares the
files with what was rendered last, so it needs no network, no git and no clean tree.

Exit codes:
  0  nothing has drifted
  1  something has drifted
  2  the repository cannot be read, or subscribes to no conventions`

func (a *app) checkCommand() *cobra.Command {
	p, out := &place{}, &command.Output{}
	c := &cobra.Command{
		Use: "check", Short: "Check whether a repository has drifted from its conventions", Long: checkLong,
		Args:    command.NoArgs,
		Example: "  bellwether boilerplate check\n  bellwether boilerplate check -o sarif > boilerplate.sarif",
		RunE: func(*cobra.Command, []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			return a.explain(a.check(p, out))
		},
	}
	p.add(c)
	out.Add(c, command.OutputText, command.OutputJSON, "sarif", "github")
	return a.ErrorsAre(exit.Failed, c)
}

func (a *app) check(p *place, out *command.Output) error {
	r, err := p.open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Tree.Close() }()
	findings, err := r.Check(a.Now())
	if err != nil {
		return err
	}
	if err := a.printFindings(out, findings); err != nil {
		return err
	}
	if len(findings) > 0 {
		return &exit.CodeError{Code: exit.Error}
	}
	return nil
}

func (a *app) printFindings(out *command.Output, findings []update.Finding) error {
	switch out.Format {
	case command.OutputJSON:
		return out.Value(a.Streams.Out, map[string]any{"findings": slices.Concat([]update.Finding{}, findings)})
	case "sarif":
		text, err := sarifOf(findings)
		a.Say("%s", text)
		return err
	case "github":
		for _, f := range findings {
			line := ""
			if f.Line > 0 {
				line = fmt.Sprintf(",line=%d", f.Line)
			}
			a.Say("::error file=%s%s,title=%s::%s\n", escapeProperty.Replace(f.Path), line, f.Rule,
				escapeData.Replace(f.Reason+": "+f.Remedy))
		}
		return nil
	}
	for _, f := range findings {
		a.Say("%s\n  %s\n", f, f.Remedy)
	}
	if len(findings) == 0 {
		a.Say("The repository is as its conventions have it.\n")
		return nil
	}
	a.Say("\n%s\n", phrase.Count(len(findings), "finding"))
	return nil
}

// What GitHub's workflow commands need escaped.
var (
	escapeData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

const repositoryURL = "https://github.com/bellwether-dev/bellwether"

// sarifOf is the Static Analysis Results Interchange Format 2.1.0, which code hosts show beside the code.
func sarifOf(findings []update.Finding) ([]byte, error) {
	r := sarif.NewRunWithInformationURI("bellwether", repositoryURL)
	r.Tool.Driver.WithVersion(version.Get().Version)
	for _, id := range slices.Sorted(maps.Keys(update.Rules)) {
		r.AddRule(id).WithName(id).WithDescription(update.Rules[id].Description).
			WithHelpURI(repositoryURL + "/blob/main/docs/guides/boilerplate.md#check").
			WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel("error"))
	}
	for _, f := range findings {
		location := sarif.NewPhysicalLocation().WithArtifactLocation(sarif.NewSimpleArtifactLocation(f.Path)).
			WithRegion(sarif.NewRegion().WithStartLine(max(f.Line, 1)))
		message := f.Reason + ": " + f.Remedy
		if f.Owner != "" {
			message = f.Owner + ": " + message
		}
		r.CreateResultForRule(f.Rule).WithLevel("error").WithMessage(sarif.NewTextMessage(message)).
			AddLocation(sarif.NewLocationWithPhysicalLocation(location))
	}
	report := sarif.NewReport()
	report.AddRun(r)
	var out bytes.Buffer
	if err := report.PrettyWrite(&out); err != nil {
		return nil, fmt.Errorf("encode SARIF: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
