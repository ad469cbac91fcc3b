// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/internal/version"
)

// AddBuildInfo adds the metric with the version of a component. A second call changes nothing.
func AddBuildInfo(metrics prometheus.Registerer, component string) error {
	s, info := series.Programs()[0], version.Get()
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: s.Name, Help: s.Help}, s.Labels)
	gauge.WithLabelValues(component, info.Version, info.Revision, info.Go).Set(1)
	var duplicate prometheus.AlreadyRegisteredError
	if err := metrics.Register(gauge); err != nil && !errors.As(err, &duplicate) {
		return fmt.Errorf("register metric %s: %w", s.Name, err)
	}
	return nil
}

// VersionCommand returns a command that prints the version of the program.
func VersionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			info := version.Get()
			if !asJSON {
				fmt.Fprintf(c.OutOrStdout(), "%s %s\n%s\n", c.Root().Name(), info, info.Go)
				return nil
			}
			if err := json.NewEncoder(c.OutOrStdout()).Encode(info); err != nil {
				return fmt.Errorf("print version: %w", err)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
