// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testenv gives integration tests real clusters. A test binary that uses it has
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
//
// APIServer, OLM and Shared start a cluster on first use and share it among all tests of the binary, which keep apart
// by namespaces and names; Cluster is private to one test. Everything ends with the test binary, in whatever way it
// ends.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/poll"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

// interrupted is the exit status of a program that Ctrl-C ended.
const interrupted = 130

// environment is what the tests of one binary share.
type environment struct {
	mu       sync.Mutex
	run      *runs.Run
	etcd     *cluster.Etcd
	binaries map[string]string
	shared   map[string]*cluster.Cluster
	serial   int
}

// current is set while Main runs.
var current *environment

// Main runs the tests and then stops every cluster they left running. It returns the exit status.
func Main(m *testing.M) int {
	env := &environment{binaries: map[string]string{}, shared: map[string]*cluster.Cluster{}}
	current = env
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		// A start in progress holds the lock; its children die with this process.
		if env.mu.TryLock() {
			_ = env.close(false)
		}
		os.Exit(interrupted)
	}()
	code := m.Run()
	env.mu.Lock()
	defer env.mu.Unlock()
	if err := env.close(code != 0); err != nil {
		fmt.Fprintln(os.Stderr, "stop test environment:", err)
		return max(code, 1)
	}
	return code
}

func (e *environment) close(failed bool) error {
	ctx := context.Background()
	for _, c := range e.shared {
		c.Stop(ctx)
	}
	if e.etcd != nil {
		e.etcd.Stop(ctx)
	}
	if e.run == nil {
		return nil
	}
	if failed {
		fmt.Fprintln(os.Stderr, "logs of the test environment stay for a day in", e.run.Dir())
	}
	return e.run.Release(failed)
}

// APIServer returns full access to an API server with Bellwether's CRDs. There are no controllers: nothing acts on
// Deployments, finishes deleted namespaces or makes ServiceAccounts.
func APIServer(t testing.TB) *rest.Config {
	t.Helper()
	c := Shared(t, cluster.Options{APIServerOnly: true})
	InstallCRDs(t, c)
	return c.RESTConfig()
}

// OLM returns a cluster with OLM, pods and Bellwether's CRDs. Images without a program are stubs.
func OLM(t testing.TB) *cluster.Cluster {
	t.Helper()
	c := Shared(t, cluster.Options{OLM: true, Pods: true})
	InstallCRDs(t, c)
	return c
}

// InstallCRDs installs Bellwether's CRDs from its chart. Doing so again changes nothing.
func InstallCRDs(t testing.TB, c *cluster.Cluster) {
	t.Helper()
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.InstallCRDs(filepath.Join(root, "charts", "bellwether", "files", "crds")); err != nil {
		t.Fatal(err)
	}
}

// Shared returns the cluster of these options that all tests of the binary share. Name, Dir, Binaries and Etcd are set
// here.
func Shared(t testing.TB, opts cluster.Options) *cluster.Cluster {
	t.Helper()
	env := environmentOf(t)
	env.mu.Lock()
	defer env.mu.Unlock()
	key := fmt.Sprintf("%t %t %t %v", opts.APIServerOnly, opts.OLM, opts.Pods, opts.Images)
	if c, ok := env.shared[key]; ok {
		return c
	}
	c, err := env.start(t, opts)
	if err != nil {
		t.Fatal(err)
	}
	env.shared[key] = c
	return c
}

// Cluster returns a cluster of the test's own, stopped at its end. Name, Dir, Binaries and Etcd are set here.
func Cluster(t testing.TB, opts cluster.Options) *cluster.Cluster {
	t.Helper()
	env := environmentOf(t)
	env.mu.Lock()
	defer env.mu.Unlock()
	c, err := env.start(t, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(context.Background()) })
	return c
}

// Namespace creates a namespace with a name of its own that starts with prefix, and deletes it at the end of the test.
func Namespace(t testing.TB, config *rest.Config, prefix string) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.CoreV1().Namespaces().Delete(context.Background(), ns.Name,
			metav1.DeleteOptions{}); err != nil {
			t.Logf("delete namespace %s: %v", ns.Name, err)
		}
	})
	return ns.Name
}

