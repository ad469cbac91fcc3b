// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scan reports to the hub which operators OLM runs on the agent's cluster, whoever installed them: the status
// of the OperatorScan in the cluster's namespace. It reads the agent's caches once a minute and writes only what
// changed, so that a cluster on which nothing happens costs the hub nothing. It changes nothing on its cluster.
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
	"github.com/bellwether-dev/bellwether/controllers/scan/plan"
	"github.com/bellwether-dev/bellwether/engines"
)

// What an agent needs to find operators, and to tell whether its API server answers. One that was installed to read
// only has no other rights on its cluster, beside keeping its token for the hub.
//
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups=operators.coreos.com,resources=subscriptions;clusterserviceversions;installplans;operatorgroups;catalogsources,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch

// Every is how often the cluster is looked at, give or take a tenth.
const Every = time.Minute

// maxRead bounds how long one look may take: a cache that cannot be filled is waited for without end.
const maxRead = 30 * time.Second

// retryRefused is how soon a hub is asked again that does not let the agent report: it is of an earlier version.
const retryRefused = 10 * Every

// retryUnready is how soon the cluster is looked at again while the agent is starting.
const retryUnready = 2 * time.Second

// Finder finds operators on the agent's cluster, without any bound. It returns engines.ErrNotReady while it cannot.
type Finder interface {
	Find(ctx context.Context) (v1alpha1.OperatorScanStatus, error)
}

// Reporter writes what was found. It is a manager.Runnable.
type Reporter struct {
	// Hub reads and writes the one OperatorScan, and must not read through a cache.
	Hub client.Client
	// Namespace is the cluster's on the hub.
	Namespace string
	Finder    Finder
	Now       func() time.Time

	// known is the OperatorScan as the hub has it; nil where that is not known.
	known *v1alpha1.OperatorScan
	// refused says that the hub did not let the agent report.
	refused bool
	// looks counts how often the cluster was looked at since the OperatorScan was read.
	looks int
}

// readAgain is after how many looks the OperatorScan is read again, though nothing has changed: a hub that was restored
// from a backup has an older one. That is every six hours.
const readAgain = 360

// Add adds a reporter to the agent's manager.
func Add(hub ctrl.Manager, direct client.Client, namespace string, finder Finder, now func() time.Time) error {
	if err := hub.Add(&Reporter{Hub: direct, Namespace: namespace, Finder: finder, Now: now}); err != nil {
		return fmt.Errorf("add scan: %w", err)
	}
	return nil
}

// Start reports until ctx ends.
func (r *Reporter) Start(ctx context.Context) error {
	failing := ""
	for {
		err := r.Report(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to stop
		}
		wait := Every
		if r.refused {
			wait = retryRefused
		}
		wait = wait*9/10 + time.Duration(rand.Int63nRange(0, int64(wait/5)))
		switch {
		case errors.Is(err, engines.ErrNotReady):
			wait, err = retryUnready, nil
		case err != nil && err.Error() != failing:
			log.FromContext(ctx).Error(err, "Cannot report operators to the hub")
		}
		failing = textOf(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Report looks at the cluster once, and writes what changed. Where the hub is of an earlier version and has no
// OperatorScans, or has not made this one yet, there is nothing to do.
func (r *Reporter) Report(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, maxRead)
	defer cancel()
	found, failure := r.Finder.Find(limited)
	if errors.Is(failure, engines.ErrNotReady) || ctx.Err() != nil {
		return failure
	}
	err := r.write(ctx, found, failure)
	if apierrors.IsConflict(err) { // somebody else wrote it, such as an agent before this one
		r.known = nil
		err = r.write(ctx, found, failure)
	}
	if err != nil {
		r.known = nil
	}
	r.refused = apierrors.IsForbidden(err) || meta.IsNoMatchError(err)
	if r.refused || apierrors.IsNotFound(err) {
		return failure
	}
	return errors.Join(failure, err)
}

func (r *Reporter) write(ctx context.Context, found v1alpha1.OperatorScanStatus, failure error) error {
	if r.looks++; r.known == nil || r.looks > readAgain {
		known := &v1alpha1.OperatorScan{}
		key := client.ObjectKey{Namespace: r.Namespace, Name: v1alpha1.ScanName}
		if err := r.Hub.Get(ctx, key, known); err != nil {
			return fmt.Errorf("get OperatorScan: %w", err)
		}
		r.known, r.looks = known, 0
	}
	next := plan.Next(r.known.Status, found, failure, r.Now())
	if next == nil {
		return nil
	}
	scan := r.known.DeepCopy()
	scan.Status = *next
	if err := r.Hub.Status().Update(ctx, scan); err != nil {
		return fmt.Errorf("update OperatorScan: %w", err)
	}
	r.known = scan
	return nil
}
