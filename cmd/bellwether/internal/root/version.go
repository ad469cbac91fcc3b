// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root

import (
	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/internal/version"
)

func (a *app) newVersionCommand() *cobra.Command {
	var out command.Output
	c := &cobra.Command{
		Use: "version", Short: "Print the versions of bellwether and of the built-in chart", Args: command.NoArgs,
		Example: "  bellwether version -o json",
		RunE: func(*cobra.Command, []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			ch, err := charts.Load()
			if err != nil {
				return err
			}
			info := version.Get()
			v := struct {
				version.Info
				Chart string `json:"chart"`
			}{info, ch.AppVersion()}
			if !out.Table() {
				return out.Value(a.Streams.Out, v)
			}
			a.Say("bellwether %s\nbuilt-in hub and agent: %s\n%s\n", info, v.Chart, v.Go)
			return nil
		},
	}
	out.Add(c, command.OutputJSON, command.OutputYAML)
	return c
}
