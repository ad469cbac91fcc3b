// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

const secretText = "hunter2-of-an-internal-host"

// TestErrorsTellNothingOfInternalHosts: the author of an OperatorCatalog chooses the host to which the hub connects,
// and can read the errors in its status. Errors must contain the kind of failure, and no text of the host.
func TestErrorsTellNothingOfInternalHosts(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Internal", secretText)
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, secretText)
		}
	}
	header := func(code int, name, value string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(name, value)
			w.WriteHeader(code)
			_, _ = fmt.Fprintf(w, "{%q: %q}", secretText, secretText)
		}
	}
	elsewhere := "http://" + secretText + ".invalid/" + secretText + "?token=" + secretText
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   error
		text   string
	}{
		"an error page":  {status(http.StatusInternalServerError), oci.ErrFailed, "500 Internal Server Error"},
		"a page":         {status(http.StatusOK), oci.ErrFailed, "no manifest"},
		"not found":      {status(http.StatusNotFound), oci.ErrNotFound, "404 Not Found"},
		"no access":      {status(http.StatusForbidden), oci.ErrDenied, "403 Forbidden"},
		"a media type":   {header(http.StatusOK, "Content-Type", secretText), oci.ErrFailed, "no manifest"},
		"another digest": {header(http.StatusOK, "Docker-Content-Digest", secretText), oci.ErrFailed, "no manifest"},
		"a redirect":     {header(http.StatusTemporaryRedirect, "Location", elsewhere), oci.ErrUnreachable, "registry"},
		"a token server": {header(http.StatusUnauthorized, "WWW-Authenticate", `Bearer realm="`+elsewhere+`"`),
			oci.ErrUnreachable, "registry"},
		"another scheme": {header(http.StatusUnauthorized, "WWW-Authenticate", secretText+" realm=x"),
			oci.ErrDenied, "401 Unauthorized"},
		"messages of a registry": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"errors": [{"code": "DENIED", "message": %q}, {"code": %q}]}`, secretText,
				secretText)
		}, oci.ErrDenied, "403 Forbidden (DENIED)"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.answer)
			defer server.Close()
			host := strings.TrimPrefix(server.URL, "http://")
			c := oci.NewClient(oci.Options{Backoff: time.Millisecond})
			_, err := c.Resolve(t.Context(), oci.Source{Image: host + "/team/catalog:v1"})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want %v with %q", err, test.want, test.text)
			}
			checkSilent(t, err, secretText, host+"/v2")
		})
	}
}

// TestRedirectsTellNothing: a registry can redirect the hub to any host for a blob. The error must not contain the
// host's content or its digest.
func TestRedirectsTellNothing(t *testing.T) {
	internal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, secretText)
	}))
	defer internal.Close()
	r := newRegistry(t)
	digest := push(t, catalogDir(t), r.image("v1"))
	for kind, passed := range map[string]int{"configuration": 0, "layer": 1} {
		t.Run(kind, func(t *testing.T) {
			var blobs atomic.Int32
			r.onRequest(func(w http.ResponseWriter, req *http.Request) bool {
				if !strings.Contains(req.URL.Path, "/blobs/") {
					return false
				}
				if int(blobs.Add(1)) <= passed {
					return false
				}
				http.Redirect(w, req, internal.URL+"/"+secretText, http.StatusTemporaryRedirect)
				return true
			})
			defer r.onRequest(nil)
			c := oci.NewClient(oci.Options{Backoff: time.Millisecond})
			_, err := summary(t.Context(), c, oci.Source{Image: r.image("v1")}, digest)
			sum := sha256.Sum256([]byte(secretText))
			checkSilent(t, err, secretText, hex.EncodeToString(sum[:]), strings.TrimPrefix(internal.URL, "http://"))
			if int(blobs.Load()) <= passed {
				t.Errorf("%d blobs were asked for", blobs.Load())
			}
		})
	}
}

// TestDetail checks that the response is available for a log, up to a limit.
func TestDetail(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, secretText, strings.Repeat("ä", 5000))
	}))
	defer server.Close()
	source := oci.Source{Image: strings.TrimPrefix(server.URL, "http://") + "/team/catalog:v1"}
	_, err := oci.NewClient(oci.Options{}).Resolve(t.Context(), source)
	checkSilent(t, err, secretText)
	if got := oci.Detail(err); !strings.Contains(got, secretText) || len(got) > 1024 || !utf8.ValidString(got) {
		t.Errorf("detail of %d bytes: %s", len(got), got)
	}
	if got := oci.Detail(oci.ErrNotFound); got != "" {
		t.Errorf("an error of our own has the detail %q", got)
	}
}

// checkSilent fails if an error contains the response of the host.
func checkSilent(t *testing.T, err error, secrets ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, secret := range secrets {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells %q: %v", secret, err)
		}
	}
}
