// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestAgentKubeconfig(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod-1", Name: "token"},
		Data:       map[string][]byte{"token": []byte("t0ken"), "ca.crt": []byte("in-cluster CA")},
	}
	for name, test := range map[string]struct {
		hub        rest.Config
		server     string
		wantServer string
		wantCA     string
		wantErr    string
	}{
		"the user's address and CA": {hub: rest.Config{Host: "https://hub:6443",
			TLSClientConfig: rest.TLSClientConfig{CAData: []byte("user CA")}}, wantServer: "https://hub:6443",
			wantCA: "user CA"},
		"another address": {hub: rest.Config{Host: "https://hub:6443",
			TLSClientConfig: rest.TLSClientConfig{CAData: []byte("user CA")}}, server: "https://hub.example.com",
			wantServer: "https://hub.example.com", wantCA: "user CA"},
		"no CA in the kubeconfig": {hub: rest.Config{Host: "https://hub:6443"}, wantServer: "https://hub:6443",
			wantCA: "in-cluster CA"},
		"no URL": {hub: rest.Config{Host: "https://hub:6443"}, server: "hub", wantErr: "invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := agentKubeconfig(&test.hub, test.server, secret)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.RESTConfigFromKubeConfig(text)
			if err != nil {
				t.Fatalf("load what was written: %v", err)
			}
			if config.Host != test.wantServer || string(config.CAData) != test.wantCA || config.BearerToken != "t0ken" {
				t.Errorf("server %q, CA %q, token %q", config.Host, config.CAData, config.BearerToken)
			}
		})
	}
}
