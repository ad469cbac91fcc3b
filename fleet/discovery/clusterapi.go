// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import "strings"

// Annotations of Cluster API.
const (
	capiPaused = "cluster.x-k8s.io/paused"
	// capiDeletedForMove is the annotation that clusterctl move sets on an object before it deletes the object here.
	capiDeletedForMove = "clusterctl.cluster.x-k8s.io/delete-for-move"
)

// newClusterAPIKind returns the kind for the Clusters of Cluster API.
func newClusterAPIKind() Kind {
	return Kind{
		Name: "clusterapi", Group: "cluster.x-k8s.io", Kind: "Cluster", Plural: "clusters",
		Versions: []string{"v1beta2", "v1beta1"},
		keep: [][]string{{"spec", "paused"}, {"spec", "infrastructureRef", "kind"}, {"spec", "topology", "version"},
			{"spec", "topology", "variables"}, {"status", "controlPlaneReady"}, {"status", "initialization"},
			{"status", "conditions"}},
		annotations: []string{capiPaused, capiDeletedForMove},
		observe:     observeClusterAPI,
		secret: func(o object) (SecretKey, error) {
			return SecretKey{Secret: o.GetName() + "-kubeconfig", Key: "value"}, nil
		},
	}
}

// observeClusterAPI sets the fields of a Source from a Cluster.
func observeClusterAPI(o object, s *Source) {
	for _, variable := range o.readList("spec", "topology", "variables") {
		name, _ := variable["name"].(string)
		value, _ := variable["value"].(string) // only strings can be labels
		s.setField("properties/"+name, value)
	}
	infrastructure := o.readText("spec", "infrastructureRef", "kind")
	s.setField("platform", strings.ToLower(strings.TrimSuffix(infrastructure, "Cluster")))
	s.setField("region", s.Labels[topologyRegion], s.Fields["properties/region"])
	s.setField("version", o.readText("spec", "topology", "version"))
	annotations := o.GetAnnotations()
	_, pausedByAnnotation := annotations[capiPaused]
	s.Paused = pausedByAnnotation || o.readBool("spec", "paused")
	_, s.Relocating = annotations[capiDeletedForMove]
	// The contract v1beta2 has initialization, v1beta1 controlPlaneReady and the condition.
	if !o.readBool("status", "initialization", "controlPlaneInitialized") &&
		!o.readBool("status", "controlPlaneReady") && o.readCondition("ControlPlaneInitialized") != "True" {
		s.NotReady = "its control plane is not initialized yet"
	}
}
