// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	facts "github.com/bellwether-dev/bellwether/inventory"
	"github.com/bellwether-dev/bellwether/inventory/serve"
	"github.com/bellwether-dev/bellwether/inventory/store"
)

const (
	// interval is how long changes are collected before they are written.
	interval = time.Second
	// heartbeat is the longest time between two batches: without changes, an empty batch records that the hub observes
	// the fleet. It is shorter than store.MaxGap.
	heartbeat = 15 * time.Second
	// maxRetryDelay is the longest delay after a failure, such as a full disk.
	maxRetryDelay = time.Minute
	// retainInterval is how often the past that need not be kept is removed.
	retainInterval = time.Hour
)

// recorder collects which objects changed in the hub's caches, and writes what follows from them to the inventory. No
// controller waits for it: while it cannot write, it keeps the newest state of each changed object.
type recorder struct {
	cache     cache.Cache
	file      string
	retention store.Retention
	now       func() time.Time
	// store is the open inventory; nil if this replica does not lead, or could not open the file.
	store atomic.Pointer[store.Store]

	mu      sync.Mutex
	pending map[objectKey]change
}

// objectKey identifies an object: its kind by the type of a pointer to it.
type objectKey struct {
	kind string
	name types.NamespacedName
}

// change is the newest state of an object.
type change struct {
	object    client.Object
	isDeleted bool
}

// recordedKinds returns an object of each kind that is recorded.
func recordedKinds() []client.Object {
	return []client.Object{&v1alpha1.FleetCluster{}, &v1alpha1.ManagedOperator{}, &v1alpha1.OperatorInstall{},
		&v1alpha1.OperatorCatalog{}, &v1alpha1.OperatorRollout{}}
}

// listFacts returns what is recorded of an object.
func listFacts(o client.Object) []facts.Facts {
	switch o := o.(type) {
	case *v1alpha1.FleetCluster:
		return facts.OfCluster(o)
	case *v1alpha1.ManagedOperator:
		return facts.OfOperator(o)
	case *v1alpha1.OperatorInstall:
		return facts.OfInstall(o)
	case *v1alpha1.OperatorCatalog:
		return facts.OfCatalog(o)
	case *v1alpha1.OperatorRollout:
		return facts.OfRollout(o)
	default:
		return nil
	}
}

// Start implements manager.Runnable. It runs in the replica that leads.
func (r *recorder) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("inventory")
	hasSynced, err := r.watch(ctx)
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), hasSynced...) {
		return nil // the hub ends
	}
	defer r.close()
	var lastBatch, lastRetained time.Time
	delay := interval
	for wait(ctx, delay) {
		err := r.write(ctx, &lastBatch)
		if err == nil && r.now().Sub(lastRetained) >= retainInterval {
			lastRetained = r.now()
			_, err = r.store.Load().Retain(ctx, r.now(), r.retention)
		}
		switch {
		case err != nil && ctx.Err() == nil:
			if delay == interval {
				log.Error(err, "Cannot maintain the inventory: the newest state of each object is kept and "+
					"written later", "file", r.file)
			}
			delay = min(2*delay, maxRetryDelay)
		case delay != interval:
			log.Info("The inventory is maintained again", "file", r.file)
			delay = interval
		}
	}
	return nil
}

// watch collects changes from now on. All objects that exist are changes at first.
func (r *recorder) watch(ctx context.Context) ([]toolscache.InformerSynced, error) {
	var hasSynced []toolscache.InformerSynced
	for _, kind := range recordedKinds() {
		informer, err := r.cache.GetInformer(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { r.collect(o, false) },
			UpdateFunc: func(_, o any) { r.collect(o, false) },
			DeleteFunc: func(o any) { r.collect(o, true) },
		})
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
		hasSynced = append(hasSynced, registration.HasSynced)
	}
	return hasSynced, nil
}

// collect notes the newest state of an object.
func (r *recorder) collect(o any, isDeleted bool) {
	if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	object, ok := o.(client.Object)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil {
		r.pending = map[objectKey]change{}
	}
	r.pending[keyOf(object)] = change{object, isDeleted}
}

func keyOf(o client.Object) objectKey {
	return objectKey{fmt.Sprintf("%T", o), client.ObjectKeyFromObject(o)}
}

// write writes the collected changes, if there are any or if a batch is due. After an error they are collected again.
func (r *recorder) write(ctx context.Context, lastBatch *time.Time) error {
	now := r.now()
	changes := r.takePending()
	if len(changes) == 0 && now.Sub(*lastBatch) < heartbeat {
		return nil
	}
	err := r.open(ctx)
	if err == nil {
		// The first batch has all objects: see watch.
		err = r.store.Load().Record(ctx, store.Batch{Source: facts.FromHub, At: now, Facts: iterateFacts(changes),
			IsComplete: lastBatch.IsZero()})
	}
	if err != nil {
		r.returnPending(changes)
		return err
	}
	*lastBatch = now
	return nil
}

// iterateFacts returns the facts of the changed objects.
func iterateFacts(changes map[objectKey]change) iter.Seq[facts.Facts] {
	return func(yield func(facts.Facts) bool) {
		for _, c := range changes {
			all := listFacts(c.object)
			if c.isDeleted {
				all = facts.WithoutRows(all)
			}
			for _, f := range all {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// takePending returns the collected changes, and begins to collect anew.
func (r *recorder) takePending() map[objectKey]change {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := r.pending
	r.pending = nil
	return changes
}

// returnPending collects changes that could not be written, unless there is a newer state of their objects.
func (r *recorder) returnPending(changes map[objectKey]change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if changes == nil {
		return
	}
	for key, newer := range r.pending {
		changes[key] = newer
	}
	r.pending = changes
}

// open opens the file, if it is not open.
func (r *recorder) open(ctx context.Context) error {
	if r.store.Load() != nil {
		return nil
	}
	opened, err := store.Open(ctx, r.file)
	if err != nil {
		return err
	}
	r.store.Store(opened)
	return nil
}

// close closes the file.
func (r *recorder) close() {
	if opened := r.store.Swap(nil); opened != nil {
		_ = opened.Close()
	}
}

// errNotLeading means that this replica has no inventory, because another one leads or because the file cannot be
// opened.
var errNotLeading = fmt.Errorf("%w: this replica of the hub does not lead, or cannot open the inventory; try again",
	serve.ErrUnavailable)

// Query implements serve.Inventory.
func (r *recorder) Query(ctx context.Context, q facts.Query) (*facts.Answer, error) {
	opened := r.store.Load()
	if opened == nil {
		return nil, errNotLeading
	}
	return opened.Query(ctx, q)
}

// wait returns true after a time, and false if the context ends before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
