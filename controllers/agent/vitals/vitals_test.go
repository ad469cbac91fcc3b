// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/vitals"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/olmv0"
	olmplan "github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// fixture is a hub and a cluster that tests fill, and the metrics of both.
type fixture struct {
	t        *testing.T
	hub      client.Client
	local    client.Client
	see      Visibility
	lister   fakeLister
	reader   *reader
	counts   *operandCounter
	outcomes *outcomes
	registry *prometheus.Registry
}

func newFixture(t *testing.T, cluster ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme,
		operatorsv1alpha1.AddToScheme, operatorsv2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f := &fixture{t: t, see: Visibility{Hub: true, Cluster: true, OLM: true, Conditions: true}, lister: fakeLister{}}
	f.hub = fake.NewClientBuilder().WithScheme(scheme).Build()
	f.local = fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster...).Build()
	clock := func() time.Time { return now }
	read := &reader{hub: f.hub, local: f.local, now: clock,
		engine: Engine{BundleOf: olmv0.BundleOf, IsConnected: olmv0.IsConnected}}
	f.reader = read
	look := func() Visibility { return f.see }
	f.counts = &operandCounter{reader: read, visibility: look, lister: f.lister, interval: time.Minute, now: clock,
		pods: newPodObserver(f.local, clock)}
	f.outcomes = newOutcomes("prod-eu")
	f.registry = prometheus.NewPedanticRegistry()
	f.registry.MustRegister(&collector{log: logr.Discard(), reader: read, visibility: look, counter: f.counts,
		descs: newDescriptions("prod-eu")}, f.outcomes)
	return f
}

func (f *fixture) install(oi *v1alpha1.OperatorInstall) {
	f.t.Helper()
	if err := f.hub.Create(f.t.Context(), oi); err != nil {
		f.t.Fatal(err)
	}
	f.outcomes.OnAdd(oi, true)
}

// text returns the metrics that Prometheus would scrape.
func (f *fixture) text() string {
	f.t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	var b bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&b, family); err != nil {
			f.t.Fatal(err)
		}
	}
	return b.String()
}

// fakeLister has resources, or an error, by kind.
type fakeLister map[string]any

func (l fakeLister) list(_ context.Context, kind schema.GroupVersionKind, namespace string,
	see func(*vitals.Operand) bool) (int, error) {
	var text string
	switch has := l[kind.Kind].(type) {
	case error:
		return 0, has
	case string:
		text = has
	case map[string]string: // by namespace
		text = has[namespace]
	default:
		return 0, errNoKind
	}
	total := 0
	metadata, err := scanList(strings.NewReader(text), func(o *vitals.Operand) bool { total++; return see(o) })
	return total + metadata.RemainingItemCount, err
}

func install(operator string, change func(*v1alpha1.OperatorInstall)) *v1alpha1.OperatorInstall {
	ref := v1alpha1.OperatorReference{Namespace: "fleet", Name: operator}
	oi := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod-eu",
		Name: ref.InstallName(), UID: "uid-of-echo"}}
	oi.Spec = v1alpha1.OperatorInstallSpec{Operator: ref, Cluster: "prod-eu", Admission: &v1alpha1.Admission{
		Hash: "a", Revision: 1, AdmittedAt: ago(24 * time.Hour),
		Release: v1alpha1.Release{Package: operator + "-operator", Version: "1.1.0",
			Install: v1alpha1.InstallSettings{Mode: v1alpha1.InstallAllNamespaces, Namespace: operator}},
	}}
	succeededAt := ago(23 * time.Hour)
	oi.Status = v1alpha1.OperatorInstallStatus{SucceededHash: "a", SucceededAt: &succeededAt,
		OLM: &v1alpha1.OLMStatus{CatalogSource: "bellwether-" + operator}}
	if change != nil {
		change(oi)
	}
	return oi
}

func subscribed(namespace, pkg, installed, current string) client.Object {
	s := newSubscription()
	s.SetNamespace(namespace)
	s.SetName(pkg)
	s.SetCreationTimestamp(ago(24 * time.Hour))
	s.Object["status"] = map[string]any{"installedCSV": installed, "currentCSV": current}
	return s
}

