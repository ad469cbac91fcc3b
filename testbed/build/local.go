// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	Kubectl        = "kubectl"
	Demo           = "demo"
)

// Platform returns what a fleet with Bellwether on it is made of, beside upstream's components.
func Platform() []string { return []string{Hub, Agent, Bellwether, EchoOperator, EchoServer} }

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
	Kubectl:        {module: "testbed", pkg: "./bench/cmd/kubectl"},
	Demo:           {module: "testbed", pkg: "./cmd/demo"},
}

// Programs returns the folders of the main packages of this repository's programs, from its root, by the names of the
// programs.
func Programs() map[string]string {
	folders := make(map[string]string, len(programs))
	for name, p := range programs {
		folders[name] = filepath.ToSlash(filepath.Join(p.module, p.pkg))
	}
	return folders
}

// ldflagsStrip leaves debug information out, which halves the time to link and to start.
const ldflagsStrip = "-s -w"

// Local builds the named programs of this repository and returns their paths in dir. It always runs the go command, so
// the programs are those of the source tree as it is now. They are linked in the user's cache folder, where the go
// command leaves a program alone that is current, and dir gets hard links to them, or copies on another file system.
func Local(ctx context.Context, out io.Writer, dir string, names ...string) (map[string]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	targets, err := targetsOf(root, names)
	if err != nil {
		return nil, err
	}
	return local(ctx, newProgress(out), root, dir, targets, names)
}

// local is Local, in the source tree at root.
func local(ctx context.Context, p *progress, root, dir string, targets []target, names []string) (map[string]string,
	error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	linked, unlock, err := lockPrograms(ctx, p.out, root, "tree")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if len(names) > 0 {
		say(p.out, "building %s ...\n", strings.Join(names, ", "))
	}
	start := time.Now()
	for _, t := range targets {
		if err := p.build(ctx, t.module, linked+string(filepath.Separator), t.packages, t.flags...); err != nil {
			return nil, fmt.Errorf("build %s: %w", strings.Join(t.packages, " "), err)
		}
	}
	paths := make(map[string]string, len(names))
	for _, name := range names {
		paths[name] = filepath.Join(dir, name)
		if err := linkOrCopy(filepath.Join(linked, name), paths[name]); err != nil {
			return nil, err
		}
	}
	if len(names) > 0 {
		say(p.out, "built %s in %s\n", strings.Join(slices.Sorted(maps.Keys(paths)), ", "),
			time.Since(start).Round(100*time.Millisecond))
	}
	return paths, nil
}

// targetsOf returns how the named programs are built. One command per module lets go compile what the programs share
// only once; no other flags and the caller's environment let it share compiled packages with the caller's tests.
func targetsOf(root string, names []string) ([]target, error) {
	packages := map[string][]string{}
	for _, name := range names {
		p, ok := programs[name]
		if !ok {
			return nil, fmt.Errorf("find program %q: %w", name, ErrUnknown)
		}
		if !slices.Contains(packages[p.module], p.pkg) {
			packages[p.module] = append(packages[p.module], p.pkg)
		}
	}
	var targets []target
	for _, module := range slices.Sorted(maps.Keys(packages)) {
		targets = append(targets, target{goModule{dir: filepath.Join(root, module)}, packages[module],
			[]string{"-ldflags", ldflagsStrip}})
	}
	return targets, nil
}

// lockPrograms returns the folder with the linked programs of the source tree at root, locked until the returned
// function is called. Kinds of programs, in folders of their own, do not wait for each other.
func lockPrograms(ctx context.Context, out io.Writer, root, kind string) (string, func(), error) {
	cache, err := cacheFolder("programs")
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256([]byte(root))
	folder := filepath.Join(cache, kind+"-"+hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", nil, fmt.Errorf("create folder of programs: %w", err)
	}
	now := time.Now() // the folder is in use
	if err := os.Chtimes(folder, now, now); err != nil {
		return "", nil, fmt.Errorf("mark folder of programs as used: %w", err)
	}
	if err := removeUnused(cache, kind, folder); err != nil {
		return "", nil, err
	}
	unlock, err := lock(ctx, out, filepath.Join(folder, "lock"), "this repository's programs")
	return folder, unlock, err
}

// linkOrCopy puts the program at path, in place of an earlier one.
func linkOrCopy(program, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove earlier program: %w", err)
	}
	if os.Link(program, path) == nil {
		return nil
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read program: %w", err)
	}
	if err := os.WriteFile(path, content, 0o755); err != nil {
		return fmt.Errorf("copy program: %w", err)
	}
	return nil
}
