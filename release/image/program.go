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

	"github.com/bellwether-dev/bellwether/internal/version"
)

// Program is a program that was built for one platform.
type Program struct {
	Name string
	// File is the path of the program on this machine.
	File     string
	Platform v1.Platform
	Build    *debug.BuildInfo
	Version  version.Info
}

// ReadProgram reads the build information of a built program. release is the version that the program
// was linked with, which the build information does not contain; empty for no release.
func ReadProgram(name, file, release string) (Program, error) {
	build, err := buildinfo.ReadFile(file)
	if err != nil {
		return Program{}, fmt.Errorf("read program: %w", err)
	}
	p := Program{Name: name, File: file, Build: build, Version: version.ReadInfo(build, release)}
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

// Compilation configures a build.
type Compilation struct {
	// Root is the folder of the product's module.
	Root string
	// Names are the folders of the programs below cmd.
	Names []string
	// Platform is the target platform, as in linux/amd64.
	Platform string
	// Release is the version of the release; empty if the build is no release.
	Release string
	// Registry is the registry from which the command line installs images;
	// empty for DefaultRegistry.
	Registry string
}

// Compile builds programs into a folder, for the oldest processors of an architecture.
// Builds of the same commit with the same version of Go give the same programs, independent
// of the path of the source.
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
	//nolint:gosec // the user of this command chooses the programs
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
		p, err := ReadProgram(name, file, c.Release)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}
