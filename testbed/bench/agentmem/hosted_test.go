// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agentmem

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/platform"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// BenchmarkHostedMemory measures one process that serves 1, 10 and 50 clusters without
// operators. All are the same API server, so an idle cluster with OLM; what a cluster's
// own operators add is measured by BenchmarkResidentMemory.
func BenchmarkHostedMemory(b *testing.B) {
	c := testenv.Shared(b, cluster.Options{OLM: true, Pods: true})
	testenv.InstallCRDs(b, c)
	k, err := client.New(c.RESTConfig(), client.Options{Scheme: platform.Scheme()})
	must(b, err)
	const hosting = "hosting"
	must(b, client.IgnoreAlreadyExists(k.Create(b.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hosting}})))
	content, err := os.ReadFile(c.Kubeconfig())
	must(b, err)
	for b.Loop() {
		agent := startHosting(b, c, hosting)
		made := 0
		for _, n := range []int{1, 10, 50} {
			for ; made < n; made++ {
				host(b, k, hosting, made, content)
			}
			testenv.EventuallyTrue(b, patience, fmt.Sprintf("%d clusters report", n), func() bool {
				for i := range n {
					found, err := agentLease(b.Context(), k, v1alpha1.ClusterNamespace(hostedName(i)))
					if !found || err != nil {
						return false
					}
				}
				return true
			})
			b.ReportMetric(most(b, agent), strconv.Itoa(n)+"-clusters-MiB")
		}
		agent.Stop(b.Context())
	}
}

func hostedName(i int) string { return "hosted-" + strconv.Itoa(i) }

// host makes a cluster and its Secret.
func host(b *testing.B, k client.Client, namespace string, i int, kubeconfig []byte) {
	name := hostedName(i)
	must(b, client.IgnoreAlreadyExists(k.Create(b.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterNamespace(name)}})))
	must(b, client.IgnoreAlreadyExists(k.Create(b.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{v1alpha1.LabelHostedCluster: name}},
		Data: map[string][]byte{v1alpha1.HostedHubKey: kubeconfig, v1alpha1.HostedClusterKey: kubeconfig,
			v1alpha1.HostedPortsKey: fmt.Appendf(nil, "%d-%d", 10000+30*i, 10029+30*i)},
	})))
}

func startHosting(b *testing.B, c *cluster.Cluster, namespace string) *process.Process {
	dir := b.TempDir()
	agent, err := process.Start(process.Spec{
		Name: "agent", Path: testenv.Binary(b, build.Agent), Dir: dir, Log: filepath.Join(dir, "agent.log"),
		Args: []string{
			"--hosted-namespace", namespace, "--kubeconfig", c.Kubeconfig(), "--view-bind-address", "127.0.0.1",
			"--view-ports", "10000-32000", "--cache-dir", filepath.Join(dir, "cache"),
			"--metrics-bind-address", "0", "--health-probe-bind-address", "0",
		},
	})
	must(b, err)
	b.Cleanup(func() {
		agent.Stop(context.Background())
		if b.Failed() {
			b.Logf("agent:\n%s", agent.Tail())
		}
	})
	return agent
}
