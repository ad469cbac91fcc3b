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

// Options control how a folder is compiled.
type Options struct {
	Bundles Bundles
	// Published is the catalog that clusters use at present; nil compares with the content of the output folder.
	Published []*catalogs.Package
	// Installed is what clusters run, by package.
	Installed map[string][]catalogs.Installed
	Now       time.Time
	// Parallel is the number of packages that are compiled at a time, which bounds memory. Default: the number
	// of processors.
	Parallel int
	// Progress is called after each version, never concurrently; it can be nil.
	Progress func(done, total int)
	// Check compares with the output folder, and writes nothing.
	Check bool
}

// Report is what compiling changed.
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
	// Channels are in the order of the ladder, followed by removed channels.
	Channels []Channel         `json:"channels,omitempty"`
	Bundles  int               `json:"bundles"`
	Waiting  []compile.Waiting `json:"waiting,omitempty"`
	Notes    []string          `json:"notes,omitempty"`

	// relations are the bundles with only the properties that they provide and need.
	relations []*catalogs.Bundle
}

// Channel is the head of a channel before and after compiling, as versions; empty if the channel does not exist.
type Channel struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Changed reports whether any package differs from before.
func (r Report) Changed() bool {
	return slices.ContainsFunc(r.Packages, func(p Package) bool { return p.Changed })
}

// Compile compiles the ladders in dir into the folder out, which is created if it does not exist. Errors are joined
// over the packages; they wrap those of packages compile, ladder and oci. If there is an error, out is unchanged, and
// is not created.
func Compile(ctx context.Context, dir, out string, o Options) (report Report, err error) {
	ladders, err := LoadAll(dir)
	if err != nil {
		return Report{}, err
	}
	missing := listMissingFolders(out)
	stage, err := createStage(out, o.Check)
	defer func() {
		_ = os.RemoveAll(stage)
		if err != nil {
			removeEmptyFolders(missing)
		}
	}()
	if err != nil {
		return Report{}, err
	}
	c := &compiler{Options: o, dir: dir, out: out, stage: stage}
	return c.run(ctx, ladders)
}

// run compiles all ladders, and moves the changed packages to the output folder.
func (c *compiler) run(ctx context.Context, ladders []*ladder.File) (Report, error) {
	report, err := c.compileAll(ctx, ladders)
	if err != nil {
		return Report{}, err
	}
	removed, err := c.listRemovedPackages(ladders)
	if err != nil {
		return Report{}, err
	}
	report.Packages = append(report.Packages, removed...)
	slices.SortFunc(report.Packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	if c.Check {
		return report, nil
	}
	c.Bundles.prune(c.Now)
	return report, c.publish(report)
}

// listMissingFolders returns the folders that must be created for a folder, including itself, the innermost first.
func listMissingFolders(dir string) []string {
	var out []string
	for folder := filepath.Clean(dir); ; folder = filepath.Dir(folder) {
		if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) || folder == filepath.Dir(folder) {
			return out
		}
		out = append(out, folder)
	}
}

