// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import "errors"

// topologyRegion is the well-known label of Kubernetes.
const topologyRegion = "topology.kubernetes.io/region"

func clusterProfile() Kind {
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

func observeClusterProfile(o object, s *Source) {
	for _, property := range o.list("status", "properties") {
		name, _ := property["name"].(string)
		value, _ := property["value"].(string)
		s.set("properties/"+name, value)
	}
	s.set("platform", s.Fields["properties/platform"])
	s.set("region", s.Labels[topologyRegion], s.Fields["properties/region"])
	s.set("version", o.text("status", "version", "kubernetes"))
	s.set("manager", o.text("spec", "clusterManager", "name"))
	// The condition is Unknown, or absent, where the cluster manager does not check it.
	if o.condition("ControlPlaneHealthy") == "False" {
		s.NotReady = "its control plane is not healthy"
	}
}
