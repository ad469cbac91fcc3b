// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// programsFile lists which modules the programs may import.
const programsFile = "internal/tools/lintrules/programs.txt"

// TestProgramsImportFewModules compares the modules that the packages of each program import with programs.txt.
func TestProgramsImportFewModules(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), programsFile))
	if err != nil {
		t.Fatal(err)
	}
	allowed := readPrograms(string(text))
	for _, program := range []string{"agent", "bellwether", "hub"} {
		imported := modulesOf(t, "./cmd/"+program)
		for _, m := range slices.Sorted(maps.Keys(imported)) {
			if !allowed[program][m] {
				t.Errorf("%s imports %s for %s. Each user of the program pays for it: if nothing lighter does, list "+
					"it in %s and say in docs/decisions what it costs", program, m, imported[m], programsFile)
			}
			delete(allowed[program], m)
		}
		for _, m := range slices.Sorted(maps.Keys(allowed[program])) {
			t.Errorf("%s does not import %s any more: remove it from %s", program, m, programsFile)
		}
	}
}

// readPrograms returns the modules of each program: a line has a module, and the programs that may import it.
func readPrograms(text string) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] == "#" {
			continue
		}
		for _, program := range fields[1:] {
			if out[program] == nil {
				out[program] = map[string]bool{}
			}
			out[program][fields[0]] = true
		}
	}
	return out
}

// modulesOf returns the modules that the packages of a program import, each with a package that imports it. Modules
// that only other modules import do not count.
func modulesOf(t *testing.T, program string) map[string]string {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{Dir: root(t), Mode: packages.NeedName | packages.NeedImports |
		packages.NeedDeps | packages.NeedModule}, program)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, problem := range p.Errors {
			t.Error(problem)
		}
		if p.Module == nil || p.Module.Path != module {
			return
		}
		for _, imported := range p.Imports {
			if m := imported.Module; m != nil && m.Path != module {
				out[m.Path] = cmp.Or(out[m.Path], strings.TrimPrefix(p.PkgPath, module+"/"))
			}
		}
	})
	return out
}
