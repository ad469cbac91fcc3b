// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const (
	first  = "1.0.0"
	second = first + "\n1.1.0 replaces 1.0.0"
	third  = second + "\n1.2.0 replaces 1.1.0"
)

// publish writes a catalog of the package echo into a directory.
func publish(t *testing.T, dir, notation string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(catalogtest.Graph("echo", notation)), 0o600))
}

func (h *harness) catalog(t *testing.T, namespace string, source v1alpha1.CatalogSource) *v1alpha1.OperatorCatalog {
	t.Helper()
	catalog := &v1alpha1.OperatorCatalog{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "main"},
		Spec: v1alpha1.OperatorCatalogSpec{
			Source: source, PollInterval: &metav1.Duration{Duration: 5 * time.Second},
		},
	}
	must(t, h.Create(t.Context(), catalog))
	return catalog
}

// lookAgain makes the hub look at a catalog without waiting for its next poll.
func (h *harness) lookAgain(t *testing.T, catalog *v1alpha1.OperatorCatalog) {
	t.Helper()
	h.change(t, catalog, func() {
		if catalog.Annotations == nil {
			catalog.Annotations = map[string]string{}
		}
		catalog.Annotations["test"] += "x"
	})
}

func TestCatalogFromADirectory(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "catalog")
	dir := filepath.Join(t.TempDir(), "catalog")
	catalog := h.catalog(t, namespace, v1alpha1.CatalogSource{Directory: dir})
	h.reaches(t, catalog, "Stalled SourceNotFound", dir)

	must(t, os.Mkdir(dir, 0o700))
	publish(t, dir, second)
	h.lookAgain(t, catalog)
	h.reaches(t, catalog, "True Succeeded")
	good := catalog.Status.Digest
	if len(catalog.Status.Packages) != 1 || catalog.Status.Packages[0].Channels[0].Head != "1.1.0" ||
		catalog.Status.LastReadTime == nil {
		t.Errorf("status: %+v", catalog.Status)
	}

	for name, bad := range map[string]struct{ content, want string }{
		"broken":         {`{"schema": "olm.pack`, "Stalled NotACatalog"},
		"something else": {`{"hello": "world"}`, "Stalled NotACatalog"},
		"an alias bomb": {"schema: olm.bundle\npackage: echo\nname: x\n" + untrustedtest.AliasBomb("image"),
			"Stalled NotACatalog"},
		"two heads": {catalogtest.Graph("echo", second+"\n1.1.1 replaces 1.0.0"), "Stalled CatalogInvalid"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(bad.content), 0o600))
			h.lookAgain(t, catalog)
			h.reaches(t, catalog, bad.want, "stays in use ("+good+")")
			if catalog.Status.Digest != good {
				t.Errorf("digest %s replaced a good one", catalog.Status.Digest)
			}
			publish(t, dir, second)
			h.lookAgain(t, catalog)
			h.reaches(t, catalog, "True Succeeded")
		})
	}

	publish(t, dir, third) // found by polling alone
	eventually(t, func() error {
		if err := h.is(t, catalog, "True Succeeded"); err != nil {
			return err
		}
		if catalog.Status.Digest == good {
			return fmt.Errorf("%w: still the old digest", errNotYet)
		}
		return nil
	})
	if head := catalog.Status.Packages[0].Channels[0].Head; head != "1.2.0" {
		t.Errorf("head is %s", head)
	}
}

