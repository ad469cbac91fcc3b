// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/internal/redact"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

// The secrets in the tests. No secret may be left, in any encoding.
const (
	word  = "hunter2-is-planted"
	token = "eyJhbGciOiJSUzI1NiIsImtpZCI6InBsYW50ZWQifQ.eyJzdWIiOiJwbGFudGVkIn0.c2lnbmF0dXJlLXBsYW50ZWQ"
	key   = "-----BEGIN EC PRIVATE KEY-----\nTUhjQ0FRRUVJ-planted\n-----END EC PRIVATE KEY-----"
)

// leaks returns the secrets that are left in the text.
func leaks(text string) string {
	for _, planted := range []string{"planted", "c2lnbmF0dXJl", "TUhjQ0FR",
		base64.StdEncoding.EncodeToString([]byte(word)), base64.StdEncoding.EncodeToString([]byte(token))} {
		if strings.Contains(text, planted) {
			return planted
		}
	}
	return ""
}

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestText(t *testing.T) {
	t.Parallel()
	const kubeconfig = "apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user:\n    token: " + word + "\n"
	secret := "kind: Secret\napiVersion: v1\ndata:\n  any: " + b64(word) + "\n  other: >-\n    " + word +
		"\ntype: Opaque\n"
	for name, text := range map[string]string{
		"a JSON Web Token":           "renewed " + token + " for a week",
		"a header":                   "GET / Authorization: Bearer " + word,
		"a header as JSON":           `{"headers":{"Authorization":"Basic ` + word + `"}}`,
		"a URL":                      "Get \"https://user:" + word + "@registry.example.com/v2/\": refused",
		"a token as user of a URL":   "https://" + word + "@git.example.com/x",
		"a query":                    "https://example.com/?a=b&token=" + word + "&c=d",
		"a flag":                     "run --db-password=" + word + " --verbose",
		"a log line":                 `{"level":"info","msg":"x","apiKey":"` + word + `","n":1}`,
		"a log line in a log line":   `{"msg":"{\"password\":\"` + word + `\"}"}`,
		"a private key":              "read\n" + key + "\nend",
		"a private key on one line":  strings.ReplaceAll(key, "\n", `\n`),
		"a private key that is cut":  key[:60],
		"a kubeconfig":               kubeconfig,
		"a kubeconfig in base64":     "value: " + b64(kubeconfig),
		"a private key in base64":    b64(key),
		"a token in base64":          b64(token),
		"a Secret as JSON":           `sent {"kind":"Secret","data":{"any":"` + b64(word) + `"}}`,
		"a Secret as escaped JSON":   `{"msg":"{\"kind\": \"Secret\",\"stringData\":{\"any\":\"` + word + `\"}}"}`,
		"a Secret as YAML":           secret,
		"a Secret as YAML, indented": "list:\n" + indent(secret),
		"a Secret, kind last":        "data:\n  any: " + word + "\nkind: Secret\n",
		"a registry's credentials":   b64(`{"auths":{"r.example.com":{"auth":"` + b64("u:"+word) + `"}}}`),
		"a PagerDuty key":            "routing_key: " + word,
		"a token of GitHub":          "ghp_planted0123456789planted",
		"a webhook of Slack":         "https://hooks.slack.com/services/T0/B0/planted",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := redact.Text(text)
			if left := leaks(got); left != "" {
				t.Errorf("%q is left in\n%s", left, got)
			}
			if !strings.Contains(got, redact.Removed) {
				t.Errorf("it does not say that something was removed:\n%s", got)
			}
		})
	}
}

func indent(text string) string {
	return "- " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

// TestTextKeepsWhatHelps: what a reader needs is left as it is.
func TestTextKeepsWhatHelps(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"level":"info","ts":"2026-01-01T12:00:00Z","msg":"Cluster is online","cluster":"prod-1"}`,
		"image registry.example.com/x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"secretName: bellwether-hub-kubeconfig",
		"the Secret fleet/pagerduty does not exist",
		"system:serviceaccount:bellwether-system:bellwether-hub cannot list resource \"operatorinstalls\"",
		"bellwether_fleet_clusters{state=\"Online\"} 3",
	} {
		if got := redact.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	manifest := `{"kind":"Secret","metadata":{"name":"s"},"data":{"any":"` + b64(word) + `"}}`
	for name, text := range map[string]string{
		"a Secret":             manifest,
		"a ConfigMap":          `{"kind":"ConfigMap","data":{"any":"` + word + `"},"binaryData":{"b":"` + b64(word) + `"}}`,
		"last applied":         `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + word + `"}}}`,
		"another annotation":   `{"metadata":{"annotations":{"example.com/copy":` + quote(manifest) + `}}}`,
		"a list of Secrets":    `{"items":[` + manifest + `]}`,
		"a step of a plan":     `{"status":{"plan":[{"resource":{"kind":"Secret","manifest":` + quote(manifest) + `}}]}}`,
		"the environment":      `{"env":[{"name":"HARMLESS","value":"` + word + `"},{"name":"X","valueFrom":{}}]}`,
		"a named value":        `{"headers":[{"name":"X-Auth-Token","value":"` + word + `"}]}`,
		"a field":              `{"spec":{"routingKey":"` + word + `"}}`,
		"an argument":          `{"args":["--password=` + word + `","-v"]}`,
		"a message":            `{"status":{"message":"401 for https://u:` + word + `@example.com"}}`,
		"managed fields":       `{"metadata":{"managedFields":[{"manager":"` + word + `"}]}}`,
		"a kubeconfig":         `{"spec":{"kubeconfig":"` + word + `"}}`,
		"JSON in JSON in JSON": `{"a":` + quote(`{"b":`+quote(manifest)+`}`) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var object map[string]any
			if err := json.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(redact.Object(object))
			if err != nil {
				t.Fatal(err)
			}
			if left := leaks(string(got)); left != "" {
				t.Errorf("%q is left in\n%s", left, got)
			}
		})
	}
}

func quote(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

// TestObjectKeepsWhatHelps: references to Secrets are no secrets, and the object itself is not changed.
func TestObjectKeepsWhatHelps(t *testing.T) {
	t.Parallel()
	const text = `{"kind":"PagingPolicy","spec":{"automountToken":true,"env":[{"name":"A","valueFrom":{"secretKeyRef":` +
		`{"key":"k","name":"s"}}}],"routingKeySecretRef":{"key":"routing","name":"pagerduty"},"secretName":"s"}}`
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(redact.Object(object))
	if err != nil || string(got) != text {
		t.Errorf("%s, %v", got, err)
	}
}

// FuzzText plants a token in any text.
func FuzzText(f *testing.F) {
	f.Add("a ", " b")
	f.Add(`{"kind":"`, `"}`)
	f.Add("-----BEGIN PRIVATE KEY-----", "kind: Secret\ndata:\n  a: b")
	f.Fuzz(func(t *testing.T, before, after string) {
		untrustedtest.Bound(t, len(before)+len(after), 8<<20, 1000, func() {
			got := redact.Text(before + " " + token + " " + after)
			if strings.Contains(got, "c2lnbmF0dXJlLXBsYW50ZWQ") {
				t.Errorf("the token is left in %q", got)
			}
		})
	})
}
