// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// mostLines bounds the list of failures: whoever reads a run later sees its last 60 lines, and .ci/run adds some.
	mostLines = 40
	// FailuresTitle begins the list of failures, which .ci/run repeats at its end.
	FailuresTitle = "=== failures"
)

// Report collects results and prints them as they come in. Its methods may be called by several goroutines.
type Report struct {
	mu       sync.Mutex
	out      io.Writer
	Packages []*Package
	failures []Failure
	running  map[string]time.Time // since when, by folder
}

// NewReport returns a report that prints to out.
func NewReport(out io.Writer) *Report { return &Report{out: out, running: map[string]time.Time{}} }

// Watch prints every minute which packages are being tested, until the returned function is called.
func (r *Report) Watch() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ticker := time.NewTicker(time.Minute)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				r.printRunning(now)
			}
		}
	})
	return func() {
		ticker.Stop()
		cancel()
		group.Wait()
	}
}

func (r *Report) printRunning(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var running []string
	for _, folder := range slices.Sorted(maps.Keys(r.running)) {
		running = append(running, fmt.Sprintf("%s (%s)", folder, now.Sub(r.running[folder]).Round(time.Second)))
	}
	if len(running) > 0 {
		_, _ = fmt.Fprintf(r.out, "...   %d packages ended; running: %s\n", len(r.Packages),
			strings.Join(running, ", "))
	}
}

// Begin says that the tests of a package begin.
func (r *Report) Begin(folder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[folder] = time.Now()
}

// Printf prints a line.
func (r *Report) Printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(r.out, format+"\n", args...)
}

// Write passes on what another program prints.
func (r *Report) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

// Add adds a package that has ended, and prints it with everything that its failed tests printed.
func (r *Report) Add(p *Package) {
	verdict, took := "ok", fmt.Sprintf("%.1fs", p.Seconds)
	if p.Cached {
		took = "(cached)"
	}
	if !p.Passed {
		verdict = "FAIL"
	}
	failures := p.Failures()
	r.Printf("%-4s  %s  %s", verdict, p.Folder, took)
	for _, f := range failures {
		r.Printf("--- FAIL: %s\n%s", f.Name(), strings.Join(f.Message, "\n"))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, p.Folder)
	r.Packages = append(r.Packages, p)
	r.failures = append(r.failures, failures...)
}

// Fail adds a failure that is not of a test.
func (r *Report) Fail(f Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, f)
}

// Failures returns what has failed so far.
func (r *Report) Failures() []Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.failures)
}

// Forget removes the failures of a test with its subtests, or of a whole package, that has passed meanwhile: it counts
// as passed.
func (r *Report) Forget(folder, test string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isMeant := func(name string) bool { return test == "" || name == test || strings.HasPrefix(name, test+"/") }
	r.failures = slices.DeleteFunc(r.failures, func(f Failure) bool { return f.Folder == folder && isMeant(f.Test) })
	for _, p := range r.Packages {
		if p.Folder == folder {
			p.forget(isMeant)
		}
	}
}

// Print prints the failures with their messages, shortened so that they fit on a screen, and how many tests passed and
// failed.
func (r *Report) Print(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range summarize(r.failures) {
		_, _ = fmt.Fprintln(r.out, line)
	}
	passed, failed := 0, 0
	for _, p := range r.Packages {
		passed += p.Count("pass")
		failed += p.Count("fail", "") // a test that did not end has no state
	}
	_, _ = fmt.Fprintf(r.out, "%d packages, %s\n", len(r.Packages), took.Round(time.Second))
	if passed+failed > 0 {
		_, _ = fmt.Fprintf(r.out, "%d passed, %d failed\n", passed, failed)
	}
}

// summarize lists failures in at most mostLines lines: the names, and as much of each message as there is room for.
func summarize(failures []Failure) []string {
	if len(failures) == 0 {
		return nil
	}
	const around = 2 // the title, and the line that says how many more there are
	shown := failures[:min(len(failures), mostLines-around)]
	each := (mostLines - around - len(shown)) / len(shown)
	lines := []string{FailuresTitle}
	for _, f := range shown {
		lines = append(lines, f.Name())
		for _, line := range shorten(withoutInfo(f.Message), each) {
			lines = append(lines, "    "+line)
		}
	}
	if more := len(failures) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// withoutInfo leaves out what programs logged without being worried: the lists of all packages have it.
func withoutInfo(message []string) []string {
	return slices.DeleteFunc(slices.Clone(message), func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), `{"level":"info"`)
	})
}

// shorten leaves out the middle of a message that has more than n lines: its end says more than its beginning.
func shorten(message []string, n int) []string {
	if len(message) <= n {
		return message
	}
	if n < 3 {
		return message[len(message)-n:]
	}
	first := n / 4
	return append(append(slices.Clone(message[:first]), "..."), message[len(message)-(n-first-1):]...)
}