// TestACatalogTellsNothingOfInternalHosts: its author reads the status, and may name a host that he cannot reach.
func TestACatalogTellsNothingOfInternalHosts(t *testing.T) {
	const secret = "hunter2-of-an-internal-host"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Internal", secret)
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"errors": [{"code": "DENIED", "message": %q}]}`, secret)
	}))
	defer server.Close()
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "internal")
	catalog := h.catalog(t, namespace, v1alpha1.CatalogSource{
		Image: strings.TrimPrefix(server.URL, "http://") + "/team/catalog:v1", Insecure: true})
	h.reaches(t, catalog, "Stalled AccessDenied", "status 403 Forbidden (DENIED)")
	status, err := json.Marshal(catalog.Status)
	must(t, err)
	var events eventsv1.EventList
	must(t, h.List(t.Context(), &events, client.InNamespace(namespace)))
	text, err := json.Marshal(events.Items)
	must(t, err)
	if strings.Contains(string(status)+string(text), secret) {
		t.Errorf("status or Events have what the host answered: %s %s", status, text)
	}
}

// TestAPrivateCatalog: the hub reads a catalog with the Secret that it names, in its own namespace.
func TestAPrivateCatalog(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "private")
	inner, stop := serveRegistry(t, t.TempDir(), "")
	defer stop()
	dir := t.TempDir()
	publish(t, dir, second)
	_, err := oci.NewClient(oci.Options{}).Push(t.Context(), dir, inner+"/catalogs/main:latest", oci.Access{})
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: inner})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user == "u" && password == "p" {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	catalog := h.catalog(t, namespace, v1alpha1.CatalogSource{Image: host + "/catalogs/main:latest",
		PullSecret: "login"})
	h.reaches(t, catalog, "Stalled AccessDenied", "Secret "+namespace+"/login may not be read", "kubectl create role ")
	pull := metav1.ObjectMeta{Namespace: namespace, Name: "bellwether-pull-login"}
	must(t, h.Create(t.Context(), &rbacv1.Role{ObjectMeta: pull, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""},
		Resources: []string{"secrets"}, ResourceNames: []string{"login"}, Verbs: []string{"get"}}}}))
	must(t, h.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: pull,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: pull.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "bellwether-system", Name: "bellwether-hub"}}}))
	eventually(t, func() error { // the API server takes a moment to know the role
		h.lookAgain(t, catalog)
		return h.is(t, catalog, "Stalled AccessDenied", "there is no Secret "+namespace+"/login")
	})
	must(t, h.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "login"},
		Type: corev1.SecretTypeDockerConfigJson, StringData: map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(
			`{"auths": {%q: {"username": "u", "password": "p"}}}`, host)}}))
	h.lookAgain(t, catalog)
	h.reaches(t, catalog, "True Succeeded")
}

// serveRegistry runs a registry at an address until the returned function is
// called.
func serveRegistry(t *testing.T, root, addr string) (address string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- registry.Serve(ctx, registry.Options{Addr: addr, Root: root, Ready: func(a string) { ready <- a }})
	}()
	select {
	case address = <-ready:
	case err := <-ended:
		t.Fatalf("serve registry: %v", err)
	}
	return address, func() {
		cancel()
		<-ended
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	must(t, l.Close())
	return address
}

func TestCatalogFromARegistry(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "catalog")
	root, address := t.TempDir(), freeAddress(t)
	catalog := h.catalog(t, namespace, v1alpha1.CatalogSource{Image: address + "/catalogs/main:latest"})
	h.reaches(t, catalog, "Stalled CatalogUnreachable", "that the hub can reach the registry")

	_, stop := serveRegistry(t, root, address)
	h.reaches(t, catalog, "Stalled SourceNotFound", "publish the catalog there")
	dir := t.TempDir()
	publish(t, dir, second)
	digest, err := oci.NewClient(oci.Options{}).Push(t.Context(), dir, catalog.Spec.Source.Image, oci.Access{})
	must(t, err)
	h.reaches(t, catalog, "True Succeeded")
	if catalog.Status.Digest != digest {
		t.Errorf("digest %s, want %s", catalog.Status.Digest, digest)
	}

	stop()
	h.lookAgain(t, catalog)
	h.reaches(t, catalog, "Stalled CatalogUnreachable", "stays in use ("+digest+")")
	_, stop = serveRegistry(t, root, address)
	defer stop()
	h.reaches(t, catalog, "True Succeeded")

	wrong := "sha256:" + strings.Repeat("0", 64)
	h.change(t, catalog, func() { catalog.Spec.Source.Image = address + "/catalogs/main@" + wrong })
	h.reaches(t, catalog, "Stalled SourceNotFound", wrong)
	if catalog.Status.Digest != digest || catalog.Status.Source.Image != address+"/catalogs/main:latest" {
		t.Errorf("a bad source replaced a good one: %+v", catalog.Status)
	}
	h.change(t, catalog, func() { catalog.Spec.Source.Image = address + "/catalogs/main@" + digest })
	h.reaches(t, catalog, "True Succeeded")
}

// A registry that answers with other content than was asked for.
func TestCatalogWithTheWrongDigest(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "catalog")
	root := t.TempDir()
	address, stop := serveRegistry(t, root, "")
	defer stop()
	dir := t.TempDir()
	publish(t, dir, first+"\n1.0.7 replaces 1.0.0") // a digest that the hub has not read from elsewhere
	image := address + "/catalogs/main:latest"
	_, err := oci.NewClient(oci.Options{}).Push(t.Context(), dir, image, oci.Access{})
	must(t, err)
	restore := corrupt(t, root)
	catalog := h.catalog(t, namespace, v1alpha1.CatalogSource{Image: image})
	h.reaches(t, catalog, "Stalled DigestMismatch", "Push the catalog again")
	restore()
	h.reaches(t, catalog, "True Succeeded")
}

// corrupt changes a byte of every layer that a registry keeps; the returned
// function puts them right.
func corrupt(t *testing.T, root string) (restore func()) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docker/registry/v2/blobs/sha256/*/*/data"))
	must(t, err)
	originals := map[string][]byte{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		must(t, err)
		if content[0] == '{' { // a manifest or a configuration: those stay
			continue
		}
		originals[file] = content
		changed := append([]byte(nil), content...)
		changed[len(changed)/2] ^= 0xff
		must(t, os.WriteFile(file, changed, 0o600))
	}
	if len(originals) == 0 {
		t.Fatalf("no layers among %d files", len(files))
	}
	return func() {
		for file, content := range originals {
			must(t, os.WriteFile(file, content, 0o600))
		}
	}
}
