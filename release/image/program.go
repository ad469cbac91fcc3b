// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/bellwether-dev/bellwether/version"
)

// Program is a program that was built for one platform.
type Program struct {
	Name string
	// File is the program on this machine.
	File     string
	Platform v1.Platform
	Build    *debug.BuildInfo
	Version  version.Info
}

// Open reads what a program that was built says of itself. The release is the one that it was linked as, which it does
// not tell; empty if that is none.
func Open(name, file, release string) (Program, error) {
	build, err := buildinfo.ReadFile(file)
	if err != nil {
		return Program{}, fmt.Errorf("read program: %w", err)
	}
	p := Program{Name: name, File: file, Build: build, Version: version.Of(build, release)}
	for _, s := range build.Settings {
		switch s.Key {
		case "GOOS":
			p.Platform.OS = s.Value
		case "GOARCH":
			p.Platform.Architecture = s.Value
		}
	}
	return p, nil
}

// Compilation says what to build.
type Compilation struct {
	// Root is the folder of the product's module.
	Root string
	// Names are the programs' folders below cmd.
	Names []string
	// Platform is what they are for, as in linux/amd64.
	Platform string
	// Release is the version of a release; empty if it is none.
	Release string
	// Registry is where the command line installs images from; empty for DefaultRegistry.
	Registry string
}

// Compile builds programs into a folder, always for the oldest processors of an architecture. Two that build the same
// commit with the same version of Go get the same programs, wherever their trees are.
func Compile(ctx context.Context, c Compilation, dir string) ([]Program, error) {
	operatingSystem, architecture, ok := strings.Cut(c.Platform, "/")
	if !ok {
		return nil, fmt.Errorf("compile for %q: a platform is written as linux/amd64", c.Platform)
	}
	ldflags := "-s -w"
	if c.Release != "" {
		ldflags += " -X " + version.Variable + "=" + strings.TrimPrefix(c.Release, "v")
	}
	if c.Registry != "" {
		ldflags += " -X " + version.Module + "/charts.registry=" + c.Registry
	}
	args := []string{"build", "-trimpath", "-ldflags", ldflags, "-o", dir + string(filepath.Separator)}
	for _, name := range c.Names {
		args = append(args, "./cmd/"+name)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	//nolint:gosec // whoever releases says what is built
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = c.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+operatingSystem, "GOARCH="+architecture,
		"GOAMD64=v1", "GOARM64=v8.0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("compile for %s: %w\n%s", c.Platform, err, strings.TrimSpace(stderr.String()))
	}
	var out []Program
	for _, name := range c.Names {
		file := filepath.Join(dir, name)
		if operatingSystem == "windows" {
			file += ".exe"
		}
		p, err := Open(name, file, c.Release)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}
