// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit/kittest"
)

func TestMetricsOfCatalogs(t *testing.T) {
	read := metav1.NewTime(time.Unix(100, 0))
	good := &v1alpha1.OperatorCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "main"}}
	good.Status = v1alpha1.OperatorCatalogStatus{
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
		Digest:     "sha256:aa", LastReadTime: &read, PackageCount: 7,
		BlockedVersions: []v1alpha1.BlockedVersion{
			{VersionBlock: v1alpha1.VersionBlock{Package: "echo", Version: "1.0.0"}, Clusters: 3},
			{VersionBlock: v1alpha1.VersionBlock{Package: "echo", Version: "0.9.0"}},
		},
	}
	unread := &v1alpha1.OperatorCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "new"}}
	want := `
# HELP bellwether_catalog_blocked_version_clusters Clusters that run a blocked version; at most 100 versions of a ` +
		`catalog.
# TYPE bellwether_catalog_blocked_version_clusters gauge
bellwether_catalog_blocked_version_clusters{catalog="main",namespace="ops",package="echo",version="1.0.0"} 3
# HELP bellwether_catalog_info 1, with the digest of a catalog that is in use.
# TYPE bellwether_catalog_info gauge
bellwether_catalog_info{catalog="main",digest="sha256:aa",namespace="ops"} 1
# HELP bellwether_catalog_packages Packages of a catalog.
# TYPE bellwether_catalog_packages gauge
bellwether_catalog_packages{catalog="main",namespace="ops"} 7
bellwether_catalog_packages{catalog="new",namespace="ops"} 0
# HELP bellwether_catalog_read_timestamp_seconds When the digest in use of a catalog was first read.
# TYPE bellwether_catalog_read_timestamp_seconds gauge
bellwether_catalog_read_timestamp_seconds{catalog="main",namespace="ops"} 100
# HELP bellwether_catalog_ready Whether what a catalog's source has now is what is in use.
# TYPE bellwether_catalog_ready gauge
bellwether_catalog_ready{catalog="main",namespace="ops"} 1
bellwether_catalog_ready{catalog="new",namespace="ops"} 0
`
	gauges := kittest.NewGauges(t, collect, good, unread)
	gauges.Compare(t, want)
}
