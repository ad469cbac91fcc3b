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
	firstRetry = 5 * time.Millisecond
	// lastRetry is the longest delay after a failure. The default of a quarter of an hour
	// is how long a fleet would stand still after its API server was repaired.
	lastRetry = time.Minute
)

// Options are those of a controller on the hub, which reconciles so many objects at a
// time, at least one.
func Options(concurrency int) controller.Options {
	delays := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
	return controller.Options{MaxConcurrentReconciles: max(concurrency, 1), RateLimiter: delays}
}
