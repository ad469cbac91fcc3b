// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/compatibility"
)

const compatibilityLong = `Show which installed operators a version of Kubernetes breaks, and the nearest upgrade
that would do.

A version of an operator breaks if it uses an API that this version of Kubernetes does
not have, or if its minKubeVersion or the range in its property bellwether.dev/support
does not include it. It is unknown if its manifests cannot be read, if it has rights
to a resource that was removed, or if the removed APIs are not known for that version
of Kubernetes and the bundle does not say what it is supported on. OK means that the
bundle says so, or that nothing in it is against it: what the program itself calls is
not known.

The bundles are read from the catalogs that the hub uses, or from --catalog, for
example to look at versions that are not published yet.

Exit codes:
  0  nothing breaks
  1  at least one operator breaks, or is unknown and --fail-on-unknown is set
  2  the fleet or a catalog cannot be read`

// Exit codes of fleet compatibility.
const (
	exitBreaks  = 1
	exitTrouble = 2
)

type compatibilityOptions struct {
	kubernetes, catalog, cluster, selector string
	failOnUnknown                          bool
	access                                 registry.Flags
	out                                    command.Output
}

func (a *app) newCompatibilityCommand() *cobra.Command {
	var o compatibilityOptions
	c := &cobra.Command{
		Use: "compatibility --kubernetes VERSION", Short: "Show which operators a version of Kubernetes breaks",
		Long: compatibilityLong, Args: command.NoArgs,
		Example: "  bellwether fleet compatibility --kubernetes 1.37\n" +
			"  bellwether fleet compatibility --kubernetes 1.37 --cluster prod-1\n" +
			"  bellwether fleet compatibility --kubernetes 1.37 --catalog ./catalog -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			report, err := a.buildCompatibilityReport(c.Context(), o)
			if err != nil {
				return registry.AddHint(err)
			}
			return a.showCompatibility(&o, report)
		},
	}
	f := c.Flags()
	f.StringVar(&o.kubernetes, "kubernetes", "", "The `VERSION` of Kubernetes, such as 1.37. Required.")
	f.StringVar(&o.catalog, "catalog", "", "Read the bundles from this `CATALOG`, a folder or an image, instead.")
	f.StringVar(&o.cluster, "cluster", "", "Show only this cluster.")
	f.StringVarP(&o.selector, "selector", "l", "", "Show only the clusters with these labels, for example env=prod.")
	f.BoolVar(&o.failOnUnknown, "fail-on-unknown", false, "Fail also if something is unknown.")
	_ = c.RegisterFlagCompletionFunc("cluster", a.CompleteFirst(command.ListClusterNames))
	o.access.Add(c)
	o.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	return a.SetErrorCode(exitTrouble, c)
}

// parseKubernetes parses --kubernetes. It requires a major and a minor version, and ignores the patch version.
func parseKubernetes(text string) (semver.Version, error) {
	if text == "" {
		return semver.Version{}, exit.Hintf("use a version such as 1.37",
			"missing flag --kubernetes: the version of Kubernetes")
	}
	version, err := semver.ParseTolerant(text)
	if err != nil || !strings.Contains(text, ".") {
		return version, exit.Hintf("use a version such as 1.37", "invalid value %q of --kubernetes", text)
	}
	return semver.Version{Major: version.Major, Minor: version.Minor}, nil
}

// buildCompatibilityReport checks the flags, reads the fleet and the catalogs, and compares both with the version of
// Kubernetes in --kubernetes. A catalog that cannot be read is a row of the report, not an error.
func (a *app) buildCompatibilityReport(ctx context.Context, o compatibilityOptions) (compatibility.Report, error) {
	var none compatibility.Report
	if err := o.out.Check(); err != nil {
		return none, err
	}
	kubernetes, err := parseKubernetes(o.kubernetes)
	if err != nil {
		return none, err
	}
	h, err := a.Hub()
	if err != nil {
		return none, err
	}
	s := &bundleSource{h: h, loader: load.New(oci.NewClient(oci.Options{}), load.Options{MaxBytes: maxCachedBytes})}
	if o.catalog != "" {
		if s.fixed, err = s.resolveCatalog(ctx, &o.access, o.catalog); err != nil {
			return none, err
		}
	}
	installs, err := s.listInstalls(ctx, o)
	if err != nil {
		return none, err
	}
	report := compatibility.Compare(kubernetes, installs, func(operator string) compatibility.Catalog {
		return s.readCatalog(ctx, operator)
	})
	return report, ctx.Err()
}

