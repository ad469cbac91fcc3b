// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/hollow/stage"
)

// ScanOptions say what fleet is scanned.
type ScanOptions struct {
	// Clusters on each of which others have installed so many Operators.
	Clusters, Operators int
	// Runs of the command, in turn with its peer.
	Runs       int
	LeaseEvery time.Duration
	Seed       uint64
}

// scanned is what a scan took, and the adoption of one of the operators.
type scanned struct {
	reported, adopted time.Duration
	scan, kubectl     []time.Duration
	bytes             int64
}

// MeasureScan has all agents of a fleet report what others have installed, and measures how long that takes, and how
// long `fleet scan` takes to show it, against kubectl printing the same objects; then how long the adoption of one of
// them takes in one wave.
func MeasureScan(ctx context.Context, out io.Writer, o ScanOptions) (figure.Section, error) {
	section := figure.Section{Key: "scale-scan", Title: "The scan of a fleet"}
	s := setup{clusters: o.Clusters, operators: o.Operators,
		hollow: Options{LeaseEvery: o.LeaseEvery, Seed: o.Seed}.hollow()}
	s.hollow.Others = others(o.Operators)
	s.hollow.Existing = []string{catalogtest.BundleName(0, 0)}
	l, err := startLab(ctx, out, s)
	if err != nil {
		return section, err
	}
	r, err := l.scan(ctx, o)
	if stopErr := l.stop(context.WithoutCancel(ctx), err != nil && ctx.Err() == nil); err == nil {
		err = stopErr
	}
	if err != nil {
		return section, err
	}
	name := fmt.Sprintf("%d clusters × %d operators of others", o.Clusters, o.Operators)
	ours, peer := figure.Duration(figure.Median(r.scan)), figure.Duration(figure.Median(r.kubectl))
	section.Rows = []figure.Row{
		{Name: name + ", all agents started, until all have reported", Ours: figure.Duration(r.reported), Runs: 1},
		{Name: name + ", `fleet scan -o json`, against `kubectl get operatorscans -A -o json`", Ours: ours, Peer: peer,
			Ratio: figure.Ratio(ours, peer), Runs: o.Runs},
		{Name: name + ", what kubectl prints", Ours: figure.Bytes(r.bytes), Runs: 1},
		{Name: fmt.Sprintf("%d clusters, one operator adopted as it is, in one wave", o.Clusters),
			Ours: figure.Duration(r.adopted), Runs: 1},
	}
	section.Detail = "On each cluster the same operators run, each in a namespace of its own with a CSV of three " +
		"definitions and one Deployment. The agents start within 30 seconds, and look at their clusters once a " +
		"minute. An adoption takes about five seconds on each cluster, in which OLM ends what it had begun."
	return section, nil
}

// others is what others have installed on a cluster: the first version of each package.
func others(operators int) *v1alpha1.OperatorScanStatus {
	out := &v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMServed,
		Counts: v1alpha1.ScanCounts{Operators: int32(operators)},
		CatalogSources: []v1alpha1.FoundCatalogSource{{Namespace: "olm", Name: "community", State: "READY",
			Image: "registry.example.com/community:v1"}}}
	for i := range operators {
		pkg, csv := catalogtest.PackageName(i), catalogtest.BundleName(i, 0)
		found := v1alpha1.FoundOperator{Namespace: pkg,
			Subscription: &v1alpha1.FoundSubscription{Name: pkg, Package: pkg, Channel: "stable", Source: "community",
				SourceNamespace: "olm", Approval: "Automatic", InstalledCSV: csv, CurrentCSV: csv,
				InstallPlan: "install-x7k2p", Writers: []string{"kubectl-client-side-apply"}},
			CSV: &v1alpha1.FoundCSV{Name: csv, Version: catalogtest.Version(0), Phase: "Succeeded",
				Deployments: []v1alpha1.FoundDeployment{{Name: pkg, Replicas: 1, Ready: 1, Bundle: 1}}},
		}
		for _, kind := range []string{"Server", "Backup", "Account"} {
			found.CSV.Owned = append(found.CSV.Owned, v1alpha1.FoundDefinition{Version: "v1", Kind: kind,
				Name: fmt.Sprintf("%ss.%s.example.com", strings.ToLower(kind), pkg)})
		}
		out.Operators = append(out.Operators, found)
		out.Namespaces = append(out.Namespaces, v1alpha1.FoundNamespace{Name: pkg,
			OperatorGroups: []v1alpha1.FoundOperatorGroup{{Name: "global"}}})
	}
	return out
}

func (l *lab) scan(ctx context.Context, o ScanOptions) (scanned, error) {
	var r scanned
	ctx, release := whileRuns(ctx, l.hub)
	defer release()
	if err := l.UntilScanned(ctx, o.Clusters, o.Operators); err != nil {
		return r, err
	}
	r.reported = time.Since(l.agentsStarted)
	l.say("all of %d clusters have reported %s after the start of their agents", o.Clusters,
		r.reported.Round(time.Millisecond))
	programs, err := build.Local(ctx, l.out, filepath.Join(l.run.Dir(), "bin"), build.Bellwether, build.Kubectl)
	if err != nil {
		return r, err
	}
	kubeconfig, err := l.api.WriteKubeconfig("person", "person", "system:masters")
	if err != nil {
		return r, err
	}
	output := filepath.Join(l.run.Dir(), "output")
	for range o.Runs {
		took, err := timed(ctx, output, programs[build.Bellwether], "fleet", "scan", "-o", "json", "--kubeconfig",
			kubeconfig)
		if err != nil {
			return r, err
		}
		r.scan = append(r.scan, took)
		took, err = timed(ctx, output, programs[build.Kubectl], "get", "operatorscans", "-A", "-o", "json",
			"--kubeconfig", kubeconfig)
		if err != nil {
			return r, err
		}
		r.kubectl = append(r.kubectl, took)
		l.say("fleet scan %s, kubectl get %s", r.scan[len(r.scan)-1].Round(time.Millisecond),
			took.Round(time.Millisecond))
	}
	info, err := os.Stat(output)
	if err != nil {
		return r, fmt.Errorf("read what kubectl printed: %w", err)
	}
	r.bytes = info.Size()
	r.adopted, err = l.adopt(ctx)
	return r, err
}

// adopt takes over the first operator on all clusters.
func (l *lab) adopt(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	operator := stage.Operator(0, 0, map[string]string{stage.LabelFleet: fleetName}, stage.Waves(1, len(l.names)))
	operator.Spec.Adopt = &v1alpha1.OperatorAdoption{}
	if err := l.Create(ctx, operator); err != nil {
		return 0, fmt.Errorf("create ManagedOperator: %w", err)
	}
	err := l.UntilRollout(ctx, "", func(r *v1alpha1.OperatorRollout) bool {
		return r.Spec.Release.AsInstalled && r.Status.Phase == v1alpha1.RolloutSucceeded
	})
	took := time.Since(began)
	l.say("adopted on %d clusters in %s", len(l.names), took.Round(time.Millisecond))
	return took, err
}

// timed runs a program and returns how long it took. What it prints goes to a file.
func timed(ctx context.Context, output, program string, args ...string) (time.Duration, error) {
	file, err := os.Create(output)
	if err != nil {
		return 0, fmt.Errorf("create file: %w", err)
	}
	c := exec.CommandContext(ctx, program, args...)
	c.Stdout = file
	began := time.Now()
	err = c.Run()
	took := time.Since(began)
	if err != nil {
		err = fmt.Errorf("run %s %v: %w", filepath.Base(program), args, err)
	}
	return took, errors.Join(err, file.Close())
}
