// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// tooLargeError means that a server sent more bytes than the limit of the probe.
type tooLargeError struct{ limit int }

// Error implements error.
func (e tooLargeError) Error() string {
	message := fmt.Sprintf("the answer has more than %d KiB", e.limit>>10)
	if e.limit < maxBody {
		message += fmt.Sprintf(", which is the limit for the expressions of this probe: it is %d KiB for "+
			"spec.http.json, and up to %d KiB with fewer or smaller regular expressions", maxJSON>>10, maxBody>>10)
	}
	return message
}

const (
	// maxBody limits the bytes of an answer's body, and maxStream limits the bytes of a whole
	// connection, including headers and TLS.
	maxBody   = 512 << 10
	maxStream = maxBody + 128<<10
	// handshakeTimeout limits the SOCKS handshake. The client is this process.
	handshakeTimeout = 10 * time.Second
	proxyBuffer      = 4 << 10
)

// socksProxy is a SOCKS5 proxy (RFC 1928) on the loopback address, for this process only. Every
// connection of an HTTP probe uses it, because blackbox_exporter's prober accepts a proxy, but
// no dialer. The proxy looks up names, refuses private addresses in each redirect, counts bytes
// and closes connections at the deadline. A client must present the name of a session of a
// running probe (RFC 1929).
type socksProxy struct {
	addresses addressResolver
	dialer    net.Dialer
	once      sync.Once
	listener  net.Listener
	listenErr error

	mu       sync.Mutex
	sessions map[string]*session
}

// session has the permissions and the results of one run of a probe.
type session struct {
	ctx          context.Context
	allowPrivate bool
	// host resolves to the address pinned, if pinned is valid.
	host   string
	pinned netip.Addr
	// cost limits the bytes that are read of each connection.
	cost cost

	mu              sync.Mutex
	failure         error
	lookup, connect time.Duration
	address         netip.Addr
	// received is the number of bytes received on all connections.
	received int64
}

// setFailure stores the first failure of the run.
func (s *session) setFailure(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = err
	}
}

// countedWriter counts bytes before the prober receives them, so that all bytes are counted when
// the run ends. Like plainWriter, it hides ReadFrom.
type countedWriter struct {
	io.Writer
	session *session
}

func (c countedWriter) Write(b []byte) (int, error) {
	c.session.addReceived(int64(len(b)))
	return c.Writer.Write(b)
}

// addReceived adds n to the received bytes.
func (s *session) addReceived(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received += n
}

// countSteps returns the maximum steps of the expressions, without the
// evaluation of spec.http.json.
func (s *session) countSteps() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cost.countSteps(int(s.received))
}

// outcome returns the recorded times, address and failure. It is called after the run.
func (s *session) outcome() (lookup, connect time.Duration, address netip.Addr, failure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lookup, s.connect, s.address, s.failure
}

// openSession returns the URL of the proxy for one run. It starts the proxy at the first call.
// closeSession must be called when the run has ended.
func (proxy *socksProxy) openSession(s *session) (proxyURL *url.URL, closeSession func(), err error) {
	proxy.once.Do(func() {
		proxy.sessions = map[string]*session{}
		proxy.listener, proxy.listenErr = new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if proxy.listenErr == nil {
			go proxy.serve()
		}
	})
	if proxy.listenErr != nil {
		return nil, nil, fmt.Errorf("listen for the probe proxy: %w", proxy.listenErr)
	}
	name := rand.Text()
	proxy.mu.Lock()
	proxy.sessions[name] = s
	proxy.mu.Unlock()
	proxyURL = &url.URL{Scheme: "socks5", User: url.UserPassword(name, "-"), Host: proxy.listener.Addr().String()}
	return proxyURL, func() {
		proxy.mu.Lock()
		delete(proxy.sessions, name)
		proxy.mu.Unlock()
	}, nil
}

// serve accepts connections until the listener is closed.
func (proxy *socksProxy) serve() {
	for {
		conn, err := proxy.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go proxy.serveConn(conn)
		}
	}
}

// close closes the listener if the proxy was started.
func (proxy *socksProxy) close() {
	if proxy.listener != nil {
		_ = proxy.listener.Close()
	}
}

// serveConn handles one connection of a client: it reads the handshake, connects to the
// destination and forwards the data.
func (proxy *socksProxy) serveConn(client net.Conn) {
	defer client.Close() //nolint:errcheck // nothing is left to be written
	if err := client.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return
	}
	reader := bufio.NewReaderSize(client, 600)
	s, host, port, err := proxy.readHandshake(reader, client)
	if err != nil {
		return
	}
	server, err := proxy.connect(s, host, port)
	if err != nil {
		s.setFailure(err)
		_, _ = client.Write(newSOCKSReply(1))
		return
	}
	defer server.Close() //nolint:errcheck // nothing is left to be written
	if deadline, ok := s.ctx.Deadline(); ok {
		_ = client.SetDeadline(deadline)
		_ = server.SetDeadline(deadline)
	}
	if _, err := client.Write(newSOCKSReply(0)); err != nil {
		return
	}
	forward(s, reader, client, server)
}

