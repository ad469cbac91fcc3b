// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// clusterDeployment takes a namespace, a name, and whether it is installed.
const clusterDeployment = `
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata:
  namespace: %s
  name: %s
  labels:
    stage: prod
    hive.openshift.io/version: 4.18.3
    hive.openshift.io/cluster-platform: aws
    hive.openshift.io/cluster-region: eu
spec:
  baseDomain: example.com
  clusterName: c
  installed: %s
  platform: {aws: {region: eu, credentialsSecretRef: {name: aws}}}
status: {powerState: Running}
`

const profile = `
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata: {namespace: fleet, name: %s}
spec: {clusterManager: {name: ocm}}
status:
  version: {kubernetes: v1.34.2+k3s1}
  properties:
    - {name: region, value: us}
    - {name: platform, value: gcp}
`

const capiCluster = `
apiVersion: cluster.x-k8s.io/%s
kind: Cluster
metadata: {namespace: capi, name: %s}
spec:
  infrastructureRef: {%s, kind: AWSCluster, name: c}
status: {%s}
`

const onAWS = "platform=aws, region=eu, stage=prod, version=4.18.3, "

// TestDefinitionsComeAndGo starts a hub where no kind of source is served.
func TestDefinitionsComeAndGo(t *testing.T) {
	h := start(t)
	byHand := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}}
	h.must(h.Create(t.Context(), byHand))
	of := v1alpha1.SourceReference{APIVersion: "hive.openshift.io/v1", Kind: "ClusterDeployment", Namespace: "hive",
		Name: "early"}
	h.must(h.Create(t.Context(), &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "early",
		Annotations: map[string]string{v1alpha1.AnnotationDiscovered: "true"}},
		Spec: v1alpha1.FleetClusterSpec{SourceRef: &of}}))

	h.define()
	h.becomes("early", "ClusterDeployment hive/early, Missing") // where nothing is there at all, nothing is removed
	h.create(clusterDeployment, "hive", "prod", "true")
	h.create(profile, "profile")
	h.create(capiCluster, "v1beta2", "capi-2", "apiGroup: infrastructure.cluster.x-k8s.io",
		"initialization: {controlPlaneInitialized: true}")
	h.becomes("prod", "ClusterDeployment hive/prod, "+onAWS+"Present Running")
	h.becomes("profile", "ClusterProfile fleet/profile, platform=gcp, region=us, version=v1.34.2_k3s1, Present")
	h.becomes("capi-2", "Cluster capi/capi-2, platform=aws, Present")
	h.stop()
	h.startHub()
	h.gone("early") // now others of its kind are there
	h.must(h.is("by-hand", ""))

	// A FleetCluster of a kind whose definition is deleted, with all its objects, stays.
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	definition.SetName("clusterprofiles.multicluster.x-k8s.io")
	h.must(h.Delete(t.Context(), definition))
	h.eventually(func() error {
		err := h.Get(t.Context(), client.ObjectKeyFromObject(definition), definition)
		if err == nil {
			return errStillThere
		}
		return client.IgnoreNotFound(err)
	})
	h.settled("after-definition")
	h.must(h.is("profile", "ClusterProfile fleet/profile, platform=gcp, region=us, version=v1.34.2_k3s1, Present"))

	h.define()
	h.create(profile, "profile")
	h.create(profile, "profile-2")
	h.becomes("profile-2", "ClusterProfile fleet/profile-2, platform=gcp, region=us, version=v1.34.2_k3s1, Present")
	h.must(h.is("profile", "ClusterProfile fleet/profile, platform=gcp, region=us, version=v1.34.2_k3s1, Present"))
}

// appliedOfHive are the fields of a FleetCluster that discovery owns.
const appliedOfHive = `bellwether-discovery/status: status.source.labels.platform
bellwether-discovery/status: status.source.labels.region
bellwether-discovery/status: status.source.labels.stage
bellwether-discovery/status: status.source.labels.version
bellwether-discovery/status: status.source.powerState
bellwether-discovery/status: status.source.powerStateSince
bellwether-discovery/status: status.source.state
bellwether-discovery: metadata.annotations.bellwether.dev/discovered
bellwether-discovery: metadata.labels.platform
bellwether-discovery: metadata.labels.region
bellwether-discovery: metadata.labels.stage
bellwether-discovery: metadata.labels.version
bellwether-discovery: spec.sourceRef.apiVersion
bellwether-discovery: spec.sourceRef.kind
bellwether-discovery: spec.sourceRef.name
bellwether-discovery: spec.sourceRef.namespace
`

