// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog holds the commands for catalogs: those on the hub, and the
// files that they are made from.
package catalog

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/publish"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command with everything below it.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.Parent("catalog", "Build, publish and inspect catalogs", []string{"catalogs"},
		a.catalogInitCommand(), a.catalogAddCommand(), a.catalogPromoteCommand(), a.catalogBlockCommand(),
		a.catalogUnblockCommand(),
		a.catalogDeprecateCommand(), a.catalogRetireCommand(), a.OnHub(a.catalogCompileCommand()),
		a.OnHub(a.catalogListCommand()), a.OnHub(a.catalogGetCommand()), a.catalogShowCommand(), a.catalogPushCommand(),
		a.catalogServeCommand(),
		a.catalogPublishCommand(), a.catalogVerifyCommand(), a.catalogKeygenCommand(),
		a.OnHub(a.catalogGraphCommand()), a.OnHub(a.catalogDiffCommand()), a.OnHub(a.catalogVulnerabilitiesCommand()))
}

func (a *app) catalogListCommand() *cobra.Command {
	return command.ListCommand(a.Env, command.Listing[*v1alpha1.OperatorCatalogList]{
		What: "catalogs", Short: "List the catalogs that the hub reads",
		Example: "  bellwether catalog list -A -o wide",
		Empty:   func() *v1alpha1.OperatorCatalogList { return &v1alpha1.OperatorCatalogList{} },
		Table: func(_ context.Context, _ *hub.Client, l *v1alpha1.OperatorCatalogList, o term.Listing) (*term.Table,
			error) {
			return Catalogs(l.Items, o), nil
		},
	})
}

func (a *app) catalogShowCommand() *cobra.Command {
	var out command.Output
	var access registry.Flags
	c := &cobra.Command{
		Use: "show REF|DIR [PACKAGE]", Short: "Show what a catalog offers, or the upgrade graph of a package",
		Args: oneOrTwo,
		Example: "  bellwether catalog show registry.example.com/catalogs/main:latest\n  bellwether catalog show " +
			"./catalog echo-operator",
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			files, err := access.Open(c.Context(), args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				return a.showPackage(&out, files, args[1])
			}
			return a.showCatalog(&out, files)
		},
	}
	access.Add(c)
	out.Add(c, command.OutputJSON, command.OutputYAML)
	return c
}

func oneOrTwo(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.Hintf("usage: "+c.UseLine(),
			"missing argument: the catalog (a reference or a folder), and optionally a package")
	}
	return command.AtMostOne(c, args[1:])
}

func (a *app) showCatalog(out *command.Output, files catalogs.Files) error {
	summary, err := catalogs.ReadSummary(files)
	if err != nil {
		return registry.WithHint(err)
	}
	if !out.Table() {
		packages := make([]packageOutput, 0, len(summary.Packages))
		for _, p := range summary.Packages {
			packages = append(packages, outputOf(p))
		}
		return out.Value(a.Streams.Out, map[string]any{"packages": packages})
	}
	a.Table(out, CatalogSummary(summary))
	return nil
}

// packageOutput is a package as -o json and yaml print it.
type packageOutput struct {
	Name           string          `json:"name"`
	DefaultChannel string          `json:"defaultChannel,omitempty"`
	Deprecation    string          `json:"deprecation,omitempty"`
	Problem        string          `json:"problem,omitempty"`
	Channels       []channelOutput `json:"channels,omitempty"`
	Versions       []string        `json:"versions,omitempty"`
}

type channelOutput struct {
	Name        string `json:"name"`
	Head        string `json:"head"`
	HeadVersion string `json:"headVersion"`
	Deprecation string `json:"deprecation,omitempty"`
	Versions    int    `json:"versions"`
}

func outputOf(p catalogs.PackageSummary) packageOutput {
	o := packageOutput{Name: p.Name, DefaultChannel: p.DefaultChannel, Deprecation: p.Deprecation, Problem: p.Problem,
		Versions: p.Versions}
	for _, c := range p.Channels {
		o.Channels = append(o.Channels, channelOutput{c.Name, c.Head, c.HeadVersion, c.Deprecation, c.Versions})
	}
	return o
}

