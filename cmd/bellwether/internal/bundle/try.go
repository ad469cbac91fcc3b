// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/engines/olmv0/try"
)

const bundleTryLong = `Install a bundle on a cluster through OLM, see whether it works, and remove it again.

BUNDLE is a folder or an image. The cluster is the one of --kubeconfig and --context;
it needs OLM v0, and you need the rights of a cluster administrator. No hub is used.

The command creates a namespace, has OLM install the bundle, creates the custom
resources of its annotation alm-examples, and waits until they are ready. With
--from, it installs that version first, and upgrades it. It then compares what the
ServiceAccounts were granted with what the ClusterServiceVersion asks for, and looks
for requests that RBAC denied in the logs of the pods and in Events.

It removes everything at the end, also after a failure and after Ctrl-C: the custom
resources, then the operator, then its CustomResourceDefinitions. It does not start
if the cluster already has part of the operator.

The cluster reads the bundle from a catalog that this program serves while it runs.
The cluster must reach this machine for that: see --listen and --advertise. If it
cannot, publish a catalog and use --catalog-image.

Exit codes:
  0  the bundle passed
  1  it could not be tried, or not everything was removed
  2  the bundle did not pass, or cannot be read`

const bundleTryExample = `  bellwether bundle try ./bundle --context kind-dev
  bellwether bundle try ./bundle --from registry.example.com/bundles/echo-operator:1.0.0
  bellwether bundle try --remove bellwether-try-x7k2p`

// tryFlags are the flags of bundle try.
type tryFlags struct {
	from, mode        string
	listen, advertise string
	image, channel    string
	allowExisting     bool
	keep              bool
	remove            string
	timeout           time.Duration
	access            registry.Flags
	out               command.Output
}

func (a *app) newTryCommand() *cobra.Command {
	f := &tryFlags{}
	c := &cobra.Command{
		Use: "try BUNDLE", Short: "Install a bundle on a cluster for a short time, and report whether it works",
		Long: bundleTryLong, Example: bundleTryExample, ValidArgsFunction: command.CompleteDir,
		Args: func(c *cobra.Command, args []string) error {
			if f.remove != "" {
				return command.NoArgs(c, args)
			}
			return command.OneArg("the bundle's folder or image")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.out.Check(); err != nil {
				return err
			}
			if err := f.checkFlags(); err != nil {
				return err
			}
			if f.remove != "" {
				return a.removeTrial(c.Context(), f)
			}
			return a.tryBundle(c.Context(), f, args[0])
		},
	}
	f.addFlags(c)
	return c
}

func (f *tryFlags) addFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.from, "from", "", "The `BUNDLE` to install first and to upgrade from: a folder or an image.")
	flags.StringVar(&f.mode, "install-mode", "",
		"The install mode. Default: the first supported one of OwnNamespace, SingleNamespace and AllNamespaces.")
	flags.StringVar(&f.listen, "listen", "", "The `HOST` or HOST:PORT of this machine to serve the catalog on. "+
		"Default: the address from which this machine reaches the cluster.")
	flags.StringVar(&f.advertise, "advertise", "",
		"The `HOST` or HOST:PORT at which the cluster reaches the catalog. Default: the address of --listen.")
	flags.StringVar(&f.image, "catalog-image", "",
		"A published catalog `IMAGE` that offers the bundles, for OLM to run instead of the catalog of this program.")
	flags.StringVar(&f.channel, "channel", "",
		"The channel of --catalog-image. Default: the default channel of the bundle, or its first one.")
	flags.BoolVar(&f.allowExisting, "allow-existing", false, "Try the bundle although part of the operator is on the "+
		"cluster. What is there is changed as the bundle says, and is not removed.")
	flags.BoolVar(&f.keep, "keep", false, "Remove nothing at the end. Use --remove later.")
	flags.StringVar(&f.remove, "remove", "", "Only remove what a trial left in this `NAMESPACE` and around it.")
	command.AddTimeout(c, &f.timeout, 5*time.Minute, "The timeout of each step.")
	f.access.Add(c)
	f.out.Add(c, command.OutputJSON, command.OutputYAML)
}

