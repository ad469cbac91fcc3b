// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
)

// StartLocalRegistry starts a registry that runs until the test ends, and returns its address with the host 127.0.0.1.
func StartLocalRegistry(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strings.Split(StartRegistry(t), ":")[1])
}

// MustResolve returns the digest of a source, and fails the test if it cannot be resolved.
func MustResolve(t *testing.T, s oci.Source) string {
	t.Helper()
	digest, err := oci.NewClient(oci.Options{}).Resolve(t.Context(), s)
	if err != nil {
		t.Fatalf("resolve %s: %v", s, err)
	}
	return digest
}

// StartRegistry runs a registry until the test ends and returns its address.
func StartRegistry(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- registry.Serve(ctx, registry.Options{Ready: func(addr string) { ready <- addr }}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the registry ended with %v", err)
		}
	})
	select {
	case addr := <-ready:
		return addr
	case err := <-ended:
		ended <- nil
		t.Fatalf("the registry did not start: %v", err)
		return ""
	}
}

const catalogText = `---
schema: olm.package
name: echo-operator
defaultChannel: stable
---
schema: olm.channel
package: echo-operator
name: stable
entries:
- name: echo-operator.v1.0.0
- name: echo-operator.v1.1.0
  replaces: echo-operator.v1.0.0
---
schema: olm.bundle
package: echo-operator
name: echo-operator.v1.0.0
image: registry.example.com/echo:1.0.0
properties:
- {type: olm.package, value: {packageName: echo-operator, version: 1.0.0}}
---
schema: olm.bundle
package: echo-operator
name: echo-operator.v1.1.0
image: registry.example.com/echo:1.1.0
properties:
- {type: olm.package, value: {packageName: echo-operator, version: 1.1.0}}
`

// WriteCatalog returns a new folder with a catalog of two versions.
func WriteCatalog(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), []byte(catalogText), 0o600); err != nil {
		t.Fatalf("write catalog: %v", err)
	}
	return dir
}