// maxCachedBytes limits the memory for the manifests that are cached while versions are compared.
const maxCachedBytes = 64 << 20

// bundleSource reads operators and their catalogs from the hub and from registries.
type bundleSource struct {
	h      *hub.Client
	loader *load.Loader
	// fixed is the catalog in --catalog; nil to read the catalogs that the hub uses.
	fixed     *catalogSnapshot
	operators map[string]v1alpha1.ManagedOperator
}

// catalogSnapshot is one version of a catalog: its content at a digest.
type catalogSnapshot struct {
	source oci.Source
	digest string
	blocks []v1alpha1.VersionBlock
}

// resolveCatalog returns the catalog at ref, a folder or an image, with its digest at this moment.
func (s *bundleSource) resolveCatalog(ctx context.Context, access *registry.Flags, ref string) (*catalogSnapshot,
	error) {
	source, err := access.Source(ref)
	if err != nil {
		return nil, err
	}
	digest, err := s.loader.Resolve(ctx, source)
	if err != nil {
		return nil, err
	}
	return &catalogSnapshot{source: source, digest: digest}, nil
}

// listInstalls returns the installed operators of the selected clusters. It
// also sets s.operators, which readCatalog reads.
func (s *bundleSource) listInstalls(ctx context.Context, o compatibilityOptions) ([]compatibility.Install, error) {
	clusters, err := s.readKubernetesVersions(ctx, o)
	if err != nil {
		return nil, err
	}
	operators := &v1alpha1.ManagedOperatorList{}
	if err := s.h.List(ctx, operators); err != nil {
		return nil, fmt.Errorf("list operators: %w", err)
	}
	s.operators = map[string]v1alpha1.ManagedOperator{}
	for _, m := range operators.Items {
		s.operators[m.Namespace+"/"+m.Name] = m
	}
	list := &v1alpha1.OperatorInstallList{}
	if err := s.h.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list installs: %w", err)
	}
	return compatibility.ListInstalls(clusters, s.operators, list.Items), nil
}

// readKubernetesVersions returns the Kubernetes version of each selected cluster by the cluster's name.
func (s *bundleSource) readKubernetesVersions(ctx context.Context, o compatibilityOptions) (map[string]string, error) {
	parsed, err := command.ParseSelector(o.selector)
	if err != nil {
		return nil, err
	}
	if o.cluster != "" {
		if _, err := s.h.Cluster(ctx, o.cluster); err != nil {
			return nil, err
		}
	}
	list := &v1alpha1.FleetClusterList{}
	if err := s.h.List(ctx, list, client.MatchingLabelsSelector{Selector: parsed}); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	out := map[string]string{}
	for _, c := range list.Items {
		if o.cluster == "" || o.cluster == c.Name {
			out[c.Name] = c.Status.Versions.Kubernetes
		}
	}
	return out, nil
}

var errNotReadYet = errors.New("the hub has not read the catalog yet")

// readCatalog reads the package of an operator from the operator's catalog. If it cannot be
// read, the result has a Problem and no package.
func (s *bundleSource) readCatalog(ctx context.Context, operator string) compatibility.Catalog {
	m, ok := s.operators[operator]
	if !ok {
		return compatibility.Catalog{Problem: "the ManagedOperator does not exist any more"}
	}
	snapshot, err := s.locateCatalog(ctx, &m)
	if err != nil {
		return compatibility.Catalog{Problem: phrase.OneLine(err.Error())}
	}
	p, err := s.loader.Package(ctx, snapshot.source, snapshot.digest, m.Spec.Package)
	if err == nil {
		// The hub skips versions that its OperatorCatalog blocks, so the
		// suggested upgrades must skip these versions too.
		p, err = p.WithBlocked(catalogs.BlocksOf(snapshot.blocks, m.Spec.Package)...)
	}
	if err != nil {
		return compatibility.Catalog{Problem: phrase.OneLine("read catalog: " + err.Error())}
	}
	return compatibility.Catalog{Package: p, Facts: func(bundle string) compatibility.Facts {
		bundles, err := s.loader.Bundles(ctx, snapshot.source, snapshot.digest, m.Spec.Package, bundle)
		if err != nil {
			return compatibility.Facts{Requirements: v1alpha1.ReleaseRequirements{NotRead: phrase.OneLine(err.Error())}}
		}
		return compatibility.FactsOf(bundles, m.Spec.Channel, bundle)
	}}
}

