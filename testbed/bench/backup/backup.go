// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup measures how long a backup and a restore of many custom resources take, and how much memory the
// agent takes for it above its own, against `kubectl get -o json` and `kubectl apply` on the same cluster.
//
// The agent's time is from the creation of the OperatorBackup until its status says that it was read back. A restore
// is `bellwether backup restore` with an empty cluster, as `kubectl apply` is.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/bench/lab"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/echo"
	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

// Options say how much to measure.
type Options struct {
	// Objects is how many custom resources there are.
	Objects int
	Runs    int
	// Settle is how long the agent may come to rest before each backup.
	Settle time.Duration
}

const (
	namespace = "echo-operator"
	// maxMemory is what was promised.
	maxMemory = 64 << 20
	writers   = 16
)

// run is what one run measured.
type run struct {
	backup, get, restore, apply time.Duration
	memory                      int64
	getMemory, restoreMemory    int64
	applyMemory                 int64
}

// bench is a cluster with the objects.
type bench struct {
	*lab.Lab
	options  Options
	out      io.Writer
	binaries map[string]string
	agent    *process.Process
	install  *v1alpha1.OperatorInstall
	store    string
}

// Measure runs the benchmark; out receives a line per step.
func Measure(ctx context.Context, out io.Writer, o Options) (section figure.Section, err error) {
	l, err := lab.Start(ctx, out, "backup", nil)
	if err != nil {
		return figure.Section{}, err
	}
	defer func() {
		err = errors.Join(err, l.Stop(context.WithoutCancel(ctx), err != nil && ctx.Err() == nil))
	}()
	b := &bench{Lab: l, options: o, out: out, store: filepath.Join(l.Dir(), "backups")}
	if err := b.prepare(ctx); err != nil {
		return figure.Section{}, err
	}
	defer b.agent.Stop(context.WithoutCancel(ctx))
	var all []run
	for i := range o.Runs {
		r, err := b.once(ctx)
		if err != nil {
			return figure.Section{}, err
		}
		_, _ = fmt.Fprintf(out, "run %d: backup %v, kubectl get %v, restore %v, kubectl apply %v, "+
			"memory of the agent +%d\n", i+1, r.backup, r.get, r.restore, r.apply, r.memory)
		all = append(all, r)
	}
	return report(all, o.Objects), nil
}

func (b *bench) prepare(ctx context.Context) error {
	var err error
	if b.binaries, err = build.Local(ctx, b.out, filepath.Join(b.Dir(), "tools"), build.Bellwether,
		build.Kubectl); err != nil {
		return err
	}
	if b.agent, err = b.StartAgent("--backup-store", "file://"+b.store); err != nil {
		return err
	}
	content, err := echo.FBC("1.0.0")
	if err != nil {
		return fmt.Errorf("make catalog: %w", err)
	}
	pin, err := b.Publish(ctx, "echo", content)
	if err != nil {
		return err
	}
	b.install = lab.Install("echo", 1, v1alpha1.Release{Package: "echo-operator", Channel: "stable", Version: "1.0.0",
		Bundle: "echo-operator.v1.0.0", Catalog: pin,
		Install: v1alpha1.InstallSettings{Mode: v1alpha1.InstallAllNamespaces}})
	if err := b.Hub.Create(ctx, b.install); err != nil {
		return fmt.Errorf("create install: %w", err)
	}
	if err := b.Running(ctx, b.install); err != nil {
		return err
	}
	return b.createObjects(ctx)
}

func (b *bench) createObjects(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range b.options.Objects {
		group.Go(func() error {
			server := &echov1alpha1.EchoServer{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("echo-%05d", i),
					Labels: map[string]string{"example.com/number": fmt.Sprint(i)}},
				Spec: echov1alpha1.EchoServerSpec{Message: fmt.Sprintf("message number %d of a benchmark", i)},
			}
			if err := b.Cluster.Create(ctx, server); err != nil {
				return fmt.Errorf("create EchoServer: %w", err)
			}
			return nil
		})
	}
	return group.Wait()
}

// removeObjects removes all objects and waits until they are gone.
func (b *bench) removeObjects(ctx context.Context) error {
	if err := b.Cluster.DeleteAllOf(ctx, &echov1alpha1.EchoServer{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("delete EchoServers: %w", err)
	}
	return lab.Until(ctx, func(ctx context.Context) (bool, error) {
		n, err := b.count(ctx)
		return n == 0, err
	})
}

func (b *bench) count(ctx context.Context) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(echov1alpha1.GroupVersion.WithKind("EchoServerList"))
	err := b.Cluster.List(ctx, list, client.InNamespace(namespace))
	return len(list.Items), err
}

// once measures each side once, in turn.
func (b *bench) once(ctx context.Context) (run, error) {
	var r run
	if err := lab.Settle(ctx, b.options.Settle); err != nil {
		return r, err
	}
	location, err := b.backup(ctx, &r)
	if err != nil {
		return r, err
	}
	saved := filepath.Join(b.Dir(), "saved.json")
	if r.get, r.getMemory, err = b.tool(ctx, saved, build.Kubectl, "get", "echoservers", "-n", namespace, "-o",
		"json"); err != nil {
		return r, err
	}
	if err := strip(saved); err != nil {
		return r, err
	}
	if err := b.removeObjects(ctx); err != nil {
		return r, err
	}
	if r.restore, r.restoreMemory, err = b.tool(ctx, os.DevNull, build.Bellwether, "backup", "restore", "--location",
		location, "--cluster-kubeconfig", b.ClusterKubeconfig(), "-o", "json"); err != nil {
		return r, err
	}
	if err := errors.Join(b.complete(ctx), b.removeObjects(ctx)); err != nil {
		return r, err
	}
	r.apply, r.applyMemory, err = b.tool(ctx, os.DevNull, build.Kubectl, "apply", "-f", saved)
	return r, errors.Join(err, b.complete(ctx))
}

// errMissing says that objects were lost.
var errMissing = errors.New("objects are missing")

func (b *bench) complete(ctx context.Context) error {
	n, err := b.count(ctx)
	if err == nil && n != b.options.Objects {
		err = fmt.Errorf("%w: there are %d of %d", errMissing, n, b.options.Objects)
	}
	return err
}

// backup has the agent take a backup, and returns its location.
func (b *bench) backup(ctx context.Context, r *run) (string, error) {
	before, err := resetPeak(b.agent.PID())
	if err != nil {
		return "", err
	}
	asked := backups.NewManualBackup(b.install, time.Now())
	began := time.Now()
	if err := b.Hub.Create(ctx, asked); err != nil {
		return "", fmt.Errorf("create OperatorBackup: %w", err)
	}
	if err := lab.Until(ctx, func(ctx context.Context) (bool, error) {
		err := b.Hub.Get(ctx, client.ObjectKeyFromObject(asked), asked)
		return backups.IsVerified(asked), err
	}); err != nil {
		return "", fmt.Errorf("wait for the backup %+v: %w", asked.Status.Conditions, err)
	}
	r.backup = time.Since(began)
	peak, err := peak(b.agent.PID())
	r.memory = peak - before
	return asked.Status.Location, err
}
