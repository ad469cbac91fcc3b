// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog provides the commands for catalogs: for the catalogs on the hub, for the ladder files that catalogs
// are compiled from, and for published catalogs in registries.
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

// Command returns the command catalog with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.NewParent("catalog", "Build, publish and inspect catalogs", []string{"catalogs"},
		a.newInitCommand(), a.newAddCommand(), a.newPromoteCommand(), a.newBlockCommand(),
		a.newUnblockCommand(),
		a.newDeprecateCommand(), a.newRetireCommand(), a.AddHubFlags(a.newCompileCommand()),
		a.AddHubFlags(a.newListCommand()), a.AddHubFlags(a.newGetCommand()), a.newShowCommand(), a.newPushCommand(),
		a.newServeCommand(),
		a.newPublishCommand(), a.newVerifyCommand(), a.newKeygenCommand(),
		a.AddHubFlags(a.newGraphCommand()), a.AddHubFlags(a.newDiffCommand()),
		a.AddHubFlags(a.newVulnerabilitiesCommand()))
}

func (a *app) newListCommand() *cobra.Command {
	return command.ListCommand(a.Env, command.Listing[*v1alpha1.OperatorCatalogList]{
		Nouns: "catalogs", Short: "List the catalogs that the hub reads",
		Example: "  bellwether catalog list -A -o wide",
		Empty:   func() *v1alpha1.OperatorCatalogList { return &v1alpha1.OperatorCatalogList{} },
		Table: func(_ context.Context, _ *hub.Client, l *v1alpha1.OperatorCatalogList, o term.Listing) (*term.Table,
			error) {
			return BuildCatalogTable(l.Items, o), nil
		},
	})
}

func (a *app) newShowCommand() *cobra.Command {
	var out command.Output
	var access registry.Flags
	c := &cobra.Command{
		Use: "show REF|DIR [PACKAGE]", Short: "Show what a catalog offers, or the upgrade graph of a package",
		Args: checkCatalogArguments,
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

// checkCatalogArguments requires a catalog, and permits a package after it.
func checkCatalogArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.Hintf("usage: "+c.UseLine(),
			"missing argument: the catalog (a reference or a folder), and optionally a package")
	}
	return command.AtMostOne(c, args[1:])
}

// showCatalog prints the packages of a catalog.
func (a *app) showCatalog(out *command.Output, files catalogs.Files) error {
	summary, err := catalogs.ReadSummary(files)
	if err != nil {
		return registry.AddHint(err)
	}
	if !out.Table() {
		packages := make([]packageOutput, 0, len(summary.Packages))
		for _, p := range summary.Packages {
			packages = append(packages, newPackageOutput(p))
		}
		return out.Value(a.Streams.Out, map[string]any{"packages": packages})
	}
	a.Table(out, BuildSummaryTable(summary))
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

// newPackageOutput converts a summary to the form that -o json and yaml print.
func newPackageOutput(p catalogs.PackageSummary) packageOutput {
	o := packageOutput{Name: p.Name, DefaultChannel: p.DefaultChannel, Deprecation: p.Deprecation, Problem: p.Problem,
		Versions: p.Versions}
	for _, c := range p.Channels {
		o.Channels = append(o.Channels, channelOutput{Name: c.Name, Head: c.Head, HeadVersion: c.HeadVersion,
			Deprecation: c.Deprecation, Versions: c.Versions})
	}
	return o
}

// showPackage prints the upgrade graph of a package, or its summary in the formats JSON and YAML.
func (a *app) showPackage(out *command.Output, files catalogs.Files, name string) error {
	p, err := catalogs.ReadPackage(files, name)
	if err != nil {
		return registry.AddHint(err)
	}
	if !out.Table() {
		return out.Value(a.Streams.Out, newPackageOutput(p.Summary()))
	}
	a.Say("%s", RenderPackage(p, a.Style()))
	return nil
}

const catalogPushLong = `Push the file-based catalog in a folder to a registry as an image, and print its
digest.

The same files always give the same digest. The credentials are read from your
Docker configuration. To check the catalog before the tag is moved, and to sign it,
use "bellwether catalog publish".`

func (a *app) newPushCommand() *cobra.Command {
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

func (a *app) newServeCommand() *cobra.Command {
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

// serveCatalog serves a catalog over gRPC at addr (HOST:PORT) until ctx is cancelled. An empty host means all addresses
// of the machine, and port 0 a free port.
func (a *app) serveCatalog(ctx context.Context, files catalogs.Files, addr string) error {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return exit.Hintf("use the form 127.0.0.1:50051", "invalid value %q of --addr", addr)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return exit.Hintf("use the form 127.0.0.1:50051", "invalid value %q of --addr: no port", addr)
	}
	catalog, err := serve.Load("catalog", files, "")
	if err != nil {
		return registry.AddHint(err)
	}
	defer func() { _ = catalog.Close() }()
	// Loading needs far more memory than serving, and no later garbage collection returns the memory to the system.
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
