// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"slices"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// registry answers OLM's registry API for one endpoint. Answers and error texts are those of operator-registry's own
// server, which the contract test holds against this one.
//
// OLM v0's resolver calls ListBundles and GetPackage and nothing else; its package server calls ListPackages and
// GetBundleForChannel as well. The other calls are for people and for older clients.
type registry struct {
	api.UnimplementedRegistryServer
	endpoint *endpoint
}

var _ api.RegistryServer = registry{}

func (r registry) ListPackages(_ *api.ListPackageRequest, stream api.Registry_ListPackagesServer) error {
	served := r.endpoint.content.Load()
	for _, name := range served.names {
		if err := stream.Send(&api.PackageName{Name: name}); err != nil {
			return err
		}
	}
	return nil
}

func (r registry) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	served := r.endpoint.content.Load()
	reader := &bundleReader{stored: served.bundles}
	for _, name := range served.names {
		for _, c := range served.packages[name].channels {
			for _, e := range c.entries {
				b, err := reader.listed(e)
				if err != nil {
					return err
				}
				// Send encodes the message before it returns, so the reader may use its buffer again.
				if err := stream.Send(b); err != nil {
					return err
				}
			}
		}
	}
	r.endpoint.countRead(served)
	return nil
}

func (r registry) GetPackage(_ context.Context, req *api.GetPackageRequest) (*api.Package, error) {
	served := r.endpoint.content.Load()
	p, ok := served.packages[req.GetName()]
	if !ok {
		return nil, fmt.Errorf("package %q not found", req.GetName())
	}
	return p.info, nil
}

// find returns a channel of a package; the texts of its errors are operator-registry'served.
func (c *content) find(pkg, channel string) (*storedChannel, error) {
	p, ok := c.packages[pkg]
	if !ok {
		return nil, fmt.Errorf("package %q not found", pkg)
	}
	found := p.channel(channel)
	if found == nil {
		return nil, fmt.Errorf("package %q, channel %q not found", pkg, channel)
	}
	return found, nil
}

// single reads the bundle of an entry. It uses a reader of its own, because gRPC encodes the answer after the call.
func (c *content) single(e *entry) (*api.Bundle, error) {
	reader := &bundleReader{stored: c.bundles}
	return reader.single(e)
}

func (r registry) GetBundle(_ context.Context, req *api.GetBundleRequest) (*api.Bundle, error) {
	served := r.endpoint.content.Load()
	c, err := served.find(req.GetPkgName(), req.GetChannelName())
	if err != nil {
		return nil, err
	}
	e, ok := c.byName[req.GetCsvName()]
	if !ok {
		return nil, fmt.Errorf("package %q, channel %q, bundle %q not found", req.GetPkgName(), req.GetChannelName(),
			req.GetCsvName())
	}
	return served.single(e)
}

func (r registry) GetBundleForChannel(_ context.Context, req *api.GetBundleInChannelRequest) (*api.Bundle, error) {
	served := r.endpoint.content.Load()
	c, err := served.find(req.GetPkgName(), req.GetChannelName())
	if err != nil {
		return nil, err
	}
	return served.single(c.byName[c.head])
}

func (r registry) GetBundleThatReplaces(_ context.Context, req *api.GetReplacementRequest) (*api.Bundle, error) {
	served := r.endpoint.content.Load()
	if _, ok := served.packages[req.GetPkgName()]; !ok {
		return nil, fmt.Errorf("package %s not found", req.GetPkgName())
	}
	c, err := served.find(req.GetPkgName(), req.GetChannelName())
	if err != nil {
		return nil, err
	}
	for _, e := range c.entries {
		if e.Replaces == req.GetCsvName() || slices.Contains(e.Skips, req.GetCsvName()) {
			return served.single(e)
		}
	}
	return nil, fmt.Errorf("no entry found for package %q, channel %q", req.GetPkgName(), req.GetChannelName())
}