// removeEmptyFolders removes folders, the innermost first, until a folder is not empty.
func removeEmptyFolders(folders []string) {
	for _, dir := range folders {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// createStage creates the folder to which everything is written first. It is in the same file system as the output,
// so that files can be moved, and hidden, so that readers ignore it. With check, it is in the system's folder for
// temporary files, because the output must not change.
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

// reportProgress reports that further versions are done.
func (c *compiler) reportProgress(versions int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += versions
	if c.Progress != nil {
		c.Progress(c.done, c.total)
	}
}

// countingContents are contents that report each version that was requested.
type countingContents struct {
	compile.Contents

	reportProgress func(versions int)
}

// Content implements compile.Contents.
func (c countingContents) Content(version string) (compile.Content, bool, error) {
	defer c.reportProgress(1)
	return c.Contents.Content(version)
}

// compileAll compiles every package into the stage, several at a time. It compiles the other packages too if a package
// fails, and joins the errors.
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
	noteMissingRequirements(report.Packages)
	return report, errors.Join(problems...)
}

// compilePackage compiles a package into the stage, and returns how it differs from the package in the output folder.
func (c *compiler) compilePackage(ctx context.Context, l *ladder.Ladder) (Package, error) {
	inFolder, err := c.readPrevious(l.Package)
	if err != nil {
		return Package{}, err
	}
	in := compile.Input{Ladder: l, Previous: c.choosePrevious(l.Package, inFolder), Installed: c.Installed[l.Package],
		Now: c.Now}
	result, documents, err := c.compile(ctx, in)
	if err != nil {
		return Package{}, err
	}
	defer func() { _ = documents.Close() }()
	related, err := toBundles(result.Relations)
	if err != nil {
		return Package{}, err
	}
	file := filepath.Join(l.Package, catalogFile)
	staged := filepath.Join(c.stage, file)
	if err := writeResult(staged, result, documents); err != nil {
		return Package{}, err
	}
	isSame, err := isSameFile(staged, filepath.Join(c.out, file))
	if err != nil {
		return Package{}, err
	}
	return Package{
		Name: l.Package, File: file, Changed: !isSame, Bundles: len(result.Package.Bundles),
		Channels: CompareHeads(l.ListChannels(), inFolder, result.Package), Waiting: result.Waiting,
		Notes:     result.Notes,
		relations: related,
	}, nil
}

// compile compiles a package, and uses the cached part if its inputs are unchanged. It also returns the documents of
// the bundles, which the caller must close.
func (c *compiler) compile(ctx context.Context, in compile.Input) (compile.Result, io.ReadCloser, error) {
	l := in.Ladder
	// If the graph of the ladder does not compile, the bundles need not be read.
	if _, err := compile.Graph(l); err != nil {
		return compile.Result{}, nil, err
	}
	var err error
	if in.Icon, err = readIcon(c.dir, l); err != nil {
		return compile.Result{}, nil, err
	}
	key := c.Bundles.computeCacheKey(c.dir, l, in.Icon)
	cached, documents := c.Bundles.openEntry(key)
	if in.Cached = cached; cached != nil {
		result, err := compile.Compile(in)
		if err != nil {
			_ = documents.Close()
		}
		c.reportProgress(len(l.Bundles) + len(l.Retired))
		return result, documents, err
	}
	return c.compileContents(ctx, in, key)
}

// compileContents compiles a package from its bundles, and caches the result. It also returns the documents of the
// bundles, which the caller must close.
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
	in.Contents, in.Emit = countingContents{contents, c.reportProgress}, documents.add
	result, err := compile.Compile(in)
	if err = errors.Join(err, documents.flush()); err != nil {
		return compile.Result{}, nil, errors.Join(err, documents.Close())
	}
	c.Bundles.storeEntry(key, result.Cacheable(), documents)
	if _, err := documents.Seek(0, io.SeekStart); err != nil {
		return compile.Result{}, nil, errors.Join(fmt.Errorf("read documents: %w", err), documents.Close())
	}
	return result, documents, nil
}