func csv(namespace, name, replaces, phase string, created time.Duration,
	owned ...operatorsv1alpha1.CRDDescription) client.Object {
	c := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
		CreationTimestamp: ago(created)}}
	_, number, _ := strings.Cut(name, ".v")
	c.Spec.Version = version.OperatorVersion{Version: semver.MustParse(number)}
	c.Spec.Replaces, c.Status.Phase = replaces, operatorsv1alpha1.ClusterServiceVersionPhase(phase)
	c.Spec.CustomResourceDefinitions.Owned = owned
	return c
}

// withCertificates has a CSV with certificates that OLM renews in a day.
func withCertificates(object client.Object) client.Object {
	rotation := ago(-24 * time.Hour)
	object.(*operatorsv1alpha1.ClusterServiceVersion).Status.CertsRotateAt = &rotation
	return object
}

// withWebhooks has a CSV define webhooks, by name.
func withWebhooks(object client.Object, kind operatorsv1alpha1.WebhookAdmissionType, names ...string) client.Object {
	c := object.(*operatorsv1alpha1.ClusterServiceVersion)
	for _, name := range names {
		c.Spec.WebhookDefinitions = append(c.Spec.WebhookDefinitions,
			operatorsv1alpha1.WebhookDescription{Type: kind, GenerateName: name})
	}
	return c
}

func catalog(namespace, name, address, connected, state string) client.Object {
	c := newCatalogSource()
	c.SetNamespace(namespace)
	c.SetName(name)
	c.Object["spec"] = map[string]any{"sourceType": "grpc", "address": address}
	c.Object["status"] = map[string]any{"connectionState": map[string]any{"address": connected,
		"lastObservedState": state}}
	return c
}

// managerPod is of the Deployment of its name, a day old, and restarted thrice.
func managerPod(namespace, deployment string, phase corev1.PodPhase) client.Object {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployment + "-0", UID: types.UID(deployment),
			Labels: map[string]string{"app": deployment}, CreationTimestamp: ago(24 * time.Hour)},
		Status: corev1.PodStatus{Phase: phase,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "manager", RestartCount: 3}}},
	}
}

func deployment(namespace, name, owner string, desired *int32, available int32) client.Object {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{olmplan.LabelOwner: owner}},
		Spec: appsv1.DeploymentSpec{Replicas: desired,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
		Status: appsv1.DeploymentStatus{AvailableReplicas: available},
	}
}

