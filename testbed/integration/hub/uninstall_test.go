// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/hubchart"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestUninstallLeavesNothing lists all objects of an API server before hub and agent are installed, and after they are
// uninstalled as the guide says. The cluster is the hub and a member. The hub's program runs; the agent is played, so
// what an operator's removal leaves is not part of this.
func TestUninstallLeavesNothing(t *testing.T) {
	t.Parallel()
	c := testenv.Cluster(t, cluster.Options{})
	h := &harness{scheme: runtime.NewScheme(), cluster: c}
	must(t, clientgoscheme.AddToScheme(h.scheme))
	must(t, v1alpha1.AddToScheme(h.scheme))
	h.Client = h.as(t, c.RESTConfig())
	eventually(t, func() error { // the controller-manager is at work
		return h.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kube-root-ca.crt"}, &corev1.ConfigMap{})
	})
	before := everything(t, c)

	bellwether(t, c, "install", "hub", "--wait=false")
	helm := h.installMember(t, "prod-1")
	hub := startReplica(t, c, "uninstalled", "--leader-election-namespace", hubNamespace,
		"--rules-namespace", hubNamespace, "--leader-election-lease-duration", "10m") // nobody waits for the lease
	member := h.join(t, fleetCluster("prod-1"))
	defer member.live(t)()
	member.work(t)
	member.hold(t, h.install(t, "prod-1", v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}))
	h.reaches(t, member.cluster, "True Succeeded")

	folder := t.TempDir()
	text, err := os.ReadFile(c.Kubeconfig())
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "prod-1.kubeconfig"), text, 0o600))
	bellwether(t, c, "fleet", "remove", "--all", "--clusters", "1", "--yes", "--offboarding", "Uninstall",
		"--cluster-kubeconfigs", folder)
	hub.process.Stop(t.Context())
	_, err = action.NewUninstall(helm).Run("bellwether")
	must(t, err)

	kept := []string{
		"apiservices.apiregistration.k8s.io v1alpha1.bellwether.dev", // of the CRDs
		"configmaps bellwether-system/kube-root-ca.crt",              // of the namespace
		"leases.coordination.k8s.io bellwether-system/bellwether-hub",
		"namespaces bellwether-system",
		"serviceaccounts bellwether-system/default", // of the namespace
	}
	definitions, err := charts.Definitions()
	must(t, err)
	for _, crd := range definitions {
		kept = append(kept, "customresourcedefinitions.apiextensions.k8s.io "+crd.GetName())
	}
	slices.Sort(kept)
	h.leaves(t, before, kept)

	must(t, h.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubNamespace}}))
	for _, crd := range definitions {
		must(t, h.Delete(t.Context(), crd))
	}
	h.leaves(t, before, nil)
}

// installMember installs the agent's chart on the hub's own cluster, with the Secret that joining makes.
func (h *harness) installMember(t *testing.T, name string) *action.Configuration {
	t.Helper()
	helm, err := hubchart.Helm(h.cluster.Kubeconfig(), hubNamespace)
	must(t, err)
	chart, err := charts.Load()
	must(t, err)
	install := action.NewInstall(helm)
	install.ReleaseName, install.Namespace = "bellwether-agent", hubNamespace
	values := map[string]any{"crds": map[string]any{"enabled": false},
		"agent": map[string]any{"enabled": true, "cluster": name}}
	_, err = install.RunWithContext(t.Context(), chart, values)
	must(t, err)
	must(t, h.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace,
		Name: "bellwether-hub-kubeconfig"}}))
	return helm
}

// bellwether runs the command line against a cluster.
func bellwether(t *testing.T, c *cluster.Cluster, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, testenv.Binary(t, build.Bellwether), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("bellwether %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// leaves waits until the objects that there were not before are those.
func (h *harness) leaves(t *testing.T, before map[string]bool, want []string) {
	t.Helper()
	eventually(t, func() error {
		var left []string
		for _, name := range slices.Sorted(maps.Keys(everything(t, h.cluster))) {
			if !before[name] {
				left = append(left, name)
			}
		}
		if diff := cmp.Diff(want, left); diff != "" {
			return fmt.Errorf("%w: what is left (-want +got):\n%s", errNotYet, diff)
		}
		return nil
	})
}

// everything lists all objects of all resources that the API server serves. Events are left out, which expire, and so
// are the namespaces of Kubernetes itself.
func everything(t *testing.T, c *cluster.Cluster) map[string]bool {
	t.Helper()
	server, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
	must(t, err)
	objects, err := metadata.NewForConfig(c.RESTConfig())
	must(t, err)
	lists, err := server.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // a group of CRDs that have just been deleted
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, r := range list.APIResources {
			if r.Name == "events" || !slices.Contains(r.Verbs, "list") {
				continue
			}
			resource := group.WithResource(r.Name)
			all, err := objects.Resource(resource).List(t.Context(), metav1.ListOptions{})
			must(t, client.IgnoreNotFound(err))
			for _, o := range itemsOf(all) {
				if !strings.HasPrefix(o.Namespace, "kube-") {
					out[resource.GroupResource().String()+" "+strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")] = true
				}
			}
		}
	}
	return out
}

func itemsOf(list *metav1.PartialObjectMetadataList) []metav1.PartialObjectMetadata {
	if list == nil {
		return nil
	}
	return list.Items
}
