// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// reportEvery is the time between two lines about what is left.
const reportEvery = 15 * time.Second

// progress tells people who wait what is built and how much is left. It counts bytes of source, because the time to
// compile a package follows the size of its source better than anything else that is known before.
type progress struct {
	out io.Writer
	now func() time.Time

	mu      sync.Mutex
	left    map[string]int64 // sizes of packages that are still to be compiled, by their import paths
	total   int64            // with those that are compiled
	waiting int              // targets that are not listed yet
	// compiled are packages whose compilation has begun.
	compiled map[string]bool
	start    time.Time
	told     time.Time
}

func newProgress(out io.Writer) *progress {
	return &progress{out: out, now: time.Now, left: map[string]int64{}, compiled: map[string]bool{}}
}

// target is what one call of the go command builds.
type target struct {
	module   goModule
	packages []string
	flags    []string
}

// expect lists what has to be compiled for targets, one after the other, while something else is done. That downloads
// their sources. The returned function ends it.
func (p *progress) expect(ctx context.Context, targets []target) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.waiting = len(targets)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, t := range targets {
			sizes, _ := t.module.stale(ctx, t.packages, t.flags...) // the build reports what is wrong with the module
			p.add(sizes)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// add counts packages that have to be compiled, of one target.
func (p *progress) add(sizes map[string]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
	for path, size := range sizes {
		if _, ok := p.left[path]; !ok && !p.compiled[path] {
			p.left[path] = size
			p.total += size
		}
	}
}

// build compiles packages into path, and counts what is compiled.
func (p *progress) build(ctx context.Context, module goModule, path string, packages []string, flags ...string) error {
	module.watch = &lineWriter{line: p.compiling}
	return module.build(ctx, path, packages, append([]string{"-v"}, flags...)...)
}

// compiling is called with each line of `go build -v`: most are import paths of packages that are being compiled.
func (p *progress) compiling(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.left, line)
	p.compiled[line] = true
	now := p.now()
	if p.start.IsZero() {
		p.start, p.told = now, now
	}
	if p.total == 0 || now.Sub(p.told) < reportEvery {
		return
	}
	p.told = now
	say(p.out, "  %s\n", p.remaining(now.Sub(p.start)))
}

// remaining says how much is left after some time. Whoever calls it holds the lock.
func (p *progress) remaining(passed time.Duration) string {
	var left int64
	for _, size := range p.left {
		left += size
	}
	done := p.total - left
	if p.waiting > 0 || done <= 0 {
		return fmt.Sprintf("%d MB of source compiled; still finding out how much is left", done/1_000_000)
	}
	if left == 0 {
		return fmt.Sprintf("all %d MB of source compiled; the programs are being linked", p.total/1_000_000)
	}
	rest := time.Duration(float64(passed) / float64(done) * float64(left))
	return fmt.Sprintf("%d of %d MB of source compiled, about %s left", done/1_000_000, p.total/1_000_000,
		rest.Round(10*time.Second))
}

// stale returns the sizes of the sources of all packages that a build of the given ones would compile, by their import
// paths. It downloads what is missing.
func (m goModule) stale(ctx context.Context, packages []string, flags ...string) (map[string]int64, error) {
	const format = `{{if .Stale}}{{.ImportPath}}{{"\t"}}{{.Dir}}{{range .GoFiles}}{{"\t"}}{{.}}{{end}}{{end}}`
	args := append([]string{"list", "-mod=readonly", "-deps", "-f", format}, flags...)
	listed, err := m.run(ctx, append(args, packages...)...)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for line := range strings.Lines(listed) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) < 2 {
			continue
		}
		var size int64
		for _, name := range fields[2:] {
			if info, err := os.Stat(filepath.Join(fields[1], name)); err == nil {
				size += info.Size()
			}
		}
		sizes[fields[0]] = size
	}
	return sizes, nil
}

// lineWriter calls a function with each line that is written to it.
type lineWriter struct {
	line func(string)
	rest string
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest += string(p)
	for {
		line, rest, found := strings.Cut(w.rest, "\n")
		if !found {
			return len(p), nil
		}
		w.rest = rest
		w.line(line)
	}
}
