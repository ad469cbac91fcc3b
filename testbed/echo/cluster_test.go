// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package echo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/echo"
	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
	"github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
	"github.com/bellwether-dev/bellwether/testbed/echo/server"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const (
	limit = 4 * time.Minute

	serverPort = "8080" // of the echo servers, and of the operator's metrics
	healthPort = "8081"
)

func TestMain(m *testing.M) {
	log.SetLogger(klog.Background())
	os.Exit(testenv.Main(m))
}

// bed is a cluster with the sample operator's programs as images.
type bed struct {
	t  *testing.T
	c  client.Client
	ns string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	config := testenv.Shared(t, cluster.Options{Pods: true, Images: map[string]cluster.Image{
		bundle.OperatorImage: {Path: testenv.Binary(t, build.EchoOperator)},
		plan.ServerImage:     {Path: testenv.Binary(t, build.EchoServer)},
	}}).RESTConfig()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, echov1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &bed{t: t, c: c, ns: testenv.Namespace(t, config, "echo")}
}

// install does what OLM does with a bundle: the CRD, the Service, the service
// account, the roles of the CSV to the letter, and its Deployment.
func (b *bed) install(version string) {
	b.t.Helper()
	crd, csv, service := &apiextensionsv1.CustomResourceDefinition{}, &operatorsv1alpha1.ClusterServiceVersion{},
		&corev1.Service{}
	b.read(version+"/manifests/echo.bellwether.dev_echoservers.yaml", crd)
	b.read(version+"/manifests/echo-operator.clusterserviceversion.yaml", csv)
	b.read(version+"/manifests/echo-operator.service.yaml", service)
	b.apply(crd)
	service.Namespace = b.ns
	b.apply(service)
	strategy := csv.Spec.InstallStrategy.StrategySpec
	for _, p := range strategy.ClusterPermissions {
		name := b.ns + "-" + p.ServiceAccountName
		subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.ns, Name: p.ServiceAccountName}}
		b.apply(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.ns, Name: p.ServiceAccountName}})
		b.apply(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: p.Rules})
		b.apply(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}})
	}
	for _, p := range strategy.Permissions {
		subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.ns, Name: p.ServiceAccountName}}
		b.apply(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: b.ns, Name: p.ServiceAccountName},
			Rules: p.Rules})
		b.apply(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: b.ns, Name: p.ServiceAccountName},
			Subjects: subjects,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: p.ServiceAccountName}})
	}
	for _, d := range strategy.DeploymentSpecs {
		d.Spec.Template.Annotations = map[string]string{"olm.targetNamespaces": b.ns}
		b.apply(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.ns, Name: d.Name}, Spec: d.Spec})
	}
}

