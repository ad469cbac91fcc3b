// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry is an OCI registry within the process, for users without a registry: for the demo, tests, and a
// first try on a laptop. It requires no credentials, so it must listen on the loopback interface only.
package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/distribution/distribution/v3/registry/storage"
	storagedriver "github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	"github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"github.com/sirupsen/logrus"
)

// Options configure a registry.
type Options struct {
	// Addr is the address to listen on; empty means a free port on 127.0.0.1.
	Addr string
	// Root is the folder for all content; empty means memory.
	Root string
	// Ready, if set, is called with the address when the registry is ready.
	Ready func(addr string)
	// Log receives the errors of the registry; nil discards them.
	Log io.Writer
	// Fill, if set, pushes to the registry at the address before Ready is called. After that, all requests except GET
	// and HEAD are refused.
	Fill func(ctx context.Context, addr string) error
}

// Serve runs a registry until the context ends. The end of the context is not an error.
func Serve(ctx context.Context, o Options) error {
	handler, err := newHandler(ctx, o)
	if err != nil {
		return fmt.Errorf("start registry: %w", err)
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", cmp.Or(o.Addr, "127.0.0.1:0"))
	if err != nil {
		return fmt.Errorf("start registry: %w", err)
	}
	var filled atomic.Bool
	server := &http.Server{Handler: refuseWrites(&filled, handler), ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() {
		graceCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := server.Shutdown(graceCtx); err != nil {
			_ = server.Close()
		}
	})
	defer stop()
	serveErr := make(chan error, 1)
	go func() { serveErr <- server.Serve(l) }()
	if o.Fill != nil {
		if err := o.Fill(ctx, l.Addr().String()); err != nil {
			return errors.Join(fmt.Errorf("fill registry: %w", err), server.Close())
		}
		filled.Store(true)
	}
	if o.Ready != nil {
		o.Ready(l.Addr().String())
	}
	if err := <-serveErr; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve registry: %w", err)
	}
	return nil
}

// refuseWrites refuses requests that change content after the registry was filled.
func refuseWrites(isFilled *atomic.Bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isFilled.Load() && r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "this registry is read-only", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// newHandler returns the handler of a registry that keeps its content in o.Root or in memory.
func newHandler(ctx context.Context, o Options) (http.Handler, error) {
	// The library logs through the process-wide logger, which nothing else in this program uses.
	logrus.SetLevel(logrus.ErrorLevel)
	logrus.SetOutput(cmp.Or(o.Log, io.Discard))

	content := storagedriver.StorageDriver(inmemory.New())
	if o.Root != "" {
		if err := os.MkdirAll(o.Root, 0o750); err != nil {
			return nil, err
		}
		content = filesystem.New(filesystem.DriverParameters{RootDirectory: o.Root, MaxThreads: maxCalls})
	}
	store, err := storage.NewRegistry(ctx, content, storage.EnableDelete, storage.EnableValidateImageIndexImagesExist,
		storage.ManifestURLsAllowRegexp(regexp.MustCompile("^$")))
	if err != nil {
		return nil, err
	}
	return handler{store: store}.router(), nil
}

// maxCalls is how many calls of the file system run at a time.
const maxCalls = 100
