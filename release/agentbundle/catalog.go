// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agentbundle

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/bellwether-dev/bellwether/apis/own"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/compile/folder"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// next is a version that a catalog gets.
type next struct {
	// version, and the image of its bundle by digest.
	version, image string
	// repository of the catalog, and the digest of the one that gets the version; an empty digest begins a catalog.
	repository, previous string
	now                  time.Time
}

// compileNext writes the catalog with a further version of the agent into the folder dir/catalog, and returns that. All
// versions and blocks of the previous catalog stay in it. One that has the version already stays as it is; errors wrap
// ladder.ErrExists where it has the version with another bundle.
func compileNext(ctx context.Context, client *oci.Client, access oci.Access, dir string, n next) (string, error) {
	ladders, out := filepath.Join(dir, "ladders"), filepath.Join(dir, "catalog")
	file, err := ladder.New(folder.Path(ladders, own.AgentPackage), &ladder.Ladder{APIVersion: ladder.APIVersion,
		Kind: ladder.Kind, Package: own.AgentPackage, Channels: []string{Channel},
		Description: description})
	if err != nil {
		return "", fmt.Errorf("make ladder: %w", err)
	}
	o := folder.Options{Bundles: folder.Bundles{Images: client, Access: access}, Now: n.now}
	if n.previous != "" {
		if o.Published, err = n.read(ctx, client, access, file.Ladder); err != nil {
			return "", err
		}
	}
	if err := file.Ladder.Add(ladder.Bundle{Version: n.version, Image: n.image, Channel: Channel}); err != nil {
		return "", fmt.Errorf("add version to catalog: %w", err)
	}
	if err := makeFolder(ladders); err != nil {
		return "", err
	}
	if err := folder.Save(file); err != nil {
		return "", fmt.Errorf("write ladder: %w", err)
	}
	if _, err := folder.Compile(ctx, ladders, out, o); err != nil {
		return "", fmt.Errorf("compile catalog: %w", err)
	}
	return out, nil
}

// read fills a ladder from the previous catalog, which it returns.
func (n next) read(ctx context.Context, client *oci.Client, access oci.Access, l *ladder.Ladder) ([]*catalogs.Package,
	error) {
	files, err := client.Open(ctx, oci.Source{Image: n.repository + "@" + n.previous, Access: access}, n.previous)
	if err != nil {
		return nil, fmt.Errorf("open previous catalog: %w", err)
	}
	p, err := catalogs.ReadPackageWith(files, own.AgentPackage)
	if err != nil {
		return nil, fmt.Errorf("read previous catalog: %w", err)
	}
	if _, err := compile.Import(l, p); err != nil {
		return nil, fmt.Errorf("read previous catalog: %w", err)
	}
	return []*catalogs.Package{p}, nil
}
