// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/testbed/build"
)

// always are the folders, besides those of Go packages, that any test on a cluster may read or run: the chart, and the
// modules of upstream's components.
var always = []string{"charts", "testbed/components"}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath, Dir string
	Standard        bool
	EmbedFiles      []string
	Deps            []string
}

// Inputs finds what the tests of packages depend on.
type Inputs struct {
	root     string
	packages map[string]listed
	programs map[string]string // import path of a program by its name without hyphens
	common   []byte            // sum of what all packages depend on
	files    map[string][]byte // sums of folders
}

// LoadInputs lists what the packages in some folders of the tree at root depend on.
func LoadInputs(ctx context.Context, root string, folders []string) (*Inputs, error) {
	in := &Inputs{root: root, packages: map[string]listed{}, programs: map[string]string{}, files: map[string][]byte{}}
	for name, folder := range build.Programs() {
		in.programs[strings.ReplaceAll(name, "-", "")] = importPathOf(folder)
		folders = append(folders, folder)
	}
	for _, module := range modules {
		if err := in.list(ctx, module, folders); err != nil {
			return nil, err
		}
	}
	version, err := exec.CommandContext(ctx, "go", "version").Output()
	if err != nil {
		return nil, fmt.Errorf("find version of Go: %w", err)
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s%s/%s\n", version, runtime.GOOS, runtime.GOARCH)
	for _, module := range modules {
		for _, name := range []string{"go.mod", "go.sum"} {
			if err := addFile(sum, root, filepath.Join(root, module, name)); err != nil {
				return nil, err
			}
		}
	}
	for _, folder := range always {
		if err := addTree(sum, root, filepath.Join(root, folder)); err != nil {
			return nil, err
		}
	}
	in.common = sum.Sum(nil)
	return in, nil
}

// list lists the packages in those of the folders that belong to a module.
func (in *Inputs) list(ctx context.Context, module string, folders []string) error {
	job := Job{Module: module}
	for _, folder := range folders {
		if moduleOf(folder) == module {
			job.Folders = append(job.Folders, folder)
		}
	}
	if len(job.Folders) == 0 {
		return nil
	}
	args := []string{"list", "-deps", "-test", "-json=ImportPath,Dir,Standard,EmbedFiles,Deps"}
	cmd := exec.CommandContext(ctx, "go", append(args, job.packages()...)...)
	cmd.Dir = filepath.Join(in.root, module)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list packages of %s: %w\n%s", module, err, stderr.String())
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read packages of %s: %w", module, err)
		}
		if _, ok := in.packages[p.ImportPath]; !ok {
			in.packages[p.ImportPath] = p
		}
	}
}

// Digest identifies everything that decides whether the tests of a job pass: the sources that they are compiled from,
// with test data and embedded files, those of this repository's programs that they run, the chart, the components, and
// the versions of Go and of all modules.
func (in *Inputs) Digest(job Job) (string, error) {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s\n%x\n", job.Run, in.common)
	folders := map[string]bool{}
	for _, folder := range job.Folders {
		if err := in.collect(folders, importPathOf(folder)+".test"); err != nil {
			return "", err
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		part, err := in.sumOfFolder(folder, slices.Contains(job.Folders, in.inTree(folder)))
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(sum, "%s %x\n", in.inTree(folder), part)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// usesProgram matches the constants of package build, of which some name programs.
var usesProgram = regexp.MustCompile(`\bbuild\.([A-Z]\w+)`)

// collect adds the folders of a package and of all packages of the tree that it depends on, those of the programs that
// they run among them.
func (in *Inputs) collect(folders map[string]bool, importPath string) error {
	root, ok := in.packages[importPath]
	if !ok {
		return fmt.Errorf("find package %s: it is not in the tree", importPath)
	}
	for _, dependency := range append([]string{importPath}, root.Deps...) {
		p := in.packages[dependency]
		if p.Standard || p.Dir == "" || folders[p.Dir] || !in.isInTree(p.Dir) {
			continue
		}
		folders[p.Dir] = true
		for _, embedded := range p.EmbedFiles {
			folders[filepath.Join(p.Dir, filepath.Dir(embedded))] = true
		}
		programs, err := in.programsOf(p.Dir)
		if err != nil {
			return err
		}
		for _, program := range programs {
			if err := in.collect(folders, program); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *Inputs) isInTree(dir string) bool {
	return filepath.IsLocal(filepath.FromSlash(in.inTree(dir)))
}

// inTree is the path of a folder from the root of the tree.
func (in *Inputs) inTree(dir string) string {
	relative, err := filepath.Rel(in.root, dir)
	if err != nil { // of two absolute paths, on another disk
		return dir
	}
	return filepath.ToSlash(relative)
}

// programsOf returns the import paths of the programs of this repository that the Go files of a folder name.
func (in *Inputs) programsOf(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list files of %s: %w", dir, err)
	}
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read source: %w", err)
		}
		for _, match := range usesProgram.FindAllSubmatch(text, -1) {
			if program, ok := in.programs[strings.ToLower(string(match[1]))]; ok {
				found = append(found, program)
			}
		}
	}
	return found, nil
}

// sumOfFolder identifies the files of a folder, and those of its test data. Its tests count where they are what runs.
func (in *Inputs) sumOfFolder(dir string, tests bool) ([]byte, error) {
	key := fmt.Sprint(dir, tests)
	if sum, ok := in.files[key]; ok {
		return sum, nil
	}
	sum := sha256.New()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list folder: %w", err)
	}
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		switch {
		case strings.HasSuffix(entry.Name(), "_test.go") && !tests:
		case entry.Type().IsRegular():
			err = addFile(sum, in.root, name)
		case entry.IsDir() && entry.Name() == "testdata":
			err = addTree(sum, in.root, name)
		}
		if err != nil {
			return nil, err
		}
	}
	in.files[key] = sum.Sum(nil)
	return in.files[key], nil
}

func addTree(sum hash.Hash, root, dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		return addFile(sum, root, name)
	})
}

// addFile adds the path in the tree and the content of a file.
func addFile(sum hash.Hash, root, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read input of tests: %w", err)
	}
	relative, err := filepath.Rel(root, name)
	if err != nil {
		return fmt.Errorf("find input of tests in the tree: %w", err)
	}
	_, _ = fmt.Fprintf(sum, "%s %x\n", filepath.ToSlash(relative), sha256.Sum256(text))
	return nil
}
