// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
)

// frozen are the clusters of the FleetFreezes on a hub.
func frozen(t *testing.T, h *clitest.Hub) [][]string {
	t.Helper()
	list := &v1alpha1.FleetFreezeList{}
	if err := h.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for _, f := range list.Items {
		out = append(out, f.Spec.Clusters)
	}
	return out
}

// TestFreeze freezes the fleet or some clusters, checks that the commands show the freeze, and ends it.
func TestFreeze(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		want [][]string
		says string
	}{
		"the whole fleet": {[]string{"--reason", "incident"}, 0, [][]string{{"*"}},
			"froze the whole fleet, which is 2 clusters now"},
		"names":               {[]string{"prod-1", "--reason", "x"}, 0, [][]string{{"prod-1"}}, "froze clusters prod-1, which is 1 cluster"},
		"pattern":             {[]string{"prod-*", "--reason", "x"}, 0, [][]string{{"prod-*"}}, "which is 2 clusters now"},
		"labels":              {[]string{"-l", "env=prod", "--reason", "x"}, 0, [][]string{{"prod-2"}}, "froze clusters prod-2"},
		"a name that is none": {[]string{"prod-3", "--reason", "x"}, 1, nil, "there is no cluster prod-3"},
		"labels of none":      {[]string{"-l", "env=dev", "--reason", "x"}, 1, nil, "no cluster has the labels env=dev"},
		"both":                {[]string{"prod-1", "-l", "env=prod", "--reason", "x"}, 1, nil, "not both"},
		"no reason":           {nil, 1, nil, "reason"},
		"a name twice":        {[]string{"prod-1", "prod-1", "--reason", "x"}, 0, [][]string{{"prod-1"}}, "1 cluster"},
		"no pattern":          {[]string{"prod-[12]", "--reason", "x"}, 1, nil, "nor a pattern of names"},
	} {
		t.Run(name, func(t *testing.T) {
			h := clitest.NewHub(clitest.Cluster("prod-1", nil),
				clitest.Cluster("prod-2", map[string]string{"env": "prod"}))
			got := h.Run(t, append([]string{"fleet", "freeze"}, c.args...)...)
			if got.Code != c.code || !strings.Contains(got.Out+got.Err, c.says) {
				t.Errorf("it ends with %d, want %d and %q:\n%s%s", got.Code, c.code, c.says, got.Out, got.Err)
			}
			if diff := cmp.Diff(c.want, frozen(t, h)); diff != "" {
				t.Errorf("frozen (-want +got):\n%s", diff)
			}
		})
	}
	h := clitest.NewHub(clitest.Cluster("prod-1", nil))
	h.MustRun(t, "fleet", "freeze", "--reason", "the registry is hostile", "--name", "incident")
	for _, args := range []string{"fleet list", "operator list", "rollout list", "fleet get prod-1"} {
		got := h.MustRun(t, strings.Fields(args)...)
		if !strings.Contains(got.Err, "incident stops all changes on the whole fleet: the registry is hostile") {
			t.Errorf("%s does not tell of it:\n%s", args, got.Err)
		}
	}
	h.MustRun(t, "fleet", "freeze", "prod-1", "--reason", "x", "--name", "second")
	refused := h.Run(t, "fleet", "unfreeze", "incident")
	if refused.Code == 0 ||
		!strings.Contains(refused.Err, "the hub has not recorded that it froze 1 cluster (prod-1)") {
		t.Errorf("it ends a freeze that no hub has seen: %d\n%s", refused.Code, refused.Err)
	}
	got := h.MustRun(t, "fleet", "unfreeze", "incident", "--unrecorded")
	if !strings.Contains(got.Err, "FleetFreeze second still stops changes on clusters prod-1") {
		t.Errorf("it does not tell of the other one:\n%s", got.Err)
	}
	got = h.Run(t, "fleet", "unfreeze", "incident")
	if got.Code == 0 || !strings.Contains(got.Err, "no FleetFreeze incident") {
		t.Errorf("it ends a freeze that is over: %d\n%s", got.Code, got.Err)
	}
}
