// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

func TestNext(t *testing.T) {
	const orphan, uninstall, restore = v1alpha1.RemovalOrphan, v1alpha1.RemovalUninstall, v1alpha1.RemovalRestore
	tests := map[string]struct {
		install removal.Install
		policy  v1alpha1.RemovalPolicy
		reach   removal.Reach
		want    removal.Step
		due     bool
		blocked bool
		paused  bool
	}{
		"policy before deletion": {
			install: removal.Install{Name: "a", Policy: orphan, Held: true}, policy: uninstall,
			want: removal.Step{Name: "a", SetPolicy: uninstall, Delete: true}, due: true,
		},
		"policy already there": {
			install: removal.Install{Name: "a", Policy: uninstall, Held: true}, policy: uninstall,
			want: removal.Step{Name: "a", Delete: true}, due: true,
		},
		"an online agent is waited for": {
			install: removal.Install{Name: "a", Policy: orphan, Held: true, Deleting: true}, policy: orphan,
			want: removal.Step{Name: "a"},
		},
		"an offline agent is not waited for with Orphan": {
			install: removal.Install{Name: "a", Policy: orphan, Held: true, Deleting: true}, policy: orphan,
			reach: removal.Offline, want: removal.Step{Name: "a", Release: true}, due: true,
		},
		"an offline agent is waited for with Uninstall": {
			install: removal.Install{Name: "a", Policy: uninstall, Held: true, Deleting: true}, policy: uninstall,
			reach: removal.Offline, want: removal.Step{Name: "a"}, blocked: true,
		},
		"a person gives up the wait by changing the policy": {
			install: removal.Install{Name: "a", Policy: uninstall, Held: true, Deleting: true}, policy: orphan,
			reach: removal.Offline, want: removal.Step{Name: "a", SetPolicy: orphan, Release: true}, due: true,
		},
		"an agent without access is never waited for": {
			install: removal.Install{Name: "a", Policy: uninstall, Held: true, Deleting: true}, policy: uninstall,
			reach: removal.Gone, want: removal.Step{Name: "a", Release: true}, due: true,
		},
		"nothing to release before the agent took hold": {
			install: removal.Install{Name: "a", Policy: uninstall}, policy: uninstall,
			reach: removal.Offline, want: removal.Step{Name: "a", Delete: true}, due: true,
		},
		"nothing is uninstalled from a paused cluster": {
			install: removal.Install{Name: "a", Policy: orphan, Held: true, Paused: true}, policy: uninstall,
			want: removal.Step{Name: "a", SetPolicy: uninstall}, due: true, paused: true,
		},
		"a paused cluster is waited for": {
			install: removal.Install{Name: "a", Policy: uninstall, Held: true, Paused: true}, policy: uninstall,
			want: removal.Step{Name: "a"}, paused: true,
		},
		"what began before the pause goes on": {
			install: removal.Install{Name: "a", Policy: uninstall, Held: true, Deleting: true, Paused: true},
			policy:  uninstall, want: removal.Step{Name: "a"},
		},
		"a paused cluster that is offline": {
			install: removal.Install{Name: "a", Policy: uninstall, Held: true, Paused: true}, policy: uninstall,
			reach: removal.Offline, want: removal.Step{Name: "a"}, blocked: true, paused: true,
		},
		"a paused cluster without an agent": {
			install: removal.Install{Name: "a", Policy: uninstall, Held: true, Paused: true}, policy: uninstall,
			reach: removal.Gone, want: removal.Step{Name: "a", Delete: true, Release: true}, due: true,
		},
		"Orphan changes nothing on a paused cluster": {
			install: removal.Install{Name: "a", Policy: orphan, Held: true, Paused: true}, policy: orphan,
			want: removal.Step{Name: "a", Delete: true}, due: true,
		},
		"nothing was begun on a paused cluster": {
			install: removal.Install{Name: "a", Policy: uninstall, Paused: true}, policy: uninstall,
			want: removal.Step{Name: "a", Delete: true}, due: true,
		},
		"what was there before is put back": {
			install: removal.Install{Name: "a", Policy: orphan, Held: true}, policy: restore,
			want: removal.Step{Name: "a", SetPolicy: restore, Delete: true}, due: true,
		},
		"an offline agent is waited for with Restore": {
			install: removal.Install{Name: "a", Policy: restore, Held: true, Deleting: true}, policy: restore,
			reach: removal.Offline, want: removal.Step{Name: "a"}, blocked: true,
		},
		"an agent without access is not waited for with Restore": {
			install: removal.Install{Name: "a", Policy: restore, Held: true, Deleting: true}, policy: restore,
			reach: removal.Gone, want: removal.Step{Name: "a", Release: true}, due: true,
		},
		"nothing is put back on a paused cluster": {
			install: removal.Install{Name: "a", Policy: orphan, Held: true, Paused: true}, policy: restore,
			want: removal.Step{Name: "a", SetPolicy: restore}, due: true, paused: true,
		},
		"no policy is Orphan": {
			install: removal.Install{Name: "a"},
			want:    removal.Step{Name: "a", Delete: true}, due: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, due := removal.Next(test.install, test.policy, test.reach)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
			if due != test.due {
				t.Errorf("due = %v, want %v", due, test.due)
			}
			if blocked := removal.IsBlocked(test.install, test.policy, test.reach); blocked != test.blocked {
				t.Errorf("blocked = %v, want %v", blocked, test.blocked)
			}
			if paused := removal.IsWaitingForPause(test.install, test.policy, test.reach); paused != test.paused {
				t.Errorf("waits for the pause = %v, want %v", paused, test.paused)
			}
		})
	}
}
