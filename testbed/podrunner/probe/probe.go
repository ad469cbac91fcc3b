// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe asks a container once how it is, as its probe says. When and
// how often, and what follows from it, is decided elsewhere.
package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Target is the container to ask.
type Target struct {
	Host  string                                            // the pod's address
	Ports []corev1.ContainerPort                            // for ports by name
	Exec  func(ctx context.Context, command []string) error // runs a command beside the container
}

// maxBody bounds what is read of an answer, as a kubelet does.
const maxBody = 10 << 10

var client = &http.Client{
	Transport: &http.Transport{
		DisableKeepAlives: true,
		// A probe asks whether the server answers, not who it is.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as a kubelet probes
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Check runs p once against t, until ctx ends. A nil error is a success.
func Check(ctx context.Context, p *corev1.Probe, t Target) error {
	switch {
	case p.HTTPGet != nil:
		return checkHTTP(ctx, p.HTTPGet, t)
	case p.TCPSocket != nil:
		return checkTCP(ctx, p.TCPSocket, t)
	case p.GRPC != nil:
		return checkGRPC(ctx, p.GRPC, t)
	case p.Exec != nil:
		return t.Exec(ctx, p.Exec.Command)
	default:
		return errors.New("probe has no handler")
	}
}

func checkHTTP(ctx context.Context, get *corev1.HTTPGetAction, t Target) error {
	address, err := t.address(get.Host, get.Port)
	if err != nil {
		return err
	}
	u := &url.URL{Scheme: "http", Host: address, Path: "/"}
	if get.Scheme == corev1.URISchemeHTTPS {
		u.Scheme = "https"
	}
	if u, err = u.Parse(get.Path); err != nil {
		return fmt.Errorf("parse path: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("build request: %w", err)
	}
	req.Header.Set("User-Agent", "kube-probe/testbed")
	for _, h := range get.HTTPHeaders {
		if http.CanonicalHeaderKey(h.Name) == "Host" {
			req.Host = h.Value
		}
		req.Header.Add(h.Name, h.Value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return fmt.Errorf("HTTP probe failed with statuscode: %d: %.200s", resp.StatusCode, body)
	}
	return nil
}

func checkTCP(ctx context.Context, socket *corev1.TCPSocketAction, t Target) error {
	address, err := t.address(socket.Host, socket.Port)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func checkGRPC(ctx context.Context, action *corev1.GRPCAction, t Target) error {
	address := net.JoinHostPort(t.Host, strconv.Itoa(int(action.Port)))
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }()
	request := &healthpb.HealthCheckRequest{}
	if action.Service != nil {
		request.Service = *action.Service
	}
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, request)
	if err != nil {
		return fmt.Errorf("check health: %w", err)
	}
	if answer.Status != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("service is %s", answer.Status)
	}
	return nil
}

func (t Target) address(host string, port intstr.IntOrString) (string, error) {
	if host == "" {
		host = t.Host
	}
	if port.Type == intstr.Int {
		return net.JoinHostPort(host, strconv.Itoa(port.IntValue())), nil
	}
	for _, p := range t.Ports {
		if p.Name == port.StrVal {
			return net.JoinHostPort(host, strconv.Itoa(int(p.ContainerPort))), nil
		}
	}
	return "", fmt.Errorf("container has no port named %q", port.StrVal)
}
