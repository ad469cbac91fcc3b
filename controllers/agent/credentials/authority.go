// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	"k8s.io/client-go/rest"
)

// authorityBundles is the input for the choice of the certificates that verify the
// hub. All bundles are in PEM.
type authorityBundles struct {
	current, published []byte
	// adopted is true if the agent got the current certificates from the hub.
	adopted bool
}

// chooseAuthority returns the bundle that the agent must use from now on; nil if it keeps the current bundle.
//
//	current certificates are not the hub's own (for example of a proxy) ─▶ current
//	published certificates verify the hub ───────────────────────────────▶ published
//	published certificates do not verify the hub (yet) ──────────────────▶ published and current
//
// Certificates are the hub's own if the hub published all of them at some time. The agent records this by storing
// the certificates, even if they are the kubeconfig's: it might see only the end of a rotation of certificates.
func chooseAuthority(a authorityBundles, verify func(bundle []byte) error) ([]byte, error) {
	published, err := parseBundle(a.published)
	if err != nil {
		return nil, fmt.Errorf("read the certificates that the hub publishes: %w", err)
	}
	current, err := parseBundle(a.current)
	if err != nil {
		return nil, fmt.Errorf("read the certificates in use: %w", err)
	}
	if !a.adopted && !containsAll(published, current) {
		return nil, nil
	}
	next := encodeBundle(published)
	if verify(next) != nil {
		next = encodeBundle(append(published, current...))
		if err := verify(next); err != nil {
			return nil, fmt.Errorf("verify the hub: %w", err)
		}
	}
	if a.adopted && bytes.Equal(next, encodeBundle(current)) {
		return nil, nil
	}
	return next, nil
}

// containsAll reports whether all contains each certificate of subset.
func containsAll(all, subset [][]byte) bool {
	for _, certificate := range subset {
		if !slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(certificate, other) }) {
			return false
		}
	}
	return true
}

var errNoCertificate = errors.New("no certificate")

// parseBundle returns the certificates of a PEM bundle, each encoded in DER. It is an
// error if the bundle has none.
func parseBundle(bundle []byte) ([][]byte, error) {
	var out [][]byte
	for {
		var block *pem.Block
		block, bundle = pem.Decode(bundle)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("parse certificate: %w", err)
		}
		out = append(out, block.Bytes)
	}
	if len(out) == 0 {
		return nil, errNoCertificate
	}
	return out, nil
}

// encodeBundle returns the certificates as a PEM bundle, sorted and without duplicates.
func encodeBundle(certificates [][]byte) []byte {
	sorted := slices.Clone(certificates)
	slices.SortFunc(sorted, bytes.Compare)
	var out bytes.Buffer
	for _, der := range slices.CompactFunc(sorted, bytes.Equal) {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}) // a write to a buffer cannot fail
	}
	return out.Bytes()
}

// Verify opens a new connection to a server. It returns an error unless a certificate of
// the bundle signed the server's certificate. The content of the response does not matter,
// so no credentials are sent.
func Verify(ctx context.Context, server *rest.Config, bundle []byte) error {
	config := rest.AnonymousClientConfig(server)
	config.CAFile, config.CAData = "", bundle
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return fmt.Errorf("read certificates: %w", err)
	}
	proxy := http.ProxyFromEnvironment
	if config.Proxy != nil {
		proxy = config.Proxy
	}
	httpClient := &http.Client{Transport: &http.Transport{TLSClientConfig: tls, Proxy: proxy, DialContext: config.Dial,
		DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a redirect can lead to another server
	}}
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("read the server's address: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, address.JoinPath("version").String(), nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	_ = response.Body.Close()
	return nil
}

// replaceFile writes a file atomically: readers see either the whole new
// content or the old content.
func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
