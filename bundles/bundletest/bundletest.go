// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundletest provides bundles that other projects published, for tests and benchmarks. They are unchanged,
// including their faults. README.md names their origins. It also generates large CustomResourceDefinitions.
package bundletest

import (
	"embed"
	"io/fs"
	"os/exec"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
)

//go:embed published
var published embed.FS

// Names returns the published bundles as operator/version, such as etcd/0.9.2.
func Names(tb testing.TB) []string {
	tb.Helper()
	dirs, err := fs.Glob(published, "published/*/*/manifests")
	if err != nil || len(dirs) == 0 {
		tb.Fatalf("find the published bundles: there are %d: %v", len(dirs), err)
	}
	var names []string
	for _, dir := range dirs {
		operator, version := path.Split(path.Dir(dir))
		names = append(names, path.Join(path.Base(operator), version))
	}
	return names
}

var modules sync.Map

// Module returns the folder in the module cache of a Go module that Bellwether's go.mod requires. Some modules have
// bundles and manifests of operators as test data.
func Module(tb testing.TB, module string) string {
	tb.Helper()
	if dir, ok := modules.Load(module); ok {
		return dir.(string)
	}
	list := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module) //nolint:gosec // by a test
	out, err := list.Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		tb.Fatalf("find the module %s: %q, %v", module, dir, err)
	}
	modules.Store(module, dir)
	return dir
}

// Files returns the files of the published bundle with the given name (operator/version).
func Files(tb testing.TB, name string) fs.FS {
	tb.Helper()
	files, err := fs.Sub(published, path.Join("published", name))
	if err != nil {
		tb.Fatalf("open the bundle %s: %v", name, err)
	}
	return files
}

// Read reads the published bundle with the given name (operator/version).
func Read(tb testing.TB, name string) *bundles.Bundle {
	tb.Helper()
	b, err := bundles.Read(Files(tb, name))
	if err != nil {
		tb.Fatalf("read the bundle %s: %v", name, err)
	}
	return b
}

// ReadAll reads several versions of an operator.
func ReadAll(tb testing.TB, operator string, versions ...string) []*bundles.Bundle {
	tb.Helper()
	var all []*bundles.Bundle
	for _, v := range versions {
		all = append(all, Read(tb, path.Join(operator, v)))
	}
	return all
}
