// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// catalogFile is the name of a package's file in the folder of that package.
const catalogFile = "catalog.json"

// Options say how a folder is compiled.
type Options struct {
	Bundles Bundles
	// Published is the catalog as clusters see it now; nil compares with what is in the output folder.
	Published []*catalogs.Package
	// Installed is what clusters run, by package.
	Installed map[string][]catalogs.Installed
	Now       time.Time
	// Parallel is how many packages are compiled at a time, and so bounds memory. Default: the number of processors.
	Parallel int
	// Progress is called after each version, never twice at a time; it may be nil.
	Progress func(done, total int)
	// Check compares with the output folder, and writes nothing.
	Check bool
}

// Report says what compiling changed.
type Report struct {
	// Packages are sorted by name.
	Packages []Package `json:"packages"`
}

// Package is what compiling changed in one package.
type Package struct {
	Name string `json:"name"`
	// File is the path of the package's file.
	File string `json:"file"`
	// Changed reports whether the file differs from before; Removed, that it was removed.
	Changed bool `json:"changed"`
	Removed bool `json:"removed,omitempty"`
	// Channels are in the order of the ladder, followed by removed ones.
	Channels []Channel         `json:"channels,omitempty"`
	Bundles  int               `json:"bundles"`
	Waiting  []compile.Waiting `json:"waiting,omitempty"`
	Notes    []string          `json:"notes,omitempty"`

	// relations are the bundles, with nothing but what they provide and need.
	relations []*catalogs.Bundle
}

// Channel is the head of a channel, as versions; empty if there is no such channel.
type Channel struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Changed reports whether anything differs from before.
func (r Report) Changed() bool {
	return slices.ContainsFunc(r.Packages, func(p Package) bool { return p.Changed })
}

// Compile compiles the ladders in dir into the folder out, which is made if it is not there. Errors are joined over the
// packages; they wrap those of packages compile, ladder and oci. If there is any, out is as it was, and is not made.
func Compile(ctx context.Context, dir, out string, o Options) (report Report, err error) {
	ladders, err := LoadAll(dir)
	if err != nil {
		return Report{}, err
	}
	made := missingFolders(out)
	stage, err := createStage(out, o.Check)
	defer func() {
		_ = os.RemoveAll(stage)
		if err != nil {
			removeEmpty(made)
		}
	}()
	if err != nil {
		return Report{}, err
	}
	c := &compiler{Options: o, dir: dir, out: out, stage: stage}
	return c.run(ctx, ladders)
}

// run compiles all ladders, and brings what has changed to the output folder.
func (c *compiler) run(ctx context.Context, ladders []*ladder.File) (Report, error) {
	report, err := c.compileAll(ctx, ladders)
	if err != nil {
		return Report{}, err
	}
	gone, err := c.removedPackages(ladders)
	if err != nil {
		return Report{}, err
	}
	report.Packages = append(report.Packages, gone...)
	slices.SortFunc(report.Packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	if c.Check {
		return report, nil
	}
	c.Bundles.prune(c.Now)
	return report, c.publish(report)
}

// missingFolders are those that have to be made for a folder, itself first.
func missingFolders(dir string) []string {
	var out []string
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return out
		}
		out = append(out, at)
	}
}

