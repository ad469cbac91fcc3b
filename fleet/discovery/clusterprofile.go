// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import "errors"

// topologyRegion is the well-known Kubernetes label of the region.
const topologyRegion = "topology.kubernetes.io/region"

// newClusterProfileKind returns the kind for ClusterProfiles.
func newClusterProfileKind() Kind {
	return Kind{
		Name: "clusterprofile", Group: "multicluster.x-k8s.io", Kind: "ClusterProfile", Plural: "clusterprofiles",
		Versions: []string{"v1alpha1"},
		keep: [][]string{{"spec", "clusterManager"}, {"status", "version"}, {"status", "properties"},
			{"status", "conditions"}},
		observe: observeClusterProfile,
		secret: func(object) (SecretKey, error) {
			return SecretKey{}, errors.New("a ClusterProfile names no kubeconfig: its access providers are programs " +
				"that get credentials, and bellwether runs no programs that another object names")
		},
	}
}

// observeClusterProfile sets the fields of a Source from a ClusterProfile.
func observeClusterProfile(o object, s *Source) {
	for _, property := range o.readList("status", "properties") {
		name, _ := property["name"].(string)
		value, _ := property["value"].(string)
		s.setField("properties/"+name, value)
	}
	s.setField("platform", s.Fields["properties/platform"])
	s.setField("region", s.Labels[topologyRegion], s.Fields["properties/region"])
	s.setField("version", o.readText("status", "version", "kubernetes"))
	s.setField("manager", o.readText("spec", "clusterManager", "name"))
	// The condition is Unknown or absent if the cluster manager does not check it.
	if o.readCondition("ControlPlaneHealthy") == "False" {
		s.NotReady = "its control plane is not healthy"
	}
}
