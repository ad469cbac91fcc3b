// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// Publish writes a catalog into a folder of that name and returns the pin that a rollout would give.
func (l *Lab) Publish(ctx context.Context, name string, content []byte) (v1alpha1.CatalogPin, error) {
	dir := filepath.Join(l.Dir(), "catalogs", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return v1alpha1.CatalogPin{}, fmt.Errorf("create folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), content, 0o600); err != nil {
		return v1alpha1.CatalogPin{}, fmt.Errorf("write catalog: %w", err)
	}
	digest, err := oci.NewClient(oci.Options{}).Resolve(ctx, oci.Source{Directory: dir})
	if err != nil {
		return v1alpha1.CatalogPin{}, fmt.Errorf("resolve catalog: %w", err)
	}
	return v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Directory: dir}, Digest: digest}, nil
}

// Install is an OperatorInstall to be, or one that is there: the part of a rollout that the benchmark plays.
func Install(operator string, revision int64, release v1alpha1.Release) *v1alpha1.OperatorInstall {
	reference := v1alpha1.OperatorReference{Namespace: "fleet", Name: operator}
	return &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(ClusterName), Name: reference.InstallName()},
		Spec: v1alpha1.OperatorInstallSpec{
			Operator: reference, Cluster: ClusterName, RemovalPolicy: v1alpha1.RemovalUninstall,
			Admission: &v1alpha1.Admission{
				Rollout: fmt.Sprintf("%s-%d", operator, revision), RolloutUID: "bench", Revision: revision,
				Wave: "rest",
				Hash: fmt.Sprintf("%.8s-%d", release.Hash(), revision), AdmittedAt: metav1.Now(), Release: release,
			},
		},
	}
}

// Admit admits an install that is there already to what another one says.
func (l *Lab) Admit(ctx context.Context, oi *v1alpha1.OperatorInstall) error {
	current := &v1alpha1.OperatorInstall{}
	if err := l.Hub.Get(ctx, client.ObjectKeyFromObject(oi), current); err != nil {
		return fmt.Errorf("get install: %w", err)
	}
	patch := client.MergeFrom(current.DeepCopy())
	current.Spec.Admission = oi.Spec.Admission
	if err := l.Hub.Patch(ctx, current, patch); err != nil {
		return fmt.Errorf("admit install: %w", err)
	}
	return nil
}

// Running waits until an install runs what it was admitted to.
func (l *Lab) Running(ctx context.Context, oi *v1alpha1.OperatorInstall) error {
	current := &v1alpha1.OperatorInstall{}
	err := Until(ctx, func(ctx context.Context) (bool, error) {
		if err := l.Hub.Get(ctx, client.ObjectKeyFromObject(oi), current); err != nil {
			return false, err
		}
		return current.Status.SucceededHash == current.Spec.Admission.Hash &&
			conditions.IsTrue(current.Status.Conditions, v1alpha1.ConditionReady), nil
	})
	if err != nil {
		ready := conditions.Get(current.Status.Conditions, v1alpha1.ConditionReady)
		return fmt.Errorf("wait for %s to run (%s: %s): %w", oi.Name, ready.Reason, ready.Message, err)
	}
	return nil
}

// Removed waits until an object is gone; deleting it is part of that.
func Removed(ctx context.Context, k client.Client, o client.Object) error {
	// A conflict says that a namespace is on its way out already.
	if err := k.Delete(ctx, o); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %T %s: %w", o, o.GetName(), err)
	}
	err := Until(ctx, func(ctx context.Context) (bool, error) {
		err := k.Get(ctx, client.ObjectKeyFromObject(o), o)
		return err != nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for the end of %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

const (
	// patience is far beyond what anything here takes on an idle machine.
	patience = 5 * time.Minute
	look     = 100 * time.Millisecond
)

// ErrPatience says that something did not happen in several minutes.
var ErrPatience = errors.New("it did not happen in time")

// Until polls until holds says so. It is for preparations: what is measured is watched.
func Until(ctx context.Context, holds func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrPatience)
	defer cancel()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		done, err := holds(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case done:
			return nil
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// Settle waits a fixed time for a system to come to rest.
func Settle(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
