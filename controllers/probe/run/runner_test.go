// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/outbound"
)

// names is a resolver with these names only.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if address, ok := n[host]; ok {
		return []netip.Addr{netip.MustParseAddr(address)}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// testAddresses accepts 127.0.0.1, the address of the tests' servers. All other
// addresses are judged as in production.
func testAddresses(n names) addressResolver {
	return addressResolver{names: n, isPrivate: func(a netip.Addr) bool {
		return a != netip.MustParseAddr("127.0.0.1") &&
			outbound.IsPrivate(a)
	}}
}

// runProbe runs a probe once.
func runProbe(t *testing.T, n names, spec v1alpha1.EndpointProbeSpec, target probes.Target) result {
	t.Helper()
	a := newRunner(testAddresses(n))
	t.Cleanup(a.proxy.close)
	if target.URL == "" {
		target.URL = spec.Target.URL
	}
	ctx, cancel := context.WithTimeout(t.Context(), probes.DurationOr(spec.Timeout, probes.DefaultTimeout))
	defer cancel()
	limits, err := computeCost(spec)
	if err != nil {
		t.Fatal(err)
	}
	return a.run(ctx, &Probe{Spec: spec, cost: limits}, target)
}

func specFor(url string) v1alpha1.EndpointProbeSpec {
	return v1alpha1.EndpointProbeSpec{Operator: echo, Target: v1alpha1.ProbeTarget{URL: url}}
}

func with(spec v1alpha1.EndpointProbeSpec, change func(*v1alpha1.EndpointProbeSpec)) v1alpha1.EndpointProbeSpec {
	change(&spec)
	return spec
}

func within(spec v1alpha1.EndpointProbeSpec, timeout time.Duration) v1alpha1.EndpointProbeSpec {
	spec.Timeout = &metav1.Duration{Duration: timeout}
	return spec
}

func (a result) value(name, label string) (float64, bool) {
	for _, s := range a.samples {
		if s.series == name && s.labelValue == label {
			return s.value, true
		}
	}
	return 0, false
}

// hostileHandler answers each path in another way.
func hostileHandler() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "all is well") })
	mux.HandleFunc("/error", func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter,
		r *http.Request) {
		http.Redirect(w, r, "/ok", http.StatusFound)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter,
		r *http.Request) {
		http.Redirect(w, r, "/loop", http.StatusFound)
	})
	mux.HandleFunc("/to-metadata", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/iam", http.StatusFound)
	})
	mux.HandleFunc("/to-name-of-metadata", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://metadata.example/", http.StatusFound)
	})
	mux.HandleFunc("/to-loopback", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusFound)
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 64<<10)
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	return mux
}

