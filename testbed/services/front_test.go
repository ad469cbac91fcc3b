// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// opened returns the address of a front that leads to a backend. It ends with the test.
func opened(t *testing.T, back net.Addr) string {
	t.Helper()
	conns := newConnections()
	f, err := openFront(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"),
		[]netip.AddrPort{netip.MustParseAddrPort(back.String())}, conns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.close()
		conns.cut()
	})
	return f.listener.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// TestEachSideMayFinishFirst has a client that says all and only then listens: the server must learn of the end, and
// the client must get what comes after it.
func TestEachSideMayFinishFirst(t *testing.T) {
	backend := listen(t)
	go func() {
		conn, err := backend.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		question, err := io.ReadAll(conn)
		if err == nil {
			_, _ = conn.Write(append([]byte("re: "), question...))
		}
	}()
	address := opened(t, backend.Addr())
	client := dial(t, address)
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(client); err != nil || string(answer) != "re: hello" {
		t.Errorf("answer %q, error %v", answer, err)
	}
}

// TestGoneBackendIsNoEmptyAnswer: between a pod's end and the news of it, clients get an error.
func TestGoneBackendIsNoEmptyAnswer(t *testing.T) {
	backend := listen(t)
	address := opened(t, backend.Addr())
	if err := backend.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	var answer []byte
	if err == nil { // the reset may come before the dialler looks
		defer func() { _ = conn.Close() }()
		answer, err = io.ReadAll(conn)
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("answer %q, error %v; want a reset connection", answer, err)
	}
}

// TestCutEndsWhatIsOpen: a node that ends leaves nobody waiting.
func TestCutEndsWhatIsOpen(t *testing.T) {
	backend := listen(t)
	accepted := make(chan net.Conn, 1)
	go func() {
		if conn, err := backend.Accept(); err == nil {
			accepted <- conn
		}
	}()
	conns := newConnections()
	f, err := openFront(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"),
		[]netip.AddrPort{netip.MustParseAddrPort(backend.Addr().String())}, conns)
	if err != nil {
		t.Fatal(err)
	}
	client := dial(t, f.listener.Addr().String())
	server := <-accepted
	defer func() { _ = server.Close() }()
	if err := server.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	f.close()
	conns.cut()
	if _, err := io.ReadAll(client); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("client: %v", err)
	}
	if _, err := io.ReadAll(server); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("server: %v", err)
	}
}
