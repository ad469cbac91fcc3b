// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	minRetryDelay = 5 * time.Millisecond
	// maxRetryDelay is the longest delay after a failure. With the default of a quarter of an
	// hour, a fleet would make no progress for that time after its API server was repaired.
	maxRetryDelay = time.Minute
)

// Options returns the options of a controller on the hub. concurrency is the number of objects
// that are reconciled at the same time, at least one.
func Options(concurrency int) controller.Options {
	delays := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, maxRetryDelay)
	return controller.Options{MaxConcurrentReconciles: max(concurrency, 1), RateLimiter: delays}
}
