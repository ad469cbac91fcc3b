// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
)

// AddProfileFlag adds the flag for the address of profiles.
func AddProfileFlag(flags *pflag.FlagSet, address *string) {
	flags.StringVar(address, "pprof-bind-address", "",
		"loopback address of profiles, as in 127.0.0.1:6060, which `kubectl port-forward` reaches; "+
			"empty: there are none")
}

var errNotLoopback = errors.New("profiles show what is in memory, and there is no authentication: " +
	"--pprof-bind-address must be a loopback address such as 127.0.0.1:6060")

// ServeProfiles serves the profiles of this process at a loopback address until the context ends.
// Without an address it does nothing.
func ServeProfiles(ctx context.Context, address string) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("invalid address %q: %w", address, errNotLoopback)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for profiles: %w", err)
	}
	// There is no write timeout, because the client chooses the duration of
	// a CPU profile or a trace.
	server := &http.Server{Handler: newProfileHandler(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			ctrl.Log.Error(err, "The server of profiles has ended")
		}
	}()
	ctrl.Log.Info("Serving profiles", "address", listener.Addr().String())
	return nil
}

// newProfileHandler returns the handler of all profiles.
func newProfileHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
