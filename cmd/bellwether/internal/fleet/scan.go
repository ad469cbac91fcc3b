// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/fleet"
	"github.com/bellwether-dev/bellwether/internal/phrase"
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

func (a *app) newScanCommand() *cobra.Command {
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
	return a.CompleteFirst(command.ListClusterNames)(c, nil, text)
}

// scan prints which operators run on the clusters, in the selected format.
func (a *app) scan(ctx context.Context, o *scanOptions) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	scans, err := readScans(ctx, h, o)
	if err != nil {
		return err
	}
	report := fleet.BuildScanReport(scans, o.packages)
	switch {
	case o.out.Format == command.OutputMarkdown:
		a.Say("%s", formatScanMarkdown(report, a.Now()))
		return nil
	case !o.out.Table():
		return o.out.Value(a.Streams.Out, report)
	case len(scans.Clusters) == 0:
		a.Warn("No clusters found. Add one with `%s fleet join`.\n", a.Self)
		return nil
	}
	a.Say("%s", formatScanText(report, a.Now(), a.StyleOf(&o.out)))
	return nil
}

// ReadScans reads the reports about a package on all clusters; about all packages if pkg is empty.
func ReadScans(ctx context.Context, h *hub.Client, pkg string) (fleet.Scans, error) {
	return readScans(ctx, h, &scanOptions{packages: pkg})
}

// readScans reads the reports of the selected clusters and the hub's objects that the scan report is built from.
func readScans(ctx context.Context, h *hub.Client, o *scanOptions) (fleet.Scans, error) {
	var scans fleet.Scans
	var err error
	if scans.Clusters, err = selectClusters(ctx, h, o.clusters, o.selector); err != nil {
		return scans, err
	}
	if scans.Reports, err = readReports(ctx, h, scans.Clusters, len(o.clusters) > 0); err != nil {
		return scans, err
	}
	if err := readRecords(ctx, h, &scans); err != nil {
		return scans, err
	}
	scans.Packages, scans.NotRead = readPackages(ctx, scans.Catalogs, scans.ListFoundPackages(o.packages))
	return scans, nil
}

// selectClusters returns the named clusters that have the labels; all clusters with the labels if names is empty.
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

// readReports returns the reports by cluster name. If byCluster is true, it reads the report of each of the clusters,
// else it lists the reports of all clusters.
func readReports(ctx context.Context, h *hub.Client, clusters []v1alpha1.FleetCluster,
	byCluster bool) (map[string]*v1alpha1.OperatorScan, error) {
	reports := map[string]*v1alpha1.OperatorScan{}
	if !byCluster {
		list := &v1alpha1.OperatorScanList{}
		if err := h.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list OperatorScans: %w", err)
		}
		prefix := v1alpha1.ClusterNamespace("") // of the namespace of each cluster on the hub
		for i := range list.Items {
			if cluster, ok := strings.CutPrefix(list.Items[i].Namespace, prefix); ok &&
				list.Items[i].Name == v1alpha1.ScanName {
				reports[cluster] = &list.Items[i]
			}
		}
		return reports, nil
	}
	for _, c := range clusters {
		scan := &v1alpha1.OperatorScan{}
		key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(c.Name), Name: v1alpha1.ScanName}
		switch err := h.Get(ctx, key, scan); {
		case apierrors.IsNotFound(err): // the agent has not reported yet
		case err != nil:
			return nil, fmt.Errorf("get OperatorScan of cluster %s: %w", c.Name, err)
		default:
			reports[c.Name] = scan
		}
	}
	return reports, nil
}

// readRecords reads the OperatorCatalogs, the ManagedOperators and the FleetAccess objects.
func readRecords(ctx context.Context, h *hub.Client, scans *fleet.Scans) error {
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
	scans.Catalogs, scans.Operators, scans.Access = catalogs.Items, operators.Items, accesses.Items
	return nil
}

// catalogTimeout limits the time to read one catalog.
const catalogTimeout = 2 * time.Minute

// readPackages returns the packages of all catalogs, and the catalogs that could not be read, with the reasons. The
// hub lists only the versions of packages that a ManagedOperator uses, so a catalog that may have other packages among
// names is read from its registry.
func readPackages(ctx context.Context, list []v1alpha1.OperatorCatalog, names []string) (packages []adoption.Package,
	notRead []string) {
	images := oci.NewClient(oci.Options{})
	defer images.Close()
	for i := range list {
		c := &list[i]
		name := c.Namespace + "/" + c.Name
		if c.Status.Digest == "" {
			notRead = append(notRead, name+": "+errNotReadYet.Error())
			continue
		}
		summary, complete := adoption.SummarizeCatalog(c), adoption.HasCompleteSummary(c, names)
		if !complete {
			limited, cancel := context.WithTimeout(ctx, catalogTimeout)
			graphs, err := readCatalog(limited, images, c)
			cancel()
			if err != nil {
				notRead = append(notRead, name+": "+phrase.OneLine(err.Error()))
			} else {
				summary = graphs
			}
		}
		packages = append(packages, summary...)
	}
	return packages, notRead
}

// readCatalog reads the upgrade graphs of all packages of a catalog, in one pass.
func readCatalog(ctx context.Context, images *oci.Client, c *v1alpha1.OperatorCatalog) ([]adoption.Package, error) {
	source := c.Spec.Source
	if c.Status.Source != nil { // the hub read the digest from this source
		source = *c.Status.Source
	}
	files, err := images.Open(ctx, oci.NewSource(source), c.Status.Digest)
	if err != nil {
		return nil, err
	}
	packages, err := catalogs.ReadGraphs(files)
	if err != nil {
		return nil, err
	}
	return adoption.SummarizePackages(c, packages), nil
}
