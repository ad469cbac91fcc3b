// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry has the command that runs an OCI registry, and the flags of all commands that connect to a registry.
package registry

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

const registryServeLong = `Run an OCI registry until you interrupt the command. It is meant for demos and
tests. It requires no credentials, so listen on the loopback interface only. Without
--root all content is lost when the command ends.

--catalog serves the catalog in a folder as catalog:latest, and nothing else: the
registry then accepts no pushes, so it may listen on other addresses too.`

// servedCatalog is the reference at which the registry serves the catalog of --catalog.
const servedCatalog = "/catalog:latest"

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command registry with its subcommand.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	var o registry.Options
	var verbose bool
	var catalog string
	c := &cobra.Command{
		Use: "serve", Short: "Run an OCI registry on this machine", Long: registryServeLong, Args: command.NoArgs,
		Example: "  bellwether registry serve --root ~/.cache/bellwether-registry\n" +
			"  bellwether registry serve --catalog ./compiled",
		RunE: func(c *cobra.Command, _ []string) error {
			if _, _, err := net.SplitHostPort(o.Addr); err != nil {
				return exit.Hintf("use the form 127.0.0.1:5000", "invalid value %q of --addr", o.Addr)
			}
			if o.Root != "" {
				if err := os.MkdirAll(o.Root, 0o750); err != nil {
					return exit.Hint(fmt.Errorf("make the folder of --root: %w", err), "use another folder")
				}
			}
			o.Ready = func(addr string) { a.Say("Registry at %s\n", addr) }
			if verbose {
				o.Log = a.Streams.ErrOut
			}
			if catalog != "" { // a registry with Fill is read-only
				o.Fill = func(ctx context.Context, addr string) error {
					_, err := oci.NewClient(oci.Options{}).Push(ctx, catalog, addr+servedCatalog,
						oci.Access{Insecure: true})
					return err
				}
			}
			return registry.Serve(c.Context(), o)
		},
	}
	c.Flags().StringVar(&o.Addr, "addr", "127.0.0.1:5000", "The address to listen on. Port 0 selects a free port.")
	c.Flags().StringVar(&o.Root, "root", "", "The folder to store the content in. Default: memory.")
	c.Flags().BoolVar(&verbose, "verbose", false, "Log every request that fails. A push causes many of them.")
	c.Flags().StringVar(&catalog, "catalog", "", "The `DIR` of a compiled catalog to serve, read-only.")
	c.MarkFlagsMutuallyExclusive("root", "catalog")
	_ = c.MarkFlagDirname("root")
	_ = c.MarkFlagDirname("catalog")
	return command.NewParent("registry", "Run an OCI registry", nil, c)
}
