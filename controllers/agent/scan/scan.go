// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scan reports to the hub all operators that OLM runs on the agent's cluster,
// including operators that Bellwether did not install. The report is the status of the
// OperatorScan in the cluster's namespace. The package reads the agent's caches once a minute
// and writes only changes, so that an unchanged cluster causes no writes on the hub. It
// changes nothing on its cluster.
package scan

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/adoption"
)

// The permissions that an agent needs to find operators, and to check whether its API server
// answers. An agent that was installed with read-only access has no other permissions on its
// cluster, except to keep its token for the hub.
//
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups=operators.coreos.com,resources=subscriptions;clusterserviceversions;installplans;operatorgroups;catalogsources,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch

// Interval is the interval between two scans of the cluster, with a deviation of up to a tenth.
const Interval = time.Minute

// findTimeout limits one scan, because the wait for a cache that cannot be filled does not end.
const findTimeout = 30 * time.Second

// refusedInterval is the interval while the hub refuses the report. This happens if the
// hub has an earlier version.
const refusedInterval = 10 * Interval

// unreadyInterval is the interval while the agent is starting.
const unreadyInterval = 2 * time.Second

// Finder finds operators on the agent's cluster, without a limit of their number. The error is
// engines.ErrNotReady while the caches are not filled.
type Finder interface {
	Find(ctx context.Context) (v1alpha1.OperatorScanStatus, error)
}

// Reporter writes the found operators to the hub. It is a manager.Runnable.
type Reporter struct {
	// Hub reads and writes the one OperatorScan, and must not read through a cache.
	Hub client.Client
	// Namespace is the namespace of the cluster on the hub.
	Namespace string
	Finder    Finder
	Now       func() time.Time

	// hubScan is the OperatorScan as the hub has it; nil if that is unknown.
	hubScan *v1alpha1.OperatorScan
	// isRefused is true if the hub did not allow the last report.
	isRefused bool
	// reportsSinceRead counts the reports since the OperatorScan was read.
	reportsSinceRead int
}

// reportsPerRead is after how many reports the OperatorScan is read again, even without
// changes: a hub that was restored from a backup has an older OperatorScan. With one report a
// minute, it is read every six hours.
const reportsPerRead = 360

// Add adds a reporter to the agent's manager.
func Add(hub ctrl.Manager, direct client.Client, namespace string, finder Finder, now func() time.Time) error {
	if err := hub.Add(&Reporter{Hub: direct, Namespace: namespace, Finder: finder, Now: now}); err != nil {
		return fmt.Errorf("add scan: %w", err)
	}
	return nil
}

// Start reports until ctx ends.
func (r *Reporter) Start(ctx context.Context) error {
	lastFailure := ""
	for {
		err := r.Report(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is not a failure
		}
		wait := Interval
		if r.isRefused {
			wait = refusedInterval
		}
		wait = wait*9/10 + time.Duration(rand.Int63nRange(0, int64(wait/5)))
		switch {
		case errors.Is(err, engines.ErrNotReady):
			wait, err = unreadyInterval, nil
		case err != nil && err.Error() != lastFailure:
			log.FromContext(ctx).Error(err, "Cannot report operators to the hub")
		}
		lastFailure = describeError(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// describeError returns the text of an error; empty for nil.
func describeError(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Report scans the cluster once, and writes the changes. It returns the errors of the scan and of
// the write. If the caches are not filled, it writes nothing. It is not an error if the hub has
// an earlier version without OperatorScans, or does not have this OperatorScan yet.
func (r *Reporter) Report(ctx context.Context) error {
	findCtx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	found, failure := r.Finder.Find(findCtx)
	if errors.Is(failure, engines.ErrNotReady) || ctx.Err() != nil {
		return failure
	}
	err := r.writeScan(ctx, found, failure)
	if apierrors.IsConflict(err) { // another process wrote the OperatorScan, for example a previous agent
		r.hubScan = nil
		err = r.writeScan(ctx, found, failure)
	}
	if err != nil {
		r.hubScan = nil // the next report reads the OperatorScan again
	}
	r.isRefused = apierrors.IsForbidden(err) || meta.IsNoMatchError(err)
	if r.isRefused || apierrors.IsNotFound(err) {
		return failure
	}
	return errors.Join(failure, err)
}

// writeScan updates the OperatorScan on the hub if the operators, or the failure
// of the scan, have changed.
func (r *Reporter) writeScan(ctx context.Context, found v1alpha1.OperatorScanStatus, failure error) error {
	if r.reportsSinceRead++; r.hubScan == nil || r.reportsSinceRead > reportsPerRead {
		current := &v1alpha1.OperatorScan{}
		key := client.ObjectKey{Namespace: r.Namespace, Name: v1alpha1.ScanName}
		if err := r.Hub.Get(ctx, key, current); err != nil {
			return fmt.Errorf("get OperatorScan: %w", err)
		}
		r.hubScan, r.reportsSinceRead = current, 0
	}
	next := adoption.NextScan(r.hubScan.Status, found, failure, r.Now())
	if next == nil {
		return nil
	}
	scan := r.hubScan.DeepCopy()
	scan.Status = *next
	if err := r.Hub.Status().Update(ctx, scan); err != nil {
		return fmt.Errorf("update OperatorScan: %w", err)
	}
	r.hubScan = scan
	return nil
}
