// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
)

// fourClusters is a fleet with operators and a backup, a cluster that is paused, and one without operators.
func fourClusters(t *testing.T) *clitest.Hub {
	t.Helper()
	paused := clitest.Cluster("prod-3", nil)
	paused.Spec.Paused, paused.Spec.Offboarding = true, v1alpha1.RemovalUninstall
	h := twoClusters()
	for _, o := range []client.Object{paused, clitest.Cluster("empty", nil),
		&v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod-1", Name: "team.db"}},
		&v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod-3", Name: "team.db"}},
		&v1alpha1.OperatorBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod-1", Name: "a"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod-1", Name: "bellwether-agent"}},
	} {
		if err := h.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// TestRemoveAsks checks that a removal shows what is lost, and requires the right and a confirmation.
func TestRemoveAsks(t *testing.T) {
	const asked, terminal = "Continue? [y/N]", "set --yes"
	for name, c := range map[string]struct {
		args, answer string
		denied       []string
		code         int
		says         []string
		not          string
	}{
		"without a terminal": {args: "remove prod-1", code: 1, says: []string{terminal, "nothing was changed",
			"This removes cluster prod-1 from the fleet, and cannot be taken back:\n  prod-1: 2 operators stay " +
				"installed, and are no longer managed: team.db, team.echo; the records of 1 backup are deleted on " +
				"the hub",
			"The hub deletes the agent's access, its reports and the history of it."}, not: asked},
		"with the flag": {args: "remove prod-1 --yes", says: []string{"team.echo", "prod-1 is removed"}, not: asked},
		"a yes":         {args: "remove prod-1", answer: "y\n", says: []string{asked, "prod-1 is removed"}},
		"a no": {args: "remove prod-1", answer: "n\n", code: 1, says: []string{asked,
			"not confirmed, and nothing was changed"}},
		"an answer that is none": {args: "remove prod-1", answer: "\n", code: 1, says: []string{asked}},
		"one operator to uninstall": {args: "remove prod-2", code: 1, says: []string{
			"prod-2: 1 operator is uninstalled: team.echo; it is offline, and leaves 1h0m0s after the deletion"}},
		"another policy than the cluster's": {args: "remove prod-1 --offboarding Uninstall", code: 1,
			says: []string{"2 operators are uninstalled: team.db, team.echo"}},
		"a paused cluster": {args: "remove prod-3", code: 1, says: []string{"1 operator is uninstalled: team.db; " +
			"it is paused, and nothing is uninstalled while it is: after 24h0m0s they stay installed"}},
		"a cluster without operators": {args: "remove empty", code: 1, says: []string{"empty: no operators\n"}},
		"all": {args: "remove --all --clusters 4", answer: "no\n", code: 1, says: []string{asked,
			"This removes these 4 clusters from the fleet, and cannot be taken back:\n", "  empty: no operators\n",
			"the history of each"}},
		"without the right": {args: "remove prod-1 --yes", denied: []string{"remove fleetclusters"}, code: 1,
			says: []string{"you may not remove cluster prod-1 from the fleet", "ClusterRole bellwether-remove",
				"verb remove on fleetclusters prod-1"}, not: "cannot be taken back"},
		"all without the right": {args: "remove --all --clusters 4 --yes", code: 1,
			denied: []string{"remove fleetclusters"},
			says:   []string{"you may not remove all clusters from the fleet", "ClusterRole bellwether-remove"}},
		"access without a terminal": {args: "revoke prod-1", code: 1, says: []string{terminal,
			"This ends all tokens of the agent of cluster prod-1, and cannot be taken back"}},
		"access":                   {args: "revoke prod-1 --yes", says: []string{"revoked the access of cluster prod-1"}},
		"access that is not there": {args: "revoke prod-2 --yes", code: 1, says: []string{"prod-2 has no access"}},
		"access without the right": {args: "revoke prod-1 --yes", denied: []string{"delete serviceaccounts"}, code: 1,
			says: []string{"you may not revoke the access of cluster prod-1", "ClusterRole bellwether-join"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := fourClusters(t)
			h.Answer, h.Denied = c.answer, c.denied
			before := remaining(t, h)
			got := h.Run(t, append([]string{"fleet"}, strings.Fields(c.args)...)...)
			if got.Code != c.code {
				t.Errorf("it ends with %d, want %d", got.Code, c.code)
			}
			for _, want := range c.says {
				if !strings.Contains(got.Out+got.Err, want) {
					t.Errorf("no %q in\n%s%s", want, got.Out, got.Err)
				}
			}
			if c.not != "" && strings.Contains(got.Out+got.Err, c.not) {
				t.Errorf("%q is in\n%s%s", c.not, got.Out, got.Err)
			}
			if n := remaining(t, h); c.code != 0 && n != before {
				t.Errorf("%d clusters are left, want %d", n, before)
			}
		})
	}
}
