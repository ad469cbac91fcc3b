// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

var (
	clustersDesc  = kit.NewDesc(series.FleetClusters)
	onlineDesc    = kit.NewDesc(series.ClusterOnline)
	heartbeatDesc = kit.NewDesc(series.ClusterHeartbeat)
	infoDesc      = kit.NewDesc(series.ClusterInfo)
	installsDesc  = kit.NewDesc(series.ClusterInstalls)
	vetoEndDesc   = kit.NewDesc(series.ClusterVetoEnd)
	frozenDesc    = kit.NewDesc(series.ClusterFrozenSince)
)

// Gauges returns the collector of the fleet's metrics.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, clustersDesc, onlineDesc, heartbeatDesc, infoDesc, installsDesc,
		vetoEndDesc, frozenDesc)
}

// collect sends the gauges of all FleetClusters in the cache to out.
func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var clusters v1alpha1.FleetClusterList
	if err := cache.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list FleetClusters: %w", err)
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	states := map[string]int{"online": 0, "offline": 0, "never_joined": 0, stateHibernating: 0,
		"revoked": 0}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		state := readState(c)
		states[state]++
		online := 0.0
		if state == "online" {
			online = 1
		}
		if state != stateHibernating { // no alert for a cluster whose machines are stopped
			gauge(onlineDesc, online, c.Name)
		}
		v := c.Status.Versions
		gauge(infoDesc, 1, c.Name, v.Agent, v.Kubernetes, v.OLM)
		gauge(installsDesc, float64(c.Status.Operators.Ready), c.Name, "ready")
		gauge(installsDesc, float64(c.Status.Operators.NotReady), c.Name, "not_ready")
		if f := c.Status.Freeze; f != nil {
			gauge(frozenDesc, float64(f.Since.Unix()), c.Name)
		}
		if v := c.Status.Veto; v != nil && v.Until != nil {
			gauge(vetoEndDesc, float64(v.Until.Unix()), c.Name)
		}
	}
	for state, n := range states {
		gauge(clustersDesc, float64(n), state)
	}
	return collectHeartbeats(ctx, cache, &clusters, gauge)
}

// collectHeartbeats sends the time of each agent's last renewal. The hub's cache has
// only the Leases of agents.
func collectHeartbeats(ctx context.Context, cache client.Reader, clusters *v1alpha1.FleetClusterList,
	gauge gaugeFunc) error {
	var leases coordinationv1.LeaseList
	if err := cache.List(ctx, &leases, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Leases: %w", err)
	}
	renewed := map[string]time.Time{}
	for i := range leases.Items {
		if l := &leases.Items[i]; l.Name == v1alpha1.LeaseName && l.Spec.RenewTime != nil {
			renewed[l.Namespace] = l.Spec.RenewTime.Time
		}
	}
	for i := range clusters.Items {
		name := clusters.Items[i].Name
		if at, ok := renewed[v1alpha1.ClusterNamespace(name)]; ok {
			gauge(heartbeatDesc, float64(at.UnixMilli())/1000, name)
		}
	}
	return nil
}

// gaugeFunc sends one gauge.
type gaugeFunc func(desc *prometheus.Desc, value float64, labels ...string)

// stateHibernating is the state of an offline cluster whose source reports
// that the cluster is stopped.
const stateHibernating = "hibernating"

// readState returns the state of a cluster as a label value.
func readState(c *v1alpha1.FleetCluster) string {
	online := conditions.Get(c.Status.Conditions, v1alpha1.ConditionOnline)
	switch {
	case conditions.IsTrue(c.Status.Conditions, v1alpha1.ConditionOnline):
		return "online"
	case online.Reason == v1alpha1.ReasonHibernating:
		return stateHibernating
	case online.Reason == v1alpha1.ReasonLeaseExpired:
		return "offline"
	case online.Reason == v1alpha1.ReasonAccessRevoked:
		return "revoked"
	default:
		return "never_joined"
	}
}
