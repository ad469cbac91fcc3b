// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/view"
)

func (a *app) catalogCommand() *cobra.Command {
	return parent("catalog", "Publish catalogs and look at them", []string{"catalogs"},
		a.catalogInitCommand(), a.catalogAddCommand(), a.catalogPromoteCommand(), a.catalogBlockCommand(),
		a.catalogUnblockCommand(),
		a.catalogDeprecateCommand(), a.catalogRetireCommand(), a.catalogCompileCommand(),
		a.catalogListCommand(), a.catalogGetCommand(), a.catalogShowCommand(), a.catalogPushCommand(),
		a.catalogServeCommand(),
		a.catalogPublishCommand(), a.catalogVerifyCommand(), a.catalogKeygenCommand(),
		a.catalogGraphCommand(), a.catalogDiffCommand())
}

func (a *app) catalogListCommand() *cobra.Command {
	return listCommand(a, listing[*v1alpha1.OperatorCatalogList]{
		what: "catalogs", short: "List the catalogs that the hub reads",
		empty: func() *v1alpha1.OperatorCatalogList { return &v1alpha1.OperatorCatalogList{} },
		table: func(l *v1alpha1.OperatorCatalogList, o view.Listing) *view.Table {
			return view.Catalogs(l.Items, o)
		},
	})
}

// registryFlags say how to talk to a registry.
type registryFlags struct{ insecure bool }

func (f *registryFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.insecure, "insecure", false,
		"Allow plain HTTP and unknown certificates. Registries on the loopback interface need it not.")
}

func (f *registryFlags) access() oci.Access { return oci.Access{Insecure: f.insecure} }

// source is a directory if there is one of that name, otherwise an image.
func (f *registryFlags) source(text string) (oci.Source, error) {
	if info, err := os.Stat(text); err == nil && info.IsDir() {
		dir, err := filepath.Abs(text)
		if err != nil {
			return oci.Source{}, fmt.Errorf("find %s: %w", text, err)
		}
		return oci.Source{Directory: dir}, nil
	}
	return oci.Source{Image: text, Access: f.access()}, nil
}

// open reads a catalog as it is now.
func (f *registryFlags) open(ctx context.Context, text string) (catalogs.Files, error) {
	source, err := f.source(text)
	if err != nil {
		return nil, err
	}
	client := oci.NewClient(oci.Options{})
	digest, err := client.Resolve(ctx, source)
	if err != nil {
		return nil, registryError(err)
	}
	files, err := client.Open(ctx, source, digest)
	if err != nil {
		return nil, registryError(err)
	}
	return files, nil
}

// registryError adds what to do about an error of a registry.
func registryError(err error) error {
	switch {
	case errors.Is(err, oci.ErrDenied):
		return hint(err, "log in to the registry (docker login, podman login)")
	case errors.Is(err, oci.ErrUnreachable):
		return hint(err, "check the registry's name and the network; a registry on plain HTTP needs --insecure")
	case errors.Is(err, oci.ErrNotFound):
		return hint(err, "check the reference; it is neither a folder here nor there in the registry")
	case errors.Is(err, oci.ErrNotBundle):
		return hint(err, "a bundle folder has manifests/ and metadata/annotations.yaml")
	case errors.Is(err, catalogs.ErrNotCatalog):
		return hint(err, "a catalog is a folder, or an image, with file-based catalog documents (olm.package, "+
			"olm.channel, olm.bundle)")
	default:
		return err
	}
}

func (a *app) catalogShowCommand() *cobra.Command {
	var out output
	var access registryFlags
	c := &cobra.Command{
		Use: "show REF|DIR [PACKAGE]", Short: "Show what a catalog offers, or the upgrade graph of a package",
		Args: oneOrTwo,
		Example: "  bellwether catalog show registry.example.com/catalogs/main:latest\n  bellwether catalog show " +
			"./catalog echo-operator",
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			files, err := access.open(c.Context(), args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				return a.showPackage(&out, files, args[1])
			}
			return a.showCatalog(&out, files)
		},
	}
	access.add(c)
	out.add(c, outputJSON, outputYAML)
	return c
}

func oneOrTwo(c *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return hintf("usage: "+c.UseLine(), "give a reference or a folder, and optionally a package")
	}
	return nil
}