func (a *app) showPackage(out *command.Output, files catalogs.Files, name string) error {
	p, err := catalogs.ReadPackage(files, name)
	if err != nil {
		return registry.WithHint(err)
	}
	if !out.Table() {
		return out.Value(a.Streams.Out, outputOf(p.Summary()))
	}
	a.Say("%s", CatalogPackage(p, a.Style()))
	return nil
}

const catalogPushLong = `Push the file-based catalog in a folder to a registry as an image, and print its
digest.

The same files always give the same digest. The credentials are read from your
Docker configuration. To check the catalog before the tag is moved, and to sign it,
use "bellwether catalog publish".`

func (a *app) catalogPushCommand() *cobra.Command {
	var access registry.Flags
	c := &cobra.Command{
		Use: "push DIR REF", Short: "Push a catalog folder to a registry and print its digest",
		Long:              catalogPushLong,
		Args:              command.ExactArgs("the catalog's folder", "the reference to push it to"),
		ValidArgsFunction: command.CompleteDir,
		Example:           "  bellwether catalog push ./catalog registry.example.com/catalogs/main:latest",
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(registry.CheckFolder(args[0]), registry.CheckTarget(args[1])); err != nil {
				return err
			}
			client := oci.NewClient(oci.Options{})
			if err := publish.CheckFolder(c.Context(), client, args[0]); err != nil {
				return registry.PrintDigest(a.Env, "", fmt.Errorf("push %s: %w", args[0], err))
			}
			digest, err := client.Push(c.Context(), args[0], args[1], access.Access())
			return registry.PrintDigest(a.Env, digest, err)
		},
	}
	access.Add(c)
	return c
}

const catalogServeLong = `Serve a catalog over the gRPC API of OLM until you interrupt the command. A
CatalogSource with spec.address can use it. It needs no cache that was built before: bundles are
prepared on all cores, and kept in a temporary file in the folder for
temporary files ($TMPDIR); memory holds an index of them.

It is for looking at what OLM sees of a catalog, and for a first try; agents
serve the views of their clusters by themselves.`

func (a *app) catalogServeCommand() *cobra.Command {
	var access registry.Flags
	var addr string
	c := &cobra.Command{
		Use: "serve DIR|REF", Short: "Serve a catalog over the gRPC API of OLM", Long: catalogServeLong,
		Example:           "  bellwether catalog serve ./catalog",
		Args:              command.OneArg("the catalog's folder or reference"),
		ValidArgsFunction: command.CompleteDir,
		RunE: func(c *cobra.Command, args []string) error {
			files, err := access.Open(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.serveCatalog(c.Context(), files, addr)
		},
	}
	access.Add(c)
	c.Flags().StringVar(&addr, "addr", "127.0.0.1:50051", "The address to listen on. Port 0 selects a free port.")
	return c
}

func (a *app) serveCatalog(ctx context.Context, files catalogs.Files, addr string) error {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return exit.Hintf("use the form 127.0.0.1:50051", "invalid value %q of --addr", addr)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return exit.Hintf("use the form 127.0.0.1:50051", "invalid value %q of --addr: no port", addr)
	}
	catalog, err := serve.Load("catalog", files, "")
	if err != nil {
		return registry.WithHint(err)
	}
	defer func() { _ = catalog.Close() }()
	// Reading takes far more memory than serving, and nothing else would ever give it back.
	debug.FreeOSMemory()
	options := serve.Options{Listen: cmp.Or(host, "0.0.0.0")}
	if port > 0 {
		options.Ports = serve.Ports{First: port, Last: port}
	}
	server := serve.New(options)
	defer server.Close()
	address, err := server.SetCatalog("catalog", catalog, port)
	if err != nil {
		return exit.Hint(err, "set --addr to an address of this machine and a free port")
	}
	a.Say("Serving %d packages on %s\n", catalog.Packages(), address)
	<-ctx.Done()
	return nil
}
