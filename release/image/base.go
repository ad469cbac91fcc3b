// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	//nolint:gosec // no password
	passwd = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"

	certificates = "/etc/ssl/certs/ca-certificates.crt"
)

// epoch is the time of content that does not depend on a commit.
var epoch = time.Unix(0, 0).UTC()

// DefaultBase returns a base image that is built without another image, so that no registry is
// needed: it has the certificate authorities that Mozilla trusts, the user nonroot and an empty
// /tmp. The programs are static and include the time zones.
func DefaultBase() (v1.Image, error) {
	roots, err := encodeAuthorities()
	if err != nil {
		return nil, err
	}
	layer, err := newLayer(epoch, []file{
		{name: certificates, mode: 0o644, content: roots},
		{name: "/etc/group", mode: 0o644, content: []byte(group)},
		{name: "/etc/passwd", mode: 0o644, content: []byte(passwd)},
		{name: "/home/nonroot/", mode: 0o755},
		{name: "/tmp/", mode: 0o1777},
	})
	if err != nil {
		return nil, fmt.Errorf("make base: %w", err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, newAddendum(layer, epoch, "bellwether: certificates and users"))
	if err != nil {
		return nil, fmt.Errorf("make base: %w", err)
	}
	return img, nil
}

// encodeAuthorities returns Mozilla's certificate authorities as PEM, from a Go module with a
// fixed version. Authorities that are trusted only for some certificates are left out, because a
// PEM file cannot express that.
func encodeAuthorities() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("encode certificate: %w", err)
		}
	}
	return out.Bytes(), nil
}

// newAddendum returns the addition of a layer to an image, with its history.
func newAddendum(layer v1.Layer, at time.Time, createdBy string) mutate.Addendum {
	return mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: at},
		CreatedBy: createdBy}}
}