func (a *app) showCatalog(out *output, files catalogs.Files) error {
	summary, err := catalogs.ReadSummary(files)
	if err != nil {
		return registryError(err)
	}
	if !out.table() {
		packages := make([]packageOutput, 0, len(summary.Packages))
		for _, p := range summary.Packages {
			packages = append(packages, outputOf(p))
		}
		return out.value(a.streams.Out, map[string]any{"packages": packages})
	}
	a.table(out, view.CatalogSummary(summary))
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

func (a *app) showPackage(out *output, files catalogs.Files, name string) error {
	p, err := catalogs.ReadPackage(files, name)
	if err != nil {
		return registryError(err)
	}
	if !out.table() {
		return out.value(a.streams.Out, outputOf(p.Summary()))
	}
	a.say("%s", view.CatalogPackage(p, a.style()))
	return nil
}

const catalogPushLong = `Publish the file-based catalog in a folder as an image, and print its digest.

The same files give the same digest, whoever pushes them and when. The content is
there before the tag moves to it. Credentials are those of your Docker
configuration.`

func (a *app) catalogPushCommand() *cobra.Command {
	var access registryFlags
	c := &cobra.Command{
		Use: "push DIR REF", Short: "Publish the catalog in a folder to a registry, and print its digest",
		Long: catalogPushLong,
		Args: exactArgs("the catalog's folder", "the reference to publish it as"), ValidArgsFunction: completeDir,
		Example: "  bellwether catalog push ./catalog registry.example.com/catalogs/main:latest",
		RunE: func(c *cobra.Command, args []string) error {
			digest, err := oci.NewClient(oci.Options{}).Push(c.Context(), args[0], args[1], access.access())
			return a.pushed(digest, err)
		},
	}
	access.add(c)
	return c
}

func (a *app) bundleCommand() *cobra.Command {
	var access registryFlags
	push := &cobra.Command{
		Use: "push DIR REF", Short: "Publish a registry+v1 bundle folder to a registry, and print its digest",
		Args: exactArgs("the bundle's folder", "the reference to publish it as"), ValidArgsFunction: completeDir,
		Example: "  bellwether bundle push ./bundle registry.example.com/bundles/echo-operator:1.1.0",
		RunE: func(c *cobra.Command, args []string) error {
			// What nobody can read must not get a name that somebody could follow.
			if isDirectory(args[0]) {
				if _, err := fromFolder(args[0]); err != nil {
					return err
				}
			}
			digest, err := oci.NewClient(oci.Options{}).PushBundle(c.Context(), args[0], args[1], access.access())
			return a.pushed(digest, err)
		},
	}
	access.add(push)
	return parent("bundle", "Build bundles, look into them and publish them", []string{"bundles"}, push,
		a.bundleBuildCommand(), a.bundleLintCommand(), a.bundleDiffCommand(), a.bundleScorecardCommand())
}

// pushed prints the digest alone, for scripts to take.
func (a *app) pushed(digest string, err error) error {
	if err != nil {
		return registryError(err)
	}
	a.say("%s\n", digest)
	return nil
}

func completeDir(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

const catalogServeLong = `Serve a whole catalog over OLM's gRPC API until you interrupt it. A CatalogSource
with spec.address reads it. It needs no cache that was built before: bundles are
prepared on all cores, and kept in a file without a name in the folder for
temporary files ($TMPDIR); memory holds an index of them.

It is for looking at what OLM sees of a catalog, and for a first try; agents
serve the views of their clusters by themselves.`

func (a *app) catalogServeCommand() *cobra.Command {
	var access registryFlags
	var addr string
	c := &cobra.Command{
		Use: "serve DIR|REF", Short: "Serve a whole catalog to OLM", Long: catalogServeLong,
		Args:              oneArg("the catalog's folder or reference"),
		ValidArgsFunction: completeDir,
		RunE: func(c *cobra.Command, args []string) error {
			files, err := access.open(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.serveCatalog(c.Context(), files, addr)
		},
	}
	access.add(c)
	c.Flags().StringVar(&addr, "addr", "127.0.0.1:50051", "The address to listen on; port 0 is any free one.")
	return c
}

func (a *app) serveCatalog(ctx context.Context, files catalogs.Files, addr string) error {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return hintf("write it as 127.0.0.1:50051", "--addr %q is no address", addr)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return hintf("write it as 127.0.0.1:50051", "--addr %q has no port", addr)
	}
	catalog, err := serve.Load("catalog", files, "")
	if err != nil {
		return registryError(err)
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
		return fmt.Errorf("serve catalog: %w", err)
	}
	a.say("Serving %d packages on %s\n", catalog.Packages(), address)
	<-ctx.Done()
	return nil
}

const registryServeLong = `Run an OCI registry until you interrupt it: for a demo, for tests, and for a
first try on a laptop. It asks for no credentials, so keep it on the loopback
interface. Without --root it forgets everything when it ends.`

func (a *app) registryCommand() *cobra.Command {
	var o registry.Options
	var verbose bool
	c := &cobra.Command{
		Use: "serve", Short: "Run an OCI registry on this machine", Long: registryServeLong, Args: cobra.NoArgs,
		Example: "  bellwether registry serve --root ~/.cache/bellwether-registry",
		RunE: func(c *cobra.Command, _ []string) error {
			o.Ready = func(addr string) { a.say("Registry at %s\n", addr) }
			if verbose {
				o.Log = a.streams.ErrOut
			}
			return registry.Serve(c.Context(), o)
		},
	}
	c.Flags().StringVar(&o.Addr, "addr", "127.0.0.1:5000", "The address to listen on; port 0 is any free one.")
	c.Flags().StringVar(&o.Root, "root", "", "The folder to keep everything in. Default: memory.")
	c.Flags().BoolVar(&verbose, "verbose", false, "Log every request that does not succeed, which a push has many of.")
	_ = c.MarkFlagDirname("root")
	return parent("registry", "An OCI registry for those who have none", nil, c)
}
