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

// registry implements OLM's registry API for one endpoint. Responses and error texts equal those of
// operator-registry's own server; the contract test compares them.
//
// OLM v0's resolver calls only ListBundles and GetPackage; its package server also calls ListPackages and
// GetBundleForChannel. The other calls are for users and for older clients.
type registry struct {
	api.UnimplementedRegistryServer
	endpoint *endpoint
}

var _ api.RegistryServer = registry{}

// ListPackages sends the names of all packages.
func (r registry) ListPackages(_ *api.ListPackageRequest, stream api.Registry_ListPackagesServer) error {
	served := r.endpoint.content.Load()
	for _, name := range served.names {
		if err := stream.Send(&api.PackageName{Name: name}); err != nil {
			return err
		}
	}
	return nil
}

// ListBundles sends the bundles of all channels, and counts the complete listing.
func (r registry) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	served := r.endpoint.content.Load()
	reader := &bundleReader{stored: served.bundles}
	for _, name := range served.names {
		for _, c := range served.packages[name].channels {
			for _, e := range c.entries {
				b, err := reader.readListed(e)
				if err != nil {
					return err
				}
				// Send encodes the message before it returns, so the reader can use its buffer again.
				if err := stream.Send(b); err != nil {
					return err
				}
			}
		}
	}
	r.endpoint.countRead(served)
	return nil
}

// GetPackage returns a package and the heads of its channels.
func (r registry) GetPackage(_ context.Context, req *api.GetPackageRequest) (*api.Package, error) {
	served := r.endpoint.content.Load()
	p, ok := served.packages[req.GetName()]
	if !ok {
		return nil, fmt.Errorf("package %q not found", req.GetName())
	}
	return p.info, nil
}

// findChannel returns a channel of a package. The texts of its errors are those of operator-registry.
func (c *content) findChannel(pkg, channel string) (*storedChannel, error) {
	p, ok := c.packages[pkg]
	if !ok {
		return nil, fmt.Errorf("package %q not found", pkg)
	}
	found := p.findChannel(channel)
	if found == nil {
		return nil, fmt.Errorf("package %q, channel %q not found", pkg, channel)
	}
	return found, nil
}

// readBundle reads the bundle of an entry. It uses a separate reader, because gRPC encodes the response after
// the call.
func (c *content) readBundle(e *entry) (*api.Bundle, error) {
	reader := &bundleReader{stored: c.bundles}
	return reader.readSingle(e)
}

// GetBundle returns the named bundle of a channel.
func (r registry) GetBundle(_ context.Context, req *api.GetBundleRequest) (*api.Bundle, error) {
	served := r.endpoint.content.Load()
	c, err := served.findChannel(req.GetPkgName(), req.GetChannelName())
	if err != nil {
		return nil, err
	}
	e, ok := c.byName[req.GetCsvName()]
	if !ok {
		return nil, fmt.Errorf("package %q, channel %q, bundle %q not found", req.GetPkgName(), req.GetChannelName(),
			req.GetCsvName())
	}
	return served.readBundle(e)
}

// GetBundleForChannel returns the head of a channel.
func (r registry) GetBundleForChannel(_ context.Context, req *api.GetBundleInChannelRequest) (*api.Bundle, error) {
	served := r.endpoint.content.Load()
	c, err := served.findChannel(req.GetPkgName(), req.GetChannelName())
	if err != nil {
		return nil, err
	}
	return served.readBundle(c.byName[c.head])
}

// GetBundleThatReplaces returns the first bundle of a channel that replaces or skips the named bundle.
func (r registry) GetBundleThatReplaces(_ context.Context, req *api.GetReplacementRequest) (*api.Bundle, error) {
	served := r.endpoint.content.Load()
	if _, ok := served.packages[req.GetPkgName()]; !ok {
		return nil, fmt.Errorf("package %s not found", req.GetPkgName())
	}
	c, err := served.findChannel(req.GetPkgName(), req.GetChannelName())
	if err != nil {
		return nil, err
	}
	for _, e := range c.entries {
		if e.Replaces == req.GetCsvName() || slices.Contains(e.Skips, req.GetCsvName()) {
			return served.readBundle(e)
		}
	}
	return nil, fmt.Errorf("no entry found for package %q, channel %q", req.GetPkgName(), req.GetChannelName())
}

