// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/dashboards"
)

// ofClusters has the panels that read series which clusters do not send to the hub, if each cluster has its own
// Prometheus. These panels have data only in the cluster's Prometheus, as the guide describes.
var ofClusters = []string{
	"Bellwether / Catalog: CatalogSources that are not ready",
	"Bellwether / Catalog: Clusters without catalog",
	"Bellwether / Cluster: Agent's CPU",
	"Bellwether / Cluster: Agent's memory",
	"Bellwether / Cluster: Installations and upgrades",
	"Bellwether / Cluster: Missing replicas",
	"Bellwether / Cluster: Operators",
	"Bellwether / Operator SLO: CPU periods that were throttled",
	"Bellwether / Operator SLO: ClusterServiceVersion, by state",
	"Bellwether / Operator SLO: Container restarts",
	"Bellwether / Operator SLO: Custom resources",
	"Bellwether / Operator SLO: Duration of probes",
	"Bellwether / Operator SLO: Failed reconciles",
	"Bellwether / Operator SLO: Memory of its limit",
	"Bellwether / Operator SLO: Missing replicas",
	"Bellwether / Operator SLO: Panics",
	"Bellwether / Operator SLO: Pending pods",
	"Bellwether / Operator SLO: Queue depth",
	"Bellwether / Operator SLO: Resources that are not Ready",
	"Bellwether / Operator SLO: Volumes, used",
	"Bellwether / Rollout: Failed reconciles, canary against baseline",
	"Bellwether / Rollout: Finished installations and upgrades",
}

// TestDashboardsReadWhatTravels finds panels that would be empty in the Prometheus of a hub to which clusters send
// series. It ignores the dashboard of controller internals, which needs the raw metrics.
func TestDashboardsReadWhatTravels(t *testing.T) {
	raw := map[string]bool{}
	for _, s := range series.Exported() {
		raw[s.Name] = true
	}
	for _, name := range slices.Concat(operatorSeries, probeSeries) {
		raw[name] = true
	}
	for _, name := range series.Travelling() {
		delete(raw, name)
	}
	found := map[string]bool{}
	for _, d := range dashboards.All() {
		if *d.Uid == dashboards.UIDInternals {
			continue
		}
		for _, q := range ListQueries(d) {
			for _, s := range findSelectors(q.Expr) {
				if raw[s.name] {
					found[*d.Title+": "+q.Where] = true
				}
			}
		}
	}
	if diff := cmp.Diff(ofClusters, slices.Sorted(maps.Keys(found))); diff != "" {
		t.Errorf("panels that read raw metrics of clusters (-want +got):\n%s", diff)
	}
}