// locateCatalog returns the catalog in --catalog if the flag is set, else the
// catalog of an operator as the hub last read it.
func (s *bundleSource) locateCatalog(ctx context.Context, m *v1alpha1.ManagedOperator) (*catalogSnapshot, error) {
	if s.fixed != nil {
		return s.fixed, nil
	}
	catalog := &v1alpha1.OperatorCatalog{}
	key := client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.Catalog.Name}
	if err := s.h.Get(ctx, key, catalog); err != nil {
		return nil, fmt.Errorf("get catalog %s: %w", key.Name, err)
	}
	if catalog.Status.Digest == "" {
		return nil, errNotReadYet
	}
	source := catalog.Spec.Source
	if catalog.Status.Source != nil { // the hub read the digest from this source
		source = *catalog.Status.Source
	}
	return &catalogSnapshot{source: oci.NewSource(source), digest: catalog.Status.Digest, blocks: catalog.Spec.Blocks},
		nil
}

// showCompatibility prints the report, and returns an error with an exit code if an operator breaks or, with
// --fail-on-unknown, is unknown.
func (a *app) showCompatibility(o *compatibilityOptions, report compatibility.Report) error {
	switch {
	case !o.out.Table():
		if err := o.out.Value(a.Streams.Out, report); err != nil {
			return err
		}
	case len(report.Rows) == 0:
		a.Warn("No operators are installed on the selected clusters.\n")
	default:
		a.Table(&o.out, BuildCompatibilityTable(report, o.out.Wide()))
	}
	isUnknown := o.failOnUnknown && report.Has(compatibility.Unknown)
	if isUnknown || report.Has(compatibility.Breaks) {
		return &exit.CodeError{Code: exitBreaks}
	}
	return nil
}

// BuildCompatibilityTable returns the table that shows which operators of a fleet a version of Kubernetes breaks. A
// wide table also has the names of the clusters.
func BuildCompatibilityTable(r compatibility.Report, wide bool) *term.Table {
	t := &term.Table{Header: []string{"OPERATOR", "VERSION", "VERDICT", "CLUSTERS", "UPGRADE TO", "REASON"}, Wrap: true}
	if wide {
		t.Header = slices.Insert(t.Header, 4, "NAMES")
	}
	tones := map[compatibility.Verdict]term.Tone{compatibility.Breaks: term.Bad, compatibility.Unknown: term.Warn,
		compatibility.OK: term.Good}
	for _, row := range r.Rows {
		reason := row.Reason
		if row.UpgradeReason != "" {
			reason += "; " + row.UpgradeReason
		}
		cells := []term.Cell{{Text: row.Operator}, {Text: term.DashIfEmpty(row.Version)},
			tones[row.Verdict].Cell(string(row.Verdict)), {Text: term.Count(len(row.Clusters))},
			{Text: term.DashIfEmpty(row.Upgrade)}, {Text: phrase.OneLine(reason)}}
		if wide {
			cells = slices.Insert(cells, 4, term.Cell{Text: strings.Join(describeClusters(row.Clusters), ",")})
		}
		t.Add(cells...)
	}
	return t
}

// describeClusters returns the name of each cluster, with its current version of Kubernetes if that is known.
func describeClusters(list []compatibility.Cluster) []string {
	var out []string
	for _, c := range list {
		if c.Kubernetes == "" {
			out = append(out, c.Name)
			continue
		}
		out = append(out, fmt.Sprintf("%s (%s)", c.Name, c.Kubernetes))
	}
	return out
}