// forward copies data in both directions until the server ends its data, the session's limit of
// bytes is reached, or the session's context ends; then it closes both connections. If the client
// ends its data first, forward ends only the data to the server, and continues to copy the
// server's answer.
func forward(s *session, reader *bufio.Reader, client, server net.Conn) {
	stop := context.AfterFunc(s.ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.CopyBuffer(plainWriter{server}, plainReader{reader}, make([]byte, proxyBuffer))
		if half, ok := server.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}()
	n, _ := io.CopyBuffer(countedWriter{client, s}, io.LimitReader(server, s.cost.streamLimit()),
		make([]byte, proxyBuffer))
	if n >= s.cost.streamLimit() {
		s.setFailure(tooLargeError{s.cost.bodyLimit})
	}
	_ = client.Close()
	_ = server.Close()
	<-done
}

// plainReader and plainWriter hide WriteTo and ReadFrom, which would
// use larger buffers or pipes.
type plainReader struct{ io.Reader }
type plainWriter struct{ io.Writer }

const socks5, withPassword, connectCommand = 5, 2, 1

// Kinds of addresses.
const ipv4, domain, ipv6 = 1, 3, 4

var errSOCKS = errors.New("malformed request to the probe proxy")

// newSOCKSReply returns the reply to a request; code 0 means success, and 1 means failure.
func newSOCKSReply(code byte) []byte { return []byte{socks5, code, 0, ipv4, 0, 0, 0, 0, 0, 0} }

// readHandshake performs the SOCKS handshake, and returns the client's session, and the host and
// the port of the destination. The error is errSOCKS if the client sends anything else, or a
// password that belongs to no session.
func (proxy *socksProxy) readHandshake(reader *bufio.Reader, client io.Writer) (*session, string, string, error) {
	var head [2]byte
	if _, err := io.ReadFull(reader, head[:]); err != nil || head[0] != socks5 {
		return nil, "", "", errSOCKS
	}
	if _, err := reader.Discard(int(head[1])); err != nil {
		return nil, "", "", errSOCKS
	}
	if _, err := client.Write([]byte{socks5, withPassword}); err != nil {
		return nil, "", "", errSOCKS
	}
	if version, err := reader.ReadByte(); err != nil || version != 1 {
		return nil, "", "", errSOCKS
	}
	name, err1 := readText(reader)
	_, err2 := readText(reader)
	proxy.mu.Lock()
	s := proxy.sessions[name]
	proxy.mu.Unlock()
	if err := errors.Join(err1, err2); err != nil || s == nil {
		_, _ = client.Write([]byte{1, 1}) // the name is refused
		return nil, "", "", errSOCKS
	}
	if _, err := client.Write([]byte{1, 0}); err != nil { // the name is accepted
		return nil, "", "", errSOCKS
	}
	host, port, err := readDestination(reader)
	return s, host, port, err
}

// readText reads a text that starts with its length in one byte.
func readText(reader *bufio.Reader) (string, error) {
	length, err := reader.ReadByte()
	if err != nil {
		return "", errSOCKS
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(reader, content); err != nil {
		return "", errSOCKS
	}
	return string(content), nil
}

// readDestination reads the host and the port of a connect request.
func readDestination(reader *bufio.Reader) (host, port string, err error) {
	var head [4]byte
	if _, err := io.ReadFull(reader, head[:]); err != nil || head[0] != socks5 || head[1] != connectCommand {
		return "", "", errSOCKS
	}
	switch head[3] {
	case domain:
		if host, err = readText(reader); err != nil {
			return "", "", err
		}
	case ipv4, ipv6:
		raw := make([]byte, map[byte]int{ipv4: 4, ipv6: 16}[head[3]])
		if _, err := io.ReadFull(reader, raw); err != nil {
			return "", "", errSOCKS
		}
		address, _ := netip.AddrFromSlice(raw)
		host = address.String()
	default:
		return "", "", errSOCKS
	}
	var number [2]byte
	if _, err := io.ReadFull(reader, number[:]); err != nil {
		return "", "", errSOCKS
	}
	return host, strconv.Itoa(int(number[0])<<8 | int(number[1])), nil
}

// connect opens the connection to a destination, if its address is permitted. It adds the times
// of the lookup and of the connection to the session, and stores the address there. All
// connections of HTTP probes are opened by this function.
func (proxy *socksProxy) connect(s *session, host, port string) (net.Conn, error) {
	startedAt := time.Now()
	address := s.pinned
	var err error
	if host != s.host || !address.IsValid() { // a redirect to another host, or a target without an object
		address, err = proxy.addresses.resolve(s.ctx, host, s.allowPrivate)
	} else {
		// The pinned address is trusted, because it belongs to an object that the probe names.
		err = proxy.addresses.checkAddress(host, address, s.allowPrivate, true)
	}
	resolved := time.Now()
	defer func() {
		s.mu.Lock()
		s.lookup += resolved.Sub(startedAt)
		s.connect += time.Since(resolved)
		s.address = address
		s.mu.Unlock()
	}()
	if err != nil {
		return nil, err
	}
	return proxy.dialer.DialContext(s.ctx, "tcp", net.JoinHostPort(address.String(), port))
}

// startRelay forwards one connection on the loopback address to a server, with the limits of the
// session, because the prober accepts no dialer. It returns the address that the prober must
// connect to. stop must be called when the run has ended.
func startRelay(s *session, server net.Conn) (address string, stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(s.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for a probe: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer server.Close() //nolint:errcheck // nothing is left to be written
		client, err := listener.Accept()
		_ = listener.Close()
		if err != nil {
			return
		}
		forward(s, bufio.NewReader(client), client, server)
	}()
	return listener.Addr().String(), func() {
		_ = listener.Close()
		_ = server.Close()
		<-done
	}, nil
}
