// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet"
)

func TestClusterRemoval(t *testing.T) {
	two := []string{"team.db", "team.echo"}
	tests := map[string]struct {
		policy  v1alpha1.RemovalPolicy
		timeout *metav1.Duration
		paused  bool
		offline bool
		names   []string
		backups int
		want    string
	}{
		"no operators": {want: "prod: no operators"},
		"no policy": {names: two,
			want: "prod: 2 operators stay installed, and are no longer managed: team.db, team.echo"},
		"backups": {policy: v1alpha1.RemovalUninstall, names: two[:1], backups: 1,
			want: "prod: 1 operator is uninstalled: team.db; the records of 1 backup are deleted on the hub, and the " +
				"files stay in their store"},
		"offline": {offline: true, timeout: &metav1.Duration{Duration: time.Hour},
			want: "prod: no operators; it is offline, and leaves 1h0m0s after the deletion at the latest"},
		"paused": {policy: v1alpha1.RemovalRestore, paused: true, names: two,
			want: "prod: 2 operators stay installed, and are no longer managed, and what was adopted gets its " +
				"Subscription back as it was before: team.db, team.echo; it is paused, and nothing is put back while " +
				"it is: after 24h0m0s they stay as they are"},
		"paused, and nothing to do there": {policy: v1alpha1.RemovalOrphan, paused: true, names: two,
			want: "prod: 2 operators stay installed, and are no longer managed: team.db, team.echo"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
			c.Spec.Offboarding, c.Spec.OffboardingTimeout, c.Spec.Paused = test.policy, test.timeout, test.paused
			conditions.Set(&c.Status.Conditions, 1, v1alpha1.ConditionOnline, !test.offline, "LeaseFresh", "")
			got := fleet.ClusterRemoval{Cluster: c, Operators: test.names, Backups: test.backups}.String()
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestReadDeletionMessage checks that a message from before the deletion is not shown.
func TestReadDeletionMessage(t *testing.T) {
	c := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod", Generation: 2}}
	conditions.Set(&c.Status.Conditions, 2, v1alpha1.ConditionReady, false, "Deleting", "waits for the agent")
	if got := fleet.ReadDeletionMessage(c); got != "" {
		t.Errorf("not being removed: %q", got)
	}
	c.DeletionTimestamp = &metav1.Time{Time: now}
	if got := fleet.ReadDeletionMessage(c); !strings.Contains(got, "waits for the agent") {
		t.Errorf("being removed: %q", got)
	}
	c.Generation = 3
	if got := fleet.ReadDeletionMessage(c); got != "" {
		t.Errorf("an older generation: %q", got)
	}
}
