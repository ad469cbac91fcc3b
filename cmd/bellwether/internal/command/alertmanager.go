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

// EnvAlertmanager is the environment variable with the URL of Alertmanager. The flag --alertmanager has precedence.
const EnvAlertmanager = "BELLWETHER_ALERTMANAGER"

// AlertmanagerFlags are the flags that select the Alertmanager to read.
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

const alertmanagerURLHint = "use a URL such as http://localhost:9093"

// HasAlertmanager reports whether a flag or the environment has the URL of Alertmanager.
func (a *Env) HasAlertmanager(o *AlertmanagerFlags) bool {
	return cmp.Or(o.address, a.Getenv(EnvAlertmanager)) != ""
}

// Alertmanager returns a client for the Alertmanager of the flags or the environment. It does not connect.
func (a *Env) Alertmanager(o *AlertmanagerFlags) (*alertmanager.Client, error) {
	if !a.HasAlertmanager(o) {
		return nil, exit.Hintf(alertmanagerURLHint, "no Alertmanager address: set --alertmanager or %s",
			EnvAlertmanager)
	}
	client, err := alertmanager.Endpoint{URL: cmp.Or(o.address, a.Getenv(EnvAlertmanager)), TokenFile: o.tokenFile,
		CAFile: o.caFile, Patience: Patience}.Client()
	if errors.Is(err, alertmanager.ErrAddress) {
		return nil, exit.Hint(err, alertmanagerURLHint)
	}
	return client, err
}
