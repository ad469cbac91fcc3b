// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet"
)

func TestVersionSkew(t *testing.T) {
	for name, c := range map[string]struct {
		hub, agent   string
		reason, says string
	}{
		"the same":               {"0.3.0", "0.3.0", "+Succeeded", "0.3.0"},
		"one minor version":      {"0.3.0", "0.2.7", "+Succeeded", "0.2.7"},
		"an old agent":           {"0.3.0", "0.1.0", "AgentTooOld", "fleet join prod"},
		"a new agent":            {"0.3.0", "0.5.0", "HubTooOld", "install hub"},
		"one that is no release": {"0.3.0", "devel", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := healthy()
			in.HubVersion, in.Lease.Versions.Agent = c.hub, c.agent
			// An earlier condition does not stay.
			conditions.Set(&in.Cluster.Status.Conditions, 1, v1alpha1.ConditionVersionSupported, false, "Old", "old")
			got := fleet.Next(in).Status.Conditions
			if reason := describe(got, v1alpha1.ConditionVersionSupported); reason != c.reason {
				t.Errorf("got reason %q, want %q", reason, c.reason)
			}
			message := conditions.Get(got, v1alpha1.ConditionVersionSupported).Message
			if !strings.Contains(message, c.says) {
				t.Errorf("got message %q, want %q in it", message, c.says)
			}
			if !conditions.IsTrue(got, v1alpha1.ConditionReady) {
				t.Error("the cluster is not Ready: other versions are a warning")
			}
		})
	}
}
