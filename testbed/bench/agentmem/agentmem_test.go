// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentmem measures the resident memory of an agent, idle and with
// many operators, against a real OLM:
//
//	go test -run '^$' -bench . ./bench/agentmem
package agentmem

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/platform"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

var (
	operators   = flag.Int("operators", 30, "how many operators the agent manages")
	versions    = flag.Int("versions", 5, "how many versions the catalog has of each")
	schemaBytes = flag.Int("schema", 100<<10, "bytes of each bundle's CRD")
	watched     = flag.Duration("watched", 15*time.Second,
		"how long the memory is watched in each state; the most counts")
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const (
	fleetCluster = "memory"
	patience     = 20 * time.Minute
	mib          = 1 << 20
)

var leaseKind = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}

func BenchmarkResidentMemory(b *testing.B) {
	c := testenv.Shared(b, cluster.Options{OLM: true, Pods: true})
	testenv.InstallCRDs(b, c)
	k, err := client.New(c.RESTConfig(), client.Options{Scheme: platform.Scheme()})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		measure(b, c, k)
	}
}

func measure(b *testing.B, c *cluster.Cluster, k client.Client) {
	namespace := v1alpha1.ClusterNamespace(fleetCluster)
	must(b, client.IgnoreAlreadyExists(k.Create(b.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	agent := startAgent(b, c)
	testenv.EventuallyTrue(b, patience, "the agent reports", func() bool {
		lease, err := agentLease(b.Context(), k, namespace)
		return err == nil && lease
	})
	idle := most(b, agent)
	b.ReportMetric(idle, "idle-MiB")
	pin := catalog(b)
	for i := range *operators {
		must(b, client.IgnoreAlreadyExists(k.Create(b.Context(), install(pin, namespace, i, 0))))
	}
	allRun(b, k, namespace)
	first := most(b, agent)
	b.ReportMetric(first, fmt.Sprintf("%d-operators-MiB", *operators))
	upgrade(b, k, namespace, pin)
	allRun(b, k, namespace)
	upgraded := most(b, agent)
	b.ReportMetric(upgraded, "upgraded-MiB")
	agent.Stop(b.Context())
	restarted := most(b, startAgent(b, c))
	b.ReportMetric(restarted, "restarted-MiB")
	b.Logf("resident memory: idle %.1f MiB; with %d operators: installed %.1f MiB, upgraded %.1f MiB, after a "+
		"restart %.1f MiB",
		idle, *operators, first, upgraded, restarted)
}

func startAgent(b *testing.B, c *cluster.Cluster) *process.Process {
	dir := b.TempDir()
	agent, err := process.Start(process.Spec{
		Name: "agent", Path: testenv.Binary(b, build.Agent), Dir: dir, Log: filepath.Join(dir, "agent.log"),
		Args: []string{
			"--cluster", fleetCluster, "--hub-kubeconfig", c.Kubeconfig(), "--kubeconfig", c.Kubeconfig(),
			"--view-bind-address", "127.0.0.1", "--view-ports", "50100-59999", "--cache-dir",
			filepath.Join(dir, "cache"),
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

func agentLease(ctx context.Context, k client.Client, namespace string) (bool, error) {
	lease := &metav1.PartialObjectMetadata{}
	lease.SetGroupVersionKind(leaseKind)
	err := k.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.LeaseName}, lease)
	return lease.Annotations[v1alpha1.AnnotationOLMVersion] != "", err
}

// catalog publishes the operators' packages in a folder.
func catalog(b *testing.B) v1alpha1.CatalogPin {
	dir := b.TempDir()
	must(b, catalogtest.WriteDir(dir, catalogtest.Options{Packages: *operators, Versions: *versions,
		SchemaBytes: *schemaBytes}))
	digest, err := oci.NewClient(oci.Options{}).Resolve(b.Context(), oci.Source{Directory: dir})
	must(b, err)
	return v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Directory: dir}, Digest: digest}
}

// install admits the i-th operator to the j-th version, in a namespace of its
// own.
func install(pin v1alpha1.CatalogPin, namespace string, i, j int) *v1alpha1.OperatorInstall {
	operator := v1alpha1.OperatorReference{Namespace: "fleet", Name: catalogtest.PackageName(i)}
	release := v1alpha1.Release{
		Package: operator.Name, Channel: "stable", Version: catalogtest.Version(j),
		Bundle:  catalogtest.BundleName(i, j),
		Catalog: pin, Install: v1alpha1.InstallSettings{Mode: v1alpha1.InstallOwnNamespace},
	}
	return &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: operator.InstallName()},
		Spec: v1alpha1.OperatorInstallSpec{Operator: operator, Cluster: fleetCluster, Admission: &v1alpha1.Admission{
			Rollout: "bench", RolloutUID: "bench", Revision: int64(j + 1), Wave: "all", Hash: release.Hash(),
			AdmittedAt: metav1.Now(), Release: release,
		}},
	}
}

func upgrade(b *testing.B, k client.Client, namespace string, pin v1alpha1.CatalogPin) {
	for i := range *operators {
		to := install(pin, namespace, i, 1)
		oi := &v1alpha1.OperatorInstall{}
		must(b, k.Get(b.Context(), client.ObjectKeyFromObject(to), oi))
		patch := client.MergeFrom(oi.DeepCopy())
		oi.Spec.Admission = to.Spec.Admission
		must(b, k.Patch(b.Context(), oi, patch))
	}
}

// allRun waits until every operator runs what it was admitted to.
func allRun(b *testing.B, k client.Client, namespace string) {
	testenv.EventuallyTrue(b, patience, "all operators run", func() bool {
		var list v1alpha1.OperatorInstallList
		must(b, k.List(b.Context(), &list, client.InNamespace(namespace)))
		for _, oi := range list.Items {
			if !conditions.IsTrue(oi.Status.Conditions, v1alpha1.ConditionReady) ||
				oi.Status.SucceededHash != oi.Spec.Admission.Hash {
				return false
			}
		}
		return len(list.Items) == *operators
	})
}

// most is the most resident memory that a process has for a while, in MiB.
func most(b *testing.B, p *process.Process) float64 {
	var bytes int64
	_ = wait.PollUntilContextTimeout(b.Context(), 200*time.Millisecond, *watched, true,
		func(context.Context) (bool, error) {
			now, err := process.ResidentBytes(p.PID())
			must(b, err)
			bytes = max(bytes, now)
			return false, nil
		})
	return float64(bytes) / mib
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
