// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// Flags are the flags for connections to a registry.
type Flags struct{ insecure bool }

// Add adds the flags to a command.
func (f *Flags) Add(c *cobra.Command) {
	c.Flags().BoolVar(&f.insecure, "insecure", false,
		"Allow plain HTTP and untrusted certificates. Registries on the loopback interface do not need it.")
}

// Access returns the settings for connections to the registry.
func (f *Flags) Access() oci.Access { return oci.Access{Insecure: f.insecure} }

// Source returns a directory as the source if text names a directory, otherwise an image.
func (f *Flags) Source(text string) (oci.Source, error) {
	if info, err := os.Stat(text); err == nil && info.IsDir() {
		dir, err := filepath.Abs(text)
		if err != nil {
			return oci.Source{}, fmt.Errorf("find %s: %w", text, err)
		}
		return oci.Source{Directory: dir}, nil
	}
	if err := CheckImageName(text); err != nil {
		return oci.Source{}, err
	}
	return oci.Source{Image: text, Access: f.Access()}, nil
}

// CheckImageName returns an error for a name that is probably a folder that does not exist. With Docker's short
// names, such a name would be resolved on the internet.
func CheckImageName(source string) error {
	host, _, hasSlash := strings.Cut(source, "/")
	if hasSlash && isRegistry(host) && !isFolder(host) {
		return nil
	}
	switch info, err := os.Stat(source); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return exit.Hintf("give the folder that it is in", "%s is a file, not a folder or an image", source)
	}
	return exit.Hintf("write images with their registry, for example registry.example.com/bundles/echo-operator:1.1.0",
		"folder %s does not exist", source)
}

// CheckTarget returns an error for a push reference without a registry. With Docker's short names, the
// push would go to the internet.
func CheckTarget(reference string) error {
	const advice = "write it with its registry, for example registry.example.com/bundles/echo-operator:1.1.0"
	host, _, hasSlash := strings.Cut(reference, "/")
	if !hasSlash || !isRegistry(host) {
		return exit.Hintf(advice, "the reference %q names no registry", reference)
	}
	return nil
}

// CheckFolder returns an error if dir is not a folder.
func CheckFolder(dir string) error {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return exit.Hintf("check the path", "folder %s does not exist", dir)
	case err != nil:
		return fmt.Errorf("read folder: %w", err)
	case !info.IsDir():
		return exit.Hintf("give the folder that it is in", "%s is a file, not a folder", dir)
	}
	return nil
}

// isRegistry reports whether the part of a reference before the first slash can be a registry.
func isRegistry(host string) bool {
	name, port, hasPort := strings.Cut(host, ":")
	if strings.HasPrefix(host, "[") || net.ParseIP(name) != nil {
		return true // an IP address
	}
	if hasPort {
		_, err := strconv.ParseUint(port, 10, 16)
		return err == nil && name != ""
	}
	// A top-level domain is never a number, so bundle-1.0 is a folder.
	topLevelDomain := name[strings.LastIndex(name, ".")+1:]
	_, err := strconv.ParseUint(topLevelDomain, 10, 64)
	isDomain := strings.Contains(strings.Trim(name, "."), ".") && topLevelDomain != "" && err != nil
	return name == "localhost" || isDomain
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// Open reads the current content of a catalog from a folder or an image.
func (f *Flags) Open(ctx context.Context, text string) (catalogs.Files, error) {
	source, err := f.Source(text)
	if err != nil {
		return nil, err
	}
	client := oci.NewClient(oci.Options{})
	digest, err := client.Resolve(ctx, source)
	if err != nil {
		return nil, AddHint(err)
	}
	files, err := client.Open(ctx, source, digest)
	if err != nil {
		return nil, AddHint(err)
	}
	return files, nil
}

// AddHint adds to an error of a registry or of a catalog's content what the user can do. Other errors are returned
// unchanged.
func AddHint(err error) error {
	switch {
	case errors.Is(err, oci.ErrDenied):
		return exit.Hint(err, "log in to the registry with docker login or podman login")
	case errors.Is(err, oci.ErrUnreachable):
		return exit.Hint(err,
			"check the name of the registry and the network; a registry with plain HTTP needs --insecure")
	case errors.Is(err, oci.ErrUntrusted):
		return exit.Hint(err, "add the certificate of its authority to those that this machine trusts, or name its "+
			"file in SSL_CERT_FILE; --insecure accepts any certificate")
	case errors.Is(err, oci.ErrFailed):
		return exit.Hint(err, "try again later; the status says what the registry's operators should look for")
	case errors.Is(err, oci.ErrBadSource):
		return exit.Hint(err, "write images as REGISTRY/NAME:TAG or REGISTRY/NAME@sha256:DIGEST")
	case errors.Is(err, oci.ErrNotFound):
		return exit.Hint(err, "check the name; it is neither a local folder nor an image in the registry")
	case errors.Is(err, oci.ErrNotBundle):
		return exit.Hint(err, "a bundle folder has manifests/ and metadata/annotations.yaml")
	case errors.Is(err, catalogs.ErrNotCatalog):
		return exit.Hint(err, "a catalog is a folder or an image with file-based catalog documents (olm.package, "+
			"olm.channel, olm.bundle)")
	default:
		return err
	}
}

// PrintDigest prints only the digest of a push, for scripts. If err is not nil, it returns the error with a hint.
func PrintDigest(env *command.Env, digest string, err error) error {
	if err != nil {
		return AddHint(err)
	}
	env.Say("%s\n", digest)
	return nil
}
