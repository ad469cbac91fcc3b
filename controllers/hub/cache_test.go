// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/hub/fleet"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// The memory limit of the hub: 64 KiB for a cluster and 16 KiB for each of its operators.
// Half of it is for garbage.
const (
	maxClusterHeap = 32 << 10
	maxInstallHeap = 8 << 10
)

// TestShrunkObjectsKeepWhatIsRead compares objects with their cached form.
func TestShrunkObjectsKeepWhatIsRead(t *testing.T) {
	for _, o := range append(clusterObjects(1), installOf(1, 2)) {
		o.SetLabels(map[string]string{"a": "b"})
		want := o.DeepCopyObject().(client.Object)
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "somebody"}})
		o.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "example.com/kept": "yes"})
		want.SetAnnotations(map[string]string{"example.com/kept": "yes"})
		got, err := compactObject(o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-want +got):\n%s", o, diff)
		}
	}
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "a/b"}
	if got, err := compactObject(tombstone); got != tombstone || err != nil {
		t.Errorf("a tombstone becomes %v, error %v", got, err)
	}
}

// TestMemoryOfTheCache measures the memory of a hub's cache for fleets of several sizes, and
// fits a line through the results.
func TestMemoryOfTheCache(t *testing.T) {
	const clusters = 300
	without := heapOf(t, clusters, 0)
	cluster := without / clusters
	few, many := heapOf(t, clusters, 10), heapOf(t, clusters, 30)
	install := (many - few) / (20 * clusters)
	t.Logf("%d bytes for a cluster, %d for an install", cluster, install)
	if cluster > maxClusterHeap || install > maxInstallHeap {
		t.Errorf("%d bytes for a cluster, want at most %d; %d for an install, want at most %d", cluster,
			maxClusterHeap, install, maxInstallHeap)
	}
	if bend := (few - without) / (10 * clusters); bend > maxInstallHeap {
		t.Errorf("%d bytes for each of the first installs", bend)
	}
}

// heapOf is the live heap of a cache that holds a fleet, as it comes from an API server.
func heapOf(t *testing.T, clusters, operators int) int64 {
	t.Helper()
	indexers := toolscache.Indexers{
		toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
		"operator": func(o any) ([]string, error) {
			if i, ok := o.(*v1alpha1.OperatorInstall); ok {
				return []string{i.Spec.Operator.InstallName(), i.Namespace + "/" + i.Spec.Operator.InstallName()}, nil
			}
			return nil, nil
		},
		"change": func(o any) ([]string, error) {
			if i, ok := o.(*v1alpha1.OperatorInstall); ok {
				return []string{holds.ChangeKey(i), i.Namespace + "/" + holds.ChangeKey(i)}, nil
			}
			return nil, nil
		},
	}
	stores := map[string]toolscache.Indexer{}
	before := liveHeap()
	for c := range clusters {
		objects := clusterObjects(c)
		for o := range operators {
			objects = append(objects, installOf(c, o))
		}
		for _, o := range objects {
			kind := fmt.Sprintf("%T", o)
			if stores[kind] == nil {
				stores[kind] = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers)
			}
			if err := stores[kind].Add(received(t, o)); err != nil {
				t.Fatal(err)
			}
		}
	}
	used := liveHeap() - before
	runtime.KeepAlive(stores)
	return used
}

func liveHeap() int64 {
	var m runtime.MemStats
	for range 3 { // what is weakly held goes later
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// received is an object as an informer makes it of an API server's answer.
func received(t *testing.T, o client.Object) any {
	t.Helper()
	fields := metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:admission":{},"f:cluster":{},"f:operator":{}}}`)}
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "bellwether-rollout", Operation: "Apply",
		FieldsType: "FieldsV1", FieldsV1: &fields}})
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	decoded := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(text, decoded); err != nil {
		t.Fatal(err)
	}
	kept, err := compactObject(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

var began = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func clusterName(c int) string { return fmt.Sprintf("prod-eu-central-1-%05d", c) }

// meta is an object's metadata, with a UID of its own.
func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "123456789", Generation: 3,
		UID: types.UID(fmt.Sprintf("%-36.36s", namespace+name)), CreationTimestamp: metav1.NewTime(began)}
}

