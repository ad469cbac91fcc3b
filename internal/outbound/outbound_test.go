// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestMetadataInAllSpellings checks that metadata addresses are detected in every notation, also inside IPv6 addresses
// of translators.
func TestMetadataInAllSpellings(t *testing.T) {
	for address, want := range map[string]bool{
		"169.254.169.254": true, "169.254.170.2": true, "::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true,
		"64:ff9b:1::a9fe:a9fe": true, "2002:a9fe:a9fe::1": true, "::169.254.169.254": true, "fe80::a9fe:a9fe%eth0": true,
		"fd00:ec2::254": true, "fd20:ce::254": true, "192.0.0.192": true, "64:ff9b::192.0.0.192": true,
		"168.63.129.16": true, "::ffff:168.63.129.16": true, "100.100.100.200": true, "2002:6464:64c8::": true,
		"127.0.0.1": false, "::1": false, "0.0.0.0": false, "10.0.0.1": false, "192.168.1.1": false, "fd00::1": false,
		"192.0.0.191": false, "168.63.129.17": false, "93.184.216.34": false, "2606:2800:220:1::1": false,
	} {
		a := netip.MustParseAddr(address)
		if got := IsMetadata(a); got != want {
			t.Errorf("%s is metadata: %t", address, got)
		}
		if want && !IsPrivate(a) {
			t.Errorf("%s is not private", address)
		}
		err := RefuseMetadata("tcp", netip.AddrPortFrom(a, 80).String(), nil)
		if errors.Is(err, ErrMetadata) != want {
			t.Errorf("connect to %s: %v", address, err)
		}
	}
	if err := RefuseMetadata("unix", "/run/socket", nil); err != nil {
		t.Errorf("a socket: %v", err)
	}
}

// TestClient checks that a client connects to no metadata service, sends its token only to the server, and reads no
// more than the limit.
func TestClient(t *testing.T) {
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = io.Copy(w, strings.NewReader(strings.Repeat("x", 2000)))
		case "/small":
			_, _ = io.WriteString(w, "answer")
		default:
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	c := NewClient(NewTransport(), 1000)
	get := func(address string) (string, error) {
		response, err := c.Post(address, "text/plain", strings.NewReader("key"))
		if err != nil {
			return "", err
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
	if text, err := get(server.URL + "/small"); err != nil || text != "answer" {
		t.Errorf("an answer: %q, %v", text, err)
	}
	var large *http.MaxBytesError
	if _, err := get(server.URL + "/large"); !errors.As(err, &large) {
		t.Errorf("a large answer: %v", err)
	}
	if _, err := get(server.URL + "/elsewhere"); !errors.Is(err, ErrRedirect) || asked > 0 {
		t.Errorf("a redirect: %v, asked %d times", err, asked)
	}
	if _, err := get("http://169.254.169.254/latest"); !errors.Is(err, ErrMetadata) {
		t.Errorf("metadata: %v", err)
	}
}