func TestHTTP(t *testing.T) {
	server := httptest.NewServer(hostileHandler())
	t.Cleanup(server.Close)
	secure := httptest.NewTLSServer(hostileHandler())
	t.Cleanup(secure.Close)
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	hosts := names{"app.example": "127.0.0.1", "metadata.example": "169.254.169.254",
		"mapped.example": "::ffff:169.254.169.254"}
	off := false
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))

	cases := map[string]struct {
		spec    v1alpha1.EndpointProbeSpec
		target  probes.Target
		want    string // the reason of the failure; empty: a success
		message string
	}{
		"answers":              {spec: specFor(server.URL + "/ok")},
		"is looked up by name": {spec: specFor("http://app.example" + port + "/ok")},
		"follows a redirect":   {spec: specFor(server.URL + "/moved")},
		"an accepted redirect": {spec: with(specFor(server.URL+"/moved"), func(s *v1alpha1.EndpointProbeSpec) {
			s.HTTP = &v1alpha1.HTTPProbe{FollowRedirects: &off, Statuses: []int32{302}}
		})},
		"a redirect that is not accepted": {spec: with(specFor(server.URL+"/moved"),
			func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{FollowRedirects: &off} }),
			want: v1alpha1.ReasonBadStatus, message: "302 Found"},
		"a status": {spec: specFor(server.URL + "/error"), want: v1alpha1.ReasonBadStatus,
			message: "503 Service Unavailable"},
		"an accepted status": {spec: with(specFor(server.URL+"/error"),
			func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{Statuses: []int32{503}} })},
		"a body that matches": {spec: with(specFor(server.URL+"/ok"),
			func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{Matches: []string{"^all is"}} })},
		"a body that does not match": {spec: with(specFor(server.URL+"/ok"),
			func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{Matches: []string{"^ready"}} }),
			want: v1alpha1.ReasonBadAnswer},
		"a body that must not match": {spec: with(specFor(server.URL+"/ok"),
			func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{NotMatches: []string{"well"}} }),
			want: v1alpha1.ReasonBadAnswer},
		"an endless body to match": {spec: with(specFor(server.URL+"/endless"),
			func(s *v1alpha1.EndpointProbeSpec) { s.HTTP = &v1alpha1.HTTPProbe{Matches: []string{"x"}} }),
			want: v1alpha1.ReasonAnswerTooLarge, message: "512 KiB"},
		"an endless body": {spec: specFor(server.URL + "/endless"), want: v1alpha1.ReasonAnswerTooLarge,
			message: "512 KiB"},
		"a redirect loop": {spec: specFor(server.URL + "/loop"), want: v1alpha1.ReasonTooManyRedirects},
		"an unknown name": {spec: specFor("http://unknown.example/"), want: v1alpha1.ReasonDNSFailed,
			message: "unknown.example"},
		"a closed port": {spec: specFor("http://127.0.0.1:1/"), want: v1alpha1.ReasonConnectFailed,
			message: "refused"},
		"no answer": {spec: within(specFor(server.URL+"/hang"), 100*time.Millisecond),
			want: v1alpha1.ReasonTimedOut},
		"an unknown certificate": {spec: specFor(secure.URL + "/ok"), want: v1alpha1.ReasonTLSFailed},
		"a known certificate": {spec: with(specFor(secure.URL+"/ok"),
			func(s *v1alpha1.EndpointProbeSpec) { s.TLS = &v1alpha1.ProbeTLS{CA: ca} })},
		"a certificate for another name": {spec: with(specFor(secure.URL+"/ok"), func(s *v1alpha1.EndpointProbeSpec) {
			s.TLS = &v1alpha1.ProbeTLS{CA: ca, ServerName: "other.test"}
		}), want: v1alpha1.ReasonTLSFailed, message: "other.test"},
		"any certificate": {spec: with(specFor(secure.URL+"/ok"),
			func(s *v1alpha1.EndpointProbeSpec) { s.TLS = &v1alpha1.ProbeTLS{InsecureSkipVerify: true} })},
		"https, server without TLS": {spec: specFor(strings.Replace(server.URL, "http", "https", 1)),
			want: v1alpha1.ReasonTLSFailed},
		"a metadata address": {spec: specFor("http://169.254.169.254/"), want: v1alpha1.ReasonAddressRefused,
			message: "allowPrivate"},
		"a name of a metadata address": {spec: specFor("http://metadata.example/"), want: v1alpha1.ReasonAddressRefused,
			message: "metadata.example, which is 169.254.169.254, is private"},
		"a mapped metadata address": {spec: specFor("http://mapped.example/"), want: v1alpha1.ReasonAddressRefused},
		"a redirect to metadata": {spec: specFor(server.URL + "/to-metadata"), want: v1alpha1.ReasonAddressRefused,
			message: "169.254.169.254"},
		"a redirect to metadata by name": {spec: specFor(server.URL + "/to-name-of-metadata"),
			want: v1alpha1.ReasonAddressRefused},
		"a redirect to loopback": {spec: specFor(server.URL + "/to-loopback"), want: v1alpha1.ReasonAddressRefused},
		"a permitted loopback address": {spec: with(specFor(server.URL+"/to-loopback"),
			func(s *v1alpha1.EndpointProbeSpec) { s.AllowPrivate = true }),
			want: v1alpha1.ReasonConnectFailed},
		"the address of a Service": {spec: specFor("unused"),
			target: probes.Target{URL: "http://echo.ns.svc" + port + "/ok", Address: netip.MustParseAddr("127.0.0.1")}},
		"a Service that redirects to metadata": {spec: specFor("unused"),
			target: probes.Target{URL: "http://echo.ns.svc" + port + "/to-metadata",
				Address: netip.MustParseAddr("127.0.0.1")}, want: v1alpha1.ReasonAddressRefused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			checkResult(t, runProbe(t, hosts, tc.spec, tc.target), tc.want, tc.message)
		})
	}
}

func checkResult(t *testing.T, got result, want, message string) {
	t.Helper()
	success, _ := got.value(series.ProbeSuccess, "")
	if want == "" {
		if got.failure != nil || success != 1 {
			t.Fatalf("probe_success is %v, failure %+v; want a success", success, got.failure)
		}
		return
	}
	if got.failure == nil || success != 0 {
		t.Fatalf("the probe succeeded, want %s", want)
	}
	t.Logf("%s: %s", got.failure.Reason, got.failure.Message)
	if got.failure.Reason != want || !strings.Contains(got.failure.Message, message) {
		t.Errorf("failed for %s: %s; want %s with %q", got.failure.Reason, got.failure.Message, want, message)
	}
}

