// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/operator-framework/operator-registry/pkg/server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/catalogs/view"
)

// TestContract sends this server and operator-registry's own server the same requests, on the same catalog.
func TestContract(t *testing.T) {
	content := contractCatalog(t)
	ours := map[string]*grpc.ClientConn{"view": dial(t, serveView(t, content)),
		"whole catalog": dial(t, serveWhole(t, content))}
	theirs := dial(t, serveTheirs(t, content))
	for name, ask := range questions() {
		t.Run(name, func(t *testing.T) {
			want, wantErr := ask(t.Context(), theirs)
			for what, conn := range ours {
				got, gotErr := ask(t.Context(), conn)
				if diff := cmp.Diff(describeErr(wantErr), describeErr(gotErr)); diff != "" {
					t.Errorf("%s: errors differ: %s", what, diff)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s", what, diff)
				}
			}
			if len(want) == 0 && wantErr == nil && !strings.HasPrefix(name, "custom") {
				t.Error("the question has no answer and compares nothing")
			}
		})
	}
}

func describeErr(err error) string {
	if err == nil {
		return ""
	}
	s := status.Convert(err)
	return fmt.Sprintf("%s: %s", s.Code(), s.Message())
}

type question func(context.Context, *grpc.ClientConn) ([]string, error)

func questions() map[string]question {
	things := func(group string) (string, string, string) { return group, "v1", "Thing" }
	q := map[string]question{
		"packages": func(ctx context.Context, c *grpc.ClientConn) ([]string, error) {
			return all(api.NewRegistryClient(c).ListPackages(ctx, &api.ListPackageRequest{}))
		},
		"bundles": func(ctx context.Context, c *grpc.ClientConn) ([]string, error) {
			return all(api.NewRegistryClient(c).ListBundles(ctx, &api.ListBundlesRequest{}))
		},
		"health": func(ctx context.Context, c *grpc.ClientConn) ([]string, error) {
			return one(healthv1.NewHealthClient(c).Check(ctx, &healthv1.HealthCheckRequest{Service: "Registry"}))
		},
		"custom schemas unacknowledged": func(ctx context.Context, c *grpc.ClientConn) ([]string, error) {
			return all(api.NewExperimentalRegistryClient(c).ExperimentalListPackageCustomSchemas(ctx,
				&api.ExperimentalListPackageCustomSchemasRequest{}))
		},
		"custom schemas without a schema": func(ctx context.Context, c *grpc.ClientConn) ([]string, error) {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-acknowledge-experimental", "true")
			return all(api.NewExperimentalRegistryClient(c).ExperimentalListPackageCustomSchemas(ctx,
				&api.ExperimentalListPackageCustomSchemasRequest{}))
		},
	}
	for _, pkg := range []string{catalogtest.PackageName(0), "pictured", "ghost"} {
		q["package "+pkg] = func(ctx context.Context, c *grpc.ClientConn) ([]string, error) {
			return one(api.NewRegistryClient(c).GetPackage(ctx, &api.GetPackageRequest{Name: pkg}))
		}
		for _, channel := range []string{"stable", "fast", "ghost"} {
			q["head of "+pkg+" "+channel] = func(ctx context.Context, c *grpc.ClientConn) ([]string, error) {
				//nolint:staticcheck // Deprecated, but what OLM's package server calls.
				return one(api.NewRegistryClient(c).GetBundleForChannel(ctx,
					&api.GetBundleInChannelRequest{PkgName: pkg, ChannelName: channel}))
			}
			for _, bundle := range []string{catalogtest.BundleName(0, 1), "pictured.v1.1.0", "ghost"} {
				q["bundle "+pkg+" "+channel+" "+bundle] = func(ctx context.Context, c *grpc.ClientConn) ([]string,
					error) {
					return one(api.NewRegistryClient(c).GetBundle(ctx,
						&api.GetBundleRequest{PkgName: pkg, ChannelName: channel, CsvName: bundle}))
				}
				q["successor "+pkg+" "+channel+" "+bundle] = func(ctx context.Context, c *grpc.ClientConn) ([]string,
					error) {
					return one(api.NewRegistryClient(c).GetBundleThatReplaces(ctx,
						&api.GetReplacementRequest{PkgName: pkg, ChannelName: channel, CsvName: bundle}))
				}
			}
		}
	}
	for _, bundle := range []string{catalogtest.BundleName(0, 1), "pictured.v1.1.0", "pictured.v0.9.0", "ghost"} {
		q["entries replacing "+bundle] = func(ctx context.Context, c *grpc.ClientConn) ([]string, error) {
			return all(api.NewRegistryClient(c).GetChannelEntriesThatReplace(ctx,
				&api.GetAllReplacementsRequest{CsvName: bundle}))
		}
	}
	for _, group := range []string{catalogtest.PackageName(0) + ".example.com", "pictured.example.com", "ghost"} {
		g, v, k := things(group)
		q["providers of "+group] = func(ctx context.Context, c *grpc.ClientConn) ([]string, error) {
			return all(api.NewRegistryClient(c).GetChannelEntriesThatProvide(ctx,
				&api.GetAllProvidersRequest{Group: g, Version: v, Kind: k}))
		}
		q["latest providers of "+group] = func(ctx context.Context, c *grpc.ClientConn) ([]string, error) {
			return all(api.NewRegistryClient(c).GetLatestChannelEntriesThatProvide(ctx,
				&api.GetLatestProvidersRequest{Group: g, Version: v, Kind: k}))
		}
		q["default provider of "+group] = func(ctx context.Context, c *grpc.ClientConn) ([]string, error) {
			return one(api.NewRegistryClient(c).GetDefaultBundleThatProvides(ctx,
				&api.GetDefaultProviderRequest{Group: g, Version: v, Kind: k}))
		}
	}
	return q
}

