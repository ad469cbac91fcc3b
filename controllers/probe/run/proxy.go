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

// tooLargeError says that a server sent more than so many bytes, which is what a probe reads of an answer.
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
	// maxBody limits what is read of an answer's body, and maxStream of a whole
	// connection, including headers and TLS.
	maxBody   = 512 << 10
	maxStream = maxBody + 128<<10
	// handshakeLimit bounds the SOCKS handshake; the client is this process.
	handshakeLimit = 10 * time.Second
	proxyBuffer    = 4 << 10
)

// socksProxy is a SOCKS5 proxy (RFC 1928) on loopback, for this process only,
// that every connection of an HTTP probe goes through. blackbox_exporter's
// prober accepts no dialer, but it accepts a proxy. The proxy looks up names,
// refuses private addresses in each redirect, counts bytes and closes
// connections at the deadline. A client must present the name of a session of a
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

// session is what one run of a probe may do, and its outcome.
type session struct {
	ctx          context.Context
	allowPrivate bool
	// host resolves to the address pinned, if that is valid.
	host   string
	pinned netip.Addr
	// cost limits how many bytes of each connection are read.
	cost cost

	mu              sync.Mutex
	failure         error
	lookup, connect time.Duration
	address         netip.Addr
	// received are the bytes of all connections.
	received int64
}

func (p *session) setFailure(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
	}
}

// countedWriter counts bytes before the prober has them, so that all of them are counted when the run is over. Like
// plainWriter it hides ReadFrom.
type countedWriter struct {
	io.Writer
	session *session
}

func (c countedWriter) Write(b []byte) (int, error) {
	c.session.addReceived(int64(len(b)))
	return c.Writer.Write(b)
}

func (p *session) addReceived(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.received += n
}

// steps returns how many steps the expressions took at most, besides the evaluation of spec.http.json.
func (p *session) steps() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cost.steps(int(p.received))
}

// outcome returns what the proxy recorded, once the run is over.
func (p *session) outcome() (lookup, connect time.Duration, address netip.Addr, failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lookup, p.connect, p.address, p.failure
}

// openSession starts the proxy for the first probe that needs it, and returns
// the URL of the proxy for one run. closeSession must be called when the run is
// over.
func (r *socksProxy) openSession(p *session) (proxyURL *url.URL, closeSession func(), err error) {
	r.once.Do(func() {
		r.sessions = map[string]*session{}
		r.listener, r.listenErr = new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if r.listenErr == nil {
			go r.serve()
		}
	})
	if r.listenErr != nil {
		return nil, nil, fmt.Errorf("listen for the probe proxy: %w", r.listenErr)
	}
	name := rand.Text()
	r.mu.Lock()
	r.sessions[name] = p
	r.mu.Unlock()
	proxyURL = &url.URL{Scheme: "socks5", User: url.UserPassword(name, "-"), Host: r.listener.Addr().String()}
	return proxyURL, func() {
		r.mu.Lock()
		delete(r.sessions, name)
		r.mu.Unlock()
	}, nil
}

func (r *socksProxy) serve() {
	for {
		conn, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go r.serveConn(conn)
		}
	}
}

func (r *socksProxy) close() {
	if r.listener != nil {
		_ = r.listener.Close()
	}
}

func (r *socksProxy) serveConn(client net.Conn) {
	defer client.Close() //nolint:errcheck // nothing is left to be written
	if err := client.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return
	}
	reader := bufio.NewReaderSize(client, 600)
	p, host, port, err := r.handshake(reader, client)
	if err != nil {
		return
	}
	server, err := r.connect(p, host, port)
	if err != nil {
		p.setFailure(err)
		_, _ = client.Write(socksReply(1))
		return
	}
	defer server.Close() //nolint:errcheck // nothing is left to be written
	if deadline, ok := p.ctx.Deadline(); ok {
		_ = client.SetDeadline(deadline)
		_ = server.SetDeadline(deadline)
	}
	if _, err := client.Write(socksReply(0)); err != nil {
		return
	}
	forward(p, reader, client, server)
}

// forward copies in both directions until either side ends. The connection is
// closed if the server sends too much.
func forward(p *session, reader *bufio.Reader, client, server net.Conn) {
	stop := context.AfterFunc(p.ctx, func() {
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
	n, _ := io.CopyBuffer(countedWriter{client, p}, io.LimitReader(server, p.cost.stream()), make([]byte, proxyBuffer))
	if n >= p.cost.stream() {
		p.setFailure(tooLargeError{p.cost.body})
	}
	_ = client.Close()
	_ = server.Close()
	<-done
}

// plainReader and plainWriter hide ReadFrom and WriteTo, which would use larger
// buffers or pipes.
type plainReader struct{ io.Reader }
type plainWriter struct{ io.Writer }

const socks5, withPassword, connectCommand = 5, 2, 1

// Kinds of addresses.
const ipv4, domain, ipv6 = 1, 3, 4

var errSOCKS = errors.New("malformed request to the probe proxy")

func socksReply(code byte) []byte { return []byte{socks5, code, 0, ipv4, 0, 0, 0, 0, 0, 0} }

// handshake reads the session and the destination.
func (r *socksProxy) handshake(reader *bufio.Reader, client io.Writer) (*session, string, string, error) {
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
	r.mu.Lock()
	p := r.sessions[name]
	r.mu.Unlock()
	if err := errors.Join(err1, err2); err != nil || p == nil {
		_, _ = client.Write([]byte{1, 1})
		return nil, "", "", errSOCKS
	}
	if _, err := client.Write([]byte{1, 0}); err != nil {
		return nil, "", "", errSOCKS
	}
	host, port, err := readDestination(reader)
	return p, host, port, err
}

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

// connect is the only place where connections of HTTP probes are made.
func (r *socksProxy) connect(p *session, host, port string) (net.Conn, error) {
	begin := time.Now()
	address := p.pinned
	var err error
	if host != p.host || !address.IsValid() {
		address, err = r.addresses.resolve(p.ctx, host, p.allowPrivate)
	} else {
		err = r.addresses.permit(host, address, p.allowPrivate, true)
	}
	resolved := time.Now()
	defer func() {
		p.mu.Lock()
		p.lookup += resolved.Sub(begin)
		p.connect += time.Since(resolved)
		p.address = address
		p.mu.Unlock()
	}()
	if err != nil {
		return nil, err
	}
	return r.dialer.DialContext(p.ctx, "tcp", net.JoinHostPort(address.String(), port))
}

// relay forwards one connection on loopback to an address, with the limits of the session, because the prober accepts
// no dialer. It returns the address to connect to. stop must be called when the run is over.
func relay(p *session, server net.Conn) (address string, stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(p.ctx, "tcp", "127.0.0.1:0")
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
		forward(p, bufio.NewReader(client), client, server)
	}()
	return listener.Addr().String(), func() {
		_ = listener.Close()
		_ = server.Close()
		<-done
	}, nil
}
