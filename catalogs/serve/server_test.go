// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/catalogs/view"
)

// hop is a view of a package p in which next replaces installed.
func hop(t *testing.T, installed, next string) view.View {
	t.Helper()
	p, err := catalogs.ReadPackage(catalogs.SingleFile("f",
		strings.NewReader(catalogtest.Graph("p", "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0"))), "p")
	if err != nil {
		t.Fatal(err)
	}
	v, err := view.Build(view.Input{Package: p, Installed: catalogs.Installed{Name: installed}, Next: next})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func set(t *testing.T, s *serve.Server, key string, v view.View, port int) string {
	t.Helper()
	addr, _, err := s.Set(key, v, port)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// bundles returns what a connection sees. Like OLM it repeats the request if the connection breaks.
func bundles(t *testing.T, c *grpc.ClientConn) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		out, err := list(ctx, c)
		if err == nil {
			ready(ctx, t, c)
			return out
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// ready waits until the state of the connection that just answered is Ready: gRPC lets callers use a connection
// before it updates the state.
func ready(ctx context.Context, t *testing.T, c *grpc.ClientConn) {
	t.Helper()
	for now := c.GetState(); now != connectivity.Ready; now = c.GetState() {
		c.Connect() // it may have been idle for too long since
		if !c.WaitForStateChange(ctx, now) {
			t.Fatalf("the connection stays %s", now)
		}
	}
}

func list(ctx context.Context, c *grpc.ClientConn) ([]string, error) {
	stream, err := api.NewRegistryClient(c).ListBundles(ctx, &api.ListBundlesRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, err
	}
	var out []string
	for {
		b, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, b.GetCsvName()+"<"+b.GetReplaces())
	}
}

func TestChangeAffectsOneViewOnly(t *testing.T) {
	s := serve.New(serve.Options{})
	defer s.Close()
	changing := dial(t, set(t, s, "changing", hop(t, "", "p.v1.0.0"), 0))
	other := dial(t, set(t, s, "other", hop(t, "", "p.v1.2.0"), 0))
	if diff := cmp.Diff([]string{"p.v1.0.0<"}, bundles(t, changing)); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]string{"p.v1.2.0<"}, bundles(t, other)); diff != "" {
		t.Fatal(diff)
	}
	before, _ := s.State("changing")

	next := hop(t, "p.v1.0.0", "p.v1.1.0")
	addr, changed, err := s.Set("changing", next, 0)
	if err != nil || !changed || addr != before.Addr {
		t.Fatalf("Set: %q, %t, %v; the address was %q", addr, changed, err, before.Addr)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// OLM's catalog operator waits like this, and resolves again after a change.
	if !changing.WaitForStateChange(ctx, connectivity.Ready) {
		t.Fatal("the connection was not dropped")
	}
	if diff := cmp.Diff([]string{"p.v1.1.0<p.v1.0.0", "p.v1.0.0<"}, bundles(t, changing)); diff != "" {
		t.Error(diff)
	}
	if got := other.GetState(); got != connectivity.Ready {
		t.Errorf("the other view's connection is %s", got)
	}
	after, ok := s.State("changing")
	if !ok || after.Hash != next.Hash || after.Hash == before.Hash || after.Reads != 1 {
		t.Errorf("state %+v", after)
	}
}

func TestSameContentChangesNothing(t *testing.T) {
	s := serve.New(serve.Options{})
	defer s.Close()
	conn := dial(t, set(t, s, "v", hop(t, "", "p.v1.0.0"), 0))
	bundles(t, conn)
	if _, changed, err := s.Set("v", hop(t, "", "p.v1.0.0"), 0); changed || err != nil {
		t.Fatalf("changed %t, error %v", changed, err)
	}
	if state, _ := s.State("v"); state.Connections != 1 || state.Reads != 1 || conn.GetState() != connectivity.Ready {
		t.Errorf("state %+v, connection %s", state, conn.GetState())
	}
}

func TestParsePorts(t *testing.T) {
	for text, want := range map[string]serve.Ports{
		"50100-50129": {First: 50100, Last: 50129}, "1-65535": {First: 1, Last: serve.MaxPort}, "7-7": {First: 7, Last: 7},
		"": {}, "50100": {}, "0-9": {}, "9-1": {}, "1-65536": {}, "1-9-": {}, "a-b": {}, "1-9 ": {},
	} {
		got, err := serve.ParsePorts(text)
		if got != want || (err == nil) != (want != serve.Ports{}) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
		if err == nil && got.String() != text {
			t.Errorf("%q is written as %s", text, got)
		}
	}
}

func TestPorts(t *testing.T) {
	free := freePorts(t, 3)
	s := serve.New(serve.Options{Advertise: "agent.example", Ports: serve.Ports{First: free[0], Last: free[0] + 2}})
	defer s.Close()
	at := func(port int) string { return "agent.example:" + strconv.Itoa(port) }
	v := hop(t, "", "p.v1.0.0")

	if got := set(t, s, "recovered", v, free[0]+1); got != at(free[0]+1) {
		t.Errorf("preferred port: got %s", got)
	}
	if got := set(t, s, "new", v, 0); got != at(free[0]) {
		t.Errorf("no preference: got %s", got)
	}
	if got := set(t, s, "taken", v, free[0]+1); got != at(free[0]+2) {
		t.Errorf("preferred port taken: got %s", got)
	}
	if _, _, err := s.Set("one too many", v, 0); !errors.Is(err, serve.ErrNoPort) {
		t.Errorf("range exhausted: %v", err)
	}
	s.Remove("recovered")
	if got := set(t, s, "outside", v, 1); got != at(free[0]+1) {
		t.Errorf("preferred port outside the range: got %s", got)
	}
	if _, ok := s.State("recovered"); ok {
		t.Error("a removed view has a state")
	}
}

// freePorts returns the first of n consecutive free ports.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	// below the ports of the testbed and of outgoing connections
	for first := 15000; first < 20000; first += n {
		ports := make([]int, 0, n)
		for port := first; port < first+n; port++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				break
			}
			_ = l.Close()
			ports = append(ports, port)
		}
		if len(ports) == n {
			return ports
		}
	}
	t.Fatal("no free ports")
	return nil
}

