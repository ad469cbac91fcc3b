// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hopping has v2 on its way in the place of v1: OLM has created it under
// revision 2, and names one or the other as installed.
func hopping(installed, phase string) Cluster {
	c := running("Replacing").Cluster
	c.Subscriptions[0].InstalledCSV = installed
	c.CSVs = append(c.CSVs, CSV{Name: v2, Version: "1.1.0", Phase: phase, Replaces: v1, Created: now, Since: now,
		IsOfPackage: true})
	c.InstallPlans = append(c.InstallPlans, InstallPlan{Name: "install-2", Compared: true, Phase: "Complete",
		Approved: true,
		CSVs:     []string{v2, "lib.v1"}, Revision: 2})
	return c
}

func TestCurrentHop(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster  Cluster
		revision int64
		want     bool
	}{
		"nothing installed": {cluster: Cluster{}, revision: 2},
		"at rest":           {cluster: running("Succeeded").Cluster, revision: 2},
		"created, not named by the Subscription yet": {cluster: hopping(v1, ""), revision: 2, want: true},
		"named and pending":                          {cluster: hopping(v2, "Pending"), revision: 2, want: true},
		"installing":                                 {cluster: hopping(v2, "Installing"), revision: 2, want: true},
		"failed, and OLM tries again":                {cluster: hopping(v2, "Failed"), revision: 2, want: true},
		"failed, and its fix is there":               {cluster: hopping(v2, "Failed"), revision: 3},
		"installing, its fix may wait":               {cluster: hopping(v2, "Installing"), revision: 3, want: true},
		"succeeded":                                  {cluster: hopping(v2, "Succeeded"), revision: 2},
		"what it replaced is gone":                   {cluster: withoutV1(hopping(v2, "Installing")), revision: 2},
		"replaced by yet another by now":             {cluster: hopping(v2, "Replacing"), revision: 2},
	} {
		t.Run(name, func(t *testing.T) {
			from, to, ok := tc.cluster.CurrentHop(now, tc.revision)
			if ok != tc.want || ok && (from.Name != v1 || to.Name != v2) {
				t.Errorf("under way: %t, from %q to %q; want %t", ok, from.Name, to.Name, tc.want)
			}
		})
	}
}

func withoutV1(c Cluster) Cluster {
	c.CSVs = c.CSVs[1:]
	return c
}

func TestCSVsBeforeAHop(t *testing.T) {
	c := hopping(v2, "Installing")
	c.CSVs = append(c.CSVs, CSV{Name: "lib.v1"}, CSV{Name: "other.v1"})
	if diff := cmp.Diff([]string{v1, "other.v1"}, c.CSVsBefore(v2)); diff != "" {
		t.Errorf("during the hop (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{v1, v2, "lib.v1", "other.v1"}, c.CSVsBefore("")); diff != "" {
		t.Errorf("without one (-want +got):\n%s", diff)
	}
}
