// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hub is an API server that issues tokens for ten minutes by a separate clock, accepts tokens
// that have not expired, and publishes certificates.
type hub struct {
	*httptest.Server
	mu sync.Mutex
	// now is the hub's clock.
	now time.Time
	// issued is when each token was issued.
	issued map[string]time.Time
	// refused has the hub refuse to issue tokens.
	refused   bool
	published []byte
}

const life = 10 * time.Minute

func startHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), issued: map[string]time.Time{}}
	h.Server = httptest.NewTLSServer(h)
	h.published = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	t.Cleanup(h.Close)
	return h
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	at, known := h.issued[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	switch {
	case !known || h.now.After(at.Add(life)):
		h.refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	case strings.HasSuffix(r.URL.Path, "/api/v1/namespaces/bellwether-c/serviceaccounts/bellwether-agent/token"):
		if h.refused {
			h.refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
			return
		}
		seconds := int64(life / time.Second)
		_ = json.NewEncoder(w).Encode(authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
			Spec:     authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
			Status: authenticationv1.TokenRequestStatus{Token: h.issue("second"),
				ExpirationTimestamp: metav1.NewTime(h.now.Add(life))},
		})
	case strings.HasSuffix(r.URL.Path, "/configmaps/kube-root-ca.crt"):
		_ = json.NewEncoder(w).Encode(corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			Data: map[string]string{"ca.crt": string(h.published)}})
	default:
		h.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func (h *hub) refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: metav1.StatusFailure, Reason: reason, Code: int32(code)})
}

