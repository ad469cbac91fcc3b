// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
)

func mustResolve(t *testing.T, s oci.Source) string {
	t.Helper()
	digest, err := oci.NewClient(oci.Options{}).Resolve(t.Context(), s)
	if err != nil {
		t.Fatalf("resolve %s: %v", s, err)
	}
	return digest
}

// startRegistry runs a registry until the test ends and returns its address.
func startRegistry(t *testing.T) string {
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

func TestCatalogPushPrintsTheDigest(t *testing.T) {
	w, dir := newWorld(), catalogDir(t)
	ref := net.JoinHostPort("127.0.0.1", strings.Split(startRegistry(t), ":")[1]) + "/catalogs/main:latest"
	pushed := w.run(t, "catalog", "push", dir, ref)
	if pushed.code != exitOK {
		t.Fatal(pushed.err)
	}
	if want := mustResolve(t, oci.Source{Image: ref}) + "\n"; pushed.out != want {
		t.Errorf("it printed %q, and the registry has %q", pushed.out, want)
	}
	if again := w.run(t, "catalog", "push", dir, ref); again.out != pushed.out {
		t.Errorf("the same files gave %q and then %q", pushed.out, again.out)
	}
	if got := w.run(t, "catalog", "show", ref); !strings.Contains(got.out, "stable (1.1.0)") {
		t.Errorf("what was pushed shows as\n%s%s", got.out, got.err)
	}
}
