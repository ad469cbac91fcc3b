// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package viewserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

// server is one way to serve a catalog to OLM.
type server int

const (
	// view serves one operator's view out of the catalog.
	view server = iota
	// whole serves the whole catalog by the same code.
	whole
	// opm serves the whole catalog, from the folder alone.
	opm
	// opmCached is opm with a cache that was built before, as catalog images have it.
	opmCached
)

var servers = []server{view, whole, opm, opmCached}

func (s server) String() string {
	return [...]string{
		view: "view server, one operator's view", whole: "`bellwether catalog serve`, whole catalog",
		opm: "`opm serve`", opmCached: "`opm serve` with its cache built before",
	}[s]
}

// catalog is a folder and opm's cache of it.
type catalog struct {
	dir, cache string
	options    catalogtest.Options
}

// operator is the package whose view is served: one in the middle.
func (c catalog) operator() string { return catalogtest.PackageName(c.options.Packages / 2) }

// bundle is the operator's n-th newest.
func (c catalog) bundle(n int) string {
	return catalogtest.BundleName(c.options.Packages/2, max(c.options.Versions-n, 0))
}

// spec says how to run a server, and where it will listen.
func (b *bench) spec(ctx context.Context, s server, c catalog) (process.Spec, string, error) {
	address, err := FreeAddress(ctx)
	if err != nil {
		return process.Spec{}, "", err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return process.Spec{}, "", fmt.Errorf("split address: %w", err)
	}
	// opm makes its cache in the folder for temporary files.
	temporary, err := os.MkdirTemp(b.dir, "tmp-")
	if err != nil {
		return process.Spec{}, "", fmt.Errorf("create folder: %w", err)
	}
	spec := process.Spec{Name: "server", Dir: b.dir, Log: filepath.Join(b.dir, "server.log"),
		Env: []string{"TMPDIR=" + temporary}}
	opmArgs := []string{"serve", c.dir, "--port", port, "--pprof-addr", "", "--termination-log",
		filepath.Join(b.dir, "termination.log")}
	switch s {
	case view:
		spec.Path = b.binaries[build.ViewServer]
		spec.Args = []string{
			"--directory", c.dir, "--addr", address, "--package", c.operator(), "--installed", c.bundle(2), "--next",
			c.bundle(1),
		}
	case whole:
		spec.Path, spec.Args = b.binaries[build.Bellwether], []string{"catalog", "serve", c.dir, "--addr", address}
	case opm:
		spec.Path, spec.Args = b.binaries[build.OPM], opmArgs
	case opmCached:
		spec.Path, spec.Args = b.binaries[build.OPM],
			append(opmArgs, "--cache-dir", c.cache, "--cache-enforce-integrity")
	}
	return spec, address, nil
}

// buildCache does what the build of a catalog image does.
func (b *bench) buildCache(ctx context.Context, c catalog) error {
	cmd := exec.CommandContext(ctx, b.binaries[build.OPM], "serve", c.dir, "--cache-dir", c.cache, "--cache-only",
		"--cache-enforce-integrity=false", "--pprof-addr", "", "--termination-log",
		filepath.Join(b.dir, "termination.log"))
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build opm's cache: %w\n%s", err, text)
	}
	return nil
}

// FreeAddress returns an address of this machine that nothing listens on.
func FreeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

// anonymousBytes is the part of the resident memory that no file backs: the system cannot take it back. It is 0 on
// systems that do not tell.
func anonymousBytes(pid int) (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "RssAnon:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, nil
}
