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
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// registry answers OLM's registry API for all views; which one is asked follows from the port that the connection came
// in on. Answers and error texts are those of operator-registry's own server, which the contract test holds against
// this one.
//
// OLM v0's resolver calls ListBundles and GetPackage and nothing else; its package server calls ListPackages and
// GetBundleForChannel as well. The other calls are for people and for older clients.
type registry struct {
	api.UnimplementedRegistryServer
}

var _ api.RegistryServer = registry{}

func content(ctx context.Context) (*slot, *store, error) {
	if p, ok := peer.FromContext(ctx); ok {
		if addr, ok := p.LocalAddr.(slotAddr); ok {
			return addr.slot, addr.slot.content.Load(), nil
		}
	}
	return nil, nil, status.Error(codes.Internal, "the connection belongs to no view")
}

func (registry) ListPackages(_ *api.ListPackageRequest, stream api.Registry_ListPackagesServer) error {
	_, s, err := content(stream.Context())
	if err != nil {
		return err
	}
	for _, name := range s.names {
		if err := stream.Send(&api.PackageName{Name: name}); err != nil {
			return err
		}
	}
	return nil
}

func (registry) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	view, s, err := content(stream.Context())
	if err != nil {
		return err
	}
	r := &reading{spool: s.spool}
	for _, name := range s.names {
		for _, c := range s.packages[name].channels {
			for _, b := range c.order {
				m, err := r.listed(b)
				if err != nil {
					return err
				}
				// Send has encoded the message when it returns, so its buffer is free again.
				if err := stream.Send(m); err != nil {
					return err
				}
			}
		}
	}
	view.countRead(s)
	return nil
}

func (registry) GetPackage(ctx context.Context, req *api.GetPackageRequest) (*api.Package, error) {
	_, s, err := content(ctx)
	if err != nil {
		return nil, err
	}
	p, ok := s.packages[req.GetName()]
	if !ok {
		return nil, fmt.Errorf("package %q not found", req.GetName())
	}
	return p.info, nil
}

// find returns a channel of a package; the texts of its errors are operator-registry's.
func (s *store) find(pkg, channel string) (*storedChannel, error) {
	p, ok := s.packages[pkg]
	if !ok {
		return nil, fmt.Errorf("package %q not found", pkg)
	}
	c := p.channel(channel)
	if c == nil {
		return nil, fmt.Errorf("package %q, channel %q not found", pkg, channel)
	}
	return c, nil
}

// single reads one bundle, into a buffer of its own: gRPC encodes the answer after the call.
func (s *store) single(b *storedBundle) (*api.Bundle, error) {
	r := &reading{spool: s.spool}
	return r.single(b)
}

func (registry) GetBundle(ctx context.Context, req *api.GetBundleRequest) (*api.Bundle, error) {
	_, s, err := content(ctx)
	if err != nil {
		return nil, err
	}
	c, err := s.find(req.GetPkgName(), req.GetChannelName())
	if err != nil {
		return nil, err
	}
	b, ok := c.bundles[req.GetCsvName()]
	if !ok {
		return nil, fmt.Errorf("package %q, channel %q, bundle %q not found", req.GetPkgName(), req.GetChannelName(),
			req.GetCsvName())
	}
	return s.single(b)
}

func (registry) GetBundleForChannel(ctx context.Context, req *api.GetBundleInChannelRequest) (*api.Bundle, error) {
	_, s, err := content(ctx)
	if err != nil {
		return nil, err
	}
	c, err := s.find(req.GetPkgName(), req.GetChannelName())
	if err != nil {
		return nil, err
	}
	return s.single(c.bundles[c.head])
}

func (registry) GetBundleThatReplaces(ctx context.Context, req *api.GetReplacementRequest) (*api.Bundle, error) {
	_, s, err := content(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := s.packages[req.GetPkgName()]; !ok {
		return nil, fmt.Errorf("package %s not found", req.GetPkgName())
	}
	c, err := s.find(req.GetPkgName(), req.GetChannelName())
	if err != nil {
		return nil, err
	}
	for _, b := range c.order {
		if b.Replaces == req.GetCsvName() || slices.Contains(b.Skips, req.GetCsvName()) {
			return s.single(b)
		}
	}
	return nil, fmt.Errorf("no entry found for package %q, channel %q", req.GetPkgName(), req.GetChannelName())
}

func (registry) GetChannelEntriesThatReplace(req *api.GetAllReplacementsRequest,
	stream api.Registry_GetChannelEntriesThatReplaceServer) error {
	_, s, err := content(stream.Context())
	if err != nil {
		return err
	}
	var entries []*api.ChannelEntry
	s.eachChannel(func(_ *storedPackage, c *storedChannel) {
		for _, b := range c.order {
			entries = append(entries, c.entriesReplacing(b, req.GetCsvName())...)
		}
	})
	if len(entries) == 0 {
		return fmt.Errorf("no channel entries found that replace %s", req.GetCsvName())
	}
	return send(entries, stream)
}

func (registry) GetChannelEntriesThatProvide(req *api.GetAllProvidersRequest,
	stream api.Registry_GetChannelEntriesThatProvideServer) error {
	_, s, err := content(stream.Context())
	if err != nil {
		return err
	}
	var entries []*api.ChannelEntry
	s.eachChannel(func(_ *storedPackage, c *storedChannel) {
		for _, b := range c.order {
			if b.provides(req.GetGroup(), req.GetVersion(), req.GetKind()) {
				entries = append(entries, c.entriesOf(b, true)...)
			}
		}
	})
	if len(entries) == 0 {
		return noProvider(req.GetGroup(), req.GetVersion(), req.GetKind())
	}
	return send(entries, stream)
}

func (registry) GetLatestChannelEntriesThatProvide(req *api.GetLatestProvidersRequest,
	stream api.Registry_GetLatestChannelEntriesThatProvideServer) error {
	_, s, err := content(stream.Context())
	if err != nil {
		return err
	}
	var entries []*api.ChannelEntry
	s.eachChannel(func(_ *storedPackage, c *storedChannel) {
		if head := c.bundles[c.head]; head.provides(req.GetGroup(), req.GetVersion(), req.GetKind()) {
			entries = append(entries, c.entriesOf(head, false)...)
		}
	})
	if len(entries) == 0 {
		return noProvider(req.GetGroup(), req.GetVersion(), req.GetKind())
	}
	return send(entries, stream)
}

func (registry) GetDefaultBundleThatProvides(ctx context.Context, req *api.GetDefaultProviderRequest) (*api.Bundle,
	error) {
	_, s, err := content(ctx)
	if err != nil {
		return nil, err
	}
	var found *storedBundle
	anywhere := false
	s.eachChannel(func(p *storedPackage, c *storedChannel) {
		head := c.bundles[c.head]
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
		return s.single(found)
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
