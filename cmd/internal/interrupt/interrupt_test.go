// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package interrupt

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSignals has programs that do not check their context. Some of them clean up.
func TestSignals(t *testing.T) {
	const long = 24 * time.Hour
	// The runtime begins to catch signals outside of any bubble.
	Watch(Options{}).Stop()
	clean := func() bool { return true }
	for name, tc := range map[string]struct {
		options Options
		signals []syscall.Signal
		// ends has the output of the program and its exit status; nothing
		// if the program continues.
		ends []any
	}{
		"an interrupt, after the grace":  {Options{Grace: 1}, []syscall.Signal{syscall.SIGINT}, []any{Word, 130}},
		"an interrupt, within the grace": {Options{Grace: long}, []syscall.Signal{syscall.SIGINT}, nil},
		"an interrupt of a server":       {Options{}, []syscall.Signal{syscall.SIGINT}, nil},
		"an interrupt of what cleans up": {Options{Grace: 1, CleansUp: clean}, []syscall.Signal{syscall.SIGINT}, nil},
		"two interrupts of what cleans up": {Options{Grace: 1, CleansUp: clean},
			[]syscall.Signal{syscall.SIGINT, syscall.SIGINT}, []any{Word, 130}},
		"SIGTERM":                  {Options{Grace: 1}, []syscall.Signal{syscall.SIGTERM}, nil},
		"SIGTERM twice":            {Options{Grace: 1}, []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM}, []any{143}},
		"SIGTERM and an interrupt": {Options{Grace: 1}, []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}, []any{143}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []any
				tc.options.PrintWord = func() { got = append(got, Word) }
				tc.options.Exit = func(code int) { got = append(got, code) }
				s := Watch(tc.options)
				for _, signal := range tc.signals {
					s.received <- signal
					synctest.Wait()
				}
				if s.Context().Err() == nil {
					t.Error("the context goes on")
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				s.Stop()
				if diff := cmp.Diff(tc.ends, got); diff != "" {
					t.Errorf("it ends with (-want +got):\n%s", diff)
				}
				if want := tc.signals[0] == syscall.SIGINT; s.Interrupted() != want {
					t.Errorf("interrupted is %v", !want)
				}
			})
		})
	}
}

// TestSignalsAreCaught sends a real one.
func TestSignalsAreCaught(t *testing.T) {
	s := Watch(Options{})
	defer s.Stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-s.Context().Done()
	if !s.Interrupted() {
		t.Error("it was not interrupted")
	}
}

// TestNoSignal has a program that ends by itself.
func TestNoSignal(t *testing.T) {
	s := Watch(Options{Exit: func(int) { t.Error("it exits") }})
	if s.Context().Err() != nil || s.Interrupted() {
		t.Error("it begins interrupted")
	}
	s.Stop()
	if s.Context().Err() == nil {
		t.Error("the context goes on")
	}
}