func TestRestartKeepsThePort(t *testing.T) {
	number := freePorts(t, 1)[0] // no other test gets this port in the meantime
	first := serve.New(serve.Options{})
	addr := set(t, first, "v", hop(t, "", "p.v1.0.0"), number)
	conn := dial(t, addr)
	bundles(t, conn)
	first.Close()
	if _, _, err := first.Set("v", hop(t, "", "p.v1.0.0"), 0); !errors.Is(err, serve.ErrClosed) {
		t.Errorf("a closed server accepts a view: %v", err)
	}

	second := serve.New(serve.Options{})
	defer second.Close()
	if got := set(t, second, "v", hop(t, "", "p.v1.1.0"), number); got != addr {
		t.Fatalf("address %s, want %s", got, addr)
	}
	if diff := cmp.Diff([]string{"p.v1.1.0<"}, bundles(t, conn)); diff != "" {
		t.Error(diff)
	}
}

// TestConnectionsAreBounded: a client that opens many connections must get no more than its share, and an existing
// connection must continue to work.
func TestConnectionsAreBounded(t *testing.T) {
	s := serve.New(serve.Options{})
	t.Cleanup(s.Close)
	addr := set(t, s, "a", hop(t, "", "p.v1.0.0"), 0)
	olm := dial(t, addr)
	before := bundles(t, olm)
	refused := 0
	for range 100 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		// An HTTP/2 server sends first; a server that refuses closes the connection.
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			refused++
		}
	}
	if state, _ := s.State("a"); state.Connections > 32 || refused < 100-32 {
		t.Errorf("%d connections are open, %d were refused", state.Connections, refused)
	}
	if diff := cmp.Diff(before, bundles(t, olm)); diff != "" {
		t.Errorf("what OLM sees (-before +after):\n%s", diff)
	}
}

// TestIdleConnectionsEnd: a connection without requests is closed, and the client connects again for its
// next request.
func TestIdleConnectionsEnd(t *testing.T) {
	s := serve.New(serve.Options{IdleTimeout: 100 * time.Millisecond})
	t.Cleanup(s.Close)
	conn := dial(t, set(t, s, "a", hop(t, "", "p.v1.0.0"), 0))
	before := bundles(t, conn)
	deadline := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		state, _ := s.State("a")
		if state.Connections == 0 {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("%d connections that nobody uses are open", state.Connections)
		case <-tick.C:
		}
	}
	if diff := cmp.Diff(before, bundles(t, conn)); diff != "" {
		t.Errorf("what OLM sees after it connects again (-before +after):\n%s", diff)
	}
}

func TestCloseStopsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	s := serve.New(serve.Options{})
	for i := range 20 {
		conn := dial(t, set(t, s, strconv.Itoa(i), hop(t, "", "p.v1.0.0"), 0))
		bundles(t, conn)
		_ = conn.Close()
	}
	s.Remove("7")
	s.Close()
	deadline := time.After(time.Minute)
	for tick := time.NewTicker(10 * time.Millisecond); runtime.NumGoroutine() > before; {
		select {
		case <-deadline:
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		case <-tick.C:
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	s := serve.New(serve.Options{})
	defer s.Close()
	views := []view.View{hop(t, "", "p.v1.0.0"), hop(t, "p.v1.0.0", "p.v1.1.0"), hop(t, "p.v1.1.0", "")}
	addr := set(t, s, "v", views[0], 0)
	done := make(chan error)
	for i := range 4 {
		go func() {
			for n := range 50 {
				got, _, err := s.Set("v", views[(n+i)%len(views)], 0)
				if err == nil && got != addr {
					err = fmt.Errorf("address %s, want %s", got, addr)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkSet(b *testing.B) {
	var views [2]view.View
	for i := range views {
		var content strings.Builder
		if err := catalogtest.Write(&content, catalogtest.Options{Versions: 2, SchemaBytes: 100 << 10}); err != nil {
			b.Fatal(err)
		}
		p, err := catalogs.ReadPackage(catalogs.SingleFile("f", strings.NewReader(content.String())),
			catalogtest.PackageName(0))
		if err != nil {
			b.Fatal(err)
		}
		views[i], err = view.Build(view.Input{Package: p, Next: catalogtest.BundleName(0, i)})
		if err != nil {
			b.Fatal(err)
		}
	}
	s := serve.New(serve.Options{})
	defer s.Close()
	for i := 0; b.Loop(); i++ {
		if _, _, err := s.Set("v", views[i%2], 0); err != nil {
			b.Fatal(err)
		}
	}
}
