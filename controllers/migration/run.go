// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/migration/plan"
	"github.com/bellwether-dev/bellwether/phrase"
)

const (
	// pageSize is how many objects are listed at a time.
	pageSize = 250
	// slice is how long objects are stored anew before the status is written. A new
	// agent begins where the last slice ended.
	slice = 15 * time.Second
	// maxFailed ends a pass early: what fails so often fails for all objects.
	maxFailed = 100
	// maxFailures and maxFailure bound what the status says of them, as the API does.
	maxFailures = 3
	maxFailure  = 600
)

// Objects stores objects anew; Cluster does.
type Objects interface {
	Page(ctx context.Context, d plan.Definition, limit int64, next string) ([]types.NamespacedName, string, error)
	Rewrite(ctx context.Context, d plan.Definition, name types.NamespacedName) error
	Finish(ctx context.Context, name, resourceVersion, storage string) error
}

// pass goes on with the objects of a definition until all are done, for the time of a
// slice, or while mayGoOn. It records in p how far it came.
func pass(ctx context.Context, objects Objects, d plan.Definition, p *v1alpha1.StorageMigrationProgress,
	now func() time.Time, mayGoOn func(context.Context) (bool, error)) error {
	for until := now().Add(slice); p.EndTime == nil; {
		if err := page(ctx, objects, d, p); err != nil {
			return err
		}
		if p.Continue == "" || p.Failed >= maxFailed {
			end := metav1.NewTime(now())
			p.EndTime, p.Continue = &end, ""
			return nil
		}
		if goesOn, err := mayGoOn(ctx); !goesOn || err != nil || !now().Before(until) {
			return err
		}
	}
	return nil
}

// page stores the objects of one page anew. An error leaves p as it was, so that the
// page is done again.
func page(ctx context.Context, objects Objects, d plan.Definition, p *v1alpha1.StorageMigrationProgress) error {
	names, next, err := objects.Page(ctx, d, pageSize, p.Continue)
	if err != nil {
		return err
	}
	done := p.DeepCopy()
	for _, name := range names {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return objects.Rewrite(ctx, d, name) })
		switch {
		case err == nil:
			done.Objects++
		case apierrors.IsNotFound(err):
		case isPassing(err):
			return fmt.Errorf("store %s %s anew: %w", d.Name(), name, err)
		default:
			done.Failed++
			if len(done.Failures) < maxFailures {
				done.Failures = append(done.Failures,
					phrase.Truncate(fmt.Sprintf("%s %s: %v", d.Name(), name, err), maxFailure))
			}
		}
	}
	done.Continue = next
	*p = *done
	return nil
}

// isPassing tells whether an error says nothing about the object: the API server
// cannot be reached, or is busy.
func isPassing(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsUnauthorized(err)
}
