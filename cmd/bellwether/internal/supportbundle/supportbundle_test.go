// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/internal/redact"
)

// planted is the secret that nothing in a bundle may contain, encoded or not.
const planted = "hunter2-is-planted"

const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJwbGFudGVkIn0.c2lnbmF0dXJlLXBsYW50ZWQ"

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// half is an API server that responds only to some requests, with secrets in the responses.
func half(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"gitVersion":"v1.34.1"}`)
	})
	const pods = "/api/v1/namespaces/bellwether-system/pods/"
	mux.HandleFunc("GET "+pods+"hub-1/log", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("previous") == "true" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400,`+
				`"message":"previous terminated container not found, token=`+planted+`"}`)
			return
		}
		_, _ = fmt.Fprintf(w, "%s\n%s\n%s\n%s\n", `{"msg":"The hub refuses Authorization: Bearer `+planted+`"}`,
			`{"msg":"renewed","token":"`+token+`"}`, "kind: Secret\ndata:\n  a: "+b64(planted)+"\ntype: Opaque",
			`{"msg":"a line that helps"}`)
	})
	mux.HandleFunc("GET "+pods+"http:hub-1:8080/proxy/metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `bellwether_x{url="https://user:`+planted+`@example.com"} 1`+"\n")
	})
	mux.HandleFunc("GET "+pods+"hub-2/log", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the kubelet does not answer", http.StatusBadGateway)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// objects returns the client of a hub with secrets in its objects. Some kinds cannot be listed.
func objects(t *testing.T) client.Reader {
	t.Helper()
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-system", Name: name,
				Labels: map[string]string{"app.kubernetes.io/name": "bellwether"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "hub",
				Args:  []string{"--store-header=Authorization=Bearer " + planted},
				Env:   []corev1.EnvVar{{Name: "HARMLESS", Value: planted}},
				Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080}}}}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "hub", RestartCount: 1}}},
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-system", Name: "s"},
		Data: map[string][]byte{"a": []byte(planted)}}
	manifest, err := json.Marshal(map[string]any{"kind": "Secret", "data": map[string]any{"a": b64(planted)}})
	if err != nil {
		t.Fatal(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-system", Name: "c"},
		Data: map[string]string{"a": planted}}
	cluster := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod-1", Annotations: map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": planted, "example.com/copy": string(manifest)}},
		Status: v1alpha1.FleetClusterStatus{Conditions: []metav1.Condition{{Type: "Ready", Reason: "X",
			Status: metav1.ConditionFalse, Message: "GET https://user:" + planted + "@example.com: refused"}}}}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-system", Name: "e"},
		Message: "password=" + planted}
	return fake.NewClientBuilder().WithScheme(hub.Scheme).
		WithObjects(pod("hub-1"), pod("hub-2"), secret, config, cluster, event).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList,
			opts ...client.ListOption) error {
			kind := l.GetObjectKind().GroupVersionKind().Kind
			switch kind {
			case "SecretList", "ConfigMapList":
				t.Errorf("%s is read", kind)
			case "OperatorRolloutList":
				return errors.New("etcdserver: request timed out")
			case "ClusterRoleList":
				return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterroles"}, "", errors.New("no"))
			}
			// The fake client has no index for the fields that an API server selects by.
			return c.List(ctx, l, slices.DeleteFunc(opts, func(o client.ListOption) bool {
				_, byField := o.(client.MatchingFields)
				return byField
			})...)
		}}).Build()
}

// Unpack returns the files of a bundle, without the folder that they are in.
func Unpack(t *testing.T, data []byte) map[string]string {
	t.Helper()
	gz, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(gz); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		folder, name, _ := strings.Cut(header.Name, "/")
		if !strings.HasPrefix(folder, "bellwether-support-") || path.Clean(header.Name) != header.Name {
			t.Errorf("file %q", header.Name)
		}
		files[name] = string(text)
	}
}

// TestSupportBundleOfAHalfBrokenCluster: the bundle has the readable data and lists the missing data with the
// reasons. The planted secret is in no file.
func TestSupportBundleOfAHalfBrokenCluster(t *testing.T) {
	s := &apiServer{folder: "hub", name: "the hub", objects: objects(t), namespaces: []string{"bellwether-system"},
		since: time.Hour}
	s.kube, s.kubeErr = newKubeClient(&rest.Config{Host: half(t).URL}, nil)
	var out bytes.Buffer
	b := newBundle(&out, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), "v0.4.0")
	s.collect(t.Context(), b, listHubKinds())
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	files := Unpack(t, out.Bytes())
	for name, text := range files {
		for _, leak := range []string{planted, b64(planted), "c2lnbmF0dXJl"} {
			if strings.Contains(text, leak) {
				t.Errorf("%s contains %q:\n%s", name, leak, text)
			}
		}
	}
	const log, metrics = "hub/logs/bellwether-system/hub-1/hub.log", "hub/metrics/bellwether-system/hub-1.txt"
	for name, want := range map[string]string{log: "a line that helps", metrics: "bellwether_x{url=",
		"hub/version.json": "v1.34.1", "hub/objects/fleetclusters.json": `"prod-1"`,
		"hub/objects/bellwether-system/pods.json": redact.Removed, "hub/objects/bellwether-system/events.json": redact.Removed,
		"README.md": "etcdserver: request timed out"} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s does not contain %q:\n%s", name, want, files[name])
		}
	}
	var index Index
	if err := json.Unmarshal([]byte(files["index.json"]), &index); err != nil {
		t.Fatal(err)
	}
	for what, why := range map[string]string{"OperatorRollout of the hub": "etcdserver",
		"ClusterRole of the hub": "forbidden",
		"previous log of container hub of pod bellwether-system/hub-1 of the hub": "previous terminated container",
		"log of container hub of pod bellwether-system/hub-2 of the hub":          "the kubelet does not answer",
		"metrics of pod bellwether-system/hub-2 of the hub":                       "not find"} {
		if !slices.ContainsFunc(index.Missing, func(m Missing) bool {
			return m.What == what && strings.Contains(m.Why, why)
		}) {
			t.Errorf("it does not say that %s is missing because of %q: %+v", what, why, index.Missing)
		}
	}
	for _, f := range index.Files {
		if files[f.Path] == "" || len(files[f.Path]) != f.Bytes {
			t.Errorf("the index has %+v, and the file has %d bytes", f, len(files[f.Path]))
		}
	}
	if len(files) != len(index.Files)+2 {
		t.Errorf("%d files, and %d in the index", len(files), len(index.Files))
	}
}

// TestEveryListIsRedacted: the steps of InstallPlans embed manifests, those of Secrets among them.
func TestEveryListIsRedacted(t *testing.T) {
	plan := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"plan": []any{
		map[string]any{"resource": map[string]any{"manifest": `{"kind":"Secret","stringData":{"a":"` + planted + `"}}`}}}}}}
	plan.SetGroupVersionKind(schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1",
		Kind: "InstallPlan"})
	plan.SetNamespace("echo")
	plan.SetName("install-1")
	s := &apiServer{folder: "cluster", name: "the fleet cluster", kubeErr: errors.New("none"),
		objects: fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(plan).Build()}
	var out bytes.Buffer
	b := newBundle(&out, time.Now(), "v0.4.0")
	s.collect(t.Context(), b, listFleetKinds())
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	got := Unpack(t, out.Bytes())["cluster/objects/installplans.json"]
	if !strings.Contains(got, "install-1") || strings.Contains(got, planted) {
		t.Errorf("the InstallPlan is\n%s", got)
	}
}