func (r registry) GetChannelEntriesThatReplace(req *api.GetAllReplacementsRequest,
	stream api.Registry_GetChannelEntriesThatReplaceServer) error {
	served := r.endpoint.content.Load()
	var entries []*api.ChannelEntry
	served.eachChannel(func(_ *storedPackage, c *storedChannel) {
		for _, e := range c.entries {
			entries = append(entries, c.channelEntriesReplacing(e, req.GetCsvName())...)
		}
	})
	if len(entries) == 0 {
		return fmt.Errorf("no channel entries found that replace %s", req.GetCsvName())
	}
	return send(entries, stream)
}

func (r registry) GetChannelEntriesThatProvide(req *api.GetAllProvidersRequest,
	stream api.Registry_GetChannelEntriesThatProvideServer) error {
	served := r.endpoint.content.Load()
	var entries []*api.ChannelEntry
	served.eachChannel(func(_ *storedPackage, c *storedChannel) {
		for _, e := range c.entries {
			if e.provides(req.GetGroup(), req.GetVersion(), req.GetKind()) {
				entries = append(entries, c.channelEntries(e, true)...)
			}
		}
	})
	if len(entries) == 0 {
		return noProvider(req.GetGroup(), req.GetVersion(), req.GetKind())
	}
	return send(entries, stream)
}

func (r registry) GetLatestChannelEntriesThatProvide(req *api.GetLatestProvidersRequest,
	stream api.Registry_GetLatestChannelEntriesThatProvideServer) error {
	served := r.endpoint.content.Load()
	var entries []*api.ChannelEntry
	served.eachChannel(func(_ *storedPackage, c *storedChannel) {
		if head := c.byName[c.head]; head.provides(req.GetGroup(), req.GetVersion(), req.GetKind()) {
			entries = append(entries, c.channelEntries(head, false)...)
		}
	})
	if len(entries) == 0 {
		return noProvider(req.GetGroup(), req.GetVersion(), req.GetKind())
	}
	return send(entries, stream)
}

func (r registry) GetDefaultBundleThatProvides(_ context.Context, req *api.GetDefaultProviderRequest) (*api.Bundle,
	error) {
	served := r.endpoint.content.Load()
	var found *entry
	anywhere := false
	served.eachChannel(func(p *storedPackage, c *storedChannel) {
		head := c.byName[c.head]
		if !head.provides(req.GetGroup(), req.GetVersion(), req.GetKind()) {
			return
		}
		anywhere = true
		if found == nil && c.name == p.info.GetDefaultChannelName() {
			found = head
		}
	})
	switch {
	case found != nil:
		return served.single(found)
	case anywhere:
		return nil, fmt.Errorf("no entry found that provides group:%q version:%q kind:%q", req.GetGroup(),
			req.GetVersion(), req.GetKind())
	default:
		return nil, noProvider(req.GetGroup(), req.GetVersion(), req.GetKind())
	}
}

func noProvider(group, version, kind string) error {
	return fmt.Errorf("no channel entries found that provide group:%q version:%q kind:%q", group, version, kind)
}

func send(entries []*api.ChannelEntry, stream interface{ Send(*api.ChannelEntry) error }) error {
	for _, e := range entries {
		if err := stream.Send(e); err != nil {
			return err
		}
	}
	return nil
}

// experimental answers for custom schemas, of which views have none: OLM reads none of them.
type experimental struct {
	api.UnimplementedExperimentalRegistryServer
}

func (experimental) ExperimentalListPackageCustomSchemas(req *api.ExperimentalListPackageCustomSchemasRequest,
	stream api.ExperimentalRegistry_ExperimentalListPackageCustomSchemasServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	acknowledged := slices.Contains(md.Get("x-acknowledge-experimental"), "true")
	if acknowledged && req.GetSchema() == "" {
		return status.Error(codes.InvalidArgument, "schema is required")
	}
	return nil
}

type health struct {
	healthv1.UnimplementedHealthServer
}

func (health) Check(context.Context, *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	return &healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_SERVING}, nil
}
