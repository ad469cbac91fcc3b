// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/helm"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// ExitUnusable is the exit code if the input of a bundle command cannot be read or is not valid.
const ExitUnusable = 2

// newUnusableError returns an error that ends the program with ExitUnusable and prints the hint if it is not empty.
func newUnusableError(err error, hint string) error {
	text := "Error: " + err.Error()
	if detail := oci.Detail(err); detail != "" {
		text += "\nCause: " + detail
	}
	if hint != "" {
		text += "\nHint:  " + hint
	}
	return &exit.CodeError{Code: ExitUnusable, Text: text}
}

const bundleBuildLong = `Build a registry+v1 bundle. No container daemon is needed.

SOURCE is one of:
  a folder with metadata/annotations.yaml   a bundle; it is checked and not changed
  a folder with kustomization.yaml          the manifests that kustomize builds from it
  a folder with Chart.yaml, or a .tgz       the manifests that Helm renders from the chart, without a cluster
  a folder with package.yaml and a folder   the package manifest format; --version selects the version, whose
  for each version                          manifests are not changed
  any other folder, a file, or - for stdin  Kubernetes manifests

The manifests are converted for OLM. Deployments, and the roles that are bound to
their service accounts, become the install strategy of a ClusterServiceVersion.
CRDs become owned APIs, webhook configurations become webhook definitions, and
custom resources become examples. The ClusterServiceVersion in the manifests, or
in the file of --csv, is used as the base. An object that a bundle cannot contain
is an error that names the object. An object that can be left out safely is a
warning.

The same input always gives the same files and the same image digest. If the
command fails, it writes no output.

Exit codes:
  0  the bundle was built
  1  another error
  2  no bundle can be built from the input`

const bundleBuildExample = `  # From a project of kubebuilder or operator-sdk
  bellwether bundle build config/manifests --package echo-operator --version 1.1.0 --output-dir bundle

  # From the output of another program
  kustomize build config/default | bellwether bundle build - --package echo-operator --version 1.1.0 --output-dir bundle

  # From a Helm chart, with images by digest; push the bundle to a registry
  bellwether bundle build ./chart --set metrics.enabled=true --pin --push registry.example.com/bundles/echo:1.1.0`

// buildFlags are the flags of bundle build.
type buildFlags struct {
	options      build.Options
	csv, icon    string
	installModes []string
	metadata     []string
	apiSources   string

	values                 helm.ValueFlags
	release, kubeVersion   string
	apiVersions            []string
	pin                    bool
	access                 registry.Flags
	folder, layout, pushTo string
}

func (a *app) newBuildCommand() *cobra.Command {
	var b buildFlags
	var out command.Output
	c := &cobra.Command{
		Use: "build SOURCE", Short: "Build a bundle from manifests, a kustomization, or a Helm chart",
		Long:              bundleBuildLong,
		Example:           bundleBuildExample,
		Args:              command.OneArg("the folder, file or chart to make a bundle of, or - for stdin"),
		ValidArgsFunction: command.CompleteFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(out.Check(), b.checkFlags()); err != nil {
				return err
			}
			return a.buildBundle(c.Context(), &b, &out, args[0], c.Flags())
		},
	}
	b.addFlags(c)
	out.Add(c, command.OutputJSON, command.OutputYAML)
	return c
}