// removeEmpty removes folders that were made for nothing, the innermost first.
func removeEmpty(folders []string) {
	for _, dir := range folders {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// createStage makes the folder in which everything is written first: in the same file system as the output, and
// hidden, so that no reader takes it for a part of the catalog.
func createStage(out string, check bool) (string, error) {
	parent := out
	if check {
		parent = ""
	} else if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // a catalog is there to be read
		return "", fmt.Errorf("make output folder: %w", err)
	}
	stage, err := os.MkdirTemp(parent, ".compile-*")
	if err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	return stage, nil
}

type compiler struct {
	Options

	dir, out, stage string

	mu          sync.Mutex
	done, total int // versions
}

// advance reports that further versions are done.
func (c *compiler) advance(versions int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += versions
	if c.Progress != nil {
		c.Progress(c.done, c.total)
	}
}

// counted are contents that report each version that was requested.
type counted struct {
	compile.Contents

	advance func(versions int)
}

// Content implements compile.Contents.
func (c counted) Content(version string) (compile.Content, bool, error) {
	defer c.advance(1)
	return c.Contents.Content(version)
}

// compileAll compiles every package into the stage.
func (c *compiler) compileAll(ctx context.Context, ladders []*ladder.File) (Report, error) {
	report := Report{Packages: make([]Package, len(ladders))}
	problems := make([]error, len(ladders))
	for _, f := range ladders {
		c.total += len(f.Ladder.Bundles) + len(f.Ladder.Retired)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(c.Parallel, runtime.GOMAXPROCS(0)))
	for i, f := range ladders {
		group.Go(func() error {
			report.Packages[i], problems[i] = c.compilePackage(ctx, f.Ladder)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return Report{}, err
	}
	noteSharedKinds(report.Packages)
	noteUnprovided(report.Packages)
	return report, errors.Join(problems...)
}

// compilePackage compiles a package into the stage.
func (c *compiler) compilePackage(ctx context.Context, l *ladder.Ladder) (Package, error) {
	before, err := c.readPrevious(l.Package)
	if err != nil {
		return Package{}, err
	}
	in := compile.Input{Ladder: l, Previous: c.published(l.Package, before), Installed: c.Installed[l.Package],
		Now: c.Now}
	result, documents, err := c.compile(ctx, in)
	if err != nil {
		return Package{}, err
	}
	defer func() { _ = documents.Close() }()
	related, err := relatedBundles(result.Relations)
	if err != nil {
		return Package{}, err
	}
	file := filepath.Join(l.Package, catalogFile)
	staged := filepath.Join(c.stage, file)
	if err := writeResult(staged, result, documents); err != nil {
		return Package{}, err
	}
	same, err := sameFiles(staged, filepath.Join(c.out, file))
	if err != nil {
		return Package{}, err
	}
	return Package{
		Name: l.Package, File: file, Changed: !same, Bundles: len(result.Package.Bundles),
		Channels: Heads(l.Rungs(), before, result.Package), Waiting: result.Waiting, Notes: result.Notes,
		relations: related,
	}, nil
}

// compile compiles a package, with what is cached of it if nothing that matters has changed since. It also returns the
// documents of the bundles, which are to be closed.
func (c *compiler) compile(ctx context.Context, in compile.Input) (compile.Result, io.ReadCloser, error) {
	l := in.Ladder
	// If the ladder does not compile with any bundles, none have to be read.
	if _, err := compile.Graph(l); err != nil {
		return compile.Result{}, nil, err
	}
	var err error
	if in.Icon, err = icon(c.dir, l); err != nil {
		return compile.Result{}, nil, err
	}
	key := c.Bundles.key(c.dir, l, in.Icon)
	cached, documents := c.Bundles.cached(key)
	if in.Cached = cached; cached != nil {
		result, err := compile.Compile(in)
		if err != nil {
			_ = documents.Close()
		}
		c.advance(len(l.Bundles) + len(l.Retired))
		return result, documents, err
	}
	return c.compileContents(ctx, in, key)
}

// compileContents compiles a package from its bundles, and caches the result.
func (c *compiler) compileContents(ctx context.Context, in compile.Input,
	key string) (compile.Result, io.ReadCloser, error) {
	contents, err := c.Bundles.Contents(ctx, c.dir, in.Ladder)
	if err != nil {
		return compile.Result{}, nil, err
	}
	defer contents.Close()
	documents, err := newSpool(c.stage)
	if err != nil {
		return compile.Result{}, nil, err
	}
	in.Contents, in.Emit = counted{contents, c.advance}, documents.add
	result, err := compile.Compile(in)
	if err = errors.Join(err, documents.flush()); err != nil {
		return compile.Result{}, nil, errors.Join(err, documents.Close())
	}
	c.Bundles.store(key, result.Cacheable(), documents)
	if _, err := documents.Seek(0, io.SeekStart); err != nil {
		return compile.Result{}, nil, errors.Join(fmt.Errorf("read documents: %w", err), documents.Close())
	}
	return result, documents, nil
}

// readPrevious reads the graph of a package as it is in the output folder; nil if it is not there.
func (c *compiler) readPrevious(pkg string) (*catalogs.Package, error) {
	f, err := os.Open(filepath.Join(c.out, pkg, catalogFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read compiled package: %w", err)
	}
	defer func() { _ = f.Close() }()
	p, err := catalogs.ReadPackageWith(catalogs.SingleFile(f.Name(), f), pkg)
	if err != nil {
		return nil, fmt.Errorf("read compiled package: %w", err)
	}
	return p, nil
}

func (c *compiler) published(pkg string, before *catalogs.Package) *catalogs.Package {
	if c.Published == nil {
		return before
	}
	i := slices.IndexFunc(c.Published, func(p *catalogs.Package) bool { return p.Name == pkg })
	if i < 0 {
		return nil
	}
	return c.Published[i]
}

// Heads compares the heads of two packages, either of which may be nil, by the rungs of a ladder.
func Heads(rungs []string, before, after *catalogs.Package) []Channel {
	var out []Channel
	names := slices.Clone(rungs)
	if before != nil {
		for _, c := range before.Summary().Channels {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	for _, name := range names {
		c := Channel{Name: name, Before: headOf(before, name), After: headOf(after, name)}
		if c.Before != "" || c.After != "" {
			out = append(out, c)
		}
	}
	return out
}

func headOf(p *catalogs.Package, channel string) string {
	if p == nil || p.Channels[channel] == nil {
		return ""
	}
	head, err := p.Target(channel, "")
	if err != nil {
		return ""
	}
	return head.VersionString()
}

func writeResult(path string, r compile.Result, documents io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a catalog is there to be read
		return fmt.Errorf("write compiled package: %w", err)
	}
	//nolint:gosec // a catalog is there to be read
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write compiled package: %w", err)
	}
	if err := errors.Join(r.WriteAround(f, documents), f.Close()); err != nil {
		return fmt.Errorf("write compiled package: %w", err)
	}
	return nil
}

func sameFiles(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, fmt.Errorf("compare: %w", err)
	}
	y, err := os.Stat(b)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && x.Size() != y.Size()) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("compare: %w", err)
	}
	left, err := os.Open(a)
	if err != nil {
		return false, fmt.Errorf("compare: %w", err)
	}
	defer func() { _ = left.Close() }()
	right, err := os.Open(b)
	if err != nil {
		return false, fmt.Errorf("compare: %w", err)
	}
	defer func() { _ = right.Close() }()
	return sameContent(left, right)
}

// sameContent compares two files of the same size.
func sameContent(left, right io.Reader) (bool, error) {
	const piece = 64 << 10
	x, y := make([]byte, piece), make([]byte, piece)
	for {
		n, err := io.ReadFull(left, x)
		m, failed := io.ReadFull(right, y)
		switch {
		case !bytes.Equal(x[:n], y[:m]):
			return false, nil
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return true, nil
		case err != nil || failed != nil:
			return false, fmt.Errorf("compare: %w", errors.Join(err, failed))
		}
	}
}

// removedPackages finds packages in the output folder that no longer have a ladder. A deprecated package may be
// removed; the others, and those of the published catalog, are an error that wraps compile.ErrContinuity.
func (c *compiler) removedPackages(ladders []*ladder.File) ([]Package, error) {
	has := func(name string) bool {
		return slices.ContainsFunc(ladders, func(f *ladder.File) bool { return f.Ladder.Package == name })
	}
	compiled, err := filepath.Glob(filepath.Join(escapeGlob(c.out), "*", catalogFile))
	if err != nil {
		return nil, fmt.Errorf("list output folder: %w", err)
	}
	var out []Package
	lost := slices.Clone(c.Published)
	for _, path := range compiled {
		name := filepath.Base(filepath.Dir(path))
		if strings.HasPrefix(name, ".") || has(name) {
			continue
		}
		p, err := c.readPrevious(name)
		if err != nil {
			return nil, err
		}
		lost = append(lost, p)
		out = append(out, Package{Name: name, File: filepath.Join(name, catalogFile), Changed: true, Removed: true,
			Channels: Heads(nil, p, nil)})
	}
	var problems []error
	for _, p := range lost {
		if p.Deprecation == "" && !has(p.Name) {
			problems = append(problems,
				fmt.Errorf("%w: package %q was offered and no longer has a ladder: restore its file, or deprecate "+
					""+"the package and publish that first",
					compile.ErrContinuity, p.Name))
		}
	}
	return out, errors.Join(problems...)
}

// escapeGlob escapes the characters of a folder's name that are special in a pattern.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// publish moves what has changed from the stage to its place, file by file: packages do not depend on each other. If
// one cannot be moved, those before it are as they were.
func (c *compiler) publish(r Report) error {
	var undo []func()
	for _, p := range r.Packages {
		if !p.Changed {
			continue
		}
		back, err := c.publishPackage(p)
		if err != nil {
			for _, f := range slices.Backward(undo) {
				f()
			}
			return err
		}
		undo = append(undo, back)
	}
	return nil
}

// publishPackage moves the file of a package to its place, or removes it, and returns what undoes that.
func (c *compiler) publishPackage(p Package) (undo func(), err error) {
	target := filepath.Join(c.out, p.File)
	made := missingFolders(filepath.Dir(target))
	former := filepath.Join(c.stage, p.Name+".former")
	undo = func() {
		if errors.Is(os.Rename(former, target), fs.ErrNotExist) { // there was none
			_ = os.Remove(target)
			removeEmpty(made)
		}
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // a catalog is there to be read
		return nil, fmt.Errorf("write package %q: %w", p.Name, err)
	}
	if p.Removed {
		if err := os.Rename(target, former); err != nil {
			return nil, fmt.Errorf("remove package %q: %w", p.Name, err)
		}
		folder := filepath.Dir(target)
		_ = os.Remove(folder) // It stays if it contains other files.
		return func() {
			_ = os.MkdirAll(folder, 0o755) //nolint:gosec // a catalog is there to be read
			undo()
		}, nil
	}
	// The former file keeps its place until the new one takes it.
	if err := linkOrCopy(target, former); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("write package %q: %w", p.Name, err)
	}
	if err := os.Rename(filepath.Join(c.stage, p.File), target); err != nil {
		removeEmpty(made)
		return nil, fmt.Errorf("write package %q: %w", p.Name, err)
	}
	return undo, nil
}

// linkOrCopy gives a file another name; where the file system has no such links, it copies the file.
func linkOrCopy(from, to string) error {
	if err := os.Link(from, to); err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return replaceFileWith(to, f)
}