// withClaims has a Deployment use PersistentVolumeClaims.
func withClaims(object client.Object, names ...string) client.Object {
	spec := &object.(*appsv1.Deployment).Spec.Template.Spec
	for _, name := range names {
		spec.Volumes = append(spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	return object
}

func operatorCondition(namespace, name string) client.Object {
	return &operatorsv2.OperatorCondition{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: operatorsv2.OperatorConditionSpec{Conditions: []metav1.Condition{{Type: "Upgradeable",
			Status: metav1.ConditionFalse}, {Type: "Upgradeable", Status: metav1.ConditionTrue}}},
		Status: operatorsv2.OperatorConditionStatus{Conditions: []metav1.Condition{
			{Type: "Upgradeable", Status: metav1.ConditionTrue},
			{Type: "example.com/Äußerst \"gut\"", Status: metav1.ConditionTrue},
		}},
	}
}

// page is a list of custom resources as an API server writes it.
func page(items ...string) string {
	return `{"apiVersion":"echo.example.com/v1","items":[` + strings.Join(items, ",") +
		`],"kind":"List","metadata":{"resourceVersion":"7"}}`
}

func item(status string) string {
	return `{"kind":"Echo","metadata":{"name":"e","creationTimestamp":"2026-11-21T10:00:00Z","generation":1},` +
		`"spec":{"metadata":{"generation":"x"}},"status":` + status + `}`
}

const (
	ready    = `{"conditions":[{"type":"Ready","status":"True"}]}`
	notReady = `{"conditions":[{"type":"Ready","status":"False"}]}`
)

// healthyWorld has a healthy operator, an operator that is being upgraded, and an operator that
// is admitted and not installed yet.
func healthyWorld(t *testing.T) *fixture {
	two := int32(2)
	crd := func(plural, version, kind string) operatorsv1alpha1.CRDDescription {
		return operatorsv1alpha1.CRDDescription{Name: plural + ".example.com", Version: version, Kind: kind}
	}
	f := newFixture(t,
		subscribed("echo", "echo-operator", "echo-operator.v1.1.0", "echo-operator.v1.1.0"),
		withWebhooks(withWebhooks(withWebhooks(
			withCertificates(csv("echo", "echo-operator.v1.1.0", "", "Succeeded", 24*time.Hour,
				crd("echos", "v1beta1", "Echo"),
				crd("echos", "v1", "Echo"), crd("secrets", "v1", "Secret"), crd("gone", "v1", "Gone"))),
			operatorsv1alpha1.ValidatingAdmissionWebhook, "v.echo.example.com", "both.echo.example.com"),
			operatorsv1alpha1.MutatingAdmissionWebhook, "both.echo.example.com", "m.echo.example.com"),
			operatorsv1alpha1.ConversionWebhook, "c.echo.example.com"),
		catalog("echo", "bellwether-echo", "10.0.0.1:50100", "10.0.0.1:50100", "READY"),
		deployment("echo", "echo-controller", "echo-operator.v1.1.0", &two, 1),
		withClaims(deployment("echo", "echo-webhook", "echo-operator.v1.1.0", nil, 1), "cache", "data", "cache"),
		deployment("echo", "library", "library.v1.0.0", nil, 0),
		managerPod("echo", "echo-controller", corev1.PodRunning), managerPod("echo", "echo-webhook", corev1.PodPending),
		managerPod("echo", "library", corev1.PodPending),
		operatorCondition("echo", "echo-operator.v1.1.0"),

		subscribed("queue", "queue-operator", "queue-operator.v2.0.0", "queue-operator.v2.1.0"),
		csv("queue", "queue-operator.v2.0.0", "", "Replacing", 24*time.Hour, crd("queues", "v1", "Queue")),
		withWebhooks(csv("queue", "queue-operator.v2.1.0", "queue-operator.v2.0.0", "Installing", time.Minute,
			crd("queues", "v1", "Queue")),
			operatorsv1alpha1.ValidatingAdmissionWebhook, "new.queue.example.com"),
		catalog("queue", "bellwether-queue", "10.0.0.1:50101", "10.0.0.1:50999", "READY"),
		deployment("queue", "queue", "queue-operator.v2.1.0", nil, 0),
	)
	f.lister["Echo"] = page(item(ready), item(ready), item(notReady), item(`{"conditions":{"odd":"shape"}}`))
	f.lister["Secret"] = apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "secrets"}, "",
		nil)
	f.lister["Queue"] = map[string]string{"queue": page(item(ready)), "": page()}
	f.install(install("echo", nil))
	f.install(install("queue", func(oi *v1alpha1.OperatorInstall) {
		oi.Spec.Admission.Hash, oi.Spec.Admission.AdmittedAt = "b", ago(time.Hour)
		oi.Spec.Admission.Release.Install.Mode = v1alpha1.InstallOwnNamespace
		oi.UID = "uid-of-queue"
	}))
	f.install(install("new", func(oi *v1alpha1.OperatorInstall) {
		oi.Spec.Admission.AdmittedAt, oi.Status = ago(time.Minute), v1alpha1.OperatorInstallStatus{}
		oi.UID = "uid-of-new"
	}))
	f.install(install("waiting", func(oi *v1alpha1.OperatorInstall) {
		oi.Spec.Admission, oi.UID = nil,
			"uid-of-waiting"
	}))
	return f
}

func TestMetricsGolden(t *testing.T) {
	f := healthyWorld(t)
	f.counts.countAll(t.Context(), f.see)
	ended := install("echo", func(oi *v1alpha1.OperatorInstall) {
		at := ago(0)
		oi.Spec.Admission.Hash, oi.Spec.Admission.Revision, oi.Spec.Admission.AdmittedAt = "b", 2, ago(90*time.Second)
		oi.Status.SucceededHash, oi.Status.SucceededAt = "b", &at
	})
	f.outcomes.OnUpdate(nil, ended)
	f.outcomes.OnUpdate(nil, ended)
	golden(t, "metrics.txt", f.text())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s; run with -update if this is what you want (-want +got):\n%s", name, diff)
	}
}

