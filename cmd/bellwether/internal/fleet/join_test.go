// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"
)

// TestTrust serves a hub whose own certificates verify it, and a hub behind a proxy with other certificates.
func TestTrust(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, test := range map[string]struct {
		config    rest.Config
		published string
		want      string
	}{
		"the user's": {rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: []byte("user's")}},
			string(own), "user's"},
		"none, and the hub's own verify it": {rest.Config{Host: server.URL}, string(own), string(own)},
		"none, and the hub's own do not":    {rest.Config{Host: server.URL}, "-----BEGIN", ""},
		"nothing is verified": {rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
			string(own), ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := fake.NewClientBuilder().WithObjects(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod-1", Name: "kube-root-ca.crt"},
				Data:       map[string]string{"ca.crt": test.published}}).Build()
			tls, err := buildTLSConfig(t.Context(), h, &test.config, "bellwether-prod-1")
			if err != nil || string(tls.CAData) != test.want || tls.Insecure != test.config.Insecure {
				t.Errorf("CA %q, insecure %t (%v), want %q", tls.CAData, tls.Insecure, err, test.want)
			}
		})
	}
}

func TestJoinManifest(t *testing.T) {
	kubeconfig, err := buildAgentKubeconfig("https://hub:6443", rest.TLSClientConfig{CAData: []byte("CA")},
		"bellwether-prod-1", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := buildManifest("system", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(manifest), "---\n")[1:]
	var namespace corev1.Namespace
	var secret corev1.Secret
	for i, object := range []any{&namespace, &secret} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), object); err != nil {
			t.Fatalf("decode %s: %v", documents[i], err)
		}
	}
	if len(documents) != 2 || namespace.Name != "system" || secret.Namespace != "system" ||
		secret.Name != hubKubeconfigSecret {
		t.Errorf("manifest:\n%s", manifest)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(secret.StringData["kubeconfig"]))
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://hub:6443" || string(config.CAData) != "CA" || config.BearerToken != "t0ken" {
		t.Errorf("server %q, CA %q, token %q", config.Host, config.CAData, config.BearerToken)
	}
}