func TestHTTPSeries(t *testing.T) {
	server := httptest.NewServer(hostileHandler())
	t.Cleanup(server.Close)
	got := runProbe(t, nil, specFor(server.URL+"/moved"), probes.Target{})
	for name, want := range map[string]float64{
		series.ProbeSuccess: 1, series.ProbeHTTPStatusCode: 200, series.ProbeHTTPRedirects: 1,
		series.ProbeIPProtocol:  4,
		series.ProbeHTTPVersion: 1.1, series.ProbeHTTPUncompressed: 11,
	} {
		if value, ok := got.value(name, ""); !ok || value != want {
			t.Errorf("%s is %v (found: %v), want %v", name, value, ok, want)
		}
	}
	for _, phase := range []string{"resolve", "connect", "processing", "transfer"} {
		if value, ok := got.value(series.ProbeHTTPDuration, phase); !ok || value < 0 || value > 5 {
			t.Errorf("phase %s took %v s (found: %v)", phase, value, ok)
		}
	}
}

// serveRaw calls serve with each connection to a new TCP server.
func serveRaw(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close() //nolint:errcheck // a test's server
				serve(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// drip sends a byte every few milliseconds until the client disconnects.
func drip(conn net.Conn) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := conn.Write([]byte("x")); err != nil {
			return
		}
	}
}

// readRequest waits for a request: clients report an answer before it as
// another error.
func readRequest(conn net.Conn) { _, _ = bufio.NewReader(conn).ReadString('\n') }

func TestHostileConnections(t *testing.T) {
	slowLoris := serveRaw(t, func(conn net.Conn) {
		readRequest(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Never: ")
		drip(conn)
	})
	slowBody := serveRaw(t, func(conn net.Conn) {
		readRequest(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
		drip(conn)
	})
	hugeHeaders := serveRaw(t, func(conn net.Conn) {
		readRequest(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		line := "X-Header: " + strings.Repeat("a", 4000) + "\r\n"
		for {
			if _, err := io.WriteString(conn, line); err != nil {
				return
			}
		}
	})
	informational := serveRaw(t, func(conn net.Conn) {
		readRequest(conn)
		for {
			if _, err := io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
				return
			}
		}
	})
	garbage := serveRaw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "220 mail.example ESMTP\r\n") })
	silent := serveRaw(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	lines := serveRaw(t, func(conn net.Conn) {
		for {
			if _, err := io.WriteString(conn, strings.Repeat("y", 1000)); err != nil {
				return
			}
		}
	})
	short := 150 * time.Millisecond
	expect := func(spec v1alpha1.EndpointProbeSpec, send, text string) v1alpha1.EndpointProbeSpec {
		spec.TCP = &v1alpha1.TCPProbe{Send: send, Expect: text}
		return spec
	}
	cases := map[string]struct {
		spec v1alpha1.EndpointProbeSpec
		want string
	}{
		"slow-loris headers":       {within(specFor("http://"+slowLoris), short), v1alpha1.ReasonTimedOut},
		"slow-loris body":          {within(specFor("http://"+slowBody), short), v1alpha1.ReasonTimedOut},
		"endless headers":          {specFor("http://" + hugeHeaders), v1alpha1.ReasonAnswerTooLarge},
		"endless early hints":      {specFor("http://" + informational), v1alpha1.ReasonAnswerTooLarge},
		"no HTTP":                  {specFor("http://" + garbage), v1alpha1.ReasonProtocolError},
		"TLS handshake never ends": {within(specFor("https://"+silent), short), v1alpha1.ReasonTimedOut},
		"tcp connects":             {specFor("tcp://" + silent), ""},
		"tcp reads a line":         {expect(specFor("tcp://"+garbage), "", "^220 "), ""},
		"tcp reads another line":   {expect(specFor("tcp://"+garbage), "", "^250 "), v1alpha1.ReasonBadAnswer},
		"tcp waits for a line": {within(expect(specFor("tcp://"+silent), "hello", "."), short),
			v1alpha1.ReasonTimedOut},
		"tcp gets an endless line": {expect(specFor("tcp://"+lines), "", "z"), v1alpha1.ReasonProtocolError},
		"tcp with TLS never ends": {within(with(specFor("tcp://"+silent),
			func(s *v1alpha1.EndpointProbeSpec) { s.TLS = &v1alpha1.ProbeTLS{} }), short), v1alpha1.ReasonTimedOut},
		"tcp to a closed port":       {specFor("tcp://127.0.0.1:1"), v1alpha1.ReasonConnectFailed},
		"tcp to a metadata address":  {specFor("tcp://169.254.169.254:80"), v1alpha1.ReasonAddressRefused},
		"grpc never answers":         {within(specFor("grpc://"+silent), short), v1alpha1.ReasonTimedOut},
		"grpc over another protocol": {within(specFor("grpc://"+garbage), time.Minute), v1alpha1.ReasonProtocolError},
		"grpc to a closed port":      {specFor("grpc://127.0.0.1:1"), v1alpha1.ReasonConnectFailed},
		"grpc to a metadata address": {specFor("grpc://169.254.169.254"), v1alpha1.ReasonAddressRefused},
		"grpc with TLS, server without": {within(with(specFor("grpc://"+garbage),
			func(s *v1alpha1.EndpointProbeSpec) { s.TLS = &v1alpha1.ProbeTLS{} }), time.Minute),
			v1alpha1.ReasonTLSFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkResult(t, runProbe(t, nil, tc.spec, probes.Target{}), tc.want, "") })
	}
}

