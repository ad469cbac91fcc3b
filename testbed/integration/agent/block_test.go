// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
)

// block plays the hub: the agent is told that these versions are blocked.
func (h *harness) block(versions ...string) {
	h.t.Helper()
	oi := &v1alpha1.OperatorInstall{}
	h.must(h.Get(h.t.Context(), h.key(), oi))
	patch := client.MergeFrom(oi.DeepCopy())
	oi.Spec.Blocks = nil
	for _, v := range versions {
		oi.Spec.Blocks = append(oi.Spec.Blocks, v1alpha1.VersionBlock{Package: h.operator, Version: v,
			Reason: "it loses data"})
	}
	h.must(h.Patch(h.t.Context(), oi, patch))
}

// bundlesAt lists the bundles of a catalog view.
func bundlesAt(ctx context.Context, address string) ([]string, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stream, err := api.NewRegistryClient(conn).ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for {
		b, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		names = append(names, b.GetCsvName())
	}
}

// offers waits until the view holds exactly these versions.
func (h *harness) offers(address string, versions ...string) {
	h.t.Helper()
	var want []string
	for _, v := range versions {
		want = append(want, csvName(h.operator, v))
	}
	h.eventually("the view offers "+strings.Join(want, ", "), func() bool {
		got, err := bundlesAt(h.t.Context(), address)
		return err == nil && slices.Equal(got, want)
	})
}

// blockedVersions are gone around, and hidden as soon as they are blocked, even
// where OLM has made a plan for one.
func blockedVersions(h *harness) {
	pin := h.pin(line("1.0.0", "1.1.0", "1.2.0", "1.3.0")...)
	h.to(pin, "1.0.0")
	address := h.runs().Status.OLMDetails().ViewAddress

	h.block("1.1.0")
	h.to(pin, "1.2.0")
	h.runs()
	for _, p := range h.plans() {
		if slices.Contains(p.Spec.ClusterServiceVersionNames, csvName(h.operator, "1.1.0")) {
			h.t.Errorf("InstallPlan %s went through a blocked version: %v", p.Name, p.Spec.ClusterServiceVersionNames)
		}
	}

	h.block("1.1.0", "1.3.0")
	h.to(pin, "1.3.0")
	h.stalls(v1alpha1.ReasonVersionBlocked, "The admitted version 1.3.0 is blocked: it loses data")
	h.offers(address, "1.2.0")
	if h.csv("1.3.0") != nil {
		h.t.Error("the blocked version was installed")
	}

	h.block()
	h.runs()
	h.block("1.3.0")
	h.says("runs. Version 1.3.0 is blocked", "It stays installed until another version is admitted")
	h.to(pin, "1.2.0")
	h.stalls(v1alpha1.ReasonVersionBlocked, "The installed version 1.3.0 is blocked",
		"There is no upgrade path from it to 1.2.0")
	h.only("1.3.0")
}

// blockedFromTheStart is a version that is blocked before anything is installed:
// nothing is made for it.
func blockedFromTheStart(h *harness) {
	pin := h.pin(line("1.0.0")...)
	h.to(v1alpha1.CatalogPin{Source: pin.Source, Digest: "sha256:" + zeros}, "1.0.0") // read by nobody yet
	h.stalls(v1alpha1.ReasonDigestMismatch)
	h.block("1.0.0")
	h.to(pin, "1.0.0")
	h.stalls(v1alpha1.ReasonVersionBlocked, "leave nothing to install")
	if plans := h.plans(); len(plans) > 0 {
		h.t.Errorf("%d InstallPlans", len(plans))
	}
	h.block()
	h.runs()
}

// signedCatalog is refused until it is signed by a key that the admission names.
func signedCatalog(h *harness) {
	ctx, stop := context.WithCancel(h.t.Context())
	ready, stopped := make(chan string, 1), make(chan error, 1)
	go func() { stopped <- registry.Serve(ctx, registry.Options{Ready: func(addr string) { ready <- addr }}) }()
	h.t.Cleanup(func() {
		stop()
		<-stopped
	})
	image := <-ready + "/catalogs/signed:latest"
	registries := oci.NewClient(oci.Options{})
	digest, err := registries.Push(h.t.Context(), h.pin(line("1.0.0")...).Source.Directory, image, oci.Access{})
	h.must(err)
	signer := func() *sign.Signer {
		pair, err := sign.GenerateKey(sign.Ed25519, nil)
		h.must(err)
		s, err := sign.NewSigner(pair.Private, nil)
		h.must(err)
		return s
	}
	attach := func(s *sign.Signer) {
		content, err := s.Sign(digest)
		h.must(err)
		of := strings.TrimSuffix(image, ":latest") + "@" + digest
		_, err = registries.Attach(h.t.Context(), of, oci.Artifact{Type: sign.BundleMediaType, Content: content},
			oci.Access{})
		h.must(err)
	}
	ours := signer()
	pin := v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Image: image}, Digest: digest,
		PublicKeys: []string{string(ours.PublicKey())}}
	h.to(pin, "1.0.0")
	h.stalls(v1alpha1.ReasonSignatureMissing, "Sign the catalog")
	attach(signer())
	h.to(pin, "1.0.0") // another stamp makes the agent look again at once
	h.stalls(v1alpha1.ReasonSignatureInvalid, "find out who pushed it")
	attach(ours)
	h.to(pin, "1.0.0")
	h.runs()
}
