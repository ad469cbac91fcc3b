// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"net"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

func TestCatalogPushPrintsTheDigest(t *testing.T) {
	h, dir := clitest.NewHub(), clitest.WriteCatalog(t)
	ref := net.JoinHostPort("127.0.0.1", strings.Split(clitest.StartRegistry(t), ":")[1]) + "/catalogs/main:latest"
	pushed := h.Run(t, "catalog", "push", dir, ref)
	if pushed.Code != exit.OK {
		t.Fatal(pushed.Err)
	}
	if want := clitest.MustResolve(t, oci.Source{Image: ref}) + "\n"; pushed.Out != want {
		t.Errorf("it printed %q, and the registry has %q", pushed.Out, want)
	}
	if again := h.Run(t, "catalog", "push", dir, ref); again.Out != pushed.Out {
		t.Errorf("the same files gave %q and then %q", pushed.Out, again.Out)
	}
	if got := h.Run(t, "catalog", "show", ref); !strings.Contains(got.Out, "stable (1.1.0)") {
		t.Errorf("what was pushed shows as\n%s%s", got.Out, got.Err)
	}
}

func TestCatalogShow(t *testing.T) {
	h, dir := clitest.NewHub(), clitest.WriteCatalog(t)
	if got := h.Run(t, "catalog", "show", dir, "echo-operator"); !strings.Contains(got.Out,
		"1.1.0 (head)   echo-operator.v1.1.0   image     1.0.0") {
		t.Errorf("no upgrade graph in\n%s%s", got.Out, got.Err)
	}
	if got := h.Run(t, "catalog", "show", dir, "-o", "yaml"); !strings.Contains(got.Out, "defaultChannel: stable") {
		t.Errorf("no default channel in\n%s%s", got.Out, got.Err)
	}
	if got := h.Run(t, "catalog", "show", t.TempDir()); got.Code != exit.Error || !strings.Contains(got.Err, "Hint:") {
		t.Errorf("an empty folder: exit code %d, %s", got.Code, got.Err)
	}
}
