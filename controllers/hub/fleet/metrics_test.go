// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit/kittest"
)

func TestMetricsOfClusters(t *testing.T) {
	joined := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	joined.Status = v1alpha1.FleetClusterStatus{
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionOnline, Status: metav1.ConditionTrue}},
		Versions:   v1alpha1.ClusterVersions{Agent: "v1", Kubernetes: "v1.34.0", OLM: "0.46.0"},
		Operators:  v1alpha1.InstallCounts{Total: 3, Ready: 2, NotReady: 1},
	}
	fresh := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "us"}}
	asleep := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "asleep"}}
	asleep.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionOnline, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonHibernating}}
	revoked := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "revoked"}}
	revoked.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionOnline, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonAccessRevoked}}
	renewed := metav1.NewMicroTime(time.UnixMilli(1_700_000_000_500))
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace("eu"), Name: v1alpha1.LeaseName},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed},
	}
	gauges := kittest.NewGauges(t, collect, joined, fresh, asleep, revoked, lease)
	want := `
# HELP bellwether_fleet_cluster_heartbeat_timestamp_seconds When a cluster's agent renewed its Lease the last time,` +
		` by its own clock.
# TYPE bellwether_fleet_cluster_heartbeat_timestamp_seconds gauge
bellwether_fleet_cluster_heartbeat_timestamp_seconds{cluster="eu"} 1.7000000005e+09
# HELP bellwether_fleet_cluster_info 1, with the versions that a cluster's agent reports.
# TYPE bellwether_fleet_cluster_info gauge
bellwether_fleet_cluster_info{agent="",cluster="asleep",kubernetes="",olm=""} 1
bellwether_fleet_cluster_info{agent="",cluster="revoked",kubernetes="",olm=""} 1
bellwether_fleet_cluster_info{agent="",cluster="us",kubernetes="",olm=""} 1
bellwether_fleet_cluster_info{agent="v1",cluster="eu",kubernetes="v1.34.0",olm="0.46.0"} 1
# HELP bellwether_fleet_cluster_installs OperatorInstalls of a cluster by readiness.
# TYPE bellwether_fleet_cluster_installs gauge
bellwether_fleet_cluster_installs{cluster="asleep",state="not_ready"} 0
bellwether_fleet_cluster_installs{cluster="asleep",state="ready"} 0
bellwether_fleet_cluster_installs{cluster="eu",state="not_ready"} 1
bellwether_fleet_cluster_installs{cluster="eu",state="ready"} 2
bellwether_fleet_cluster_installs{cluster="revoked",state="not_ready"} 0
bellwether_fleet_cluster_installs{cluster="revoked",state="ready"} 0
bellwether_fleet_cluster_installs{cluster="us",state="not_ready"} 0
bellwether_fleet_cluster_installs{cluster="us",state="ready"} 0
# HELP bellwether_fleet_cluster_online Whether a cluster's agent is alive.
# TYPE bellwether_fleet_cluster_online gauge
bellwether_fleet_cluster_online{cluster="eu"} 1
bellwether_fleet_cluster_online{cluster="revoked"} 0
bellwether_fleet_cluster_online{cluster="us"} 0
# HELP bellwether_fleet_clusters Clusters of the fleet by state of their agent.
# TYPE bellwether_fleet_clusters gauge
bellwether_fleet_clusters{state="hibernating"} 1
bellwether_fleet_clusters{state="never_joined"} 1
bellwether_fleet_clusters{state="offline"} 0
bellwether_fleet_clusters{state="online"} 1
bellwether_fleet_clusters{state="revoked"} 1
`
	gauges.Compare(t, want)
}
