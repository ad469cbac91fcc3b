// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"github.com/bellwether-dev/bellwether/controllers/agent/credentials"
)

// defaultNamespace is the default namespace of an agent.
const defaultNamespace = "bellwether-system"

// readOwnNamespace returns the namespace in which the owner of a cluster configures what the
// agent may do: the namespace of the ServiceAccount with which the agent authenticates to that
// cluster. It is read from the token and not from a setting that a hub could change, such as a
// variable of the agent's Deployment. An agent that authenticates in another way, for example
// with a certificate, uses the fallback.
func readOwnNamespace(config *rest.Config, fallback string) (string, error) {
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		content, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return "", fmt.Errorf("read the token of the agent's ServiceAccount: %w", err)
		}
		token = string(content)
	}
	return cmp.Or(credentials.ReadNamespace(token), fallback), nil
}
