// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package boilerplate

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/boilerplate/update"
	"github.com/bellwether-dev/bellwether/bundles/lint"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/internal/version"
)

const checkLong = `Check what of a repository has drifted from its conventions. The command compares the
files with what was rendered last, so it needs no network, no git and no clean tree.

Exit codes:
  0  nothing has drifted
  1  something has drifted
  2  the repository cannot be read, or subscribes to no conventions`

func (a *app) newCheckCommand() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use: "check", Short: "Check whether a repository has drifted from its conventions", Long: checkLong,
		Args:    command.NoArgs,
		Example: "  bellwether boilerplate check\n  bellwether boilerplate check -o sarif > boilerplate.sarif",
		RunE:    a.newRunE(f, a.checkRepository),
	}
	f.addDirFlag(c)
	f.out.Add(c, command.OutputText, command.OutputJSON, "sarif", "github")
	return a.SetErrorCode(exit.Failed, c)
}

// checkRepository prints the findings, and returns an error with exit code 1 if there are any.
func (a *app) checkRepository(_ context.Context, f *flags, _ []string) error {
	r, err := f.openRepository()
	if err != nil {
		return err
	}
	findings, err := r.Check(a.Now())
	if err == nil {
		err = a.printFindings(&f.out, findings)
	}
	if err != nil || len(findings) == 0 {
		return err
	}
	return &exit.CodeError{Code: exit.Error}
}

// printFindings prints the findings in the selected format: JSON, SARIF, workflow commands of GitHub, or text.
func (a *app) printFindings(out *command.Output, findings []update.Finding) error {
	switch out.Format {
	case command.OutputJSON:
		return out.Value(a.Streams.Out, map[string]any{"findings": slices.Concat([]update.Finding{}, findings)})
	case "sarif":
		text, err := encodeSARIF(findings)
		a.Say("%s", text)
		return err
	case "github":
		for _, f := range findings {
			a.Say("::error file=%s,line=%d,title=%s::%s\n", escapeProperty.Replace(f.Path), max(f.Line, 1), f.Rule,
				escapeData.Replace(formatMessage(f)))
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

// formatMessage returns the text that code hosts show at the line of a finding.
func formatMessage(f update.Finding) string {
	return strings.TrimPrefix(f.Owner+": "+f.Reason+": "+f.Remedy, ": ")
}

// Characters that must be escaped in GitHub's workflow commands.
var (
	escapeData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// encodeSARIF encodes the findings in the Static Analysis Results Interchange Format 2.1.0, for code hosts.
func encodeSARIF(findings []update.Finding) ([]byte, error) {
	r := lint.NewSARIF(version.Get().Version)
	for _, id := range slices.Sorted(maps.Keys(update.Rules)) {
		r.AddRule(id).WithName(id).WithDescription(update.Rules[id].Description).
			WithHelpURI(lint.Repository + "blob/main/docs/guides/boilerplate.md#check").
			WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel("error"))
	}
	for _, f := range findings {
		location := sarif.NewPhysicalLocation().WithArtifactLocation(sarif.NewSimpleArtifactLocation(f.Path)).
			WithRegion(sarif.NewRegion().WithStartLine(max(f.Line, 1)))
		r.CreateResultForRule(f.Rule).WithLevel("error").WithMessage(sarif.NewTextMessage(formatMessage(f))).
			AddLocation(sarif.NewLocationWithPhysicalLocation(location))
	}
	return lint.EncodeSARIF(r)
}
