// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures the figures of docs/benchmarks.md on this machine. It leaves nothing running.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/bench/agentmem"
	"github.com/bellwether-dev/bellwether/testbed/bench/backup"
	"github.com/bellwether-dev/bellwether/testbed/bench/badrelease"
	"github.com/bellwether-dev/bellwether/testbed/bench/catalogs"
	"github.com/bellwether-dev/bellwether/testbed/bench/detection"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/bench/paging"
	"github.com/bellwether-dev/bellwether/testbed/bench/probes"
	"github.com/bellwether-dev/bellwether/testbed/bench/scale"
	"github.com/bellwether-dev/bellwether/testbed/bench/slo"
	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
	"github.com/bellwether-dev/bellwether/testbed/bench/upgrade"
	"github.com/bellwether-dev/bellwether/testbed/bench/viewserver"
)

// errMissed says that a promise was not kept.
var errMissed = errors.New("promise missed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Libraries report through it what is an error here anyway.
	ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	if err := command().ExecuteContext(ctx); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "bench: interrupted; everything was stopped")
			os.Exit(130) //nolint:gocritic // stop only restores the signals
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	only   []string
	output string

	runs     int
	settle   time.Duration
	packages int
	// largeBundles and manyVersions are how many versions the packages of bundles have.
	largeBundles, manyVersions int
	bundles                    string
	sloTogether                bool
	// sloCompared is the size of the fleet on which rules are compared with those of others.
	sloCompared int
	// sloClusters are the sizes of larger fleets.
	sloClusters []int
	sloHub      int
	// badReleaseRuns is how often the demo is played.
	badReleaseRuns int
	// backupObjects is how many custom resources are saved.
	backupObjects int
	scale         scale.Options
	placements    scale.PlacementOptions
	// troubled, recovered and scanned are how many clusters the benchmarks of these names have.
	troubled, recovered, scanned int
}

// benchmark is one of those that can be asked for.
type benchmark struct {
	key     string
	measure func(ctx context.Context, out io.Writer, o options) (figure.Section, error)
}

var benchmarks = []benchmark{
	{"upgrade", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return upgrade.Measure(ctx, out, upgrade.Options{Pairs: o.runs, Settle: o.settle})
	}},
	{"rollback", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return upgrade.MeasureRollback(ctx, out, upgrade.Options{Pairs: o.runs, Settle: o.settle})
	}},
	{"adoption", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return upgrade.MeasureAdoption(ctx, out, upgrade.Options{Pairs: o.runs, Settle: o.settle})
	}},
	{"bad-release", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return badrelease.Measure(ctx, out, o.badReleaseRuns)
	}},
	{"backup", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return backup.Measure(ctx, out, backup.Options{Objects: o.backupObjects, Runs: o.runs, Settle: o.settle})
	}},
	{"view", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		const versions, schema = 30, 20 << 10 // the size of a large public catalog
		return viewserver.Measure(ctx, out, viewserver.Options{
			Runs:  o.runs,
			Large: catalogtest.Options{Packages: o.packages, Versions: versions, SchemaBytes: schema},
			Small: catalogtest.Options{Packages: 10, Versions: 5, SchemaBytes: schema},
		})
	}},
	{"catalogs", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		bundle, err := catalogs.LargestBundle(o.bundles)
		if err != nil {
			return figure.Section{}, err
		}
		const versions, schema = 30, 20 << 10 // the size of a large public catalog
		return catalogs.Measure(ctx, out, catalogs.Options{
			Runs: o.runs, Bundle: bundle, Catalog: catalogtest.Options{Packages: o.packages, Versions: versions,
				SchemaBytes: schema},
		})
	}},
	{"bundles", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return catalogs.MeasureBundles(ctx, out, catalogs.BundleOptions{Runs: o.runs, Packages: o.packages,
			Large: o.largeBundles, Many: o.manyVersions})
	}},
	{"memory", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return agentmem.Measure(ctx, out, o.runs)
	}},
	{"probes", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return probes.Measure(ctx, out, o.runs, probes.Load{Probes: 5000, Interval: 30 * time.Second,
			Timeout: 5 * time.Second,
			For:     2 * time.Minute})
	}},
	{"detection", func(ctx context.Context, out io.Writer, _ options) (figure.Section, error) {
		return detection.Measure(ctx, out, detection.Options{Outages: 12})
	}},
	{"paging", func(ctx context.Context, out io.Writer, _ options) (figure.Section, error) {
		return paging.Measure(ctx, out, paging.Options{Sizes: []int{1, 3, 30, 200}, Phases: 8, Faster: 1})
	}},
	{"slo", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return slo.Measure(ctx, out, o.slo())
	}},
	{"slo-size", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return slo.MeasureSizes(ctx, out, o.slo())
	}},
	{"scale", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return scale.Measure(ctx, out, o.scale)
	}},
	{"scale-placements", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		o.placements.LeaseEvery, o.placements.Seed = o.scale.LeaseEvery, o.scale.Seed
		return scale.MeasurePlacements(ctx, out, o.placements)
	}},
	{"scale-trouble", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return scale.MeasureTrouble(ctx, out, scale.TroubleOptions{Clusters: o.troubled,
			Shares: []float64{0.05, 0.2, 0.5}, LeaseEvery: o.scale.LeaseEvery, Seed: o.scale.Seed})
	}},
	{"scale-recovery", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return scale.MeasureRecovery(ctx, out, scale.RecoveryOptions{Clusters: o.recovered, Operators: 1,
			LeaseEvery: o.scale.LeaseEvery, Seed: o.scale.Seed})
	}},
	{"scale-scan", func(ctx context.Context, out io.Writer, o options) (figure.Section, error) {
		return scale.MeasureScan(ctx, out, scale.ScanOptions{Clusters: o.scanned, Operators: 20, Runs: o.runs,
			LeaseEvery: o.scale.LeaseEvery, Seed: o.scale.Seed})
	}},
}

