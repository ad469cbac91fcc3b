// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/poll"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

const limit = 2 * time.Minute

// The test binary plays the programs under test; the first argument says which.
var roles = map[string]func(args []string){
	"sleep":   func([]string) { block() },
	"exit":    func(args []string) { fmt.Println("last words"); code, _ := strconv.Atoi(args[0]); os.Exit(code) },
	"deaf":    func([]string) { signal.Ignore(syscall.SIGTERM); fmt.Println("ignoring"); block() },
	"spawner": spawner,
	"parent":  parent,
	"hasty":   hasty,
}

// block waits far longer than any test. An empty select would do so too, but the runtime takes it for a deadlock.
func block() { time.Sleep(time.Hour) } // impatient: the test ends it

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role, ok := roles[os.Args[1]]; ok {
			role(os.Args[2:])
			return
		}
	}
	os.Exit(m.Run())
}

// spawner starts a grandchild in its own process group and prints its id.
func spawner([]string) {
	grandchild := exec.Command(os.Args[0], "sleep")
	if err := grandchild.Start(); err != nil {
		panic(err)
	}
	fmt.Println("grandchild", grandchild.Process.Pid)
	block()
}

// parent runs one child by the package under test, prints its id and waits to be killed.
func parent(args []string) {
	p, err := process.Start(spec(args[0], "sleep"))
	if err != nil {
		panic(err)
	}
	fmt.Println(p.PID())
	block()
}

// hasty runs many programs that end at once.
func hasty(args []string) {
	for range 200 {
		p, err := process.Start(spec(args[0], "exit", "0"))
		if err != nil {
			panic(err)
		}
		<-p.Done()
		p.Kill()
	}
}

func spec(dir string, args ...string) process.Spec {
	return process.Spec{Name: args[0], Path: os.Args[0], Args: args, Log: filepath.Join(dir, "log"), Dir: dir}
}

func start(t *testing.T, args ...string) *process.Process {
	t.Helper()
	p, err := process.Start(spec(t.TempDir(), args...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func alive(pid int) bool {
	return syscall.Kill(pid, 0) == nil && !zombie(pid)
}

// zombie tells a process that ended but has not been waited for, as happens to orphans where init is slow.
func zombie(pid int) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(content), ") Z ")
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := poll.Until(ctx, 10*time.Millisecond, func() error {
		if !ok() {
			return errors.New(what)
		}
		return nil
	}); err != nil {
		t.Fatalf("not in time: %v", err)
	}
}

func TestStopAsksFirstAndKillsThen(t *testing.T) {
	tests := map[string]struct {
		role string
		log  string
	}{
		"ends when asked": {role: "sleep"},
		"ignores SIGTERM": {role: "deaf", log: "ignoring"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := start(t, test.role)
			eventually(t, "the program runs", func() bool { return strings.Contains(p.Tail(), test.log) })
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // impatient: then Stop kills
			defer cancel()
			p.Stop(ctx)
			if alive(p.PID()) {
				t.Error("still runs")
			}
			p.Stop(t.Context()) // a second time is no error
		})
	}
}

func TestKillEndsTheWholeGroup(t *testing.T) {
	p := start(t, "spawner")
	var grandchild int
	eventually(t, "grandchild starts", func() bool {
		_, err := fmt.Sscanf(p.Tail(), "grandchild %d", &grandchild)
		return err == nil
	})
	p.Kill()
	eventually(t, "grandchild ends", func() bool { return !alive(grandchild) })
}

func TestWaitReady(t *testing.T) {
	never := errors.New("not yet")
	tests := map[string]struct {
		args  []string
		ready error
		limit time.Duration
		want  []string
	}{
		"ready": {args: []string{"sleep"}, limit: limit},
		"ends before": {args: []string{"exit", "3"}, ready: never, limit: limit,
			want: []string{"exit ended", "exit status 3", "last words"}},
		"takes too long": {args: []string{"sleep"}, ready: never, limit: time.Millisecond,
			want: []string{"wait for sleep", "not ready in time", "not yet"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := start(t, test.args...)
			err := p.WaitReady(t.Context(), test.limit, func(context.Context) error { return test.ready })
			if (err != nil) != (test.want != nil) {
				t.Fatalf("have error %v", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error lacks %q: %v", part, err)
				}
			}
		})
	}
}

func TestKeptProcessIsStartedAgain(t *testing.T) {
	p := start(t, "sleep")
	kept := process.Keep(p)
	p.Kill()
	eventually(t, "it runs again", func() bool { return kept.Restarts() == 1 })
	again := kept.Process()
	if again.PID() == p.PID() || !alive(again.PID()) {
		t.Errorf("pid %d after %d, alive %t", again.PID(), p.PID(), alive(again.PID()))
	}
	kept.Stop(t.Context())
	if alive(again.PID()) {
		t.Error("still runs after Stop")
	}
}

func TestEnvironmentIsMinimal(t *testing.T) {
	t.Setenv("KUBECONFIG", "/of/the/caller")
	dir := t.TempDir()
	env, err := exec.LookPath("env")
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(process.Spec{Name: "env", Path: env, Env: []string{"OWN=1"}, Log: filepath.Join(dir, "log"),
		Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if text := p.Tail(); strings.Contains(text, "KUBECONFIG") || !strings.Contains(text, "OWN=1") {
		t.Errorf("environment:\n%s", text)
	}
}

// TestProgramsThatEndAtOnce runs in a process group of its own: to end a process without an id means to end one's own
// group.
func TestProgramsThatEndAtOnce(t *testing.T) {
	cmd := exec.Command(os.Args[0], "hasty", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestKilledParent kills a program that runs a child: nothing may be left, and what is written down must say so.
func TestKilledParent(t *testing.T) {
	dir := t.TempDir()
	p := exec.Command(os.Args[0], "parent", dir)
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if !alive(child) {
		t.Fatal("the child does not run")
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	if !process.DiesWithParent {
		if _, err := process.KillLeftovers(dir); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the child ends", func() bool { return !alive(child) })
	left, err := process.KillLeftovers(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("leftovers %q, error %v", left, err)
	}
}

// TestKillLeftovers shows that only the very process that was written down is ended, not one that got its id later.
func TestKillLeftovers(t *testing.T) {
	dir := t.TempDir()
	p, err := process.Start(spec(dir, "sleep"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	file := filepath.Join(dir, "sleep.pid.json")
	record, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	records, err := process.Records(dir)
	if err != nil || len(records) != 1 || records[0].PID != p.PID() || !records[0].Alive() {
		t.Fatalf("records %+v, error %v", records, err)
	}
	other := strings.Replace(string(record), records[0].Started, "1", 1)
	if err := os.WriteFile(file, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if left, err := process.KillLeftovers(dir); err != nil || len(left) != 0 || !alive(p.PID()) {
		t.Fatalf("a process that started at another time: killed %q, error %v", left, err)
	}
	if err := os.WriteFile(file, record, 0o600); err != nil {
		t.Fatal(err)
	}
	if left, err := process.KillLeftovers(dir); err != nil || len(left) != 1 {
		t.Fatalf("killed %q, error %v", left, err)
	}
	<-p.Done()
}

func TestResidentBytes(t *testing.T) {
	p := start(t, "deaf")
	eventually(t, "the program runs", func() bool { return strings.Contains(p.Tail(), "ignoring") })
	// The kernel adds the pages up with some delay.
	eventually(t, "its memory is known", func() bool {
		bytes, err := process.ResidentBytes(p.PID())
		return err == nil && bytes > 0
	})
}
