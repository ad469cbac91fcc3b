// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet/discovery"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), u); err != nil {
		t.Fatal(err)
	}
	return u
}

// seen describes a Source in one line.
func seen(s discovery.Source) string {
	words := []string{s.Fields["platform"], s.Fields["region"], s.Fields["version"], string(s.PowerState)}
	for word, holds := range map[string]bool{"deleting": s.Deleting} {
		if holds {
			words = append(words, word)
		}
	}
	if s.Paused {
		words = append(words, "paused")
	}
	if s.Relocating {
		words = append(words, "relocating")
	}
	if s.NotReady != "" {
		words = append(words, "("+s.NotReady+")")
	}
	return strings.Join(words, " ")
}

const (
	deployment = "apiVersion: hive.openshift.io/v1\nkind: ClusterDeployment\n" +
		"metadata:\n  name: prod\n  namespace: hive\n"
	profile = "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ClusterProfile\n" +
		"metadata:\n  name: prod\n  namespace: fleet\n"
	capi  = "kind: Cluster\nmetadata:\n  name: prod\n  namespace: capi\n"
	beta1 = "apiVersion: cluster.x-k8s.io/v1beta1\n" + capi
	beta2 = "apiVersion: cluster.x-k8s.io/v1beta2\n" + capi
)

func TestObserve(t *testing.T) {
	for name, test := range map[string]struct{ object, want string }{
		"Hive: installed": {deployment + `  labels: {hive.openshift.io/version: 4.18.3, hive.openshift.io/cluster-platform: aws,
    hive.openshift.io/cluster-region: eu-central-1}
spec: {installed: true, platform: {aws: {region: us-east-1}}}
status: {powerState: Running}`, "aws eu-central-1 4.18.3 Running"},
		"Hive: without labels": {deployment + `spec: {installed: true, platform: {gcp: {region: europe-west1}}}`,
			"gcp europe-west1  "},
		"Hive: not installed": {deployment + `spec: {installed: false, platform: {none: {}}}`,
			"none    (the cluster is not installed yet)"},
		"Hive: in a pool": {deployment + `spec: {installed: true, clusterPoolRef: {namespace: p, poolName: p}}
status: {powerState: Hibernating}`, "   Hibernating (the cluster waits in a ClusterPool and is not claimed yet)"},
		"Hive: claimed": {deployment + `spec: {installed: true, clusterPoolRef: {namespace: p, poolName: p, claimName: c}}
status: {powerState: WaitingForNodes}`, "   Resuming"},
		"Hive: to hibernate": {deployment + `spec: {installed: true, powerState: Hibernating}
status: {powerState: Running}`, "   Stopping"},
		"Hive: waits for SyncSets": {deployment + `spec: {installed: true, powerState: Hibernating}
status: {powerState: SyncSetsNotApplied}`, "   Stopping"},
		"Hive: unknown power state": {deployment + `spec: {installed: true}
status: {powerState: Unknown}`, "   "},
		"Hive: paused": {deployment + `  annotations: {hive.openshift.io/reconcile-pause: "true"}
spec: {installed: true}`, "    paused"},
		"Hive: not paused": {deployment + `  annotations: {hive.openshift.io/reconcile-pause: "false"}
spec: {installed: true}`, "   "},
		"Hive: relocating": {deployment + `  annotations: {hive.openshift.io/relocate: move/outgoing}
spec: {installed: true}`, "    relocating"},
		"Hive: fields of other types": {deployment + `spec: {installed: "yes", platform: aws, powerState: [1]}
status: 3`, "    (decode ClusterDeployment: cannot restore struct from: string)"},
		"ClusterProfile": {profile + `spec: {clusterManager: {name: ocm}}
status: {version: {kubernetes: v1.34.2}, properties: [{name: region, value: eu}, {name: platform, value: azure}]}`,
			"azure eu v1.34.2 "},
		"ClusterProfile: the label wins": {profile + `  labels: {topology.kubernetes.io/region: us}
status: {properties: [{name: region, value: eu}]}`, " us  "},
		"ClusterProfile: not healthy": {profile + `status: {conditions: [{type: ControlPlaneHealthy, status: "False"}]}`,
			"    (its control plane is not healthy)"},
		"Cluster API v1beta2": {beta2 + `spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSCluster, name: prod},
  topology: {version: v1.33.1, variables: [{name: region, value: eu-west-1}, {name: size, value: 3}]}}
status: {initialization: {controlPlaneInitialized: true}}`, "aws eu-west-1 v1.33.1 "},
		"Cluster API v1beta1": {beta1 + `spec: {infrastructureRef: {kind: VSphereCluster}}
status: {controlPlaneReady: true}`, "vsphere   "},
		"Cluster API v1beta1, by condition": {beta1 + `status: {conditions: [{type: ControlPlaneInitialized, status: "True"}]}`, "   "},
		"Cluster API: not initialized":      {beta2 + `spec: {}`, "    (its control plane is not initialized yet)"},
		"Cluster API: paused":               {beta2 + "spec: {paused: true}\nstatus: {initialization: {controlPlaneInitialized: true}}", "    paused"},
		"Cluster API: paused by annotation": {beta2 + `  annotations: {cluster.x-k8s.io/paused: ""}
status: {initialization: {controlPlaneInitialized: true}}`, "    paused"},
		"Cluster API: moved": {beta2 + `  deletionTimestamp: "2026-01-01T00:00:00Z"
  annotations: {clusterctl.cluster.x-k8s.io/delete-for-move: ""}
status: {initialization: {controlPlaneInitialized: true}}`, "    deleting relocating"},
	} {
		t.Run(name, func(t *testing.T) {
			u := parse(t, test.object)
			gvk := u.GroupVersionKind()
			kind, known := discovery.KindOf(v1alpha1.SourceReference{APIVersion: u.GetAPIVersion(), Kind: gvk.Kind})
			if !known {
				t.Fatalf("unknown kind %s", gvk)
			}
			source := kind.Observe(u)
			if got := seen(source); got != test.want {
				t.Errorf("observed %q, want %q", got, test.want)
			}
			if diff := cmp.Diff(source, kind.Observe(kind.Prune(u))); diff != "" {
				t.Errorf("what is read of a pruned object differs (-whole +pruned):\n%s", diff)
			}
		})
	}
}

