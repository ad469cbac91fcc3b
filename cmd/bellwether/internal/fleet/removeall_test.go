// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
)

// twoClusters is a fleet with a cluster that is online and one that is not, with an operator on each.
func twoClusters() *clitest.Hub {
	online, offline := clitest.Cluster("prod-1", nil), clitest.Cluster("prod-2", nil)
	online.UID, offline.UID = "1", "2"
	online.Spec.Offboarding = v1alpha1.RemovalOrphan
	offline.Status.Conditions = nil
	offline.Spec.Offboarding = v1alpha1.RemovalUninstall
	offline.Spec.OffboardingTimeout = &metav1.Duration{Duration: time.Hour}
	var installs []*v1alpha1.OperatorInstall
	for _, cluster := range []string{"prod-1", "prod-2"} {
		installs = append(installs, &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.ClusterNamespace(cluster), Name: "team.echo"}})
	}
	return clitest.NewHub(online, offline, installs[0], installs[1])
}

func remaining(t *testing.T, h *clitest.Hub) int {
	t.Helper()
	list := &v1alpha1.FleetClusterList{}
	if err := h.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// TestRemoveAllMustBeConfirmed checks that nothing is removed without the number of clusters or without a kubeconfig.
func TestRemoveAllMustBeConfirmed(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "prod-1.kubeconfig"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args string
		code int
		says []string
	}{
		"dry run": {"--all --dry-run", 0, []string{
			"prod-1: 1 operator stays installed, and is no longer managed: team.echo\n",
			"prod-2: 1 operator is uninstalled: team.echo; it is offline, and leaves 1h0m0s after the deletion at " +
				"the latest\n",
			"2 clusters would be removed. Nothing was changed."}},
		"dry run with another policy": {"--all --dry-run --offboarding Orphan --offboarding-timeout 0s", 0,
			[]string{"prod-2: 1 operator stays installed, and is no longer managed: team.echo; it is offline, " +
				"and leaves 0s after"}},
		"no confirmation":    {"--all", 1, []string{"the fleet has 2 clusters, and --clusters is 0", "--clusters 2"}},
		"another number":     {"--all --clusters 3", 1, []string{"the fleet has 2 clusters, and --clusters is 3"}},
		"a kubeconfig lacks": {"--all --clusters 2 --cluster-kubeconfigs " + folder, 1, []string{"prod-2.kubeconfig"}},
		"a name too":         {"prod-1 --all", 1, []string{"unexpected argument"}},
		"one kubeconfig":     {"--all --cluster-kubeconfig x", 1, []string{"use --cluster-kubeconfigs"}},
		"not all":            {"prod-1 --dry-run", 1, []string{"--dry-run has no effect without --all"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := twoClusters()
			got := h.Run(t, append([]string{"fleet", "remove"}, strings.Fields(c.args)...)...)
			if got.Code != c.code {
				t.Errorf("it ends with %d, want %d", got.Code, c.code)
			}
			for _, want := range c.says {
				if !strings.Contains(got.Out+got.Err, want) {
					t.Errorf("no %q in\n%s%s", want, got.Out, got.Err)
				}
			}
			if n := remaining(t, h); n != 2 {
				t.Errorf("%d clusters are left, want 2", n)
			}
		})
	}
}

func TestRemoveAll(t *testing.T) {
	h := twoClusters()
	got := h.MustRun(t, "fleet", "remove", "--all", "--clusters", "2", "--yes")
	for _, want := range []string{"cluster prod-1 is removed from the fleet",
		"cluster prod-2 is removed from the fleet", "2 clusters removed.",
		"helm -n bellwether-system uninstall bellwether-agent"} {
		if !strings.Contains(got.Out+got.Err, want) {
			t.Errorf("no %q in\n%s%s", want, got.Out, got.Err)
		}
	}
	if n := remaining(t, h); n != 0 {
		t.Errorf("%d clusters are left", n)
	}
	if got := h.MustRun(t, "fleet", "remove", "--all", "--yes"); !strings.Contains(got.Out,
		"The fleet has no clusters.") {
		t.Errorf("without clusters it says\n%s", got.Out)
	}
}
