// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestProfileIsOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, address := range []string{":6060", "0.0.0.0:6060", "10.0.0.1:6060", "[::]:6060", "example.com:80", "x"} {
		if err := ServeProfiles(t.Context(), address); !errors.Is(err, errNotLoopback) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := ServeProfiles(t.Context(), ""); err != nil {
		t.Errorf("off: %v", err)
	}
}

func TestProfileIsServedUntilTheEnd(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	ctx, stop := context.WithCancel(t.Context())
	if err := ServeProfiles(ctx, address); err != nil {
		t.Fatal(err)
	}
	text, err := get(t, "http://"+address+"/debug/pprof/goroutine?debug=1")
	if err != nil || !strings.Contains(text, "goroutine profile: total") {
		t.Errorf("it says %q, %v", text, err)
	}
	stop()
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := get(t, "http://"+address+"/debug/pprof/"); err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it is still served after the end")
		}
	}
}

func get(t *testing.T, url string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
