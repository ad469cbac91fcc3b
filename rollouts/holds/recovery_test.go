// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// TestRecovery checks that an admission that was found on one cluster blocks all clusters, and that a cluster without
// a report is blocked alone.
func TestRecovery(t *testing.T) {
	tests := map[string]struct {
		installs []rollouts.Install
		resumed  int64
		want     map[string][]string
	}{
		"nothing kept": {installs: []rollouts.Install{{Cluster: "a"}, {Cluster: "b"}}},
		"one has not reported": {installs: []rollouts.Install{{Cluster: "a", Unreported: true}, {Cluster: "b"}},
			want: map[string][]string{"a": {v1alpha1.ReasonReportPending}}},
		"one keeps an admission": {
			installs: []rollouts.Install{{Cluster: "a", Recovered: 7}, {Cluster: "b"}},
			want:     map[string][]string{"a": {v1alpha1.ReasonRecovered}, "b": {v1alpha1.ReasonRecovered}}},
		"resumed": {resumed: 7,
			installs: []rollouts.Install{{Cluster: "a", Recovered: 7}, {Cluster: "b"}}},
		"resumed up to an older one": {resumed: 6,
			installs: []rollouts.Install{{Cluster: "a", Recovered: 7}, {Cluster: "b"}},
			want:     map[string][]string{"a": {v1alpha1.ReasonRecovered}, "b": {v1alpha1.ReasonRecovered}}},
		"one keeps what no hub gave out": {
			installs: []rollouts.Install{{Cluster: "a", Recovered: 1_000_001, Unreported: true}, {Cluster: "b"}},
			want:     map[string][]string{"a": {v1alpha1.ReasonReportPending}}},
		"the one that keeps it leaves": {installs: []rollouts.Install{
			{Cluster: "a", Recovered: 7, Deleting: true}, {Cluster: "b"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clusters := []rollouts.Cluster{{Name: "a"}, {Name: "b"}}
			holds.SetHolds(holds.Input{Now: noon, Installs: test.installs, Resumed: test.resumed}, clusters)
			got := map[string][]string{}
			for _, c := range clusters {
				for _, h := range c.Holds {
					got[c.Name] = append(got[c.Name], h.Reason)
				}
			}
			if test.want == nil {
				test.want = map[string][]string{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("holds (-want +got):\n%s", diff)
			}
		})
	}
}
