// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// epoch is the time of all files in an image, so that the same files give the same digest.
var epoch = time.Unix(0, 0).UTC()

// Push writes the catalog in a directory to a registry and returns the image's digest. The catalog must be valid. The
// tag is moved after the content was pushed, so that readers never get an incomplete catalog.
func (c *Client) Push(ctx context.Context, dir, ref string, a Access) (string, error) {
	if err := validateCatalog(dir, c.options.MaxBytes); err != nil {
		return "", fmt.Errorf("push %s: %w", dir, err)
	}
	labels := map[string]string{ConfigsLabel: "/configs"}
	digest, err := c.pushImage(ctx, dir, "configs", ref, labels, a)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", dir, err)
	}
	return digest, nil
}

// validateCatalog returns an error if the directory is not a valid catalog.
func validateCatalog(dir string, limit int64) error {
	digest, err := digestDirectory(dir)
	if err != nil {
		return err
	}
	summary, err := catalogs.ReadSummary(openDirectory(dir, digest, limit))
	if err != nil {
		return err
	}
	var problems []error
	for _, p := range summary.Packages {
		if p.Problem != "" {
			problems = append(problems, fmt.Errorf("%w: %s", catalogs.ErrInvalidPackage, p.Problem))
		}
	}
	return errors.Join(problems...)
}

// pushImage pushes an image of one layer that contains the directory's files below prefix.
func (c *Client) pushImage(ctx context.Context, dir, prefix, ref string, labels map[string]string, a Access) (string,
	error) {
	img, err := newImage(dir, prefix, labels)
	if err != nil {
		return "", fmt.Errorf("make image: %w", err)
	}
	return c.writeImage(ctx, img, ref, a)
}

// writeImage pushes an image under a tag and returns its digest.
func (c *Client) writeImage(ctx context.Context, img v1.Image, ref string, a Access) (string, error) {
	target, err := parseTag(ref, a)
	if err != nil {
		return "", err
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return "", err
	}
	if err := remote.Write(target, img, options...); err != nil {
		return "", fmt.Errorf("write %s: %w", target, classify(err))
	}
	digest, err := img.Digest()
	if err != nil {
		return "", fmt.Errorf("digest image: %w", err)
	}
	return digest.String(), nil
}

// newImage returns an image of one layer that contains the directory's files below prefix.
func newImage(dir, prefix string, labels map[string]string) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { w.CloseWithError(writeArchive(w, dir, prefix)) }()
		return r, nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("make layer: %w", err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{
		Created: v1.Time{Time: epoch}, CreatedBy: "bellwether",
	}})
	if err != nil {
		return nil, fmt.Errorf("append layer: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	config = config.DeepCopy()
	// The content is not run. The fields are required, and most tools expect these values.
	config.OS, config.Architecture = "linux", "amd64"
	config.Created = v1.Time{Time: epoch}
	config.Config.Labels = labels
	return mutate.ConfigFile(img, config)
}

// writeArchive writes the directory's files below prefix as a tar archive.
func writeArchive(w io.Writer, dir, prefix string) error {
	archive := tar.NewWriter(w)
	folders := map[string]bool{}
	if err := writeFolders(archive, prefix, folders); err != nil {
		return err
	}
	err := walkDirectory(dir, func(file string, size int64, content io.Reader) error {
		target := path.Join(prefix, file)
		if err := writeFolders(archive, path.Dir(target), folders); err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: target, Size: size, Mode: 0o644, ModTime: epoch,
			Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write header of %q: %w", file, err)
		}
		if _, err := io.Copy(archive, content); err != nil {
			return fmt.Errorf("write %q: %w", file, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return archive.Close()
}

// writeFolders writes a folder and its parents, except those in written, and adds them to written.
func writeFolders(archive *tar.Writer, folder string, written map[string]bool) error {
	if folder == "." || folder == "" || written[folder] {
		return nil
	}
	if err := writeFolders(archive, path.Dir(folder), written); err != nil {
		return err
	}
	written[folder] = true
	header := &tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: epoch, Format: tar.FormatPAX}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("write header of folder %q: %w", folder, err)
	}
	return nil
}

// PushBundle writes a registry+v1 bundle directory to a registry and returns the image's digest. The image's labels
// are the annotations in metadata/annotations.yaml; OLM identifies a bundle by these labels.
func (c *Client) PushBundle(ctx context.Context, dir, ref string, a Access) (string, error) {
	img, err := BundleImage(dir)
	if err != nil {
		return "", fmt.Errorf("push bundle: %w", err)
	}
	digest, err := c.writeImage(ctx, img, ref, a)
	if err != nil {
		return "", fmt.Errorf("push bundle %s: %w", dir, err)
	}
	return digest, nil
}

// readDirectoryLabels returns the image labels of a bundle directory. The error wraps ErrNotBundle.
func readDirectoryLabels(dir string) (map[string]string, error) {
	raw, err := os.ReadFile(path.Join(dir, "metadata", "annotations.yaml"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotBundle, err)
	}
	labels, err := readBundleLabels(raw)
	if err != nil {
		return nil, err
	}
	manifests := path.Join(dir, labels[manifestsLabel])
	if entries, err := os.ReadDir(manifests); err != nil || len(entries) == 0 {
		return nil, fmt.Errorf("%w: there are no manifests in %s", ErrNotBundle, strings.TrimPrefix(manifests, dir+"/"))
	}
	return labels, nil
}