// Binary builds a program of this repository (package build) for the tests of this binary and returns its path.
func Binary(t testing.TB, name string) string {
	t.Helper()
	env := environmentOf(t)
	env.mu.Lock()
	defer env.mu.Unlock()
	if err := env.claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	path, err := env.local(t, name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func environmentOf(t testing.TB) *environment {
	t.Helper()
	if current == nil {
		t.Fatal("testenv needs: func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }")
	}
	return current
}

// start runs a cluster on the shared etcd; with a quota, on one of its own.
func (e *environment) start(t testing.TB, opts cluster.Options) (*cluster.Cluster, error) {
	t.Helper()
	ctx := t.Context()
	if err := e.claim(ctx); err != nil {
		return nil, err
	}
	if err := e.ensure(t, opts); err != nil {
		return nil, err
	}
	if e.etcd == nil && opts.EtcdQuota == 0 {
		etcd, err := cluster.StartEtcd(ctx, filepath.Join(e.run.Dir(), "etcd"), e.binaries[build.Etcd])
		if err != nil {
			return nil, err
		}
		e.etcd = etcd
	}
	e.serial++
	opts.Name = fmt.Sprintf("test-%d", e.serial)
	opts.Dir = filepath.Join(e.run.Dir(), opts.Name)
	opts.Binaries, opts.Quick = e.binaries, true
	if opts.EtcdQuota == 0 {
		opts.Etcd = e.etcd
	}
	if opts.Out == nil {
		opts.Out = t.Output()
	}
	defer Waited(t, "a cluster")()
	return cluster.Start(ctx, opts)
}

// claim takes a folder for this test binary.
func (e *environment) claim(ctx context.Context) error {
	if e.run != nil {
		return nil
	}
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(os.Args[0])), ".test")
	name = strings.NewReplacer("_", "-", ".", "-").Replace(name)
	run, err := runs.Claim(ctx, fmt.Sprintf("test-%.20s-%s", name, rand.String(6)))
	if err != nil {
		return err
	}
	e.run = run
	return nil
}

// ensure makes the binaries for opts available.
func (e *environment) ensure(t testing.TB, opts cluster.Options) error {
	t.Helper()
	var missing []string
	for _, name := range opts.Components() {
		if e.binaries[name] == "" {
			missing = append(missing, name)
		}
	}
	paths, err := build.Ensure(t.Context(), t.Output(), missing...)
	if err != nil {
		return err
	}
	for name, path := range paths {
		e.binaries[name] = path
	}
	if opts.Pods {
		_, err = e.local(t, build.PodRunner)
	}
	return err
}

// local builds one of this repository's programs, once per test binary.
func (e *environment) local(t testing.TB, name string) (string, error) {
	t.Helper()
	if path := e.binaries[name]; path != "" {
		return path, nil
	}
	defer Waited(t, "the build of "+name)()
	paths, err := build.Local(t.Context(), t.Output(), filepath.Join(e.run.Dir(), "bin"), name)
	if err != nil {
		return "", err
	}
	e.binaries[name] = paths[name]
	return paths[name], nil
}

// StopAtEnd stops a program at the end of a test. If the test failed, it logs how the program's own log ended before.
func StopAtEnd(t testing.TB, p *process.Process) {
	t.Cleanup(func() {
		tail := p.Tail()
		p.Stop(context.Background())
		if t.Failed() {
			t.Logf("%s:\n%s", p.Name(), tail)
		}
	})
}

// Caller is where the calling function was called, such as "rollout_test.go:12": what it waits for, if it is not told.
func Caller() string {
	_, file, line, _ := runtime.Caller(2)
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}

// AttributeWaited names the attribute of a test that says for how many seconds it waited, and for what: "12.3 rollout
// echo-1 is Succeeded". `make test-times` adds them up.
const AttributeWaited = "waited"

// Waited notes, when the returned function is called, for how long a test waited. Below a second nothing is noted.
func Waited(t testing.TB, what string) (end func()) {
	began := time.Now()
	return func() {
		if took := time.Since(began); took >= time.Second {
			t.Attr(AttributeWaited, fmt.Sprintf("%.1f %s", took.Seconds(), strings.Join(strings.Fields(what), " ")))
		}
	}
}

// Eventually checks again and again until a check returns nil. Once patience is over it fails the test with the last
// error, and with what the test waits for.
func Eventually(t testing.TB, patience time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	defer Waited(t, what)()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	if err := poll.Until(ctx, look, func() error { return check(ctx) }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// EventuallyTrue is Eventually for a check that has no more to say than whether it holds.
func EventuallyTrue(t testing.TB, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	Eventually(t, patience, what, func(context.Context) error {
		if !holds() {
			return errNotYet
		}
		return nil
	})
}

var errNotYet = errors.New("not yet")

// look is how often Eventually checks.
const look = 50 * time.Millisecond
