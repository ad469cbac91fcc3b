// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// EnvAlertmanager is where Alertmanager is, unless a flag says so.
const EnvAlertmanager = "BELLWETHER_ALERTMANAGER"

// AlertmanagerFlags say which Alertmanager to read.
type AlertmanagerFlags struct{ address, tokenFile, caFile string }

// Add adds the flags to a command.
func (o *AlertmanagerFlags) Add(c *cobra.Command) {
	c.Flags().StringVar(&o.address, "alertmanager", "",
		"The `URL` of Alertmanager. Default: $"+EnvAlertmanager+".")
	c.Flags().StringVar(&o.tokenFile, "alertmanager-token-file", "",
		"The `FILE` with the bearer token for Alertmanager.")
	c.Flags().StringVar(&o.caFile, "alertmanager-ca-file", "",
		"The `FILE` with the CA certificates for Alertmanager.")
	_ = c.MarkFlagFilename("alertmanager-token-file")
	_ = c.MarkFlagFilename("alertmanager-ca-file")
}

const howToNameAlertmanager = "use a URL such as http://localhost:9093"

// HasAlertmanager is true if a flag or the environment says which Alertmanager to
// read.
func (a *Env) HasAlertmanager(o *AlertmanagerFlags) bool {
	return cmp.Or(o.address, a.Getenv(EnvAlertmanager)) != ""
}

// Alertmanager makes a client of the Alertmanager that a flag or the environment
// names. It does not connect yet.
func (a *Env) Alertmanager(o *AlertmanagerFlags) (*alertmanager.Client, error) {
	if !a.HasAlertmanager(o) {
		return nil, exit.Hintf(howToNameAlertmanager, "no Alertmanager address: set --alertmanager or %s",
			EnvAlertmanager)
	}
	client, err := alertmanager.Endpoint{URL: cmp.Or(o.address, a.Getenv(EnvAlertmanager)), TokenFile: o.tokenFile,
		CAFile: o.caFile, Patience: Patience}.Client()
	if errors.Is(err, alertmanager.ErrAddress) {
		return nil, exit.Hint(err, howToNameAlertmanager)
	}
	return client, err
}
