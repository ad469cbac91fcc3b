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

// authority is what there is to decide by which certificates the hub is verified. All are bundles in PEM.
type authority struct {
	current, published []byte
	// adopted tells whether the current ones came from the hub.
	adopted bool
}

// chooseAuthority returns the certificates to use from now on; nil for those in use.
//
//	not the hub's own, such as those of a proxy ─▶ stay
//	the published ones verify the hub ───────────▶ those alone
//	they do not (yet) ───────────────────────────▶ those and the current ones
//
// Certificates are the hub's own if it published all of them once. That is remembered by storing them, even if they
// are those of the kubeconfig: an agent that sees only the end of a rotation has to know it.
func chooseAuthority(a authority, verify func(bundle []byte) error) ([]byte, error) {
	published, err := certificates(a.published)
	if err != nil {
		return nil, fmt.Errorf("read the certificates that the hub publishes: %w", err)
	}
	current, err := certificates(a.current)
	if err != nil {
		return nil, fmt.Errorf("read the certificates in use: %w", err)
	}
	if !a.adopted && !containsAll(published, current) {
		return nil, nil
	}
	next := encode(published)
	if verify(next) != nil {
		next = encode(append(published, current...))
		if err := verify(next); err != nil {
			return nil, fmt.Errorf("verify the hub: %w", err)
		}
	}
	if a.adopted && bytes.Equal(next, encode(current)) {
		return nil, nil
	}
	return next, nil
}

func containsAll(all, some [][]byte) bool {
	for _, one := range some {
		if !slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(one, other) }) {
			return false
		}
	}
	return true
}

var errNoCertificate = errors.New("no certificate")

// certificates returns the certificates of a bundle, each encoded in DER.
func certificates(bundle []byte) ([][]byte, error) {
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

// encode returns the bundle of certificates, sorted and each one once.
func encode(certificates [][]byte) []byte {
	sorted := slices.Clone(certificates)
	slices.SortFunc(sorted, bytes.Compare)
	var out bytes.Buffer
	for _, der := range slices.CompactFunc(sorted, bytes.Equal) {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}) // a buffer takes all
	}
	return out.Bytes()
}

// Verify connects to a server anew and fails unless its certificate is signed by one of the bundle's. What the server
// answers does not matter, so no credentials are sent.
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
	once := &http.Client{Transport: &http.Transport{TLSClientConfig: tls, Proxy: proxy, DialContext: config.Dial,
		DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // another server
	}}
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("read the server's address: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, address.JoinPath("version").String(), nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	response, err := once.Do(request)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	_ = response.Body.Close()
	return nil
}

// replaceFile writes a file such that readers see all of it or what was there before.
func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
