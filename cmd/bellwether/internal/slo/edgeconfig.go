// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
)

const sloEdgeConfigLong = `Write the configuration with which the Prometheus of a cluster sends series to
the Prometheus of the hub.

The cluster's Prometheus evaluates the edge part of the rules, see ` + "`bellwether slo generate --part edge`" + `.
Only the series that the hub part of the rules reads are sent, and only those with the
label cluster of this cluster.

The output is a part of prometheus.yml or, with -o prometheus, of the spec of a
Prometheus or PrometheusAgent of prometheus-operator.`

// outputPrometheus is the output format for a Prometheus object of prometheus-operator.
const outputPrometheus = "prometheus"

func (a *app) newEdgeConfigCommand() *cobra.Command {
	var out command.Output
	var sender slo.Sender
	var file string
	c := &cobra.Command{
		Use:   "edge-config --cluster NAME --remote-write-url URL",
		Short: "Write what the Prometheus of a cluster needs to send slices to the hub's", Long: sloEdgeConfigLong,
		Example: "  bellwether slo edge-config --cluster prod-eu --remote-write-url " +
			"https://metrics.example.com/api/v1/write\n" +
			"  bellwether slo edge-config --cluster prod-eu --remote-write-url " +
			"https://metrics.example.com/api/v1/write -o prometheus",
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			text, err := encodeEdgeConfig(sender, out.Format)
			if err != nil {
				return addHint(err)
			}
			return a.WriteOutput(string(text), file)
		},
	}
	out.Add(c, command.OutputYAML, outputPrometheus)
	c.Flags().StringVar(&sender.Cluster, "cluster", "", "The `NAME` of the FleetCluster. Required.")
	c.Flags().StringVar(&sender.URL, "remote-write-url", "",
		"The `URL` of the receiver with its path, such as https://metrics.example.com/api/v1/write. Required.")
	c.Flags().StringVar(&sender.Token, "token", "",
		"The `FILE` with the token for the receiver or, with -o prometheus, the name of a Secret that has it under "+
			"the key "+slo.SenderTokenKey+". Default: no token.")
	c.Flags().StringVar(&sender.CA, "ca", "",
		"The `FILE` with the certificates of the receiver's authority or, with -o prometheus, the name of a Secret "+
			"that has them under the key "+slo.SenderCAKey+". Default: the system's.")
	c.Flags().StringVar(&file, "file", "", "Write to this `FILE`.")
	command.RequireFlags(c, "cluster", "remote-write-url")
	_ = c.MarkFlagFilename("file", "yaml", "yml")
	return c
}

// encodeEdgeConfig returns the remote write configuration as a part of prometheus.yml, or of
// the spec of a Prometheus object.
func encodeEdgeConfig(sender slo.Sender, format string) ([]byte, error) {
	if format != outputPrometheus {
		return sender.Configuration()
	}
	spec, err := sender.PrometheusSpec()
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return nil, fmt.Errorf("encode the spec: %w", err)
	}
	return text, nil
}
