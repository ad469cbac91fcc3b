// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names of this repository's own programs that Local builds.
const (
	Hub            = "hub"
	Agent          = "agent"
	Bellwether     = "bellwether"
	PodRunner      = "podrunner"
	EchoOperator   = "echo-operator"
	EchoServer     = "echo-server"
	ViewServer     = "view-server"
	CompileCatalog = "compile-catalog"
	ProbeEngine    = "probe-engine"
)

// program is a main package of this repository.
type program struct {
	module string // folder of the module, relative to the root
	pkg    string
}

var programs = map[string]program{
	Hub:          {module: ".", pkg: "./cmd/hub"},
	Agent:        {module: ".", pkg: "./cmd/agent"},
	Bellwether:   {module: ".", pkg: "./cmd/bellwether"},
	PodRunner:    {module: "testbed", pkg: "./cmd/podrunner"},
	EchoOperator: {module: "testbed", pkg: "./echo/cmd/echo-operator"},
	EchoServer:   {module: "testbed", pkg: "./echo/cmd/echo-server"},
	ViewServer:   {module: "testbed", pkg: "./bench/cmd/view-server"},

	CompileCatalog: {module: "testbed", pkg: "./bench/cmd/compile-catalog"},
	ProbeEngine:    {module: "testbed", pkg: "./bench/cmd/probe-engine"},
}

// ldflagsStrip leaves debug information out, which halves the time to link and to start.
const ldflagsStrip = "-s -w"

// Local builds the named programs of this repository into dir and returns their paths. It always runs the go command,
// so the programs are those of the source tree as it is now; go's own cache makes that quick.
func Local(ctx context.Context, out io.Writer, dir string, names ...string) (map[string]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	if len(names) > 0 {
		say(out, "building %s ...\n", strings.Join(names, ", "))
	}
	paths := make(map[string]string, len(names))
	packages := map[string][]string{} // by module
	for _, name := range names {
		p, ok := programs[name]
		if !ok {
			return nil, fmt.Errorf("find program %q: %w", name, ErrUnknown)
		}
		if paths[name] == "" {
			packages[p.module] = append(packages[p.module], p.pkg)
			paths[name] = filepath.Join(dir, name)
		}
	}
	start := time.Now()
	for _, module := range slices.Sorted(maps.Keys(packages)) {
		// One command per module lets go compile what the programs share only once; no other flags and the caller's
		// environment let it share compiled packages with the caller's tests.
		source := goModule{dir: filepath.Join(root, module)}
		if err := source.build(ctx, dir+string(filepath.Separator), packages[module], "-ldflags",
			ldflagsStrip); err != nil {
			return nil, fmt.Errorf("build %s: %w", strings.Join(packages[module], " "), err)
		}
	}
	if len(names) > 0 {
		say(out, "built %s in %s\n", strings.Join(slices.Sorted(maps.Keys(paths)), ", "),
			time.Since(start).Round(100*time.Millisecond))
	}
	return paths, nil
}