// issue makes a token of the account with a UID. The caller has locked the hub, if it serves.
func (h *hub) issue(uid string) string {
	payload := fmt.Sprintf(`{"iat":%d,"exp":%d,"jti":%d,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, h.now.Unix(),
		h.now.Add(life).Unix(), len(h.issued), uid)
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
	h.issued[token] = h.now
	return token
}

func (h *hub) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func (h *hub) tokens() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.issued)
}

// join writes a kubeconfig with a token, as `fleet join` does.
func (h *hub) join(t *testing.T, path string, authority []byte) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: h.URL, CertificateAuthorityData: authority}
	config.AuthInfos["agent"] = &clientcmdapi.AuthInfo{Token: h.issue("first")}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "agent"}
	config.CurrentContext = "hub"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, store Store) *Credentials {
	t.Helper()
	c, err := Load(t.Context(), store, t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func keep(t *testing.T, c *Credentials, store Store) *Keeper {
	t.Helper()
	config := c.Config()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	reach, err := client.New(config, client.Options{Scheme: scheme, HTTPClient: transport, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return &Keeper{Credentials: c, Store: store, Hub: reach, Namespace: "bellwether-c", Lifetime: time.Hour,
		Failed: func(error) {}, Now: time.Now}
}

func TestRenewedCredentialsSurviveARestart(t *testing.T) {
	h := startHub(t)
	store := Files{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	h.join(t, store.Kubeconfig, h.published)
	c := load(t, store)
	if got := c.Account(); got != "first" {
		t.Errorf("account %q", got)
	}
	next, err := keep(t, c, store).renewToken(t.Context())
	if err != nil || next != life/renewalDivisor {
		t.Fatalf("renewed again after %s (%v), want %s: the hub's answer counts", next, err, life/renewalDivisor)
	}
	if got := c.Account(); got != "second" {
		t.Errorf("account %q", got)
	}
	// The token of the kubeconfig ends; the renewed one does so later.
	h.pass(life / 2)
	if _, err := keep(t, c, store).renewToken(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.pass(life/2 + time.Second)
	again := load(t, store)
	if _, err := keep(t, again, store).renewToken(t.Context()); err != nil {
		t.Fatalf("after a restart: %v", err)
	}
	// Away for longer than a token lives.
	h.pass(life + time.Second)
	locked := load(t, store)
	if _, err := keep(t, locked, store).renewToken(t.Context()); !apierrors.IsUnauthorized(err) {
		t.Fatalf("an expired token: %v", err)
	}
	h.join(t, store.Kubeconfig, h.published)
	joined := load(t, store)
	if got := joined.Account(); got != "first" {
		t.Errorf("the kubeconfig of a later join is not used: account %q", got)
	}
	if _, err := keep(t, joined, store).renewToken(t.Context()); err != nil {
		t.Fatalf("joined again: %v", err)
	}
}

// TestWrongClocks has the agent's clock off from the hub's, or set while it waits.
func TestWrongClocks(t *testing.T) {
	const day = 24 * time.Hour
	start := time.Now()
	for name, test := range map[string]struct {
		now   time.Time
		least time.Duration
	}{
		"nothing happens":                      {start.Add(time.Minute), time.Minute},
		"a clock without a monotonic one":      {start.Round(0).Add(time.Minute), time.Minute},
		"set forward by a day, or was asleep":  {start.Round(0).Add(day), day},
		"the wall clock stays, time passes on": {start.Add(day), day},
	} {
		t.Run(name, func(t *testing.T) {
			if got := computeElapsed(start, test.now); got < test.least {
				t.Errorf("elapsed %s, want %s at least", got, test.least)
			}
		})
	}
	for _, off := range []time.Duration{-day, 0, day} {
		t.Run("off by "+off.String(), func(t *testing.T) {
			h := startHub(t)
			store := Files{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
			h.join(t, store.Kubeconfig, h.published)
			k := keep(t, load(t, store), store)
			k.Now = func() time.Time { return h.now.Add(off) }
			next, err := k.renewToken(t.Context())
			if err != nil || next != life/renewalDivisor {
				t.Errorf("renewed again after %s (%v), want %s", next, err, life/renewalDivisor)
			}
		})
	}
}

// TestRenewalIsRetried has the hub refuse to issue tokens, and then do so.
func TestRenewalIsRetried(t *testing.T) {
	h := startHub(t)
	store := Files{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	h.join(t, store.Kubeconfig, h.published)
	h.refused = true
	c := load(t, store)
	k := keep(t, c, store)
	failures := make(chan error, 1)
	k.Failed = func(err error) {
		select {
		case failures <- err:
		default:
		}
	}
	// Each call of the clock returns a time that is ten minutes later, so that
	// no renewal needs to wait.
	var mu sync.Mutex
	now := time.Now()
	k.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(10 * time.Minute)
		return now
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.Start(ctx) }()
	if err := <-failures; !strings.Contains(err.Error(), "renew the token for the hub") {
		t.Errorf("failure: %v", err)
	}
	h.mu.Lock()
	h.refused = false
	h.mu.Unlock()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(3 * time.Minute); h.tokens() < 5; { // the renewals continue
		select {
		case <-deadline:
			t.Fatal("no further tokens are issued")
		case <-ticker.C:
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

func TestOtherCredentialsAreLeftAlone(t *testing.T) {
	h := startHub(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: h.URL, CertificateAuthorityData: h.published}
	config.AuthInfos["agent"] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(t.TempDir(), "token")}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "agent"}
	config.CurrentContext = "hub"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config.AuthInfos["agent"].TokenFile, []byte("external"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := load(t, Files{Kubeconfig: path})
	if got := c.Config(); got.BearerTokenFile == "" || c.renewable || len(got.CAData) == 0 {
		t.Errorf("token file %q, renewable %t", got.BearerTokenFile, c.renewable)
	}
	if err := (&Keeper{Credentials: c}).Start(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAuthorityIsFollowed plays the rotation of a hub's certificate authority.
func TestAuthorityIsFollowed(t *testing.T) {
	h := startHub(t)
	old, fresh := h.published, newCertificate(t)
	store := Files{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	h.join(t, store.Kubeconfig, old)
	c := load(t, store)
	k := keep(t, c, store)
	for _, step := range []struct {
		name      string
		published []byte
		holds     [][]byte
	}{
		{"published as joined", old, [][]byte{old}},
		{"both", append(append([]byte{}, old...), fresh...), [][]byte{old, fresh}},
		{"the new one alone, while the old one still signs", fresh, [][]byte{old, fresh}},
	} {
		t.Run(step.name, func(t *testing.T) {
			h.published = step.published
			if _, err := k.followAuthority(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(c.authorityFile)
			if err != nil {
				t.Fatal(err)
			}
			if want := bundle(t, step.holds...); string(got) != want {
				t.Errorf("certificates\n%s\nwant\n%s", got, want)
			}
			again, err := os.ReadFile(load(t, store).authorityFile)
			if err != nil || string(again) != string(got) {
				t.Errorf("after a restart (%v):\n%s", err, again)
			}
		})
	}
}

func TestChooseAuthority(t *testing.T) {
	a, b, proxy := newCertificate(t), newCertificate(t), newCertificate(t)
	both := []byte(bundle(t, a, b))
	signedBy := func(one []byte) func([]byte) error {
		return func(bundle []byte) error {
			if !strings.Contains(string(bundle), string(one)) {
				return errors.New("unknown authority")
			}
			return nil
		}
	}
	for name, test := range map[string]struct {
		authorityBundles
		signer []byte
		want   []byte
		fails  bool
	}{
		"a proxy's is not replaced":         {authorityBundles{current: proxy, published: a}, proxy, nil, false},
		"nor one of a proxy and of the hub": {authorityBundles{current: both, published: a}, a, nil, false},
		"the same is remembered":            {authorityBundles{current: a, published: a}, a, a, false},
		"the same, and is known": {authorityBundles{current: a, published: a, adopted: true}, a,
			nil, false},
		"the overlap": {authorityBundles{current: a, published: both, adopted: true}, a,
			both, false},
		"the end of it": {authorityBundles{current: both, published: b, adopted: true}, b,
			b, false},
		"the end, but the old one signs": {authorityBundles{current: a, published: b, adopted: true}, a,
			both, false},
		"no answer": {authorityBundles{current: a, published: both, adopted: true},
			proxy, nil, true},
		"nothing is published":                   {authorityBundles{current: a, adopted: true}, a, nil, true},
		"what is published is not a certificate": {authorityBundles{current: a, published: []byte("x")}, a, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chooseAuthority(test.authorityBundles, signedBy(test.signer))
			if string(got) != string(test.want) || (err != nil) != test.fails {
				t.Errorf("%s (%v), want %s", got, err, test.want)
			}
		})
	}
}

// TestVerify makes connections that are verified by each of two certificates.
func TestVerify(t *testing.T) {
	h := startHub(t)
	if err := Verify(t.Context(), &rest.Config{Host: h.URL}, h.published); err != nil {
		t.Errorf("its own certificate: %v", err)
	}
	var unknown *tls.CertificateVerificationError
	if err := Verify(t.Context(), &rest.Config{Host: h.URL}, newCertificate(t)); !errors.As(err, &unknown) {
		t.Errorf("another certificate: %v", err)
	}
}

func TestRubbishIsNoCredential(t *testing.T) {
	h := startHub(t)
	store := Files{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if _, err := Load(t.Context(), store, t.TempDir(), "test"); err == nil {
		t.Error("no file is no error")
	}
	h.join(t, store.Kubeconfig, h.published)
	if err := store.Save(t.Context(), []byte("{half")); err != nil {
		t.Fatal(err)
	}
	if got := load(t, store).Account(); got != "first" {
		t.Errorf("account %q: what cannot be read stands in the way of the kubeconfig", got)
	}
	for _, token := range []string{"", "a", "a.b.c", "a.e30.c"} {
		if claims, err := parseToken(token); err == nil && claims.accountUID() != "" {
			t.Errorf("token %q has an account", token)
		}
	}
}

func bundle(t *testing.T, bundles ...[]byte) string {
	t.Helper()
	var all [][]byte
	for _, one := range bundles {
		der, err := parseBundle(one)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, der...)
	}
	return string(encodeBundle(all))
}

// newCertificate returns a self-signed one.
func newCertificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
