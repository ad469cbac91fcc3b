// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command view-server serves the view of one operator out of a catalog, by the packages that the agent serves views
// with and nothing else. Benchmarks compare it with other servers of the same catalog.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "view-server:", err)
		os.Exit(1) //nolint:gocritic // stop only restores the signals
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("view-server", flag.ContinueOnError)
	var r load.Request
	flags.StringVar(&r.Source.Directory, "directory", "", "folder that holds the catalog")
	flags.StringVar(&r.Package, "package", "", "package of the operator")
	flags.StringVar(&r.Channel, "channel", "", "channel; empty means the package's default")
	flags.StringVar(&r.Installed.Name, "installed", "", "bundle that is installed")
	flags.StringVar(&r.Next, "next", "", "bundle to offer")
	addr := flags.String("addr", "", "host:port to listen on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	host, text, err := net.SplitHostPort(*addr)
	if err != nil {
		return fmt.Errorf("parse --addr: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("parse --addr: %w", err)
	}
	server := serve.New(serve.Options{Listen: host, Ports: serve.Ports{First: port, Last: port}})
	defer server.Close()
	if err := offer(ctx, server, r, port); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// offer reads the catalog as an agent does: by the digest that the hub would have pinned.
func offer(ctx context.Context, server *serve.Server, r load.Request, port int) error {
	client := oci.NewClient(oci.Options{})
	digest, err := client.Resolve(ctx, r.Source)
	if err != nil {
		return fmt.Errorf("resolve catalog: %w", err)
	}
	r.Digest = digest
	loader := load.New(client, load.Options{})
	pkg, err := loader.Package(ctx, r.Source, digest, r.Package, r.Next)
	if err != nil {
		return fmt.Errorf("read package: %w", err)
	}
	if b, ok := pkg.Bundles[r.Installed.Name]; ok {
		r.Installed = catalogs.Installed{Name: b.Name, Version: b.VersionString()}
	}
	v, err := loader.View(ctx, r)
	if err != nil {
		return fmt.Errorf("build view: %w", err)
	}
	if _, _, err := server.Set(r.Package, v, port); err != nil {
		return fmt.Errorf("serve view: %w", err)
	}
	return nil
}