// checkFlags returns an error if values of flags are invalid. It reads no files and connects to no cluster.
func (f *tryFlags) checkFlags() error {
	modes := []string{"OwnNamespace", "SingleNamespace", "AllNamespaces", "MultiNamespace"}
	if f.mode != "" && !slices.Contains(modes, f.mode) {
		return exit.Hintf("use "+strings.Join(modes, ", "), "invalid value %q of --install-mode", f.mode)
	}
	for flag, value := range map[string]string{"listen": f.listen, "advertise": f.advertise} {
		if _, _, err := splitHostPort(value); err != nil {
			return exit.Hintf("use the form HOST or HOST:PORT", "invalid value %q of --%s", value, flag)
		}
	}
	if f.image != "" {
		return registry.CheckImageName(f.image)
	}
	return nil
}

// connectCluster returns the configuration of the selected cluster after it has checked that the cluster answers.
func (a *app) connectCluster(ctx context.Context) (*rest.Config, error) {
	config, err := a.ClusterConfig()
	if err != nil {
		return nil, err
	}
	return config, command.CheckReachable(ctx, config)
}

// tryBundle runs the trial of a bundle and prints its report. A bundle that does not pass ends with ExitUnusable.
func (a *app) tryBundle(ctx context.Context, f *tryFlags, bundle string) error {
	o, content, err := f.readOptions(ctx, bundle)
	if err != nil {
		return err
	}
	if o.Config, err = a.connectCluster(ctx); err != nil {
		return err
	}
	if f.image == "" {
		server, address, err := f.serveCatalog(ctx, o.Config, content)
		if err != nil {
			return err
		}
		defer server.Close()
		o.Catalog = try.Catalog{Address: address}
	}
	a.setRunOptions(f, &o)
	a.Warn("Trying %s on the cluster %s.\n", o.Bundle.Bundle.Name, o.Config.Host)
	a.CleansUp.Store(true) // try.Run removes its objects after an interrupt
	stopWarning := context.AfterFunc(ctx, func() {
		a.Warn("Interrupted. Removing what was created; interrupt again to leave it there.\n")
	})
	report, err := try.Run(ctx, o)
	stopWarning()
	// The report shows the completed steps, also if the trial failed.
	if err := a.showTrial(f, report); err != nil {
		return err
	}
	switch {
	case err != nil:
		return a.addTrialHint(f, report.Namespace, err)
	case !report.Passed():
		return &exit.CodeError{Code: ExitUnusable}
	}
	return nil
}

// readOptions reads the bundles. It returns the options for the trial and the catalog that offers the bundles.
func (f *tryFlags) readOptions(ctx context.Context, bundle string) (try.Options, view.View, error) {
	o := try.Options{Mode: operatorsv1alpha1.InstallModeType(f.mode), AllowExisting: f.allowExisting, Keep: f.keep}
	var err error
	if o.Bundle, err = readRelease(ctx, f.access, bundle); err != nil {
		return o, view.View{}, err
	}
	if f.from != "" {
		from, err := readRelease(ctx, f.access, f.from)
		if err != nil {
			return o, view.View{}, err
		}
		o.From = &from
	}
	content, err := try.NewCatalogView(o.Bundle, o.From)
	switch {
	case errors.Is(err, try.ErrPair):
		return o, content, newUnusableError(err, "--from takes an older version of the same package")
	case err != nil && f.image == "": // with --catalog-image the catalog is not served
		return o, content, newUnusableError(err, "")
	}
	if f.image != "" {
		b := o.Bundle.Bundle
		channel := cmp.Or(f.channel, b.DefaultChannel)
		if channel == "" && len(b.Channels) > 0 {
			channel = b.Channels[0]
		}
		o.Catalog = try.Catalog{Image: f.image, Channel: channel}
	}
	return o, content, nil
}

// setRunOptions sets the options that do not depend on the bundle: the timeout, the clock, and the output of steps.
func (a *app) setRunOptions(f *tryFlags, o *try.Options) {
	o.Timeout, o.Now, o.Progress = f.timeout, a.Now, func(s try.Step) {
		if s.Stopped {
			return // the error that ends the command describes the stopped step
		}
		printLine := a.Say
		if !f.out.Table() {
			printLine = a.Warn
		}
		mark := a.Style().Paint(term.Good, "✓")
		if !s.Passed {
			mark = a.Style().Paint(term.Bad, "✗")
		}
		printLine("%s %s\n", mark, s.Message)
	}
}