func (b *bed) read(name string, into any) {
	b.t.Helper()
	data, err := fs.ReadFile(echo.Bundles(), name)
	if err == nil {
		err = yaml.UnmarshalStrict(data, into)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// apply creates object or replaces what is there.
func (b *bed) apply(object client.Object) {
	b.t.Helper()
	current, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		b.t.Fatalf("%T is no object", object)
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // others write the status and annotations
		err := b.c.Get(b.t.Context(), client.ObjectKeyFromObject(object), current)
		if err == nil {
			object.SetResourceVersion(current.GetResourceVersion())
			return b.c.Update(b.t.Context(), object)
		} else if client.IgnoreNotFound(err) == nil {
			return b.c.Create(b.t.Context(), object)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) eventually(what string, check func(context.Context) error) {
	b.t.Helper()
	testenv.Eventually(b.t, limit, what, check)
}

// settled waits until version has rolled the EchoServer out.
func (b *bed) settled(name, version string) {
	b.t.Helper()
	b.eventually("EchoServer runs "+version, func(ctx context.Context) error {
		es := &echov1alpha1.EchoServer{}
		if err := b.c.Get(ctx, client.ObjectKey{Namespace: b.ns, Name: name}, es); err != nil {
			return err
		}
		if es.Status.Version != version || es.Status.ObservedGeneration != es.Generation ||
			!apimeta.IsStatusConditionTrue(es.Status.Conditions, echov1alpha1.ConditionAvailable) ||
			!apimeta.IsStatusConditionFalse(es.Status.Conditions, echov1alpha1.ConditionProgressing) {
			return fmt.Errorf("status is %+v", es.Status)
		}
		return nil
	})
}

// answers asks every live pod of the EchoServer.
func (b *bed) answers(name string) map[int][]server.Answer {
	b.t.Helper()
	pods := &corev1.PodList{}
	if err := b.c.List(b.t.Context(), pods, client.InNamespace(b.ns),
		client.MatchingLabels(plan.Selector(name))); err != nil {
		b.t.Fatal(err)
	}
	got := map[int][]server.Answer{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			continue
		}
		code, body, err := get(b.t.Context(), pod.Status.PodIP, serverPort, "/")
		if err != nil {
			b.t.Fatal(err)
		}
		var a server.Answer
		if err := json.Unmarshal(body, &a); err != nil {
			b.t.Fatalf("parse %q: %v", body, err)
		}
		a.Pod = ""
		got[code] = append(got[code], a)
	}
	return got
}

func get(ctx context.Context, ip, port, path string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(ip, port)+path, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// Every version works with exactly the permissions of its CSV; the bad one
// looks healthy and serves errors.
func TestVersions(t *testing.T) {
	b := newBed(t)
	b.install("1.0.0")
	es := &echov1alpha1.EchoServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.ns, Name: "hello"},
		Spec:       echov1alpha1.EchoServerSpec{Message: "hello", Replicas: ptr.To[int32](2), Uppercase: true},
	}
	b.eventually("create EchoServer", func(ctx context.Context) error { return b.c.Create(ctx, es.DeepCopy()) })

	check := func(version, message string, code int) {
		t.Helper()
		b.settled("hello", version)
		one := server.Answer{Message: message, Version: version}
		if diff := cmp.Diff(map[int][]server.Answer{code: {one, one}}, b.answers("hello")); diff != "" {
			t.Errorf("answers of %s by status code (-want +got):\n%s", version, diff)
		}
	}
	// 1.0.0 has no spec.uppercase: the API server prunes it.
	check("1.0.0", "hello", http.StatusOK)

	b.install("1.1.0")
	b.eventually("set uppercase", func(ctx context.Context) error {
		return b.c.Patch(ctx, es.DeepCopy(), client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec":{"uppercase":true}}`)))
	})
	check("1.1.0", "HELLO", http.StatusOK)

	b.install("1.2.0")
	check("1.2.0", "HELLO", http.StatusInternalServerError)
	b.eventually("operator counts errors", b.operatorCountsErrors)

	b.install("1.3.0")
	check("1.3.0", "HELLO", http.StatusOK)
}

// operatorCountsErrors asks the operator of 1.2.0 by its Service, as a probe and an SLO do.
func (b *bed) operatorCountsErrors(ctx context.Context) error {
	pods, service := &corev1.PodList{}, &corev1.Service{}
	if err := b.c.List(ctx, pods, client.InNamespace(b.ns),
		client.MatchingLabels{"app.kubernetes.io/name": "echo-operator"}); err != nil {
		return err
	}
	if len(pods.Items) != 1 || pods.Items[0].Labels["app.kubernetes.io/version"] != "1.2.0" {
		return fmt.Errorf("%d pods of the operator, not one of 1.2.0", len(pods.Items))
	}
	if err := b.c.Get(ctx, client.ObjectKey{Namespace: b.ns, Name: bundle.Service}, service); err != nil {
		return err
	}
	if code, _, err := get(ctx, service.Spec.ClusterIP, healthPort, "/healthz"); err != nil || code != http.StatusOK {
		return fmt.Errorf("/healthz of a bad operator that lives answers %d (%w)", code, err)
	}
	_, metrics, err := get(ctx, service.Spec.ClusterIP, serverPort, "/metrics")
	if err != nil {
		return err
	}
	for _, name := range []string{
		`controller_runtime_reconcile_errors_total{controller="echoserver"} `,
		`controller_runtime_reconcile_total{controller="echoserver",result="error"} `,
	} {
		_, rest, ok := strings.Cut(string(metrics), "\n"+name)
		if !ok || strings.HasPrefix(rest, "0\n") {
			return fmt.Errorf("no errors in %s: %.20q", name, rest)
		}
	}
	return nil
}
