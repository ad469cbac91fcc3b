// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// Times is how long tests took when they ran last, in a file. Its methods may be called by several goroutines.
type Times struct {
	mu   sync.Mutex
	path string
	// Seconds by "folder@tier", "folder Test", and "folder Test\twhat it waited for".
	seconds map[string]float64
}

// waitMark separates a test from what it waited for.
const waitMark = "\t"

// LoadTimes reads the file at path. That there is none means that no time is known.
func LoadTimes(path string) (*Times, error) {
	times := &Times{path: path, seconds: map[string]float64{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return times, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &times.seconds)
	}
	if err != nil {
		return nil, fmt.Errorf("read times of tests: %w", err)
	}
	return times, nil
}

// Add records how long the tests of a tier in a package took.
func (t *Times) Add(p *Package, tier Tier) {
	if p.Cached {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.seconds, func(key string, _ float64) bool {
		test, _, isWait := strings.Cut(strings.TrimPrefix(key, p.Folder+" "), waitMark)
		return isWait && p.Tests[test] != nil
	})
	for name, test := range p.Tests {
		if !strings.Contains(name, "/") {
			t.seconds[p.Folder+" "+name] = test.Seconds
		}
	}
	for name, test := range p.Tests {
		name, _, _ = strings.Cut(name, "/")
		for what, seconds := range test.Waits {
			t.seconds[p.Folder+" "+name+waitMark+what] += seconds
		}
	}
	t.seconds[packageKey(p.Folder, tier)] = p.Seconds
}

func packageKey(folder string, tier Tier) string { return folder + "@" + string(tier) }

// Save writes the file.
func (t *Times) Save() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	text, err := json.MarshalIndent(t.seconds, "", " ")
	if err != nil {
		return fmt.Errorf("encode times of tests: %w", err)
	}
	if err := writeFile(t.path, text); err != nil {
		return fmt.Errorf("write times of tests: %w", err)
	}
	return nil
}

// sortLongestFirst sorts jobs of a tier so that the one that took the longest begins first.
func (t *Times) sortLongestFirst(jobs []Job, tier Tier) {
	t.mu.Lock()
	defer t.mu.Unlock()
	longest := func(job Job) float64 {
		most := 0.0
		for _, folder := range job.Folders {
			most = max(most, t.seconds[packageKey(folder, tier)])
		}
		return most
	}
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(longest(b), longest(a)) })
}

// Print prints packages, tests, and what tests waited for, what took the longest first, at most n of each.
func (t *Times) Print(out io.Writer, n int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	isWait := func(name string) bool { return strings.Contains(name, waitMark) }
	isPackage := func(name string) bool { return !strings.Contains(name, " ") }
	for _, of := range []struct {
		title string
		is    func(name string) bool
	}{
		{"PACKAGE@TIER", isPackage},
		{"TEST", func(name string) bool { return !isPackage(name) && !isWait(name) }},
		{"TEST THAT WAITED: FOR WHAT", isWait},
	} {
		_, _ = fmt.Fprintf(table, "SECONDS\t%s\n", of.title)
		names := slices.DeleteFunc(slices.Collect(maps.Keys(t.seconds)), func(name string) bool { return !of.is(name) })
		slices.SortFunc(names, func(a, b string) int {
			return cmp.Or(cmp.Compare(t.seconds[b], t.seconds[a]), strings.Compare(a, b))
		})
		for _, name := range names[:min(n, len(names))] {
			_, _ = fmt.Fprintf(table, "%.1f\t%s\n", t.seconds[name], strings.Replace(name, waitMark, ": ", 1))
		}
	}
	return table.Flush()
}

// writeFile replaces a file in one step, so that nobody reads half of it.
func writeFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	unfinished, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".unfinished-")
	if err != nil {
		return err
	}
	_, err = unfinished.Write(text)
	err = errors.Join(err, unfinished.Close())
	if err == nil {
		err = os.Rename(unfinished.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(unfinished.Name()))
	}
	return nil
}

// appendLine adds a line to a file, which need not be there.
func appendLine(path, line string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("create folder of results: %w", err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open results: %w", err)
	}
	_, err = fmt.Fprintln(file, line)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}