// clusterObjects returns the objects that the hub's cache holds for a cluster without operators.
func clusterObjects(c int) []client.Object {
	name, namespace := clusterName(c), v1alpha1.ClusterNamespace(clusterName(c))
	labels := map[string]string{v1alpha1.LabelCluster: name, "app.kubernetes.io/managed-by": "bellwether"}
	cluster := &v1alpha1.FleetCluster{ObjectMeta: meta("", name), Status: v1alpha1.FleetClusterStatus{
		Namespace: namespace, Versions: v1alpha1.ClusterVersions{Agent: "v1.2.3", Kubernetes: "v1.34.1", OLM: "0.46.0"},
	}}
	cluster.Labels = map[string]string{"environment": "production", "region": "eu-central-1", "tier": "gold",
		"provider": "aws"}
	for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionOnline,
		v1alpha1.ConditionAPIServerReachable, v1alpha1.ConditionOLMAvailable} {
		conditions.Set(&cluster.Status.Conditions, 3, condition, true, v1alpha1.ReasonSucceeded,
			"the agent reports, the API server answers and OLM is installed")
	}
	lease := &coordinationv1.Lease{ObjectMeta: meta(namespace, v1alpha1.LeaseName), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("bellwether-agent-7d9c5b8f6c-x7k2p"), LeaseDurationSeconds: ptr.To(int32(90)),
		AcquireTime: &metav1.MicroTime{Time: began}, RenewTime: &metav1.MicroTime{Time: began},
		LeaseTransitions: ptr.To(int32(2)),
	}}
	lease.Annotations = map[string]string{v1alpha1.AnnotationAgentVersion: "v1.2.3",
		v1alpha1.AnnotationKubernetesVersion: "v1.34.1", v1alpha1.AnnotationOLMVersion: "0.46.0",
		v1alpha1.AnnotationAPIServerUnreachableSince: "", v1alpha1.AnnotationVeto: ""}
	agent := v1alpha1.AgentServiceAccount
	objects := []client.Object{
		cluster, lease,
		&metav1.PartialObjectMetadata{ObjectMeta: meta("", namespace)},
		&corev1.ServiceAccount{ObjectMeta: meta(namespace, agent)},
		&rbacv1.Role{ObjectMeta: meta(namespace, agent), Rules: fleet.AgentRules()},
		&rbacv1.RoleBinding{ObjectMeta: meta(namespace, agent), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: agent},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: agent}}},
		&corev1.Secret{ObjectMeta: meta(namespace, "bellwether-agent-token"), Data: map[string][]byte{
			corev1.ServiceAccountTokenKey: []byte(strings.Repeat("t", 1000)),
			"ca.crt":                      []byte(strings.Repeat("c", 1100)), "namespace": []byte(namespace)}},
	}
	for _, o := range objects[1:] {
		o.SetLabels(labels)
	}
	return objects
}

// installOf is the OperatorInstall of an operator that runs on a cluster. Its catalog is
// signed by one of two keys, and blocks three versions.
func installOf(c, o int) *v1alpha1.OperatorInstall {
	name := clusterName(c)
	operator := v1alpha1.OperatorReference{Namespace: "platform-operators", Name: fmt.Sprintf("operator-%02d", o)}
	key := "-----BEGIN PUBLIC KEY-----\n" + strings.Repeat("k", 124) + "\n-----END PUBLIC KEY-----\n"
	hash, uid := strings.Repeat(fmt.Sprintf("%04d", o), 16), strings.Repeat(fmt.Sprintf("%04d", o), 9)
	at := metav1.NewTime(began)
	install := &v1alpha1.OperatorInstall{
		ObjectMeta: meta(v1alpha1.ClusterNamespace(name), operator.InstallName()),
		Spec: v1alpha1.OperatorInstallSpec{
			Operator: operator, Cluster: name, RemovalPolicy: v1alpha1.RemovalOrphan,
			Admission: &v1alpha1.Admission{Rollout: operator.Name + "-12", RolloutUID: uid, Revision: 12,
				Wave: "production", Hash: hash, AdmittedAt: at, Release: v1alpha1.Release{
					Package: operator.Name, Channel: "stable", Version: "5.31.2", Bundle: operator.Name + ".v5.31.2",
					Catalog: v1alpha1.CatalogPin{PublicKeys: []string{key, key},
						Source: v1alpha1.CatalogSource{Image: "registry.internal.example.com:5000/platform/" +
							"operator-catalogs/production:stable"}, Digest: "sha256:" + hash},
					Install: v1alpha1.InstallSettings{Namespace: operator.Name + "-system"},
				}},
		},
		Status: v1alpha1.OperatorInstallStatus{
			ObservedGeneration: 12, ObservedRevision: 12, SucceededHash: hash, SucceededAt: &at,
			Installed: &v1alpha1.InstalledVersion{Bundle: operator.Name + ".v5.31.2", Version: "5.31.2"},
			OLM: &v1alpha1.OLMStatus{CatalogSource: "bellwether-" + operator.Name, ViewAddress: "10.96.117.203:50112",
				Route: v1alpha1.RouteInline, Subscription: operator.Name, InstallPlan: fmt.Sprintf("install-%05d", c),
				CSVPhase: "Succeeded"},
		},
	}
	install.Labels = operator.Labels()
	install.Labels[v1alpha1.LabelCluster], install.Labels[v1alpha1.LabelRollout] = name, operator.Name+"-12"
	install.Labels[v1alpha1.LabelWave] = "production"
	install.Finalizers = []string{v1alpha1.FinalizerAgent}
	for i := range 3 {
		install.Spec.Blocks = append(install.Spec.Blocks, v1alpha1.VersionBlock{Package: operator.Name,
			Version: fmt.Sprintf("5.%d.1", i), Instead: "5.31.2", Reason: "Loses dashboards when a folder is renamed"})
	}
	for _, condition := range []string{"Ready", "Reconciling", "Stalled", "Drifted", "CatalogServed", "Resolved",
		"PlanApproved", "Installed"} {
		conditions.Set(&install.Status.Conditions, 12, condition, true, v1alpha1.ReasonSucceeded,
			operator.Name+".v5.31.2 is installed, and all of its Deployments are available")
	}
	return install
}
