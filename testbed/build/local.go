// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Names of this repository's own programs that Local builds.
const (
	Hub          = "hub"
	Agent        = "agent"
	Bellwether   = "bellwether"
	PodRunner    = "podrunner"
	EchoOperator = "echo-operator"
	EchoServer   = "echo-server"
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
}

// Local builds the named programs of this repository into dir and returns their paths. It always runs the go command, so
// the programs are those of the source tree as it is now; go's own cache makes that quick.
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
	paths := make(map[string]string, len(names))
	for _, name := range names {
		p, ok := programs[name]
		if !ok {
			return nil, fmt.Errorf("find program %q: %w", name, ErrUnknown)
		}
		start := time.Now()
		path := filepath.Join(dir, name)
		if err := goBuild(ctx, filepath.Join(root, p.module), path, p.pkg, "", "-s -w"); err != nil {
			return nil, fmt.Errorf("build %s: %w", name, err)
		}
		fmt.Fprintf(out, "built %s in %s\n", name, time.Since(start).Round(100*time.Millisecond))
		paths[name] = path
	}
	return paths, nil
}