func TestGRPC(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, state := grpc.NewServer(), health.NewServer()
	state.SetServingStatus("down", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	grpc_health_v1.RegisterHealthServer(server, state)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	url := "grpc://" + listener.Addr().String()
	of := func(service string) v1alpha1.EndpointProbeSpec {
		return with(specFor(url),
			func(s *v1alpha1.EndpointProbeSpec) { s.GRPC = &v1alpha1.GRPCProbe{Service: service} })
	}
	checkResult(t, runProbe(t, nil, specFor(url), probes.Target{}), "", "")
	checkResult(t, runProbe(t, nil, of("down"), probes.Target{}), v1alpha1.ReasonNotServing, "NOT_SERVING")
	checkResult(t, runProbe(t, nil, of("unknown"), probes.Target{}), v1alpha1.ReasonProtocolError, "unknown service")
	got := runProbe(t, nil, specFor(url), probes.Target{})
	if value, ok := got.value(series.ProbeGRPCHealthResponse, "SERVING"); !ok || value != 1 {
		t.Errorf("the series of SERVING is %v (found: %v), want 1", value, ok)
	}
}

func TestDNS(t *testing.T) {
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go answerDNS(conn)
	of := func(query, matches string) v1alpha1.EndpointProbeSpec {
		return with(within(specFor("dns://"+conn.LocalAddr().String()), time.Minute),
			func(s *v1alpha1.EndpointProbeSpec) {
				s.DNS = &v1alpha1.DNSProbe{Query: query, Matches: matches}
			})
	}
	checkResult(t, runProbe(t, nil, of("app.example", ""), probes.Target{}), "", "")
	checkResult(t, runProbe(t, nil, of("app.example", `192\.0\.2\.1`), probes.Target{}), "", "")
	checkResult(t, runProbe(t, nil, of("app.example", `192\.0\.2\.9`), probes.Target{}), v1alpha1.ReasonBadAnswer, "")
	checkResult(t, runProbe(t, nil, of("missing.example", ""), probes.Target{}), v1alpha1.ReasonBadAnswer, "")
	silent := within(of("silent.example", ""), 300*time.Millisecond)
	checkResult(t, runProbe(t, nil, silent, probes.Target{}), v1alpha1.ReasonTimedOut, "")
}

// answerDNS answers with an address for app.example, and with NXDOMAIN for
// missing.example. It does not answer other names.
func answerDNS(conn net.PacketConn) {
	buffer := make([]byte, 512)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var message dnsmessage.Message
		if message.Unpack(buffer[:n]) != nil || len(message.Questions) != 1 {
			continue
		}
		message.Response = true
		question := message.Questions[0]
		switch question.Name.String() {
		case "app.example.":
			message.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET,
					Type: dnsmessage.TypeA},
				Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}},
			}}
		case "missing.example.":
			message.RCode = dnsmessage.RCodeNameError
		default:
			continue
		}
		if packed, err := message.Pack(); err == nil {
			_, _ = conn.WriteTo(packed, from)
		}
	}
}

