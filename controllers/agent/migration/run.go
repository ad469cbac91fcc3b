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
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/migration"
)

const (
	// pageSize is how many objects are listed at a time.
	pageSize = 250
	// sliceDuration is how long objects are rewritten before the status is written. A new agent
	// process starts where the last slice ended.
	sliceDuration = 15 * time.Second
	// maxFailed ends a migration early: with so many failures, all objects are likely to fail.
	maxFailed = 100
	// maxFailures and maxFailureLength limit the failures in the status, as the API does.
	maxFailures      = 3
	maxFailureLength = 600
)

// Objects rewrites the stored form of objects. Cluster implements it.
type Objects interface {
	Page(ctx context.Context, d migration.Definition, limit int64, next string) ([]types.NamespacedName, string, error)
	Rewrite(ctx context.Context, d migration.Definition, name types.NamespacedName) error
	Finish(ctx context.Context, name, resourceVersion, storage string) error
}

// migrateSlice rewrites the objects of a definition until all are done, sliceDuration has
// passed, or canContinue returns false. It records the progress in p.
func migrateSlice(ctx context.Context, objects Objects, d migration.Definition, p *v1alpha1.StorageMigrationProgress,
	now func() time.Time, canContinue func(context.Context) (bool, error)) error {
	for sliceEnd := now().Add(sliceDuration); p.EndTime == nil; {
		if err := migratePage(ctx, objects, d, p); err != nil {
			return err
		}
		if p.Continue == "" || p.Failed >= maxFailed {
			end := metav1.NewTime(now())
			p.EndTime, p.Continue = &end, ""
			return nil
		}
		if continues, err := canContinue(ctx); !continues || err != nil || !now().Before(sliceEnd) {
			return err
		}
	}
	return nil
}

// migratePage rewrites the objects of one page. If it returns an error, p is unchanged and
// the page must be repeated.
func migratePage(ctx context.Context, objects Objects, d migration.Definition,
	p *v1alpha1.StorageMigrationProgress) error {
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
		case apierrors.IsNotFound(err): // the object was deleted after the list
		case isTemporary(err):
			return fmt.Errorf("store %s %s again: %w", d.Name(), name, err)
		default:
			done.Failed++
			if len(done.Failures) < maxFailures {
				done.Failures = append(done.Failures,
					phrase.Truncate(fmt.Sprintf("%s %s: %v", d.Name(), name, err), maxFailureLength))
			}
		}
	}
	done.Continue = next
	*p = *done
	return nil
}

// isTemporary reports whether an error says nothing about the object, because the API server
// cannot be reached, is busy, or does not accept the agent's credentials.
func isTemporary(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsUnauthorized(err)
}