// isLong tells whether a benchmark takes hours, so that it has to be asked for.
func isLong(key string) bool { return strings.HasPrefix(key, "scale") }

// slo are the options of the benchmarks of rules.
func (o options) slo() slo.Options {
	// In minutes: the period of a budget, and longer than the benchmark takes.
	const history, ahead = 30 * 24 * 60, 2 * 60
	return slo.Options{
		Fleet: fleet.Size{Operators: slo.Operators, Clusters: o.sloCompared, History: history, Ahead: ahead,
			Seed: 1},
		Clusters: slices.DeleteFunc(o.sloClusters, func(n int) bool { return n == 0 }), Hub: o.sloHub,
		Rounds: o.runs, Together: o.sloTogether,
	}
}

// wants tells whether a benchmark is to be measured.
func (o options) wants(key string) bool {
	if len(o.only) > 0 {
		return slices.Contains(o.only, key)
	}
	return !isLong(key)
}

func keys() []string {
	var all []string
	for _, b := range benchmarks {
		all = append(all, b.key)
	}
	return all
}

func command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure the figures of docs/benchmarks.md",
		Long: `Measure the figures of docs/benchmarks.md and print them as Markdown. The exit
status is 1 if a promise is not kept.

Measure on a machine that does nothing else.`,
		Example:       "  bench --only upgrade --runs 9\n  bench -o ../docs/benchmarks.md",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			origin := figure.Origin{Machine: machine(), Command: commandLine(os.Args[1:]), At: time.Now()}
			return run(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), o, origin)
		},
	}
	fs := c.Flags()
	fs.StringSliceVar(&o.only, "only", nil, "measure only these: "+strings.Join(keys(), ", "))
	fs.StringVarP(&o.output, "output", "o", "",
		"also put the figures into their places in this Markdown file; the rest of it stays as it is")
	fs.IntVar(&o.runs, "runs", 5, "how often to measure each figure, in turn with its peer")
	fs.DurationVar(&o.settle, "settle", 10*time.Second, "how long a cluster may come to rest before each upgrade")
	fs.StringVar(&o.bundles, "bundles", filepath.Join("..", "bundles", "bundletest", "published"),
		"folder of bundles, of which the largest is linted")
	fs.IntVar(&o.packages, "packages", 300, "packages of the large catalog")
	fs.IntVar(&o.largeBundles, "large-bundles", 35, "versions of the package with large bundles")
	fs.IntVar(&o.manyVersions, "many-versions", 2000, "versions of the package with tiny bundles")
	fs.BoolVar(&o.sloTogether, "slo-together", false,
		"also measure sloth with one objective for all operators together")
	fs.IntSliceVar(&o.sloClusters, "slo-clusters", []int{1000},
		"clusters that slo-size measures all rules with; 0 leaves them out")
	fs.IntVar(&o.sloCompared, "slo-compared", 200, "clusters that slo compares the rules with those of others on")
	fs.IntVar(&o.sloHub, "slo-hub-clusters", 3000,
		"clusters that slo-size measures the hub part of the rules with; 0 leaves it out")
	fs.IntVar(&o.badReleaseRuns, "bad-release-runs", 3, "how often bad-release plays the demo, which takes minutes")
	fs.IntVar(&o.backupObjects, "backup-objects", 10_000, "custom resources that are saved and restored")
	addScaleFlags(fs, &o)
	return c
}

