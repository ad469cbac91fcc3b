// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package child_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/testbed/podrunner/child"
	"github.com/bellwether-dev/bellwether/testbed/poll"
)

const role = "CHILD_TEST_ROLE"

// TestMain lets the test binary be the programs that the tests run.
func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "print":
		fmt.Println(os.Args[1:], os.Getenv("A"), os.Getenv("HOME"))
		os.Exit(3)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		<-time.After(time.Hour)
	case "obedient":
		fmt.Println("ready")
		<-time.After(time.Hour)
	case "parent":
		parent()
	default:
		os.Exit(m.Run())
	}
}

// parent starts a stubborn child, prints its id and waits to be killed.
func parent() {
	c, err := child.Start(command("stubborn", io.Discard))
	if err != nil {
		panic(err)
	}
	fmt.Println(c.PID())
	<-time.After(time.Hour)
}

func command(what string, out io.Writer) child.Command {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return child.Command{Path: self, Args: []string{"x", "y"}, Env: []string{role + "=" + what, "A=b"},
		Dir: os.TempDir(), Output: out}
}

func TestStart(t *testing.T) {
	t.Setenv("HOME", "/must/not/be/handed/on")
	var out bytes.Buffer
	c, err := child.Start(command("print", &out))
	if err != nil {
		t.Fatal(err)
	}
	if code := c.ExitCode(); code != 3 {
		t.Errorf("exit code = %d, want 3", code)
	}
	if diff := cmp.Diff("[x y] b \n", out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestStartNothing(t *testing.T) {
	if _, err := child.Start(child.Command{Path: "/no/such/program"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error = %v, want one that says it does not exist", err)
	}
}

func TestStop(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	tests := map[string]struct {
		role  string
		grace time.Duration
		now   <-chan struct{}
		want  int32
	}{
		"obedient":          {"obedient", time.Hour, nil, 128 + int32(syscall.SIGTERM)},
		"stubborn":          {"stubborn", 10 * time.Millisecond, nil, 128 + int32(syscall.SIGKILL)},
		"no grace any more": {"stubborn", time.Hour, closed, 128 + int32(syscall.SIGKILL)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, w := io.Pipe()
			c, err := child.Start(command(tt.role, w))
			if err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(r).ReadString('\n'); err != nil {
				t.Fatalf("read %q: %v", line, err)
			}
			go io.Copy(io.Discard, r) //nolint:errcheck // ends with the test
			c.Stop(tt.grace, tt.now)
			if code := c.ExitCode(); code != tt.want {
				t.Errorf("exit code = %d, want %d", code, tt.want)
			}
			if err := syscall.Kill(c.PID(), 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d is still there: %v", c.PID(), err)
			}
		})
	}
}

// A killed runner takes its pods with it.
func TestChildDiesWithItsParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{role + "=parent"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := poll.Until(ctx, 10*time.Millisecond, func() error {
		if running(pid) {
			return errors.New("the process outlived its parent")
		}
		return nil
	}); err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
}

// running is false for a zombie that nobody has waited for yet.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
