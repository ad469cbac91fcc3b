// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/controllers/hub"
)

// privateCatalog publishes a catalog in a registry that asks for a login, and returns its image and digest. The user is
// "u" with the password "p".
func privateCatalog(t *testing.T) (image, digest string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- registry.Serve(ctx, registry.Options{Ready: func(a string) { ready <- a }}) }()
	var inner string
	select {
	case inner = <-ready:
	case err := <-ended:
		t.Fatalf("serve registry: %v", err)
	}
	t.Cleanup(func() { cancel(); <-ended })
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: inner})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "u" || password != "p" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	graph := catalogtest.Graph("echo", "1.0.0\n1.1.0 replaces 1.0.0")
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(graph), 0o600); err != nil {
		t.Fatal(err)
	}
	digest, err := oci.NewClient(oci.Options{}).Push(t.Context(), dir, inner+"/catalogs/main:latest", oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(server.URL, "http://") + "/catalogs/main:latest", digest
}

// pullSecret is a Secret with a login for a registry.
func pullSecret(namespace, name, host, login string) *corev1.Secret {
	auth := base64.StdEncoding.EncodeToString([]byte(login))
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{
			corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, host, auth)}}
}

// TestPullSecretOfACatalog verifies that a catalog is read with the login that it names, from
// its own namespace only, even if another catalog has read the same image before.
func TestPullSecretOfACatalog(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	image, digest := privateCatalog(t)
	host, _, _ := strings.Cut(image, "/")
	opaque := pullSecret("a", "opaque", host, "u:p")
	opaque.Type = corev1.SecretTypeOpaque
	empty := pullSecret("a", "empty", host, "u:p")
	empty.Data = nil
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "locked", errors.New("no"))
	live := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if key.Name == "locked" {
				return forbidden
			}
			return c.Get(ctx, key, o, options...)
		},
	}).WithObjects(pullSecret("a", "login", host, "u:p"), pullSecret("b", "wrong", host, "u:q"),
		pullSecret("b", "elsewhere", "registry.example.com", "u:p"), opaque, empty).Build()
	c := hub.NewCatalogs(t.TempDir())
	defer c.Close()
	c.ReadSecrets(live, "bellwether-system:bellwether-hub")
	named := func(secret string) v1alpha1.CatalogSource {
		return v1alpha1.CatalogSource{Image: image, PullSecret: secret}
	}
	got, err := c.Resolve(t.Context(), "a", named("login"), nil)
	if err != nil || got != digest {
		t.Fatalf("resolve: %s, %v", got, err)
	}
	if _, err := c.Package(t.Context(), "a", named("login"), digest, "echo"); err != nil {
		t.Fatalf("read: %v", err)
	}
	if _, err := c.Summary(t.Context(), "a", named("login"), digest); err != nil {
		t.Fatalf("read: %v", err)
	}
	for name, test := range map[string]struct{ namespace, secret, want string }{
		"without a login":               {"a", "", "status 401 Unauthorized"},
		"of another namespace":          {"b", "login", "there is no Secret b/login"},
		"a wrong password":              {"b", "wrong", "status 401 Unauthorized"},
		"of another registry":           {"b", "elsewhere", "status 401 Unauthorized"},
		"of another type":               {"a", "opaque", `is of type "Opaque"`},
		"an empty one":                  {"a", "empty", "has no login"},
		"one that the hub may not read": {"a", "locked", "kubectl create role bellwether-pull-locked -n a "},
	} {
		t.Run(name, func(t *testing.T) {
			_, resolving := c.Resolve(t.Context(), test.namespace, named(test.secret), nil)
			_, reading := c.Package(t.Context(), test.namespace, named(test.secret), digest, "echo")
			_, summing := c.Summary(t.Context(), test.namespace, named(test.secret), digest)
			for _, err := range []error{resolving, reading, summing} {
				if !errors.Is(err, oci.ErrDenied) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			}
		})
	}
}
