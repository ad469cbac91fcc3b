// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestSecretFiles has the configuration that the hub makes: its groups are hastened on all routes, and incidents keep
// their keys.
func TestSecretFiles(t *testing.T) {
	operator := paging.Operator{Namespace: "fleet", Name: "echo"}
	config, err := paging.BuildConfig([]paging.Policy{{Namespace: "hub", Name: "platform",
		Operators: []paging.Operator{operator},
		Spec: v1alpha1.PagingPolicySpec{
			Scope: v1alpha1.PagingFleet, SingleCluster: v1alpha1.SingleClusterCritical,
			Pages:     v1alpha1.PageTarget{Receivers: []string{"oncall"}},
			Receivers: []v1alpha1.PagingReceiver{{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{}}},
		}}}, "/config")
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: paging.SecretName},
		Data: map[string][]byte{paging.ConfigFile: config, "secret_key": []byte("key")}}
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: "other"}, Data: secret.Data}
	files, err := secretFiles([]any{other, secret})
	if err != nil {
		t.Fatal(err)
	}
	hastened := string(files[paging.ConfigFile])
	if string(files["secret_key"]) != "key" || len(files) != 2 {
		t.Errorf("%d files, want the configuration and one secret", len(files))
	}
	for _, slow := range []string{"group_wait: 30s", "group_interval: 5m"} {
		if !strings.Contains(string(config), slow) || strings.Contains(hastened, slow) {
			t.Errorf("%q must be in what the hub writes, and not in what Alertmanager gets:\n%s", slow, hastened)
		}
	}
	of := map[string]string{"alertname": "BellwetherReleaseSLOBurn", "severity": "page", "scope": "release",
		"operator_namespace": "fleet", "operator": "echo", "version": "1.2.0"}
	if want, got := keyOf(t, config, of), keyOf(t, files[paging.ConfigFile], of); got != want {
		t.Errorf("the incident has the key %s, and %s by the configuration of the hub", got, want)
	}
	if files, err := secretFiles([]any{other}); err != nil || len(files) != 0 {
		t.Errorf("%d files (%v) without the Secret, want none", len(files), err)
	}
}

func keyOf(t *testing.T, config []byte, labels map[string]string) string {
	t.Helper()
	router, err := paging.NewRouter(config)
	if err != nil {
		t.Fatal(err)
	}
	in := router.Incidents(labels)
	if len(in) != 1 {
		t.Fatalf("%d incidents, want 1", len(in))
	}
	return in[0].DedupKey
}
