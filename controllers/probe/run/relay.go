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

// errTooLarge says that a server sent more than a probe reads.
var errTooLarge = errors.New("answer too large")

const (
	// maxBody is what is read of an answer's body, and maxStream of a whole
	// connection: headers, and what TLS adds.
	maxBody   = 512 << 10
	maxStream = maxBody + 128<<10
	// handshakeLimit bounds how long a client of the relay may take to say what
	// it wants: it is this process itself.
	handshakeLimit = 10 * time.Second
	relayBuffer    = 4 << 10
)

// relay is a SOCKS5 proxy (RFC 1928) on loopback, for this process alone, that
// every connection of an HTTP probe goes through. blackbox_exporter's prober
// takes no dialer, but it takes a proxy: this one looks names up, refuses private
// addresses in each redirect, counts bytes and cuts at the deadline. Who connects
// must know the passage of a probe that is running (RFC 1929).
type relay struct {
	guard    guard
	dialer   net.Dialer
	once     sync.Once
	listener net.Listener
	failed   error

	mu       sync.Mutex
	passages map[string]*passage
}

// passage is what one run of a probe may do, and what came of it.
type passage struct {
	ctx          context.Context
	allowPrivate bool
	// host has the address pinned, if that is valid.
	host   string
	pinned netip.Addr

	mu              sync.Mutex
	failure         error
	lookup, connect time.Duration
	address         netip.Addr
}

func (p *passage) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
	}
}

// seen is what the passage knows once the run is over.
func (p *passage) seen() (lookup, connect time.Duration, address netip.Addr, failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lookup, p.connect, p.address, p.failure
}

// open starts the relay with the first probe that needs it, and returns the URL
// of the proxy for one run. close must be called when the run is over.
func (r *relay) open(p *passage) (proxy *url.URL, closePassage func(), err error) {
	r.once.Do(func() {
		r.passages = map[string]*passage{}
		r.listener, r.failed = new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if r.failed == nil {
			go r.serve()
		}
	})
	if r.failed != nil {
		return nil, nil, fmt.Errorf("listen for the relay: %w", r.failed)
	}
	name := rand.Text()
	r.mu.Lock()
	r.passages[name] = p
	r.mu.Unlock()
	proxy = &url.URL{Scheme: "socks5", User: url.UserPassword(name, "-"), Host: r.listener.Addr().String()}
	return proxy, func() {
		r.mu.Lock()
		delete(r.passages, name)
		r.mu.Unlock()
	}, nil
}

func (r *relay) serve() {
	for {
		conn, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go r.accept(conn)
		}
	}
}

func (r *relay) close() {
	if r.listener != nil {
		_ = r.listener.Close()
	}
}

func (r *relay) accept(client net.Conn) {
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
		p.fail(err)
		_, _ = client.Write(reply(1))
		return
	}
	defer server.Close() //nolint:errcheck // nothing is left to be written
	if deadline, ok := p.ctx.Deadline(); ok {
		_ = client.SetDeadline(deadline)
		_ = server.SetDeadline(deadline)
	}
	if _, err := client.Write(reply(0)); err != nil {
		return
	}
	pass(p, reader, client, server)
}

// pass copies both ways until either side is done. A server that sends too much
// is cut off.
func pass(p *passage, reader *bufio.Reader, client, server net.Conn) {
	stop := context.AfterFunc(p.ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.CopyBuffer(plainWriter{server}, plainReader{reader}, make([]byte, relayBuffer))
		if half, ok := server.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}()
	n, _ := io.CopyBuffer(plainWriter{client}, io.LimitReader(server, maxStream), make([]byte, relayBuffer))
	if n >= maxStream {
		p.fail(fmt.Errorf("%w: the connection brought more than %d KiB", errTooLarge, maxStream>>10))
	}
	_ = client.Close()
	_ = server.Close()
	<-done
}

// plainReader and plainWriter hide ReadFrom and WriteTo, which would take larger
// buffers or pipes.
type plainReader struct{ io.Reader }
type plainWriter struct{ io.Writer }

const socks5, withPassword, connectCommand = 5, 2, 1

// Kinds of addresses.
const ipv4, domain, ipv6 = 1, 3, 4

var errSOCKS = errors.New("malformed request to the relay")

func reply(code byte) []byte { return []byte{socks5, code, 0, ipv4, 0, 0, 0, 0, 0, 0} }

// handshake reads who asks and for what.
func (r *relay) handshake(reader *bufio.Reader, client io.Writer) (*passage, string, string, error) {
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
	name, err1 := text(reader)
	_, err2 := text(reader)
	r.mu.Lock()
	p := r.passages[name]
	r.mu.Unlock()
	if err := errors.Join(err1, err2); err != nil || p == nil {
		_, _ = client.Write([]byte{1, 1})
		return nil, "", "", errSOCKS
	}
	if _, err := client.Write([]byte{1, 0}); err != nil {
		return nil, "", "", errSOCKS
	}
	host, port, err := destination(reader)
	return p, host, port, err
}

func text(reader *bufio.Reader) (string, error) {
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

func destination(reader *bufio.Reader) (host, port string, err error) {
	var head [4]byte
	if _, err := io.ReadFull(reader, head[:]); err != nil || head[0] != socks5 || head[1] != connectCommand {
		return "", "", errSOCKS
	}
	switch head[3] {
	case domain:
		if host, err = text(reader); err != nil {
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

// connect is the one place where an HTTP probe's connection is made.
func (r *relay) connect(p *passage, host, port string) (net.Conn, error) {
	begin := time.Now()
	address, err := p.pinned, error(nil)
	if host != p.host || !address.IsValid() {
		address, err = r.guard.address(p.ctx, host, p.allowPrivate)
	}
	looked := time.Now()
	defer func() {
		p.mu.Lock()
		p.lookup += looked.Sub(begin)
		p.connect += time.Since(looked)
		p.address = address
		p.mu.Unlock()
	}()
	if err != nil {
		return nil, err
	}
	return r.dialer.DialContext(p.ctx, "tcp", net.JoinHostPort(address.String(), port))
}