// TestClusterFollowsItsSource plays the life of clusters in Hive and in Cluster API.
func TestClusterFollowsItsSource(t *testing.T) {
	h := start(t)
	h.define()
	source := h.create(clusterDeployment, "hive", "prod", "false")
	h.settled("not-installed")
	if err := h.is("prod", ""); err == nil {
		t.Error("there is a FleetCluster of a cluster that is not installed")
	}
	h.change(source, false, func() { h.must(unstructured.SetNestedField(source.Object, true, "spec", "installed")) })
	h.becomes("prod", "ClusterDeployment hive/prod, "+onAWS+"Present Running")
	cluster := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	h.must(h.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	applied, err := testenv.AppliedFields(cluster)
	h.must(err)
	if diff := cmp.Diff(appliedOfHive, applied); diff != "" {
		t.Errorf("applied fields (-want +got):\n%s", diff)
	}

	t.Run("labels", func(t *testing.T) { h.labels(t, source) })
	t.Run("hibernation", func(*testing.T) { h.hibernation(source) })
	t.Run("deletion", func(*testing.T) { h.deletion() })
	t.Run("deletion while the hub is down", func(t *testing.T) { h.deletionUnseen(t) })
	t.Run("relocation", func(t *testing.T) { h.relocation(t) })
	t.Run("Cluster API", func(t *testing.T) { h.clusterAPI(t) })
}

// labels: those of people stay, also where they take one that was mapped.
func (h *harness) labels(t *testing.T, source *unstructured.Unstructured) {
	setLabel := func(o client.Object, key, value string) {
		h.change(o, false, func() {
			labels := o.GetLabels()
			labels[key] = value
			o.SetLabels(labels)
		})
	}
	cluster := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	setLabel(cluster, "team", "a")
	setLabel(cluster, "stage", "mine")
	setLabel(source, "hive.openshift.io/version", "4.19.0")
	setLabel(source, "stage", "test")
	h.becomes("prod",
		"ClusterDeployment hive/prod, platform=aws, region=eu, stage=mine, version=4.19.0, Present Running")
	h.change(source, false, func() {
		labels := source.GetLabels()
		delete(labels, "hive.openshift.io/version")
		source.SetLabels(labels)
	})
	h.becomes("prod", "ClusterDeployment hive/prod, platform=aws, region=eu, stage=mine, Present Running")
	h.must(h.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	if cluster.Labels["team"] != "a" {
		t.Errorf("labels of people are gone: %v", cluster.Labels)
	}
	if set := cluster.Status.Source.Labels; len(set) != 2 || set["stage"] != "" {
		t.Errorf("labels that are said to come from the source: %v", set)
	}
}

func (h *harness) hibernation(source *unstructured.Unstructured) {
	for _, step := range [][2]string{{"Stopping", "Stopping"}, {"Hibernating", "Hibernating"},
		{"WaitingForNodes", "Resuming"}, {"Running", "Running"}} {
		h.change(source, true, func() {
			h.must(unstructured.SetNestedField(source.Object, step[0], "status", "powerState"))
		})
		h.becomes("prod", "ClusterDeployment hive/prod, platform=aws, region=eu, stage=mine, Present "+step[1])
	}
}

// deletion begins when the owner deletes the source, which has a finalizer as Hive's have.
func (h *harness) deletion() {
	source := h.create(clusterDeployment, "hive", "leaving", "true")
	h.becomes("leaving", "ClusterDeployment hive/leaving, "+onAWS+"Present Running")
	h.change(source, false, func() { source.SetFinalizers([]string{"hive.openshift.io/deprovision"}) })
	h.must(h.Delete(h.t.Context(), source))
	h.gone("leaving")
	h.change(source, false, func() { source.SetFinalizers(nil) })
}

func (h *harness) deletionUnseen(t *testing.T) {
	source := h.create(clusterDeployment, "hive", "unseen", "true")
	h.becomes("unseen", "ClusterDeployment hive/unseen, "+onAWS+"Present Running")
	h.stop()
	h.must(h.Delete(t.Context(), source))
	h.startHub()
	h.gone("unseen")
}

// relocation: Hive annotates a ClusterDeployment, copies it and deletes it.
func (h *harness) relocation(t *testing.T) {
	source := h.create(clusterDeployment, "hive", "moving", "true")
	h.becomes("moving", "ClusterDeployment hive/moving, "+onAWS+"Present Running")
	relocate := func(state string) {
		h.change(source, false, func() {
			source.SetAnnotations(map[string]string{"hive.openshift.io/relocate": "r/" + state})
		})
	}
	relocate("outgoing")
	h.becomes("moving", "ClusterDeployment hive/moving, "+onAWS+"Relocating Running")
	relocate("complete")
	h.must(h.Delete(t.Context(), source))
	h.becomes("moving", "ClusterDeployment hive/moving, "+onAWS+"Moved")
	h.stop()
	h.startHub() // which has to know it from the status alone
	h.settled("after-move")
	h.must(h.is("moving", "ClusterDeployment hive/moving, "+onAWS+"Moved"))
	h.create(clusterDeployment, "hive", "moving", "true")
	h.becomes("moving", "ClusterDeployment hive/moving, "+onAWS+"Present Running")
}

func (h *harness) clusterAPI(t *testing.T) {
	h.create(capiCluster, "v1beta1", "capi-1", "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1",
		"conditions: [{type: ControlPlaneInitialized, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z'}]")
	source := h.create(capiCluster, "v1beta2", "capi-2", "apiGroup: infrastructure.cluster.x-k8s.io",
		"initialization: {controlPlaneInitialized: true}")
	h.becomes("capi-2", "Cluster capi/capi-2, platform=aws, Present")
	// Without Cluster API's conversion webhook its API server keeps the conditions of v1beta1.
	h.becomes("capi-1", "Cluster capi/capi-1, platform=aws, Present")
	// As clusterctl move does.
	h.change(source, false, func() { h.must(unstructured.SetNestedField(source.Object, true, "spec", "paused")) })
	h.becomes("capi-2", "Cluster capi/capi-2, platform=aws, Paused")
	h.must(h.Delete(t.Context(), source))
	h.becomes("capi-2", "Cluster capi/capi-2, platform=aws, Moved")
}

// TestNamesClash has sources that want one name, and FleetClusters that people made.
func TestNamesClash(t *testing.T) {
	h := start(t)
	h.define()
	h.create(clusterDeployment, "first", "prod", "true")
	h.becomes("prod", "ClusterDeployment first/prod, "+onAWS+"Present Running")
	second := h.create(clusterDeployment, "second", "prod", "true")
	h.isTold(second, "FleetClusterNameTaken")
	h.becomes("prod", "ClusterDeployment first/prod, "+onAWS+"Present Running, clash second")

	// A person names the second one.
	of := v1alpha1.SourceReference{APIVersion: "hive.openshift.io/v1", Kind: "ClusterDeployment", Namespace: "second",
		Name: "prod"}
	h.must(h.Create(t.Context(), &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod-2"},
		Spec: v1alpha1.FleetClusterSpec{SourceRef: &of}}))
	h.becomes("prod-2", "ClusterDeployment second/prod, "+onAWS+"Present Running")
	h.becomes("prod", "ClusterDeployment first/prod, "+onAWS+"Present Running")
	h.must(h.Delete(t.Context(), second))
	h.becomes("prod-2", "ClusterDeployment second/prod, "+onAWS+"Missing")

	// A FleetCluster without a sourceRef is nobody's.
	h.must(h.Create(t.Context(), &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "mine",
		Labels: map[string]string{"region": "here"}}}))
	third := h.create(clusterDeployment, "third", "mine", "true")
	h.isTold(third, "FleetClusterNameTaken")
	h.becomes("mine", "region=here, , clash third")
	h.must(h.Delete(t.Context(), third))
	h.becomes("mine", "region=here")

	long := h.create(clusterDeployment, "fourth", strings.Repeat("a", 51), "true")
	h.isTold(long, "FleetClusterNameInvalid")
}