// contractCatalog has inlined bundles, and bundles with images, metadata, two channels, skips, dependencies, an icon
// and deprecations.
func contractCatalog(t *testing.T) string {
	t.Helper()
	var content strings.Builder
	if err := catalogtest.Write(&content, catalogtest.Options{Packages: 2, Versions: 3,
		SchemaBytes: 2000}); err != nil {
		t.Fatal(err)
	}
	content.WriteString(`
{"schema":"olm.package","name":"pictured","defaultChannel":"stable","description":"Has a <picture>.",` +
		`"icon":{"base64data":"PHN2Zy8+","mediatype":"image/svg+xml"}}
{"schema":"olm.channel","package":"pictured","name":"stable","entries":[{"name":"pictured.v1.0.0"},` +
		`{"name":"pictured.v1.1.0","replaces":"pictured.v1.0.0","skips":["pictured.v0.9.0"],"skipRange":"<1.1.0"}]}
{"schema":"olm.channel","package":"pictured","name":"fast","entries":[{"name":"pictured.v1.1.0",` +
		`"skips":["pictured.v1.0.0","pictured.v0.9.0"]},{"name":"pictured.v1.2.0","replaces":"pictured.v1.1.0"}]}
{"schema":"olm.deprecations","package":"pictured","entries":[{"reference":{"schema":"olm.package"},"message":"p"},` +
		`{"reference":{"schema":"olm.channel","name":"fast"},"message":"c"},` +
		`{"reference":{"schema":"olm.bundle","name":"pictured.v1.0.0"},"message":"b"}]}
`)
	for _, v := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		fmt.Fprintf(&content,
			`{"schema":"olm.bundle","package":"pictured","name":"pictured.v%[1]s",`+
				`"image":"registry.example.com/pictured:%[1]s",
		"relatedImages":[{"name":"operand","image":"registry.example.com/operand:%[1]s"}],
		"properties":[
			{"type":"olm.package","value":{"version":%[1]q,"packageName":"pictured"}},
			{"type":"olm.gvk","value":{"group":"pictured.example.com","version":"v1","kind":"Thing"}},
			{"type":"olm.gvk.required","value":{"kind":"Other","group":"other.example.com","version":"v1"}},
			{"type":"olm.package.required","value":{"packageName":"other","versionRange":">=1.0.0 <2.0.0"}},
			{"type":"olm.constraint","value":{"failureMessage":"<needs> other","gvk":{"group":"other.example.com",`+
				`"version":"v1","kind":"Other"}}},
			{"type":"example.com/anything","value":[1, 2, {"b": true, "a": null}]},
			{"type":"olm.csv.metadata","value":{"annotations":{"capabilities":"Basic Install"},`+
				`"displayName":"Pictured",`+
				`"provider":{"name":"Example"},
				"installModes":[{"type":"OwnNamespace","supported":true}],`+
				`"customResourceDefinitions":{"owned":[{"name":"things.pictured.example.com","kind":"Thing",`+
				`"version":"v1"}]}}}
		]}`+"\n", v)
	}
	return content.String()
}

func serveView(t *testing.T, content string) string {
	t.Helper()
	packages, err := catalogs.ReadAll(catalogs.SingleFile("catalog.json", strings.NewReader(content)))
	if err != nil {
		t.Fatal(err)
	}
	v, err := view.All(packages)
	if err != nil {
		t.Fatal(err)
	}
	s := serve.New(serve.Options{})
	t.Cleanup(s.Close)
	addr, _, err := s.Set("all", v, 0)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func serveWhole(t *testing.T, content string) string {
	t.Helper()
	c, err := serve.Load("all", catalogs.SingleFile("catalog.json", strings.NewReader(content)), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := serve.New(serve.Options{})
	t.Cleanup(func() {
		s.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	addr, err := s.SetCatalog("all", c, 0)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func serveTheirs(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := cache.New(t.TempDir(), cache.WithFormat("json"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := cache.LoadOrRebuild(t.Context(), store, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	api.RegisterRegistryServer(g, server.NewRegistryServer(store))
	api.RegisterExperimentalRegistryServer(g, server.NewExperimentalRegistryServer(store))
	healthv1.RegisterHealthServer(g, server.NewHealthServer())
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	return l.Addr().String()
}

func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// one returns an answer as text; the order of properties is not part of the contract.
func one(m proto.Message, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	if b, ok := m.(*api.Bundle); ok {
		slices.SortFunc(b.Properties, func(x, y *api.Property) int {
			return strings.Compare(x.GetType()+x.GetValue(), y.GetType()+y.GetValue())
		})
	}
	text, err := protojson.MarshalOptions{Multiline: false}.Marshal(m)
	// The white space of protojson varies between builds.
	return []string{strings.ReplaceAll(string(text), ", ", ",")}, err
}

// all returns the answers of a stream, sorted, because neither server guarantees an order.
func all[M any, P interface {
	*M
	proto.Message
}](stream grpc.ServerStreamingClient[M], err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	var out []string
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			slices.Sort(out)
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := one(P(m), nil)
		if err != nil {
			return nil, err
		}
		out = append(out, text...)
	}
}
