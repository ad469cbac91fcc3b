// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package viewserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"

	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
)

// call is one of the questions of which the time is taken.
type call int

const (
	getPackage call = iota
	getBundle
	listBundles
)

var calls = []call{getPackage, getBundle, listBundles}

func (c call) String() string {
	return [...]string{getPackage: "GetPackage", getBundle: "GetBundle",
		listBundles: "ListBundles, to the last bundle"}[c]
}

// times are how long the answers to each question took.
type times map[call][]time.Duration

// Numbers of questions in one run. A listing of a large catalog takes seconds.
const (
	singleCalls = 3000
	listings    = 15
)

// askAll asks one question after another, the same ones of every server, and takes their times.
func askAll(ctx context.Context, address string, c catalog) (times, error) {
	took := times{}
	err := ask(address, func(conn *grpc.ClientConn) error {
		client := api.NewRegistryClient(conn)
		// The same questions every time.
		random := rand.New(rand.NewPCG(1, 2))
		for _, q := range calls {
			n := singleCalls
			if q == listBundles {
				n = listings
			}
			for range n {
				i, j := random.IntN(c.options.Packages), random.IntN(c.options.Versions)
				start := time.Now()
				if err := q.ask(ctx, client, c, i, j); err != nil {
					return fmt.Errorf("%s: %w", q, err)
				}
				took[q] = append(took[q], time.Since(start))
			}
		}
		return nil
	})
	return took, err
}

// ask asks about the j-th bundle of the i-th package, and checks that the answer is about it.
func (c call) ask(ctx context.Context, client api.RegistryClient, of catalog, i, j int) error {
	switch c {
	case getPackage:
		p, err := client.GetPackage(ctx, &api.GetPackageRequest{Name: catalogtest.PackageName(i)})
		if err == nil && p.GetName() != catalogtest.PackageName(i) {
			err = fmt.Errorf("%w: package %q", errContent, p.GetName())
		}
		return err
	case getBundle:
		b, err := client.GetBundle(ctx, &api.GetBundleRequest{
			PkgName: catalogtest.PackageName(i), ChannelName: "stable", CsvName: catalogtest.BundleName(i, j),
		})
		if err == nil && (b.GetCsvName() != catalogtest.BundleName(i, j) || len(b.GetObject()) == 0) {
			err = fmt.Errorf("%w: bundle %q with %d manifests", errContent, b.GetCsvName(), len(b.GetObject()))
		}
		return err
	default:
		return drain(ctx, client, of.options.Packages*of.options.Versions)
	}
}

// drain lists everything.
func drain(ctx context.Context, client api.RegistryClient, want int) error {
	stream, err := client.ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		_, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && n != want:
			return fmt.Errorf("%w: %d bundles, want %d", errContent, n, want)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
