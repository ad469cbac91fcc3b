// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root

import (
	"syscall"
	"testing"
	"time"
)

// A command that does not look at its context ends all the same, and one that ends in time exits by itself.
func TestInterrupt(t *testing.T) {
	exits := make(chan int, 2)
	interrupt := func() {
		t.Helper()
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	never, always := func() bool { return false }, func() bool { return true }
	ctx, stop := interruptible(time.Millisecond, never, func(code int) { exits <- code })
	interrupt()
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Fatal("the interrupt did not end the context")
	}
	select {
	case code := <-exits:
		if code != interrupted {
			t.Errorf("it exits with %d", code)
		}
	case <-time.After(time.Minute):
		t.Fatal("the process goes on after an interrupt")
	}
	stop()
	if ctx, stop = interruptible(time.Hour, never, func(code int) { exits <- code }); ctx.Err() != nil {
		t.Error("a new command begins interrupted")
	}
	interrupt()
	<-ctx.Done()
	stop()
	if len(exits) > 0 {
		t.Error("the process exits although the command ended")
	}

	ctx, stop = interruptible(0, always, func(code int) { exits <- code })
	defer stop()
	interrupt()
	<-ctx.Done()
	if len(exits) > 0 {
		t.Error("the process exits before the command has removed what it made")
	}
	interrupt()
	select {
	case <-exits:
	case <-time.After(time.Minute):
		t.Fatal("a second interrupt does not end the process")
	}
}
