// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/fleet"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/runs"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// asProgram makes the test binary behave as the program itself.
const asProgram = "TESTBED_TEST_AS_PROGRAM"

const limit = 3 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// screen collects what a program shows.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// command prepares a call of the program.
func command(t *testing.T, args ...string) (*exec.Cmd, *screen) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	cmd, s := exec.CommandContext(ctx, os.Args[0], args...), &screen{}
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = s, s
	return cmd, s
}

// call runs the program to its end and returns what it showed.
func call(t *testing.T, args ...string) string {
	t.Helper()
	cmd, s := command(t, args...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("testbed %s: %v\n%s", strings.Join(args, " "), err, s)
	}
	return s.String()
}

// ensure builds what a hub needs, so that a cold cache does not count as slowness of the program.
func ensure(t *testing.T) {
	t.Helper()
	if _, err := build.Ensure(context.Background(), t.Output(), build.Etcd, build.KubeAPIServer,
		build.KubeControllerManager); err != nil {
		t.Fatal(err)
	}
}

// foreground starts a hub without members in the foreground and returns when it is up.
func foreground(t *testing.T, name string) (*exec.Cmd, []process.Record) {
	t.Helper()
	ensure(t)
	cmd, s := command(t, "up", "--name", name, "--clusters", "", "--no-pods")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	testenv.EventuallyTrue(t, limit, "fleet is up", func() bool {
		if strings.Contains(s.String(), "Ctrl-C stops and removes everything") {
			return true
		}
		if errors.Is(syscall.Kill(cmd.Process.Pid, 0), syscall.ESRCH) {
			t.Fatalf("ended early:\n%s", s)
		}
		return false
	})
	return cmd, recorded(t, name)
}

// recorded returns the processes of a fleet that is up.
func recorded(t *testing.T, name string) []process.Record {
	t.Helper()
	dir, ok := runs.Folder(name)
	if !ok {
		t.Fatalf("fleet %s is not up", name)
	}
	records, err := process.Records(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 3 { // etcd, API server, controller-manager
		t.Fatalf("want 3 processes, have %+v", records)
	}
	return records
}

func assertGone(t *testing.T, records []process.Record) {
	t.Helper()
	for _, r := range records {
		testenv.EventuallyTrue(t, limit, r.Name+" ends", func() bool { return !r.Alive() })
	}
}

func fleetName(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("clitest-%d-%d", os.Getpid(), time.Now().UnixNano()%100000)
}

func TestInterruptStopsEverything(t *testing.T) {
	name := fleetName(t)
	cmd, records := foreground(t, name)
	dir, _ := runs.Folder(name)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit status after Ctrl-C: %v", err)
	}
	for _, r := range records {
		if r.Alive() {
			t.Errorf("%s (%d) still runs", r.Name, r.PID)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there (%v)", err)
	}
}

func TestKilledProgramLeavesNothing(t *testing.T) {
	name := fleetName(t)
	cmd, records := foreground(t, name)
	dir, _ := runs.Folder(name)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if process.DiesWithParent {
		assertGone(t, records)
	}
	call(t, "down", "--name", name)
	assertGone(t, records)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there (%v)", err)
	}
}

func TestDetachedFleet(t *testing.T) {
	ensure(t)
	name := fleetName(t)
	if text := call(t, "up", "--name", name, "--clusters", "", "--no-pods", "--detach"); !strings.Contains(text,
		"hub: API server ready") {
		t.Errorf("up showed no progress:\n%s", text)
	}
	t.Cleanup(func() { call(t, "down", "--name", name) })
	records := recorded(t, name)
	status := call(t, "status", "--name", name)
	for _, r := range records {
		if !r.Alive() || !strings.Contains(status, r.Name) {
			t.Errorf("%s: alive %t; status:\n%s", r.Name, r.Alive(), status)
		}
	}
	state, err := fleet.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	if path := strings.TrimSpace(call(t, "kubeconfig", "hub", "--name", name)); path != state.Clusters[0].Kubeconfig ||
		!filepath.IsAbs(path) {
		t.Errorf("kubeconfig is %q, want %q", path, state.Clusters[0].Kubeconfig)
	}
	if cmd, s := command(t, "up", "--name", name); cmd.Run() == nil ||
		!strings.Contains(s.String(), runs.ErrInUse.Error()) {
		t.Errorf("a second fleet of the same name: %s", s)
	}
	call(t, "down", "--name", name)
	assertGone(t, records)
	if cmd, s := command(t, "status", "--name", name); cmd.Run() == nil ||
		!strings.Contains(s.String(), "no fleet "+name+" is up") {
		t.Errorf("status of no fleet: %s", s)
	}
}

func TestMistakesAreExplained(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"image without path": {args: []string{"up", "--image", "example.com/x"}, want: "IMAGE=PATH"},
		"no such program":    {args: []string{"up", "--image", "example.com/x=/no/such/file"}, want: "no such file"},
		"member named hub":   {args: []string{"up", "--clusters", "a,hub"}, want: `cluster name "hub" is taken`},
		"member named twice": {args: []string{"up", "--clusters", "a,a"}, want: `cluster name "a" is taken`},
		"bad fleet name":     {args: []string{"up", "--name", "No Name"}, want: "a name is made of"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cmd, s := command(t, test.args...)
			if err := cmd.Run(); err == nil || !strings.Contains(s.String(), test.want) {
				t.Errorf("error %v, text:\n%s", err, s)
			}
		})
	}
}
