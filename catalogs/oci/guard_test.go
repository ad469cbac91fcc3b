// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"net/http"
	"testing"
)

type always struct{}

func (always) RoundTrip(*http.Request) (*http.Response, error) { return &http.Response{}, nil }

// TestNoCredentialsOverPlainHTTP checks that no credentials are sent to the registry, to the target of a redirect, or
// to the server of its tokens.
func TestNoCredentialsOverPlainHTTP(t *testing.T) {
	for url, want := range map[string]error{
		"http://registry.example.com/v2/": ErrDenied, "http://10.0.0.1:5000/v2/": ErrDenied,
		"http://localhost.example.com/v2/": ErrDenied, "https://registry.example.com/v2/": nil,
		"http://127.0.0.1:5000/v2/": nil, "http://localhost:5000/v2/": nil, "http://[::1]:5000/v2/": nil,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		send := func() error {
			resp, err := credentialGuard{always{}}.RoundTrip(req)
			if resp != nil && resp.Body != nil {
				_ = resp.Body.Close()
			}
			return err
		}
		if err := send(); err != nil {
			t.Errorf("%s without credentials: %v", url, err)
		}
		req.Header.Set("Authorization", "Basic YTpi")
		if err := send(); !errors.Is(err, want) {
			t.Errorf("%s with credentials: %v, want %v", url, err, want)
		}
	}
}

// TestMetadataAddressesAreRefused: the metadata service is not a registry, but a registry can redirect to it.
func TestMetadataAddressesAreRefused(t *testing.T) {
	for address, want := range map[string]error{
		"169.254.169.254:80": ErrDenied, "[::ffff:169.254.169.254]:80": ErrDenied, "[fe80::1%eth0]:443": ErrDenied,
		"[fd00:ec2::254]:80": ErrDenied, "100.100.100.200:80": ErrDenied, "10.0.0.1:443": nil, "127.0.0.1:5000": nil,
		"[fd00::1]:443": nil, "/run/registry.sock": nil,
	} {
		if err := refuseMetadata("tcp", address, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
	c := NewClient(Options{Backoff: 1})
	_, err := c.Resolve(t.Context(), Source{Image: "169.254.169.254/team/catalog:v1", Access: Access{Insecure: true}})
	if !errors.Is(err, ErrDenied) {
		t.Errorf("a catalog at a metadata address: %v", err)
	}
}