func TestPrivate(t *testing.T) {
	for address, want := range map[string]bool{
		"169.254.169.254": true, "127.0.0.1": true, "::1": true, "fe80::1%eth0": true, "0.0.0.0": true, "::": true,
		"0.1.2.3":       true,
		"fd00:ec2::254": true, "fd20:ce::254": true, "100.100.100.200": true, "168.63.129.16": true, "224.0.0.1": true,
		"::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "2002:a9fe:a9fe::1": true,
		"::169.254.169.254": true, "255.255.255.255": true,
		"10.0.0.1": false, "192.168.1.1": false, "100.64.0.1": false, "fd12::1": false, "192.0.2.1": false,
		"2001:db8::1":       false,
		"64:ff9b::c000:201": false,
	} {
		if got := outbound.IsPrivate(netip.MustParseAddr(address)); got != want {
			t.Errorf("private(%s) is %v, want %v", address, got, want)
		}
	}
}

// TestPermit verifies that denied addresses are denied to every probe, even if the target is
// an object or spec.allowPrivate is set. Private addresses need spec.allowPrivate, and on a
// hub even that is not enough.
func TestPermit(t *testing.T) {
	prefixes := func(texts ...string) []netip.Prefix {
		var all []netip.Prefix
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	agent := addressResolver{isPrivate: newPrivateCheck(nil), denied: prefixes("192.0.2.0/24", "10.9.0.0/16")}
	hub := addressResolver{isPrivate: newPrivateCheck(prefixes("10.0.0.0/8", "fd00::/8")), noPrivate: true,
		denied: prefixes("192.0.2.0/24")}
	for name, test := range map[string]struct {
		at                    addressResolver
		address               string
		allowPrivate, trusted bool
		want                  error
	}{
		"an agent, a public address":          {agent, "198.51.100.1", false, false, nil},
		"a network of the cluster":            {agent, "10.0.0.1", false, false, nil},
		"metadata":                            {agent, "169.254.169.254", false, false, errAddressRefused},
		"with allowPrivate":                   {agent, "169.254.169.254", true, false, nil},
		"of a Service":                        {agent, "127.0.0.1", false, true, nil},
		"a denied address":                    {agent, "192.0.2.1", false, false, errAddressDenied},
		"a denied one with allowPrivate":      {agent, "192.0.2.1", true, false, errAddressDenied},
		"a denied one of a Service":           {agent, "10.9.0.1", false, true, errAddressDenied},
		"a denied one in an IPv6 address":     {agent, "64:ff9b::c000:201", true, false, errAddressDenied},
		"the hub, a public address":           {hub, "198.51.100.1", false, false, nil},
		"its own pods":                        {hub, "10.0.0.1", false, false, errAddressRefused},
		"its own pods with allowPrivate":      {hub, "10.0.0.1", true, false, errAddressDenied},
		"its own pods in an IPv6 address":     {hub, "::ffff:10.0.0.1", true, false, errAddressDenied},
		"its own Services, which are of IPv6": {hub, "fd12::1", true, false, errAddressDenied},
		"the hub itself with allowPrivate":    {hub, "127.0.0.1", true, false, errAddressDenied},
	} {
		err := test.at.checkAddress("target", netip.MustParseAddr(test.address), test.allowPrivate, test.trusted)
		if !errors.Is(err, test.want) || test.want != nil && !errors.Is(err, errAddressRefused) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// The proxy serves running probes of this process only, not other processes on
// the machine.
func TestProxyServesRunningProbesOnly(t *testing.T) {
	r := &socksProxy{addresses: testAddresses(nil)}
	t.Cleanup(r.close)
	proxy, done, err := r.openSession(&session{ctx: t.Context(), allowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(hostileHandler())
	t.Cleanup(server.Close)
	get := func() error {
		transport := &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/ok", nil)
		if err != nil {
			return fmt.Errorf("make request: %w", err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return fmt.Errorf("send request: %w", err)
		}
		return response.Body.Close()
	}
	if err := get(); err != nil {
		t.Errorf("a running probe: %v", err)
	}
	done()
	if err := get(); err == nil {
		t.Error("a probe that has ended can still use the proxy")
	}
}

// Hostile servers must not make memory or the number of goroutines grow.
func TestHostileServersLeakNothing(t *testing.T) {
	server := httptest.NewServer(hostileHandler())
	t.Cleanup(server.Close)
	a := newRunner(testAddresses(nil))
	t.Cleanup(a.proxy.close)
	spec := within(specFor(""), 200*time.Millisecond)
	round := func() {
		for _, path := range []string{"/endless", "/loop", "/hang", "/to-metadata"} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // impatient: nothing else ends it
			a.run(ctx, &Probe{Spec: spec}, probes.Target{URL: server.URL + path})
			cancel()
		}
	}
	round()
	before := runtime.NumGoroutine()
	for range 10 {
		round()
	}
	deadline := time.Now().Add(time.Minute)
	for runtime.NumGoroutine() > before+5 {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
		}
		runtime.Gosched()
	}
}
