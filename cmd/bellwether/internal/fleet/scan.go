// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/blocks"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/access"
)

const fleetScanLong = `Show which operators OLM runs on the clusters of the fleet, whoever installed them, and
which of them Bellwether can take over as they are.

The agents report what they find, also those that may only read (fleet join
--read-only). Nothing is changed. Each operator has a class:

  managed            Bellwether manages it
  eligible           it can be taken over as it is
  needs a decision   it is possible in more than one way, or with a loss: choose one
  conflict           OLM or another operator does not permit it: change that first
  unknown            it cannot be judged now, for instance because OLM is at work

First come the packages and versions, then everything that somebody has to do
something about. The output wide adds what is worth knowing of those that are eligible.
The outputs json, yaml and markdown have everything.

Whether a version can be managed depends on the OperatorCatalogs. Their packages are
read from the registry, as far as that can be reached from here.`

type scanOptions struct {
	clusters           []string
	selector, packages string
	out                command.Output
}

func (a *app) fleetScanCommand() *cobra.Command {
	var o scanOptions
	c := &cobra.Command{
		Use: "scan [CLUSTER...]", Short: "Show which operators run on the clusters, and which can be taken over",
		Long: fleetScanLong, Args: cobra.ArbitraryArgs,
		Example: "  bellwether fleet scan\n  bellwether fleet scan prod-1 prod-2 -o wide\n" +
			"  bellwether fleet scan -l env=prod --package cert-manager -o markdown",
		ValidArgsFunction: a.completeClusters,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.out.Check(); err != nil {
				return err
			}
			o.clusters = args
			return a.scan(c.Context(), &o)
		},
	}
	c.Flags().StringVarP(&o.selector, "selector", "l", "",
		"Show only the clusters with these labels, for example env=prod.")
	c.Flags().StringVar(&o.packages, "package", "", "Show only this package.")
	o.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputMarkdown)
	return c
}

// completeClusters completes every argument with the names of clusters.
func (a *app) completeClusters(c *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
	return a.CompleteFirst(command.ClusterNames)(c, nil, text)
}

func (a *app) scan(ctx context.Context, o *scanOptions) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	in, err := readScans(ctx, h, o)
	if err != nil {
		return err
	}
	report := makeScanReport(in)
	switch {
	case o.out.Format == command.OutputMarkdown:
		a.Say("%s", scanMarkdown(report, a.Now()))
		return nil
	case !o.out.Table():
		return o.out.Value(a.Streams.Out, report)
	case len(in.Clusters) == 0:
		a.Warn("No clusters found. Add one with `%s fleet join`.\n", a.Self)
		return nil
	}
	a.Say("%s", scanText(report, a.Now(), a.StyleOf(&o.out)))
	return nil
}

// Scans are the reports of agents, with what the hub knows of what is in them.
type Scans struct {
	Clusters []v1alpha1.FleetCluster
	// Reports by cluster; a cluster without one is not in it.
	Reports map[string]*v1alpha1.OperatorScan
	// Known returns what the hub knows that concerns a cluster.
	Known func(*v1alpha1.FleetCluster) adoption.Known
	// NotRead says which catalogs could not be read, and why.
	NotRead []string
	// Access are all FleetAccess objects, and Catalogs all OperatorCatalogs.
	Access   []v1alpha1.FleetAccess
	Catalogs []v1alpha1.OperatorCatalog
}

// AccessOf says on which clusters a ManagedOperator is permitted.
func (s Scans) AccessOf(o *v1alpha1.ManagedOperator) *access.Decision {
	catalog := &v1alpha1.OperatorCatalog{}
	for i := range s.Catalogs {
		if c := &s.Catalogs[i]; c.Namespace == o.Namespace && c.Name == o.Spec.Catalog.Name {
			catalog = c
		}
	}
	return access.Decide(s.Access, o.Namespace, access.ReleaseOf(o, catalog))
}

// ReadScans reads the reports about a package on all clusters.
func ReadScans(ctx context.Context, h *hub.Client, pkg string) (Scans, error) {
	in, err := readScans(ctx, h, &scanOptions{packages: pkg})
	return in.Scans, err
}

// readScans reads everything that the report is made of.
func readScans(ctx context.Context, h *hub.Client, o *scanOptions) (scanInput, error) {
	in := scanInput{pkg: o.packages, Scans: Scans{Reports: map[string]*v1alpha1.OperatorScan{}}}
	var err error
	if in.Clusters, err = selectClusters(ctx, h, o.clusters, o.selector); err != nil {
		return in, err
	}
	if err := in.readReports(ctx, h, len(o.clusters) > 0); err != nil {
		return in, err
	}
	k := &knowledge{}
	if err := k.read(ctx, h); err != nil {
		return in, err
	}
	k.readPackages(ctx, in.foundPackages())
	in.Known, in.NotRead, in.Access, in.Catalogs = k.of, k.notRead, k.accesses, k.catalogs
	return in, nil
}

// selectClusters returns the named clusters, or all, with the labels.
func selectClusters(ctx context.Context, h *hub.Client, names []string, selector string) ([]v1alpha1.FleetCluster,
	error) {
	parsed, err := command.ParseSelector(selector)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		list := &v1alpha1.FleetClusterList{}
		if err := h.List(ctx, list, client.MatchingLabelsSelector{Selector: parsed}); err != nil {
			return nil, fmt.Errorf("list clusters: %w", err)
		}
		return list.Items, nil
	}
	var out []v1alpha1.FleetCluster
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		c, err := h.Cluster(ctx, name)
		if err != nil {
			return nil, err
		}
		if parsed.Matches(labels.Set(c.Labels)) {
			out = append(out, *c)
		}
	}
	return out, nil
}

