// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"github.com/bellwether-dev/bellwether/controllers/credentials"
)

// defaultNamespace is where an agent is installed unless its owner says otherwise.
const defaultNamespace = "bellwether-system"

// ownNamespace is where the owner of a cluster says what the agent may do there: the namespace of the ServiceAccount
// that the agent acts as on that cluster. Its token says so, and nothing that a hub can set, such as a variable of the
// agent's Deployment. An agent that acts as another user, for example by a certificate, has the other namespace.
func ownNamespace(config *rest.Config, otherwise string) (string, error) {
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		content, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return "", fmt.Errorf("read the token of the agent's ServiceAccount: %w", err)
		}
		token = string(content)
	}
	return cmp.Or(credentials.Namespace(token), otherwise), nil
}