// readRelease reads a bundle with all its files from a folder or an image.
func readRelease(ctx context.Context, access registry.Flags, text string) (try.Release, error) {
	if IsDirectory(text) {
		b, err := ReadFolder(text)
		return try.Release{Bundle: b}, markUnusable(err)
	}
	if err := registry.CheckImageName(text); err != nil {
		return try.Release{}, markUnusable(err)
	}
	files, digest, err := oci.NewClient(oci.Options{}).Bundle(ctx, text, access.Access())
	if err != nil {
		return try.Release{}, markUnusable(registry.AddHint(err))
	}
	b, err := bundles.Read(files)
	if err != nil {
		return try.Release{}, markUnusable(AddBundleHint(fmt.Errorf("read bundle %s: %w", text, err)))
	}
	return try.Release{Bundle: b, Image: bundles.PinImage(text, digest)}, nil
}

// serveCatalog serves the catalog on this machine, and returns the address at which the cluster reaches it. The
// caller must close the server.
func (f *tryFlags) serveCatalog(ctx context.Context, config *rest.Config,
	content view.View) (*serve.Server, string, error) {
	host, port, err := splitHostPort(f.listen)
	if err != nil {
		return nil, "", err
	}
	advertised, advertisedPort, err := splitHostPort(f.advertise)
	if err != nil {
		return nil, "", err
	}
	if host == "" {
		if host, err = findLocalAddress(ctx, config.Host); err != nil {
			return nil, "", exit.Hintf("set --listen", "find the address at which the cluster reaches this machine: %w",
				err)
		}
	}
	server := serve.New(serve.Options{Listen: host, Advertise: advertised, Ports: serve.Ports{First: port, Last: port}})
	address, _, err := server.Set("try", content, port)
	if err != nil {
		server.Close()
		return nil, "", exit.Hint(err, "set --listen to an address of this machine and a free port")
	}
	if advertisedPort != 0 {
		address = net.JoinHostPort(advertised, strconv.Itoa(advertisedPort))
	}
	return server, address, nil
}

// splitHostPort splits HOST or HOST:PORT; the port is 0 if there is none. HOST can be an IPv6 address without a port.
func splitHostPort(text string) (string, int, error) {
	if !strings.Contains(text, ":") || net.ParseIP(text) != nil {
		return text, 0, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return host, int(number), err
}

// findLocalAddress returns the address of this machine from which it reaches a server. It sends no packets.
func findLocalAddress(ctx context.Context, server string) (string, error) {
	parsed, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", net.JoinHostPort(parsed.Hostname(), cmp.Or(parsed.Port(), "443")))
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	return host, err
}

// removeTrial removes the objects that an earlier trial did not remove.
func (a *app) removeTrial(ctx context.Context, f *tryFlags) error {
	config, err := a.connectCluster(ctx)
	if err != nil {
		return err
	}
	o := try.Options{Config: config}
	a.setRunOptions(f, &o)
	notes, err := try.Remove(ctx, o, f.remove)
	for _, n := range notes {
		a.Warn("%s\n", n)
	}
	if err != nil {
		return a.addTrialHint(f, f.remove, err)
	}
	a.Step("removed everything that the trial made in namespace %s and around it", f.remove)
	return nil
}

// addTrialHint adds a hint to an error of a trial. It does not use the hints for
// errors of the hub, because the cluster is not a hub.
func (a *app) addTrialHint(f *tryFlags, namespace string, err error) error {
	removeCommand := fmt.Sprintf("%s bundle try --remove %s", a.Self, namespace)
	switch {
	case errors.Is(err, try.ErrNotRemoved):
		return exit.Hint(err, "remove what is in the way, and run `"+removeCommand+"`")
	case errors.Is(err, try.ErrConflict):
		return exit.Hint(err, "use another cluster, or remove what is there; --allow-existing tries the bundle all "+
			"the same, and changes what is there")
	case errors.Is(err, try.ErrCatalog) && f.image == "":
		return exit.Hint(err, "the cluster must reach this machine: set --listen and --advertise to an address that "+
			"the pods of OLM reach, or publish a catalog with the bundles and use --catalog-image")
	case errors.Is(err, try.ErrCatalog):
		return exit.Hint(err, "check that the cluster can pull the image, and that it serves a catalog")
	case errors.Is(err, try.ErrNoOLM):
		return exit.Hint(err, "install OLM v0 on the cluster, or select another one with --kubeconfig or --context")
	case errors.Is(err, context.Canceled):
		return exit.Hint(errors.New("interrupted"), "everything that was created is removed again")
	}
	return exit.Hint(err, "check --kubeconfig and --context, and that you are an administrator of the cluster")
}
