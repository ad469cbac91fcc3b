// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// Catalogs reads published catalogs for the hub's controllers and returns the
// types of package catalogs.
type Catalogs struct {
	client  *oci.Client
	loader  *load.Loader
	secrets kit.PullSecrets
}

// readBudget limits the memory of one read of a catalog. docs/reference/limits.md describes the
// effect on the hub's memory.
const readBudget = 128 << 20

// maxCachedBytes limits the memory of cached packages. Each change of an OperatorInstall reads
// the package of its operator, which is small without its manifests.
const maxCachedBytes = 64 << 20

// NewCatalogs returns a reader that caches pulled content in the folder cacheDir. If cacheDir is
// empty, nothing is cached on disk.
func NewCatalogs(cacheDir string) *Catalogs {
	images := oci.NewClient(oci.Options{CacheDir: cacheDir})
	return &Catalogs{client: images, loader: load.New(images, load.Options{MaxBytes: maxCachedBytes,
		Budget: readBudget})}
}

// Close must be called before a normal end of the process. A read that is interrupted by the end
// of the process is then not recorded as a failure of its catalog.
func (c *Catalogs) Close() { c.client.Close() }

// ReadSecrets lets catalogs name a Secret in their namespace as the login. serviceAccount is the
// hub's account as namespace:name. It is used in the message about a missing permission.
func (c *Catalogs) ReadSecrets(live client.Reader, serviceAccount string) {
	c.secrets = kit.PullSecrets{Live: live, Allow: describePermission(serviceAccount)}
}

// describePermission returns a function with the instructions for the owner of a namespace to let the hub read one
// Secret in it.
func describePermission(serviceAccount string) func(namespace, name string) string {
	return func(namespace, name string) string {
		return kit.DescribeSecretPermission("hub.pullSecrets", "bellwether-pull", serviceAccount, namespace, name)
	}
}

// buildSource returns the source that a catalog in a namespace names, with its login.
func (c *Catalogs) buildSource(ctx context.Context, namespace string, catalogSource v1alpha1.CatalogSource) (oci.Source,
	error) {
	s := oci.NewSource(catalogSource)
	if catalogSource.PullSecret == "" {
		return s, nil
	}
	var err error
	s.Access.DockerConfig, err = c.secrets.Read(ctx, namespace, catalogSource.PullSecret)
	return s, err
}

// Resolve returns the current digest of a catalog's source. namespace is the namespace of the
// catalog. If public keys are given, one of the keys must have signed the content.
func (c *Catalogs) Resolve(ctx context.Context, namespace string, source v1alpha1.CatalogSource,
	publicKeys []string) (string, error) {
	s, err := c.buildSource(ctx, namespace, source)
	if err != nil {
		return "", err
	}
	for _, key := range publicKeys {
		s.Verification.PublicKeys = append(s.Verification.PublicKeys, []byte(key))
	}
	return c.loader.Resolve(ctx, s)
}

// Summary reads the packages and channels of the catalog with that digest. The signature is not
// verified again: Resolve has verified the digest.
func (c *Catalogs) Summary(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest string) (
	catalogs.Summary, error) {
	s, err := c.buildSource(ctx, namespace, source)
	if err != nil {
		return catalogs.Summary{}, err
	}
	return c.loader.Summary(ctx, s, digest)
}

// Package reads one package, without its manifests.
func (c *Catalogs) Package(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest, name string) (
	*catalogs.Package, error) {
	s, err := c.buildSource(ctx, namespace, source)
	if err != nil {
		return nil, err
	}
	return c.loader.Package(ctx, s, digest, name)
}

// Bundles reads one package with the manifests of the named bundles. Manifests that
// cannot be read are left out.
func (c *Catalogs) Bundles(ctx context.Context, namespace string, source v1alpha1.CatalogSource, digest, name string,
	bundles ...string) (*catalogs.Package, error) {
	s, err := c.buildSource(ctx, namespace, source)
	if err != nil {
		return nil, err
	}
	return c.loader.Bundles(ctx, s, digest, name, bundles...)
}

// RunDecoding calls decode. decode must decode only bundles of the catalog with that digest. If
// decode exhausts the hub's memory, the digest is not read again after the restart.
func (c *Catalogs) RunDecoding(ctx context.Context, digest string, decode func() error) error {
	return c.loader.RunDecoding(ctx, digest, decode)
}

// ReasonFor returns the API's reason for an error of a catalog.
func (c *Catalogs) ReasonFor(err error) string { return load.ReasonFor(err) }