// readPrevious reads the graph of a package from the output folder; nil if it is not there.
func (c *compiler) readPrevious(pkg string) (*catalogs.Package, error) {
	f, err := os.Open(filepath.Join(c.out, pkg, catalogFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read compiled package: %w", err)
	}
	defer func() { _ = f.Close() }()
	p, err := catalogs.ReadPackageWithManifests(catalogs.SingleFile(f.Name(), f), pkg)
	if err != nil {
		return nil, fmt.Errorf("read compiled package: %w", err)
	}
	return p, nil
}

// choosePrevious returns the package with which the ladder is compared: the published package, or inFolder, the package
// in the output folder, if no published catalog is given. It is nil if the package was never published.
func (c *compiler) choosePrevious(pkg string, inFolder *catalogs.Package) *catalogs.Package {
	if c.Published == nil {
		return inFolder
	}
	i := slices.IndexFunc(c.Published, func(p *catalogs.Package) bool { return p.Name == pkg })
	if i < 0 {
		return nil
	}
	return c.Published[i]
}

// CompareHeads returns the heads of the channels in two packages, each of which can be nil. The channels of the ladder,
// in the order of the argument, come first, followed by the other channels of before. Channels without a head in both
// packages are omitted.
func CompareHeads(channels []string, before, after *catalogs.Package) []Channel {
	var out []Channel
	names := slices.Clone(channels)
	if before != nil {
		for _, c := range before.Summary().Channels {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	for _, name := range names {
		c := Channel{Name: name, Before: findHead(before, name), After: findHead(after, name)}
		if c.Before != "" || c.After != "" {
			out = append(out, c)
		}
	}
	return out
}

// findHead returns the version of a channel's head; empty if there is none.
func findHead(p *catalogs.Package, channel string) string {
	if p == nil || p.Channels[channel] == nil {
		return ""
	}
	head, err := p.Head(channel)
	if err != nil {
		return ""
	}
	return head.VersionString()
}

// writeResult writes a package's file, which must not exist yet. documents are the documents of its bundles.
func writeResult(path string, r compile.Result, documents io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a catalog is there to be read
		return fmt.Errorf("write compiled package: %w", err)
	}
	//nolint:gosec // a catalog is there to be read
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write compiled package: %w", err)
	}
	if err := errors.Join(r.WriteWithDocuments(f, documents), f.Close()); err != nil {
		return fmt.Errorf("write compiled package: %w", err)
	}
	return nil
}

// isSameFile reports whether two files have the same content; false if b does not exist.
func isSameFile(a, b string) (bool, error) {
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
	fileA, err := os.Open(a)
	if err != nil {
		return false, fmt.Errorf("compare: %w", err)
	}
	defer func() { _ = fileA.Close() }()
	fileB, err := os.Open(b)
	if err != nil {
		return false, fmt.Errorf("compare: %w", err)
	}
	defer func() { _ = fileB.Close() }()
	return isSameContent(fileA, fileB)
}

// isSameContent reports whether two files of the same size have the same content.
func isSameContent(left, right io.Reader) (bool, error) {
	const piece = 64 << 10
	x, y := make([]byte, piece), make([]byte, piece)
	for {
		n, err := io.ReadFull(left, x)
		m, rightErr := io.ReadFull(right, y)
		switch {
		case !bytes.Equal(x[:n], y[:m]):
			return false, nil
		// Both files end here, because they have the same size.
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return true, nil
		case err != nil || rightErr != nil:
			return false, fmt.Errorf("compare: %w", errors.Join(err, rightErr))
		}
	}
}

// listRemovedPackages returns packages in the output folder that have no ladder. The error wraps
// compile.ErrContinuity if such a package, or a published package without a ladder, is not deprecated.
func (c *compiler) listRemovedPackages(ladders []*ladder.File) ([]Package, error) {
	hasLadder := func(name string) bool {
		return slices.ContainsFunc(ladders, func(f *ladder.File) bool { return f.Ladder.Package == name })
	}
	compiledFiles, err := filepath.Glob(filepath.Join(escapeGlob(c.out), "*", catalogFile))
	if err != nil {
		return nil, fmt.Errorf("list output folder: %w", err)
	}
	var out []Package
	earlierPackages := slices.Clone(c.Published)
	for _, path := range compiledFiles {
		name := filepath.Base(filepath.Dir(path))
		isHidden := strings.HasPrefix(name, ".") // readers of catalogs ignore hidden folders
		if isHidden || hasLadder(name) {
			continue
		}
		p, err := c.readPrevious(name)
		if err != nil {
			return nil, err
		}
		earlierPackages = append(earlierPackages, p)
		out = append(out, Package{Name: name, File: filepath.Join(name, catalogFile), Changed: true, Removed: true,
			Channels: CompareHeads(nil, p, nil)})
	}
	var problems []error
	for _, p := range earlierPackages {
		if p.Deprecation == "" && !hasLadder(p.Name) {
			problems = append(problems,
				fmt.Errorf("%w: package %q was offered and no longer has a ladder: restore its file, or deprecate "+
					"the package and publish that first", compile.ErrContinuity, p.Name))
		}
	}
	return out, errors.Join(problems...)
}

// escapeGlob escapes the characters of a folder's name that are special in a pattern.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// publish moves the changed files from the stage to their places. Packages are moved one by one, because they do not
// depend on each other. If a file cannot be moved, the earlier moves are undone.
func (c *compiler) publish(r Report) error {
	var undos []func()
	for _, p := range r.Packages {
		if !p.Changed {
			continue
		}
		undoPackage, err := c.publishPackage(p)
		if err != nil {
			for _, f := range slices.Backward(undos) {
				f()
			}
			return err
		}
		undos = append(undos, undoPackage)
	}
	return nil
}

// publishPackage moves the file of a package from the stage to its place, or removes the file of a removed package, and
// returns a function that undoes this. The old file is kept in the stage for that.
func (c *compiler) publishPackage(p Package) (undo func(), err error) {
	target := filepath.Join(c.out, p.File)
	missing := listMissingFolders(filepath.Dir(target))
	backup := filepath.Join(c.stage, p.Name+".former")
	undo = func() {
		if errors.Is(os.Rename(backup, target), fs.ErrNotExist) { // there was no file
			_ = os.Remove(target)
			removeEmptyFolders(missing)
		}
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // a catalog is there to be read
		return nil, fmt.Errorf("write package %q: %w", p.Name, err)
	}
	if p.Removed {
		if err := os.Rename(target, backup); err != nil {
			return nil, fmt.Errorf("remove package %q: %w", p.Name, err)
		}
		folder := filepath.Dir(target)
		_ = os.Remove(folder) // A folder with other files is not removed.
		return func() {
			_ = os.MkdirAll(folder, 0o755) //nolint:gosec // a catalog is there to be read
			undo()
		}, nil
	}
	// The old file stays in place until the rename replaces it, so that readers always find a file.
	if err := linkOrCopy(target, backup); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("write package %q: %w", p.Name, err)
	}
	if err := os.Rename(filepath.Join(c.stage, p.File), target); err != nil {
		removeEmptyFolders(missing)
		return nil, fmt.Errorf("write package %q: %w", p.Name, err)
	}
	return undo, nil
}

// linkOrCopy makes a hard link to a file, or a copy if the file system does not support hard links.
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
