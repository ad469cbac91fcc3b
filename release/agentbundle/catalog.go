// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agentbundle

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/compile/folder"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// catalogUpdate is a version to add to a catalog.
type catalogUpdate struct {
	// version is the version of the agent, and image is the image of its bundle by digest.
	version, image string
	// repository is the repository of the catalog. previous is the digest of the catalog that
	// the version is added to; empty for a new catalog.
	repository, previous string
	now                  time.Time
}

// compileCatalog writes the catalog with an additional version of the agent into the folder
// dir/catalog, and returns that folder. The catalog keeps all versions and blocks of the
// previous catalog. If the previous catalog has the same version, it stays unchanged; the error
// wraps ladder.ErrExists if it has the version with another bundle.
func compileCatalog(ctx context.Context, client *oci.Client, access oci.Access, dir string,
	update catalogUpdate) (string, error) {
	ladders, out := filepath.Join(dir, "ladders"), filepath.Join(dir, "catalog")
	file, err := ladder.New(folder.Path(ladders, v1alpha1.AgentPackage), &ladder.Ladder{APIVersion: ladder.APIVersion,
		Kind: ladder.Kind, Package: v1alpha1.AgentPackage, Channels: []string{Channel},
		Description: description})
	if err != nil {
		return "", fmt.Errorf("make ladder: %w", err)
	}
	o := folder.Options{Bundles: folder.Bundles{Images: client, Access: access}, Now: update.now}
	if update.previous != "" {
		if o.Published, err = update.readPrevious(ctx, client, access, file.Ladder); err != nil {
			return "", err
		}
	}
	added := ladder.Bundle{Version: update.version, Image: update.image, Channel: Channel}
	if err := file.Ladder.Add(added); err != nil {
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

// readPrevious adds the versions of the previous catalog to a ladder, and returns
// the package of that catalog.
func (n catalogUpdate) readPrevious(ctx context.Context, client *oci.Client, access oci.Access,
	l *ladder.Ladder) ([]*catalogs.Package,
	error) {
	files, err := client.Open(ctx, oci.Source{Image: n.repository + "@" + n.previous, Access: access}, n.previous)
	if err != nil {
		return nil, fmt.Errorf("open previous catalog: %w", err)
	}
	p, err := catalogs.ReadPackageWithManifests(files, v1alpha1.AgentPackage)
	if err != nil {
		return nil, fmt.Errorf("read previous catalog: %w", err)
	}
	if _, err := compile.Import(l, p); err != nil {
		return nil, fmt.Errorf("read previous catalog: %w", err)
	}
	return []*catalogs.Package{p}, nil
}
