// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bellwether-dev/bellwether/controllers/hub/inventory"
	"github.com/bellwether-dev/bellwether/inventory/store"
)

// inventoryFlags configure the inventory.
type inventoryFlags struct {
	file               string
	maxAge             time.Duration
	maxSize            string
	address, tlsFolder string
}

// defaultInventoryAge is 90 days.
const defaultInventoryAge = 90 * 24 * time.Hour

// addFlags adds the flags.
func (f *inventoryFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "inventory-file", "",
		"file that records what happens in the fleet, for bellwether query; empty: nothing is recorded")
	fs.DurationVar(&f.maxAge, "inventory-max-age", defaultInventoryAge, "how long the past is kept in the inventory")
	fs.StringVar(&f.maxSize, "inventory-max-size", "2Gi",
		"how large the inventory may be; if it is larger, less of the past is kept")
	fs.StringVar(&f.address, "inventory-bind-address", ":8443", "address that queries are sent to; 0 switches it off")
	fs.StringVar(&f.tlsFolder, "inventory-tls-folder", "",
		"folder with tls.crt and tls.key for queries, which are read again when they change; empty: HTTP, for a proxy "+
			"that terminates TLS")
}

// parse returns the options of the flags.
func (f *inventoryFlags) parse() (inventory.Options, error) {
	size, err := resource.ParseQuantity(f.maxSize)
	if err != nil || size.Value() <= 0 {
		return inventory.Options{}, fmt.Errorf("invalid value %q of --inventory-max-size: use a size such as 2Gi",
			f.maxSize)
	}
	if f.maxAge < store.MinAge {
		return inventory.Options{}, fmt.Errorf("invalid value %s of --inventory-max-age: it must be at least %s",
			f.maxAge, store.MinAge)
	}
	o := inventory.Options{File: f.file, Retention: store.Retention{Age: f.maxAge, Bytes: size.Value()}}
	if f.address != "0" {
		o.NewServer = func(h http.Handler) manager.Runnable { return &queryServer{h, f.address, f.tlsFolder} }
	}
	return o, nil
}

// queryServer serves queries of the inventory.
type queryServer struct {
	handler            http.Handler
	address, tlsFolder string
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*queryServer) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *queryServer) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	config, err := watchCertificate(ctx, group, s.tlsFolder)
	if err != nil {
		return err
	}
	if err := startServer(ctx, group, s.address, s.handler, config); err != nil {
		return err
	}
	return group.Wait()
}