func (in *scanInput) readReports(ctx context.Context, h *hub.Client, few bool) error {
	if !few {
		list := &v1alpha1.OperatorScanList{}
		if err := h.List(ctx, list); err != nil {
			return fmt.Errorf("list OperatorScans: %w", err)
		}
		for i := range list.Items {
			if cluster, ok := strings.CutPrefix(list.Items[i].Namespace, v1alpha1.ClusterNamespace("")); ok &&
				list.Items[i].Name == v1alpha1.ScanName {
				in.Reports[cluster] = &list.Items[i]
			}
		}
		return nil
	}
	for _, c := range in.Clusters {
		scan := &v1alpha1.OperatorScan{}
		key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(c.Name), Name: v1alpha1.ScanName}
		switch err := h.Get(ctx, key, scan); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("get OperatorScan of cluster %s: %w", c.Name, err)
		default:
			in.Reports[c.Name] = scan
		}
	}
	return nil
}

// foundPackages are the names of packages that some cluster has.
func (in *scanInput) foundPackages() []string {
	var out []string
	for _, scan := range in.Reports {
		for i := range scan.Status.Operators {
			if sub := scan.Status.Operators[i].Subscription; sub != nil && (in.pkg == "" || in.pkg == sub.Package) {
				out = append(out, sub.Package)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// knowledge is what the hub knows of operators and their versions.
type knowledge struct {
	catalogs  []v1alpha1.OperatorCatalog
	operators []v1alpha1.ManagedOperator
	accesses  []v1alpha1.FleetAccess
	packages  []adoption.Package
	all       []types.NamespacedName
	notRead   []string
}

func (k *knowledge) read(ctx context.Context, h *hub.Client) error {
	var (
		catalogs  v1alpha1.OperatorCatalogList
		operators v1alpha1.ManagedOperatorList
		accesses  v1alpha1.FleetAccessList
	)
	for _, list := range []client.ObjectList{&catalogs, &operators, &accesses} {
		if err := h.List(ctx, list); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
	}
	k.catalogs, k.operators, k.accesses = catalogs.Items, operators.Items, accesses.Items
	for i := range k.operators {
		k.all = append(k.all, client.ObjectKeyFromObject(&k.operators[i]))
	}
	return nil
}

// catalogTimeout bounds how long one catalog is read.
const catalogTimeout = 2 * time.Minute

// readPackages fills in the packages of all catalogs. The hub lists versions of packages that a ManagedOperator uses; a
// catalog with others that clusters have is read here.
func (k *knowledge) readPackages(ctx context.Context, names []string) {
	images := oci.NewClient(oci.Options{})
	defer images.Close()
	for i := range k.catalogs {
		c := &k.catalogs[i]
		name := c.Namespace + "/" + c.Name
		if c.Status.Digest == "" {
			k.notRead = append(k.notRead, name+": "+errNotReadYet.Error())
			continue
		}
		known := adoption.SummaryOf(c)
		if isMissing(c, known, names) {
			limited, cancel := context.WithTimeout(ctx, catalogTimeout)
			all, err := readCatalog(limited, images, c)
			cancel()
			if err != nil {
				k.notRead = append(k.notRead, name+": "+phrase.OneLine(err.Error()))
			} else {
				known = all
			}
		}
		k.packages = append(k.packages, known...)
	}
}

// isMissing tells whether the hub has not listed all that is to be known of packages in a catalog.
func isMissing(c *v1alpha1.OperatorCatalog, known []adoption.Package, names []string) bool {
	return len(names) > 0 && int(c.Status.PackageCount) > len(known) ||
		slices.ContainsFunc(known, func(p adoption.Package) bool {
			return !p.Complete && slices.Contains(names, p.Name)
		})
}

// readCatalog reads the upgrade graphs of all packages, in one pass.
func readCatalog(ctx context.Context, images *oci.Client, c *v1alpha1.OperatorCatalog) ([]adoption.Package, error) {
	source := c.Spec.Source
	if c.Status.Source != nil {
		source = *c.Status.Source
	}
	files, err := images.Open(ctx, oci.SourceOf(source), c.Status.Digest)
	if err != nil {
		return nil, err
	}
	packages, err := catalogs.ReadGraphs(files)
	if err != nil {
		return nil, err
	}
	var out []adoption.Package
	for _, p := range packages {
		blocked, err := p.WithBlocked(blocks.Of(c.Spec.Blocks, p.Name)...)
		if err != nil { // nothing that can be installed is left, which the hub reports
			blocked = p
		}
		out = append(out, adoption.Of(c.Namespace+"/"+c.Name, blocked))
	}
	return out, nil
}

// of returns what concerns a cluster.
func (k *knowledge) of(c *v1alpha1.FleetCluster) adoption.Known {
	known := adoption.Known{Packages: k.packages, NotRead: k.notRead, All: k.all}
	for i := range k.operators {
		o := &k.operators[i]
		selector, err := metav1.LabelSelectorAsSelector(&o.Spec.ClusterSelector)
		if err != nil {
			continue // it selects nothing, which its own status reports
		}
		if selector.Matches(labels.Set(c.Labels)) && access.Reaches(k.accesses, o.Namespace, c.Labels) {
			known.Operators = append(known.Operators, adoption.OperatorOf(o))
		}
	}
	return known
}

// compareVersions orders versions, and what is none before them.
func compareVersions(a, b string) int {
	x, errX := semver.Parse(a)
	y, errY := semver.Parse(b)
	switch {
	case errX == nil && errY == nil:
		return x.Compare(y)
	case errX != nil && errY != nil:
		return cmp.Compare(a, b)
	case errX != nil:
		return -1
	}
	return 1
}