// GetChannelEntriesThatReplace sends the entries of all channels that replace or skip the named bundle.
func (r registry) GetChannelEntriesThatReplace(req *api.GetAllReplacementsRequest,
	stream api.Registry_GetChannelEntriesThatReplaceServer) error {
	served := r.endpoint.content.Load()
	var entries []*api.ChannelEntry
	served.visitChannels(func(_ *storedPackage, c *storedChannel) {
		for _, e := range c.entries {
			entries = append(entries, c.toReplacingEntries(e, req.GetCsvName())...)
		}
	})
	if len(entries) == 0 {
		return fmt.Errorf("no channel entries found that replace %s", req.GetCsvName())
	}
	return send(entries, stream)
}

// GetChannelEntriesThatProvide sends the entries of all channels whose bundle provides an API.
func (r registry) GetChannelEntriesThatProvide(req *api.GetAllProvidersRequest,
	stream api.Registry_GetChannelEntriesThatProvideServer) error {
	served := r.endpoint.content.Load()
	var entries []*api.ChannelEntry
	served.visitChannels(func(_ *storedPackage, c *storedChannel) {
		for _, e := range c.entries {
			if e.isProviderOf(req.GetGroup(), req.GetVersion(), req.GetKind()) {
				entries = append(entries, c.toChannelEntries(e, true)...)
			}
		}
	})
	if len(entries) == 0 {
		return newNoProviderError(req.GetGroup(), req.GetVersion(), req.GetKind())
	}
	return send(entries, stream)
}

// GetLatestChannelEntriesThatProvide sends the heads of channels that provide an API.
func (r registry) GetLatestChannelEntriesThatProvide(req *api.GetLatestProvidersRequest,
	stream api.Registry_GetLatestChannelEntriesThatProvideServer) error {
	served := r.endpoint.content.Load()
	var entries []*api.ChannelEntry
	served.visitChannels(func(_ *storedPackage, c *storedChannel) {
		if head := c.byName[c.head]; head.isProviderOf(req.GetGroup(), req.GetVersion(), req.GetKind()) {
			entries = append(entries, c.toChannelEntries(head, false)...)
		}
	})
	if len(entries) == 0 {
		return newNoProviderError(req.GetGroup(), req.GetVersion(), req.GetKind())
	}
	return send(entries, stream)
}

// GetDefaultBundleThatProvides returns the head of a default channel that provides an API.
func (r registry) GetDefaultBundleThatProvides(_ context.Context, req *api.GetDefaultProviderRequest) (*api.Bundle,
	error) {
	served := r.endpoint.content.Load()
	var found *entry
	isProvided := false
	served.visitChannels(func(p *storedPackage, c *storedChannel) {
		head := c.byName[c.head]
		if !head.isProviderOf(req.GetGroup(), req.GetVersion(), req.GetKind()) {
			return
		}
		isProvided = true
		if found == nil && c.name == p.info.GetDefaultChannelName() {
			found = head
		}
	})
	switch {
	case found != nil:
		return served.readBundle(found)
	case isProvided:
		return nil, fmt.Errorf("no entry found that provides group:%q version:%q kind:%q", req.GetGroup(),
			req.GetVersion(), req.GetKind())
	default:
		return nil, newNoProviderError(req.GetGroup(), req.GetVersion(), req.GetKind())
	}
}

func newNoProviderError(group, version, kind string) error {
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

// experimental implements the calls for custom schemas. Views have no custom schemas, because OLM does not read them.
type experimental struct {
	api.UnimplementedExperimentalRegistryServer
}

func (experimental) ExperimentalListPackageCustomSchemas(req *api.ExperimentalListPackageCustomSchemasRequest,
	stream api.ExperimentalRegistry_ExperimentalListPackageCustomSchemasServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	isAcknowledged := slices.Contains(md.Get("x-acknowledge-experimental"), "true")
	if isAcknowledged && req.GetSchema() == "" {
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
