// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/explain/remedy"
)

// TestRemediesNameRealCommands parses each command of the table of remedies
// with the commands and flags that there are.
func TestRemediesNameRealCommands(t *testing.T) {
	found := 0
	names := remedy.Names{Cluster: "prod-1", Operator: "echo", Rollout: "echo-2", Catalog: "main",
		HubNamespace: "fleet",
		Namespace:    "echo", Package: "echo-operator"}
	for _, r := range slices.Concat(remedy.All(), remedy.Observed()) {
		for _, a := range r.For("", names) {
			arguments, ours := strings.CutPrefix(a.Command, "bellwether ")
			if !ours {
				continue
			}
			found++
			if err := parse(t, strings.Fields(arguments)); err != nil {
				t.Errorf("%s: %s: %v", r.Reason, a.Command, err)
			}
		}
	}
	if found < 20 {
		t.Errorf("the table has only %d commands of bellwether", found)
	}
}

func parse(t *testing.T, args []string) error {
	t.Helper()
	c, rest, err := New(command.NewEnv("bellwether", genericiooptions.NewTestIOStreamsDiscard())).Find(args)
	if err != nil {
		return err
	}
	// Values in capital letters stand for the user's.
	for i, value := range rest {
		if i > 0 && rest[i-1] == "--target" && value == "PERCENT" {
			rest[i] = "99.9"
		}
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	return c.ValidateArgs(c.Flags().Args())
}
