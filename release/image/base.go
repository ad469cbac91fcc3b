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

// epoch is the time of what depends on no commit.
var epoch = time.Unix(0, 0).UTC()

// DefaultBase is a base that is made of nothing, so that no registry is needed for it: the certificate authorities that
// Mozilla trusts, the user nonroot and an empty /tmp. Programs are static, and bring time zones themselves.
func DefaultBase() (v1.Image, error) {
	roots, err := authorities()
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
	img, err := mutate.Append(base, addendum(layer, epoch, "bellwether: certificates and users"))
	if err != nil {
		return nil, fmt.Errorf("make base: %w", err)
	}
	return img, nil
}

// authorities are Mozilla's, as PEM, from the module that pins them. Those that are trusted for some certificates only
// are left out, because a file cannot say so.
func authorities() ([]byte, error) {
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

func addendum(layer v1.Layer, at time.Time, by string) mutate.Addendum {
	return mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: at},
		CreatedBy: by}}
}