func (b *buildFlags) addFlags(c *cobra.Command) {
	b.values.Add(c)
	f, o, about := c.Flags(), &b.options, &b.options.About
	f.StringVar(&o.Package, "package", "", "The package name of the operator. Default: the name of the chart.")
	f.StringVar(&o.Version, "version", "",
		"The version of the operator, X.Y.Z. Default: the version of the chart or of the base.")
	f.StringSliceVar(&o.Channels, "channels", nil, "The channels of the bundle. Default: stable.")
	f.StringVar(&o.DefaultChannel, "default-channel", "",
		"The default channel of the package. Default: the first of --channels.")
	f.StringVar(&b.csv, "csv", "", "The `FILE` with the ClusterServiceVersion to use as the base.")
	f.StringVar(&b.apiSources, "api-sources", "",
		"The `DIR` of the Go types of the APIs. Their markers of Operator SDK describe the kinds. Needs Go.")
	f.StringVar(&about.DisplayName, "display-name", "", "The display name of the operator.")
	f.StringVar(&about.Description, "description", "", "The description of the operator, in Markdown.")
	f.StringVar(&about.Provider, "provider", "", "The name of the provider of the operator.")
	f.StringVar(&about.ProviderURL, "provider-url", "", "The URL of the provider.")
	f.StringVar(&b.icon, "icon", "", "The `FILE` with the icon of the operator: svg, png, jpg or gif.")
	f.StringSliceVar(&b.installModes, "install-modes", nil,
		"The supported install modes. Default: the install modes of the base, or AllNamespaces.")
	f.StringVar(&about.Maturity, "maturity", "", "The maturity of the operator, for example alpha, beta or stable.")
	f.StringVar(&about.MinKubeVersion, "min-kube-version", "",
		"The oldest supported version of Kubernetes, X.Y.Z.")
	f.StringVar(&about.Capabilities, "capabilities", "",
		"The capability level of the operator. Default: Basic Install.")
	f.StringSliceVar(&about.Keywords, "keywords", nil, "Search keywords for the operator.")
	f.StringSliceVar(&o.ServiceAccounts, "service-account", nil,
		"An additional service account whose roles OLM grants. Can be repeated.")
	f.StringSliceVar(&o.LeaveOut, "leave-out", nil,
		"An object to leave out because a bundle cannot contain it: KIND or KIND/NAME. Can be repeated.")
	f.StringToStringVar(&o.Annotations, "annotation", nil,
		"An additional annotation of the bundle, `KEY=VALUE`. Can be repeated.")
	f.StringSliceVar(&b.metadata, "metadata", nil,
		"A `FILE` to add to metadata/: properties.yaml or dependencies.yaml. Can be repeated.")
	f.StringVar(&b.release, "release-name", "", "The release name used to render the chart. Default: the package name.")
	f.StringVar(&b.kubeVersion, "kube-version", build.DefaultChartKubeVersion,
		"The version of Kubernetes used to render the chart.")
	f.StringSliceVar(&b.apiVersions, "api-versions", nil,
		"Additional APIs that the chart can use, for example monitoring.coreos.com/v1.")
	f.BoolVar(&b.pin, "pin", false, "Replace image tags with their current digests.")
	b.access.Add(c)
	f.StringVar(&b.folder, "output-dir", "", "The folder to write the bundle to. An existing bundle is replaced.")
	f.StringVar(&b.layout, "oci-layout", "",
		"The folder to write the bundle image to, as an OCI image layout. An existing layout is replaced.")
	f.StringVar(&b.pushTo, "push", "", "The reference `REF` to push the bundle image to.")
	for _, name := range []string{"output-dir", "oci-layout"} {
		_ = c.MarkFlagDirname(name)
	}
	_ = c.MarkFlagFilename("csv", "yaml", "yml", "json")
	_ = c.MarkFlagFilename("metadata", "yaml")
	_ = c.MarkFlagFilename("icon", "svg", "png", "jpg", "jpeg", "gif")
	_ = c.RegisterFlagCompletionFunc("install-modes", cobra.FixedCompletions(
		[]string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"},
		cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("capabilities", cobra.FixedCompletions(
		[]string{"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"},
		cobra.ShellCompDirectiveNoFileComp))
}

// checkFlags returns an error if no output is selected or the reference to push to is not valid.
func (b *buildFlags) checkFlags() error {
	if b.folder == "" && b.layout == "" && b.pushTo == "" {
		return exit.Hintf("set --output-dir, --oci-layout or --push",
			"no output is selected")
	}
	if b.pushTo == "" {
		return nil
	}
	return registry.CheckTarget(b.pushTo)
}

// BuiltOutput is a bundle as -o json and yaml print it.
type BuiltOutput struct {
	Name     string            `json:"name"`
	Package  string            `json:"package"`
	Version  string            `json:"version"`
	Digest   string            `json:"digest"`
	Files    []string          `json:"files"`
	Pinned   map[string]string `json:"pinned,omitempty"`
	Account  []build.Placement `json:"account,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	Folder   string            `json:"folder,omitempty"`
	Layout   string            `json:"ociLayout,omitempty"`
	Pushed   string            `json:"pushed,omitempty"`
}

// buildBundle builds the bundle, pins its images with --pin, writes the outputs, and prints the result.
func (a *app) buildBundle(ctx context.Context, b *buildFlags, out *command.Output, source string,
	flags *pflag.FlagSet) error {
	r, err := a.assembleBundle(b, source, flags)
	if err != nil {
		return addBuildHint(err)
	}
	built := BuiltOutput{Name: r.Name, Package: r.Package, Version: r.Version, Account: r.Placements,
		Warnings: r.Warnings}
	if b.pin {
		client := oci.NewClient(oci.Options{})
		built.Pinned, err = r.Pin(func(image string) (string, error) {
			return client.Resolve(ctx, oci.Source{Image: image, Access: b.access.Access()})
		})
		if err != nil {
			return addBuildHint(err)
		}
	}
	for name := range r.Files {
		built.Files = append(built.Files, name)
	}
	slices.Sort(built.Files)
	if err := b.writeOutputs(ctx, r, &built); err != nil {
		return addBuildHint(err)
	}
	if !out.Table() {
		return out.Value(a.Streams.Out, built)
	}
	a.showBuilt(built)
	return nil
}

// addBuildHint adds a hint to an error of a build. Errors about the input get the exit code ExitUnusable.
func addBuildHint(err error) error {
	switch {
	case errors.Is(err, build.ErrChart):
		return newUnusableError(err, "check the chart with `helm template`; use --set and --values to set its values")
	case errors.Is(err, build.ErrKustomization):
		return newUnusableError(err, "check it with `kustomize build`")
	case errors.Is(err, build.ErrInput):
		return newUnusableError(err, "")
	case errors.Is(err, fs.ErrNotExist):
		return newUnusableError(err, "check the path")
	case errors.Is(err, build.ErrNotReplaceable):
		return exit.Hint(err, "use another folder, or delete this one")
	default:
		return registry.AddHint(err)
	}
}

// assembleBundle builds the bundle according to the kind of the source, see bundleBuildLong.
func (a *app) assembleBundle(b *buildFlags, source string, flags *pflag.FlagSet) (*build.Result, error) {
	log.SetOutput(io.Discard) // Helm's libraries write warnings to this log
	if err := b.readFiles(); err != nil {
		return nil, err
	}
	info, err := os.Stat(source)
	if source != "-" && err != nil {
		return nil, fmt.Errorf("read source: %w", err)
	}
	hasFile := func(name string) bool {
		_, err := os.Stat(filepath.Join(source, name))
		return err == nil
	}
	switch {
	case source == "-": // before the cases that need info
		return b.buildFromStream("stdin", a.Streams.In)
	case info.IsDir() && hasFile("metadata/annotations.yaml"):
		return b.reuseBundle(source, flags)
	case info.IsDir() && hasFile("Chart.yaml"), strings.HasSuffix(source, ".tgz"), strings.HasSuffix(source, ".tar.gz"):
		return b.buildFromChart(source, info.IsDir())
	case info.IsDir() && build.IsKustomization(source):
		objects, err := build.BuildKustomization(source)
		if err != nil {
			return nil, err
		}
		return b.assemble(objects, build.Options{})
	case info.IsDir():
		p, err := build.ReadPackageManifests(os.DirFS(source))
		if errors.Is(err, build.ErrNotPackageManifests) {
			return b.buildFromFolder(source)
		}
		if err != nil {
			return nil, err
		}
		return b.convertPackage(p, source, flags)
	}
	f, err := os.Open(source)
	if err != nil {
		return nil, fmt.Errorf("read source: %w", err)
	}
	defer func() { _ = f.Close() }()
	return b.buildFromStream(source, f)
}

// readFiles sets b.options from the flags that name files: the icon, the metadata and the Go types of the APIs. It
// also converts the install modes.
func (b *buildFlags) readFiles() error {
	for _, m := range b.installModes {
		b.options.About.InstallModes = append(b.options.About.InstallModes, operatorsv1alpha1.InstallModeType(m))
	}
	if b.apiSources != "" {
		var err error
		if b.options.Described, err = build.ReadMarkers(b.apiSources); err != nil {
			return newUnusableError(err, "")
		}
	}
	b.options.Metadata = map[string][]byte{}
	for _, file := range b.metadata {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read metadata: %w", err)
		}
		b.options.Metadata[filepath.Base(file)] = text
	}
	if b.icon == "" {
		return nil
	}
	mediaTypes := map[string]string{".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg",
		".jpeg": "image/jpeg", ".gif": "image/gif"}
	mediaType := mediaTypes[strings.ToLower(filepath.Ext(b.icon))]
	if mediaType == "" {
		return newUnusableError(fmt.Errorf("icon %s is not an svg, png, jpg or gif file", b.icon), "")
	}
	text, err := os.ReadFile(b.icon)
	if err != nil {
		return fmt.Errorf("read icon: %w", err)
	}
	b.options.About.Icon = &operatorsv1alpha1.Icon{Data: base64.StdEncoding.EncodeToString(text), MediaType: mediaType}
	return nil
}

// assemblyFlags are the flags that have no effect on a source that is already a bundle.
var assemblyFlags = []string{"package", "version", "channels", "default-channel", "csv", "api-sources",
	"display-name", "description",
	"provider", "provider-url",
	"icon", "install-modes", "maturity", "min-kube-version", "capabilities", "keywords", "service-account", "leave-out",
	"annotation", "metadata",
	"set", "values", "release-name", "kube-version", "api-versions"}

// reuseBundle checks and returns the bundle in dir without changes.
func (b *buildFlags) reuseBundle(dir string, flags *pflag.FlagSet) (*build.Result, error) {
	for _, name := range assemblyFlags {
		if flags.Changed(name) {
			return nil, exit.Hintf("change its manifests or metadata/annotations.yaml instead",
				"%s is already a bundle; --%s cannot be used with it", dir, name)
		}
	}
	return build.Reuse(os.DirFS(dir))
}

// conversionFlags are the flags that have an effect on a source in the package manifest format.
var conversionFlags = []string{"version", "channels", "default-channel"}

// convertPackage converts one version of a package in the package manifest format to a bundle.
func (b *buildFlags) convertPackage(p *build.PackageManifests, dir string, flags *pflag.FlagSet) (*build.Result,
	error) {
	for _, name := range assemblyFlags {
		if flags.Changed(name) && !slices.Contains(conversionFlags, name) {
			return nil, exit.Hintf("change its manifests instead",
				"%s is in the package manifest format; --%s cannot be used with it", dir, name)
		}
	}
	return p.Convert(b.options)
}

// buildFromStream builds a bundle from a stream of manifests. It reads one byte more than bundles.MaxBytes, so that
// a stream that is too large is an error and is not cut.
func (b *buildFlags) buildFromStream(name string, r io.Reader) (*build.Result, error) {
	text, err := io.ReadAll(io.LimitReader(r, bundles.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b.assemble([]build.Source{{Name: name, Text: text}}, build.Options{})
}

// buildFromFolder builds a bundle from all manifests below a folder, in the order of their names.
func (b *buildFlags) buildFromFolder(dir string) (*build.Result, error) {
	files, err := build.ReadFiles(os.DirFS(dir))
	if err != nil {
		return nil, err
	}
	var sources []build.Source
	for name, text := range files {
		if bundles.IsManifest(name) {
			sources = append(sources, build.Source{Name: filepath.Join(dir, name), Text: text})
		}
	}
	slices.SortFunc(sources, func(a, b build.Source) int { return strings.Compare(a.Name, b.Name) })
	if len(sources) == 0 {
		return nil, newUnusableError(fmt.Errorf("%s has no manifests", dir),
			"the names of manifests end in .yaml, .yml or .json")
	}
	return b.assemble(sources, build.Options{})
}

// buildFromChart builds a bundle from the manifests that Helm renders from a chart.
func (b *buildFlags) buildFromChart(source string, isFolder bool) (*build.Result, error) {
	chart, err := readChart(source, isFolder)
	if err != nil {
		return nil, err
	}
	values, err := b.values.Merge()
	if err != nil {
		return nil, newUnusableError(err, "")
	}
	defaults := chart.Defaults()
	name := b.options.FillDefaults(defaults).Package
	if b.release != "" {
		name = b.release
	}
	rendered, err := chart.Render(build.ChartOptions{
		Release: name, Namespace: name, Values: values, KubeVersion: b.kubeVersion, APIVersions: b.apiVersions,
	})
	if err != nil {
		return nil, err
	}
	r, err := b.assemble(rendered.Sources, defaults)
	if err != nil {
		return nil, err
	}
	r.Warnings = append(rendered.Warnings, r.Warnings...)
	return r, nil
}

// readChart reads a Helm chart from a folder or an archive.
func readChart(source string, isFolder bool) (*build.Chart, error) {
	if isFolder {
		return build.ReadChartDir(os.DirFS(source))
	}
	f, err := os.Open(source)
	if err != nil {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	defer func() { _ = f.Close() }()
	return build.ReadChartArchive(f)
}

// assemble builds a bundle from manifests. defaults are used for options that the user did not set.
func (b *buildFlags) assemble(sources []build.Source, defaults build.Options) (*build.Result, error) {
	if b.csv != "" {
		text, err := os.ReadFile(b.csv)
		if err != nil {
			return nil, fmt.Errorf("read base: %w", err)
		}
		sources = append(sources, build.Source{Name: b.csv, Text: text})
	}
	return build.Assemble(sources, b.options.FillDefaults(defaults))
}

// writeOutputs writes the bundle to the folder, the OCI layout and last the registry that the flags name, and sets
// the digest and these outputs in built.
func (b *buildFlags) writeOutputs(ctx context.Context, r *build.Result, built *BuiltOutput) (err error) {
	temporary, err := os.MkdirTemp("", "bellwether-bundle-")
	if err != nil {
		return fmt.Errorf("make temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	dir := filepath.Join(temporary, "bundle") // the image is built from files
	if err := build.Write(dir, r.Files); err != nil {
		return err
	}
	img, err := oci.BundleImage(dir)
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("digest image: %w", err)
	}
	built.Digest = digest.String()
	if b.folder != "" {
		if err := build.Write(b.folder, r.Files); err != nil {
			return err
		}
		built.Folder = b.folder
	}
	if b.layout != "" {
		err := build.Replace(b.layout, oci.LayoutMark, func(temporary string) error {
			_, err := oci.WriteLayout(temporary, img, r.Version)
			return err
		})
		if err != nil {
			return err
		}
		built.Layout = b.layout
	}
	if b.pushTo == "" {
		return nil
	}
	built.Pushed = b.pushTo
	_, err = oci.NewClient(oci.Options{}).PushBundle(ctx, dir, b.pushTo, b.access.Access())
	return err
}

// showBuilt prints the warnings and the outputs of a build.
func (a *app) showBuilt(b BuiltOutput) {
	style := a.Style()
	for _, w := range b.Warnings {
		a.Warn("%s %s\n", style.Paint(term.Warn, "Warning:"), w)
	}
	a.Say("%s %s, %d files\n", style.Paint(term.Good, "Built"), style.Paint(term.Strong, b.Name), len(b.Files))
	t := &term.Table{Wrap: true}
	for _, row := range [][2]string{{"digest", b.Digest}, {"folder", b.Folder}, {"OCI layout", b.Layout},
		{"pushed to", b.Pushed}} {
		if row[1] != "" {
			t.Add(term.Cell{Text: "  " + row[0], Tone: term.Dim}, term.Cell{Text: row[1]})
		}
	}
	if n := len(b.Pinned); n > 0 {
		t.Add(term.Cell{Text: "  pinned", Tone: term.Dim}, term.Cell{Text: fmt.Sprintf("%d images", n)})
	}
	a.Say("%s", t.Render(style))
}
