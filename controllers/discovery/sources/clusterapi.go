// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import "strings"

// Annotations of Cluster API.
const (
	capiPaused = "cluster.x-k8s.io/paused"
	// capiDeletedForMove is what clusterctl move puts on an object before it deletes it here.
	capiDeletedForMove = "clusterctl.cluster.x-k8s.io/delete-for-move"
)

func clusterAPI() Kind {
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

func observeClusterAPI(o object, s *Source) {
	for _, variable := range o.list("spec", "topology", "variables") {
		name, _ := variable["name"].(string)
		value, _ := variable["value"].(string) // others than strings are no labels
		s.set("properties/"+name, value)
	}
	infrastructure := o.text("spec", "infrastructureRef", "kind")
	s.set("platform", strings.ToLower(strings.TrimSuffix(infrastructure, "Cluster")))
	s.set("region", s.Labels[topologyRegion], s.Fields["properties/region"])
	s.set("version", o.text("spec", "topology", "version"))
	annotations := o.GetAnnotations()
	_, pausedByAnnotation := annotations[capiPaused]
	s.Paused = pausedByAnnotation || o.is("spec", "paused")
	_, s.Relocating = annotations[capiDeletedForMove]
	// The contract v1beta2 has initialization, v1beta1 controlPlaneReady and the condition.
	if !o.is("status", "initialization", "controlPlaneInitialized") && !o.is("status", "controlPlaneReady") &&
		o.condition("ControlPlaneInitialized") != "True" {
		s.NotReady = "its control plane is not initialized yet"
	}
}