// TestCacheWatcher verifies that nothing is exported about data that cannot be read, except
// which operators are expected.
func TestCacheWatcher(t *testing.T) {
	for name, tc := range map[string]struct {
		see        Visibility
		has, lacks []string
	}{
		"nothing yet": {see: Visibility{}, lacks: []string{series.OperatorExpected + "{", series.OperatorInfo}},
		"the hub only": {see: Visibility{Hub: true}, has: []string{series.OperatorExpected +
			`{cluster="prod-eu",operator="echo",operator_namespace="fleet"} 1`},
			lacks: []string{series.OperatorInfo, series.OperatorCSVSucceeded, series.OperatorOperands,
				series.OperatorUpgrading}},
		"a cluster without OLM": {see: Visibility{Hub: true, Cluster: true},
			has: []string{series.OperatorCSVSucceeded +
				`{cluster="prod-eu",operator="echo",operator_namespace="fleet"} 0`,
				series.OperatorCatalogReady + `{cluster="prod-eu",operator="echo",operator_namespace="fleet"} 0`},
			lacks: []string{series.OperatorInfo, series.OperatorReplicasDesired}},
		"an old OLM": {see: Visibility{Hub: true, Cluster: true, OLM: true},
			has: []string{series.OperatorInfo, series.OperatorCSVSucceeded +
				`{cluster="prod-eu",operator="echo",operator_namespace="fleet"} 1`},
			lacks: []string{series.OperatorConditionStatus + "{"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthyWorld(t)
			f.see = tc.see
			text := f.text()
			for _, want := range tc.has {
				if !strings.Contains(text, want) {
					t.Errorf("lacks %s", want)
				}
			}
			for _, not := range tc.lacks {
				if strings.Contains(text, not) {
					t.Errorf("has %s", not)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// TestPodsThatCannotBeListed verifies that restarts keep their count, and that
// pending pods are not exported.
func TestPodsThatCannotBeListed(t *testing.T) {
	f := healthyWorld(t)
	f.counts.countAll(t.Context(), f.see)
	pending := series.OperatorPodsPending + `{cluster="prod-eu",operator="echo"`
	if text := f.text(); !strings.Contains(text, pending) {
		t.Fatalf("lacks %s:\n%s", pending, text)
	}
	f.counts.pods.local = interceptor.NewClient(f.local.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
		}})
	f.counts.countAll(t.Context(), f.see)
	text := f.text()
	if restarts := series.OperatorRestarts + `{cluster="prod-eu",operator="echo"`; !strings.Contains(text, restarts) {
		t.Errorf("lacks %s:\n%s", restarts, text)
	}
	if strings.Contains(text, pending) {
		t.Errorf("has %s:\n%s", pending, text)
	}
}

// TestBeingRemoved verifies that an operator that is being removed is not expected.
func TestBeingRemoved(t *testing.T) {
	f := healthyWorld(t)
	oi := install("old", func(oi *v1alpha1.OperatorInstall) { oi.Finalizers = []string{v1alpha1.FinalizerAgent} })
	f.install(oi)
	const expected = series.OperatorExpected + `{cluster="prod-eu",operator="old",operator_namespace="fleet"} 1`
	if !strings.Contains(f.text(), expected) {
		t.Error("it is not expected before")
	}
	if err := f.hub.Delete(t.Context(), oi); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(f.text(), expected) {
		t.Error("it is expected still")
	}
}

// BenchmarkScan reads a page of resources of 20 KiB each.
func BenchmarkScan(b *testing.B) {
	// text returns what Prometheus would scrape.
	text := page(slices.Repeat([]string{item(ready[:len(ready)-1] + `,"notes":"` + strings.Repeat("x", 20<<10) + `"}`)},
		pageSize)...)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := scanList(strings.NewReader(text), func(*vitals.Operand) bool { return true }); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSeriesAreRemoved checks that the series of an operator are removed with
// its install.
func TestSeriesAreRemoved(t *testing.T) {
	f := healthyWorld(t)
	f.counts.countAll(t.Context(), f.see)
	if !strings.Contains(f.text(), `operator="echo"`) {
		t.Fatal("there is nothing to go")
	}
	oi := install("echo", nil)
	if err := f.hub.Delete(t.Context(), oi); err != nil {
		t.Fatal(err)
	}
	f.outcomes.OnDelete(oi)
	if text := f.text(); strings.Contains(text, `operator="echo"`) || !strings.Contains(text, `operator="queue"`) {
		t.Errorf("series of echo are left, or those of queue are not:\n%s", text)
	}
	f.counts.countAll(t.Context(), f.see)
	if left := f.counts.listCounts(oi.Name); len(left) != 0 {
		t.Errorf("counts are left: %v", left)
	}
}

// TestSameName checks that operators with the same name in two namespaces have
// separate series.
func TestSameName(t *testing.T) {
	f := healthyWorld(t)
	other := install("echo", func(oi *v1alpha1.OperatorInstall) {
		oi.Spec.Operator.Namespace = "staging"
		oi.Name, oi.UID = oi.Spec.Operator.InstallName(), "another-uid"
		oi.Spec.Admission.Release.Install.Namespace = "staging-echo"
	})
	f.install(other)
	has := func(metric, namespace, value string) bool {
		return strings.Contains(f.text(),
			metric+`{cluster="prod-eu",operator="echo",operator_namespace="`+namespace+`"} `+value+"\n")
	}
	for namespace, succeeded := range map[string]string{"fleet": "1", "staging": "0"} {
		if !has(series.OperatorExpected, namespace, "1") || !has(series.OperatorCSVSucceeded, namespace, succeeded) {
			t.Errorf("the operator of namespace %s is not expected, or its CSV is not told apart:\n%s", namespace,
				f.text())
		}
	}
	if err := f.hub.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	f.outcomes.OnDelete(other)
	if text := f.text(); strings.Contains(text, `operator_namespace="staging"`) ||
		!strings.Contains(text,
			series.OperatorInstallTotal+`{cluster="prod-eu",operator="echo",operator_namespace="fleet"`) {
		t.Errorf("series of the removed operator are left, or those of the other one are gone:\n%s", text)
	}
}

// TestAdoptedUnderAnotherName has an operator with an adopted Subscription, whose name differs
// from the package. Another Subscription, which is not the agent's, has the name of the package.
func TestAdoptedUnderAnotherName(t *testing.T) {
	f := newFixture(t, subscribed("echo", "our-echo", "echo-operator.v1.1.0", "echo-operator.v1.1.0"),
		subscribed("echo", "echo-operator", "library.v1.0.0", "library.v1.0.0"),
		csv("echo", "echo-operator.v1.1.0", "", "Succeeded", 24*time.Hour),
		csv("echo", "library.v1.0.0", "", "Failed", 24*time.Hour),
		deployment("echo", "echo-controller", "echo-operator.v1.1.0", nil, 1))
	f.install(install("echo", func(oi *v1alpha1.OperatorInstall) { oi.Status.OLM.Subscription = "our-echo" }))
	text := f.text()
	for _, want := range []string{
		series.OperatorCSVSucceeded + `{cluster="prod-eu",operator="echo",operator_namespace="fleet"} 1`,
		`deployment="echo-controller"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s:\n%s", want, text)
		}
	}
}

// TestOneBrokenOperator checks that an operator that cannot be read does not
// affect the others.
func TestOneBrokenOperator(t *testing.T) {
	f := healthyWorld(t)
	broken := catalog("echo", "bellwether-echo", "", "", "")
	if err := f.local.Get(t.Context(), client.ObjectKeyFromObject(broken), broken); err != nil {
		t.Fatal(err)
	}
	broken.(*unstructured.Unstructured).Object["spec"] = "no object"
	f.reader.local = failingList{Client: f.local, broken: broken.(*unstructured.Unstructured)}
	text := f.text()
	if !strings.Contains(text,
		series.OperatorExpected+`{cluster="prod-eu",operator="echo",operator_namespace="fleet"} 1`) ||
		strings.Contains(text,
			series.OperatorCSVSucceeded+`{cluster="prod-eu",operator="echo",operator_namespace="fleet"}`) {
		t.Errorf("of the broken one more or less is told than that it is expected:\n%s", text)
	}
	if !strings.Contains(text,
		series.OperatorCSVSucceeded+`{cluster="prod-eu",operator="queue",operator_namespace="fleet"}`) {
		t.Errorf("the others are not told of:\n%s", text)
	}
}

// failingList fails for one kind of object.
type failingList struct {
	client.Client
	broken *unstructured.Unstructured
}

func (b failingList) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := b.Client.List(ctx, list, opts...)
	if all, ok := list.(*unstructured.UnstructuredList); ok {
		for i := range all.Items {
			if all.Items[i].GetName() == b.broken.GetName() && all.Items[i].GetKind() == b.broken.GetKind() {
				all.Items[i] = *b.broken
			}
		}
	}
	return err
}

func TestCountsAreKeptAfterError(t *testing.T) {
	f := healthyWorld(t)
	clock := now
	f.counts.now = func() time.Time { return clock }
	f.counts.countAll(t.Context(), f.see)
	f.lister["Echo"] = fmt.Errorf("no route to host")
	echo := func() operandCount {
		f.counts.countAll(t.Context(), f.see)
		for _, c := range f.counts.listCounts("fleet.echo") {
			if c.kind == "Echo" {
				return c
			}
		}
		return operandCount{}
	}
	clock = now.Add(countRetention - time.Second)
	if c := echo(); c.uncounted != series.ReasonFailed || c.ready[series.ReadyTrue] != 2 {
		t.Errorf("shortly after a failure: %+v", c)
	}
	clock = now.Add(countRetention)
	if c := echo(); c.uncounted != series.ReasonFailed || !c.at.IsZero() {
		t.Errorf("long after: %+v", c)
	}
	f.lister["Echo"] = page(item(notReady))
	if c := echo(); c.uncounted != "" || c.ready[series.ReadyFalse] != 1 {
		t.Errorf("after it recovered: %+v", c)
	}
}

func TestCountsAreBounded(t *testing.T) {
	f := healthyWorld(t)
	many := make([]string, maxOperands+10)
	for i := range many {
		many[i] = item(ready)
	}
	f.lister["Echo"] = page(many...)
	f.counts.countAll(t.Context(), f.see)
	for _, c := range f.counts.listCounts("fleet.echo") {
		if c.kind == "Echo" && (c.ready[series.ReadyTrue] != maxOperands || c.uncounted != series.ReasonTooMany) {
			t.Errorf("counted %v, %s", c.ready, c.uncounted)
		}
	}
}

func TestWebhooksAreBounded(t *testing.T) {
	many := make([]string, maxWebhooks+10)
	for i := range many {
		many[i] = fmt.Sprintf("w%03d.echo.example.com", len(many)-i)
	}
	object := withWebhooks(csv("echo", "echo-operator.v1.1.0", "", "Succeeded", time.Hour),
		operatorsv1alpha1.MutatingAdmissionWebhook, many...)
	got := listWebhooks(object.(*operatorsv1alpha1.ClusterServiceVersion))
	if len(got) != maxWebhooks || got[0] != "w001.echo.example.com" || !slices.IsSorted(got) {
		t.Errorf("%d webhooks: %v", len(got), got)
	}
}

func TestScan(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		seen int
		next string
		err  bool
	}{
		"a page": {text: `{"metadata":{"continue":"more"},"items":[{},{}],"kind":"EchoList"}`, seen: 2,
			next: "more"},
		"metadata at the end": {text: `{"items":[{}],"metadata":{"continue":"more"}}`, seen: 1, next: "more"},
		"the last page":       {text: page(item(ready)), seen: 1},
		"nothing":             {text: `{"items":[],"metadata":{}}`},
		"null":                {text: `{"items":null,"metadata":{}}`},
		"odd shapes": {text: `{"items":[{"status":"fine"},` +
			`{"status":{"conditions":[1,{"type":3}],"observedGeneration":"x"}},{"status":null}]}`, seen: 3},
		"cut off":  {text: `{"items":[{},{`, seen: 1, err: true},
		"no list":  {text: `[1]`, err: true},
		"no items": {text: `{"items":{}}`, err: true},
		"not JSON": {text: `<html>`, err: true},
		"empty":    {err: true},
	} {
		t.Run(name, func(t *testing.T) {
			seen := 0
			metadata, err := scanList(strings.NewReader(tc.text), func(*vitals.Operand) bool { seen++; return true })
			if seen != tc.seen || metadata.Continue != tc.next || (err != nil) != tc.err {
				t.Errorf("saw %d, next %q, error %v", seen, metadata.Continue, err)
			}
		})
	}
}