func addScaleFlags(fs *pflag.FlagSet, all *options) {
	o := &all.scale
	fs.IntSliceVar(&o.Clusters, "scale-clusters", []int{100, 300, 1000, 3000, 10_000}, "sizes of hollow fleets")
	fs.IntSliceVar(&o.Operators, "scale-operators", []int{1, 10, 30}, "operators on each cluster of a hollow fleet")
	fs.IntVar(&o.MaxInstalls, "scale-max-installs", 100_000,
		"largest product of clusters and operators that is measured")
	fs.DurationVar(&o.Limit, "scale-limit", 4*time.Hour,
		"begin with no other size of hollow fleets after this time; what is left out is extrapolated and marked")
	fs.DurationVar(&o.Idle, "scale-idle", 5*time.Minute, "how long a hollow fleet at rest is observed")
	fs.DurationVar(&o.LeaseEvery, "scale-lease-renew-interval", 30*time.Second,
		"how often hollow agents renew their Leases")
	fs.BoolVar(&o.OwnWatches, "scale-own-watches", false,
		"give each hollow agent a watch of its own, as real agents have; one watch serves all of them otherwise")
	fs.Uint64Var(&o.Seed, "scale-seed", 1, "seed of the hollow fleets")
	fs.IntVar(&all.placements.Clusters, "placements-clusters", 1000, "clusters of scale-placements")
	fs.IntVar(&all.placements.Placements, "placements", 1000,
		"operators of scale-placements, each on a tenth of the clusters")
	fs.IntVar(&all.placements.Rollouts, "placements-rollouts", 100,
		"operators that scale-placements rolls out at a time")
	fs.IntVar(&all.troubled, "trouble-clusters", 1000, "clusters of scale-trouble")
	fs.IntVar(&all.recovered, "recovery-clusters", 1000, "clusters of scale-recovery")
	fs.IntVar(&all.scanned, "scan-clusters", 1000, "clusters of scale-scan")
}

func run(ctx context.Context, out, progress io.Writer, o options, origin figure.Origin) error {
	for _, key := range o.only {
		if !slices.Contains(keys(), key) {
			return fmt.Errorf("unknown benchmark %q: there are %s", key, strings.Join(keys(), ", "))
		}
	}
	if min(o.runs, o.packages, o.largeBundles, o.manyVersions, o.badReleaseRuns) < 1 {
		return errors.New("--runs, --bad-release-runs, --packages, --large-bundles and --many-versions must be at " +
			"least 1")
	}
	var missed []string
	for _, b := range benchmarks {
		if !o.wants(b.key) {
			continue
		}
		fmt.Fprintf(progress, "== %s\n", b.key)
		section, err := b.measure(ctx, progress, o)
		if err != nil {
			return fmt.Errorf("measure %s: %w", b.key, err)
		}
		fmt.Fprintf(out, "%s\n", section.Markdown(origin))
		if err := record(o.output, section, origin); err != nil {
			return err
		}
		missed = append(missed, section.Missed()...)
	}
	if len(missed) > 0 {
		return fmt.Errorf("%w: %s", errMissed, strings.Join(missed, "; "))
	}
	return nil
}

// record puts a section into its place in a file. What was measured is written at once, so that it is not lost when a
// later benchmark fails.
func record(path string, section figure.Section, origin figure.Origin) error {
	if path == "" {
		return nil
	}
	document, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	text, err := figure.Replace(string(document), section.Key, section.Markdown(origin))
	if err != nil {
		return fmt.Errorf("write figures to %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	pictures := filepath.Join(filepath.Dir(path), "images", "bench")
	for name, plot := range section.Pictures {
		svg, err := plot.SVG()
		if err != nil {
			return err
		}
		if err := os.MkdirAll(pictures, 0o755); err != nil {
			return fmt.Errorf("create folder of pictures: %w", err)
		}
		if err := os.WriteFile(filepath.Join(pictures, name), []byte(svg), 0o644); err != nil {
			return fmt.Errorf("write picture: %w", err)
		}
	}
	return nil
}

// commandLine is how to measure the same again; where the figures went is no part of it.
func commandLine(args []string) string {
	var kept []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-o", args[i] == "--output":
			i++
		case strings.HasPrefix(args[i], "-o"), strings.HasPrefix(args[i], "--output="):
		default:
			kept = append(kept, args[i])
		}
	}
	if len(kept) == 0 {
		return "make bench"
	}
	return "make bench ARGS='" + strings.Join(kept, " ") + "'"
}