func TestPruneKeepsLittle(t *testing.T) {
	kind, _ := discovery.FindKind("hive")
	u := parse(t, deployment+`  annotations: {kubectl.kubernetes.io/last-applied-configuration: long}
  managedFields: [{manager: hive}]
spec: {installed: true, provisioning: {installConfigSecretRef: {name: s}}}
status: {conditions: [{type: Ready, status: "True"}], webConsoleURL: "https://console"}`)
	want := map[string]any{"apiVersion": "hive.openshift.io/v1", "kind": "ClusterDeployment",
		"metadata": map[string]any{"name": "prod", "namespace": "hive"}, "spec": map[string]any{"installed": true}}
	if diff := cmp.Diff(want, kind.Prune(u).Object); diff != "" {
		t.Errorf("pruned (-want +got):\n%s", diff)
	}
}

func TestAdminKubeconfig(t *testing.T) {
	for name, test := range map[string]struct{ kind, object, want, err string }{
		"Hive": {"hive", deployment + "spec: {clusterMetadata: {adminKubeconfigSecretRef: {name: prod-admin}}}",
			"prod-admin kubeconfig", ""},
		"Hive: not installed": {"hive", deployment, "", "adminKubeconfigSecretRef is not set"},
		"Cluster API":         {"clusterapi", beta2, "prod-kubeconfig value", ""},
		"ClusterProfile":      {"clusterprofile", profile, "", "runs no programs"},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _ := discovery.FindKind(test.kind)
			key, err := kind.AdminKubeconfig(parse(t, test.object))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				return
			}
			if got := key.Secret + " " + key.Key; err != nil || got != test.want {
				t.Errorf("%s (%v), want %s", got, err, test.want)
			}
		})
	}
}
