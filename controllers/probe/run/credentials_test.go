// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func httpSpec(url string, probe v1alpha1.HTTPProbe) v1alpha1.EndpointProbeSpec {
	return with(specFor(url), func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &probe })
}

func TestJSONAndHeaders(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-State", "ready to serve")
		switch r.URL.Path {
		case "/broken":
			_, _ = io.WriteString(w, `{"status":`)
		case "/large":
			_, _ = fmt.Fprintf(w, `{"items":[%s1]}`, strings.Repeat("1,", 30_000))
		default:
			_, _ = io.WriteString(w, `{"status":"ok","replicas":{"ready":2}}`)
		}
	}))
	t.Cleanup(server.Close)
	header := func(name, regex string) []v1alpha1.HeaderMatch {
		return []v1alpha1.HeaderMatch{{Name: name, Regex: regex}}
	}
	for name, tc := range map[string]struct {
		path    string
		probe   v1alpha1.HTTPProbe
		want    string
		message string
	}{
		"JSON that matches": {probe: v1alpha1.HTTPProbe{JSON: `body.status == "ok" && body.replicas.ready >= 2.0`}},
		"JSON that does not": {probe: v1alpha1.HTTPProbe{JSON: `body.status == "down"`},
			want: v1alpha1.ReasonBadAnswer, message: "the expression spec.http.json is not true for the answer"},
		"a missing field": {probe: v1alpha1.HTTPProbe{JSON: `body.nothing == 1`}, want: v1alpha1.ReasonBadAnswer,
			message: "no such key: nothing"},
		"not a boolean": {probe: v1alpha1.HTTPProbe{JSON: `body.status`}, want: v1alpha1.ReasonBadAnswer},
		"broken JSON": {path: "/broken", probe: v1alpha1.HTTPProbe{JSON: `body.status == "ok"`},
			want: v1alpha1.ReasonBadAnswer, message: "unexpected end of JSON"},
		"an expression of quadratic cost": {path: "/large",
			probe: v1alpha1.HTTPProbe{JSON: `body.items.all(a, body.items.all(b, a == b))`},
			want:  v1alpha1.ReasonBadAnswer, message: "more than 500000 operations"},
		"a header that matches": {probe: v1alpha1.HTTPProbe{HeaderMatches: header("x-state", "^ready")}},
		"a header that does not": {probe: v1alpha1.HTTPProbe{HeaderMatches: header("X-State", "^down")},
			want: v1alpha1.ReasonBadAnswer},
		"a missing header": {probe: v1alpha1.HTTPProbe{HeaderMatches: header("X-Other", ".")},
			want: v1alpha1.ReasonBadAnswer},
		"a header that must not match": {probe: v1alpha1.HTTPProbe{HeaderNotMatches: header("X-State", "ready")},
			want: v1alpha1.ReasonBadAnswer},
		"a missing header that must not match": {
			probe: v1alpha1.HTTPProbe{HeaderNotMatches: header("X-Other", "ready")}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := httpSpec(server.URL+tc.path, tc.probe)
			spec.Timeout = &metav1.Duration{Duration: time.Minute} // the cost limit, not the timeout, is tested
			got := runProbe(t, nil, spec, probes.Target{})
			checkResult(t, got, tc.want, tc.message)
		})
	}
}

func TestMaxDuration(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(30 * time.Millisecond): // impatient: so long the server takes
		}
	}))
	t.Cleanup(server.Close)
	limit := func(d time.Duration) v1alpha1.EndpointProbeSpec {
		return with(specFor(server.URL), func(s *v1alpha1.EndpointProbeSpec) {
			s.MaxDuration = &metav1.Duration{Duration: d}
		})
	}
	checkResult(t, runProbe(t, nil, limit(time.Minute), probes.Target{}), "", "")
	checkResult(t, runProbe(t, nil, limit(10*time.Millisecond), probes.Target{}), v1alpha1.ReasonTooSlow,
		"longer than spec.maxDuration (10ms)")
}

// TestSecretsReachOnlyTheTarget checks that secrets are sent to the target, but
// not to the server that the target redirects to, and that they are not in the
// message of a failure, even if the server sends them back.
func TestSecretsReachOnlyTheTarget(t *testing.T) {
	const token, apiKey = "token-of-the-probe", "key-of-the-probe"
	var mu sync.Mutex
	var received []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		received = append(received, r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"))
	}))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token || r.Header.Get("X-Api-Key") != apiKey:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/redirect":
			http.Redirect(w, r, other.URL, http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	credentials := &probes.Credentials{BearerToken: token, Headers: map[string]string{"X-Api-Key": apiKey}}
	target := func(url string) probes.Target { return probes.Target{URL: url, Credentials: credentials} }

	checkResult(t, runProbe(t, nil, specFor(server.URL), target(server.URL)), "", "")
	checkResult(t, runProbe(t, nil, specFor(server.URL), probes.Target{}), v1alpha1.ReasonBadStatus, "401")
	checkResult(t, runProbe(t, nil, specFor(server.URL), target(server.URL+"/redirect")), v1alpha1.ReasonBadStatus,
		"302 Found")
	mu.Lock()
	defer mu.Unlock()
	if len(received) != 0 {
		t.Errorf("the redirect was followed, with the secrets %q", received)
	}

	echo := serveRaw(t, func(conn net.Conn) {
		readRequest(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 "+token+" "+apiKey+"\r\n\r\n")
	})
	got := runProbe(t, nil, specFor("http://"+echo), target("http://"+echo))
	checkResult(t, got, v1alpha1.ReasonProtocolError, "[redacted]")
	if strings.Contains(got.failure.Message, token) || strings.Contains(got.failure.Message, apiKey) {
		t.Errorf("the message %q has a secret", got.failure.Message)
	}
}

func clientCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

func TestClientCertificate(t *testing.T) {
	certificate, key := clientCertificate(t)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM([]byte(certificate))
	server := httptest.NewUnstartedServer(hostileHandler())
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	target := func(c probes.Credentials) probes.Target {
		return probes.Target{URL: server.URL + "/ok", Credentials: &c}
	}
	spec := specFor(server.URL + "/ok")

	checkResult(t, runProbe(t, nil, spec,
		target(probes.Credentials{CA: ca, Certificate: certificate, Key: key})), "", "")
	checkResult(t, runProbe(t, nil, spec, target(probes.Credentials{CA: ca})), v1alpha1.ReasonTLSFailed, "")
	checkResult(t, runProbe(t, nil, spec, target(probes.Credentials{Certificate: certificate, Key: key})),
		v1alpha1.ReasonTLSFailed, "")
	checkResult(t, runProbe(t, nil, spec, target(probes.Credentials{CA: ca, Certificate: certificate, Key: "no key"})),
		v1alpha1.ReasonSecretUnavailable, "cannot be used")
}
