// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry holds the command that runs an OCI registry, and the flags of
// every command that talks to one.
package registry

import (
	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
)

const registryServeLong = `Run an OCI registry until you interrupt it: for a demo, for tests, and for a
first try on a laptop. It asks for no credentials, so keep it on the loopback
interface. Without --root it forgets everything when it ends.`

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command with everything below it.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	var o registry.Options
	var verbose bool
	c := &cobra.Command{
		Use: "serve", Short: "Run an OCI registry on this machine", Long: registryServeLong, Args: cobra.NoArgs,
		Example: "  bellwether registry serve --root ~/.cache/bellwether-registry",
		RunE: func(c *cobra.Command, _ []string) error {
			o.Ready = func(addr string) { a.Say("Registry at %s\n", addr) }
			if verbose {
				o.Log = a.Streams.ErrOut
			}
			return registry.Serve(c.Context(), o)
		},
	}
	c.Flags().StringVar(&o.Addr, "addr", "127.0.0.1:5000", "The address to listen on; port 0 is any free one.")
	c.Flags().StringVar(&o.Root, "root", "", "The folder to keep everything in. Default: memory.")
	c.Flags().BoolVar(&verbose, "verbose", false, "Log every request that does not succeed, which a push has many of.")
	_ = c.MarkFlagDirname("root")
	return command.Parent("registry", "An OCI registry for those who have none", nil, c)
}
