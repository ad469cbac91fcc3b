// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func TestReadCredentials(t *testing.T) {
	labelled := map[string]string{v1alpha1.LabelProbeSecret: "true"}
	secrets := map[string]Secret{
		"api": {Labels: labelled, Data: map[string][]byte{"token": []byte("abc\n"), "empty": nil,
			"lines": []byte("a\r\nX-Injected: b")}},
		"tls":        {Labels: labelled, Data: map[string][]byte{"tls.crt": []byte("crt"), "tls.key": []byte("key")}},
		"unlabelled": {Data: map[string][]byte{"token": []byte("abc")}},
		"forbidden":  {Unreadable: "the agent may not read Secret ns/forbidden"},
	}
	configMaps := map[string]Secret{"service-ca": {Data: map[string][]byte{"ca.crt": []byte("service CA")}},
		"forbidden": {Unreadable: "the agent may not read ConfigMap ns/forbidden"}}
	ca := func(name, key string) v1alpha1.EndpointProbeSpec {
		return v1alpha1.EndpointProbeSpec{TLS: &v1alpha1.ProbeTLS{CAConfigMap: &v1alpha1.ConfigMapKey{Name: name,
			Key: key}}}
	}
	bearer := func(name, key string) v1alpha1.EndpointProbeSpec {
		return v1alpha1.EndpointProbeSpec{HTTP: &v1alpha1.HTTPProbe{BearerToken: &v1alpha1.SecretKey{Name: name,
			Key: key}}}
	}
	everything := bearer("api", "token")
	everything.HTTP.SecretHeaders = []v1alpha1.SecretHeader{
		{Name: "X-Api-Key", Value: v1alpha1.SecretKey{Name: "api", Key: "token"}}}
	everything.TLS = &v1alpha1.ProbeTLS{ClientSecret: "tls", CASecret: &v1alpha1.SecretKey{Name: "tls", Key: "tls.crt"}}
	if diff := cmp.Diff([]string{"api", "tls"}, SecretNames(everything)); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		spec    v1alpha1.EndpointProbeSpec
		want    *Credentials
		message string
	}{
		"everything": {spec: everything, want: &Credentials{Headers: map[string]string{"X-Api-Key": "abc"},
			BearerToken: "abc", CA: "crt", Certificate: "crt", Key: "key"}},
		"no such key": {spec: bearer("api", "other"), message: "Secret api has no value for the key other"},
		"empty":       {spec: bearer("api", "empty"), message: "no value"},
		"an injected header": {spec: bearer("api", "lines"),
			message: "the key lines in Secret api cannot be sent in a header"},
		"a Secret of somebody else": {spec: bearer("unlabelled", "token"),
			message: "Secret unlabelled lacks the label bellwether.dev/probe-secret=true"},
		"a CA of a ConfigMap":    {spec: ca("service-ca", "ca.crt"), want: &Credentials{CA: "service CA"}},
		"no key of a ConfigMap":  {spec: ca("service-ca", "x"), message: "ConfigMap service-ca has no value for the key x"},
		"a forbidden ConfigMap":  {spec: ca("forbidden", "x"), message: "may not read ConfigMap ns/forbidden"},
		"a ConfigMap, no Secret": {spec: ca("api", "token"), message: "ConfigMap api has no value"},
		"forbidden":              {spec: bearer("forbidden", "token"), message: "may not read Secret ns/forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			got, failure := ReadCredentials(tc.spec, secrets, configMaps)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
			if (failure != nil) != (tc.message != "") {
				t.Fatalf("failure %+v, want %q", failure, tc.message)
			}
			if failure != nil && (failure.Reason != v1alpha1.ReasonSecretUnavailable ||
				!strings.Contains(failure.Message, tc.message) || strings.Contains(failure.Message, "abc") ||
				strings.Contains(failure.Message, "Injected")) {
				t.Errorf("failure %+v, want %q", failure, tc.message)
			}
		})
	}
}
