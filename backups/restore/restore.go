// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore writes the objects of a backup to a cluster. It creates objects that do not exist, and adds missing
// fields to existing objects. It never changes an existing value, and deletes nothing. Package plan decides what is
// written to an existing object.
package restore

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"filippo.io/age"
	"gocloud.dev/blob"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"

	"github.com/bellwether-dev/bellwether/backups/archive"
)

// FieldManager is the field manager of the fields that a restore writes.
const FieldManager = "bellwether-restore"

// maxConcurrent limits how many objects are restored concurrently.
const maxConcurrent = 8

// Options configure a restore.
type Options struct {
	// Identities decrypt the backup.
	Identities []age.Identity
	// DryRun changes nothing.
	DryRun bool
	// CreateNamespaces creates namespaces that do not exist.
	CreateNamespaces bool
	// Observe receives the result of each object, one at a time; nil if only the report is needed.
	Observe func(Result)
}

// Cluster is the cluster that the backup is restored to.
type Cluster struct {
	Client dynamic.Interface
	Mapper meta.RESTMapper
}

// Run restores a backup. It reads and checks the whole backup before it writes anything. If an object cannot be
// restored, the report counts it, and Run returns no error.
//
// Owners are restored before the objects that they own, because an owner has another UID after it was created again.
func Run(ctx context.Context, cluster Cluster, bucket *blob.Bucket, m *archive.Manifest, o Options) (Report, error) {
	run := &run{
		cluster: cluster, options: o, bucket: bucket, manifest: m, report: Report{DryRun: o.DryRun},
		resources: map[string]*resource{}, saved: map[types.UID]bool{}, currentUIDs: map[types.UID]types.UID{},
		namespaces: map[string]error{},
	}
	if err := run.readUIDs(ctx); err != nil {
		return run.report, err
	}
	if err := run.readResources(ctx); err != nil {
		return run.report, err
	}
	for force := false; ; {
		handledBefore := len(run.currentUIDs)
		remaining, err := run.restoreRound(ctx, force)
		if err != nil || remaining == 0 {
			return run.report, err
		}
		// If a round handles no object, the remaining objects own each other, and the next round does not wait for
		// owners.
		force = len(run.currentUIDs) == handledBefore
	}
}

// run is the state of one restore.
type run struct {
	cluster  Cluster
	options  Options
	bucket   *blob.Bucket
	manifest *archive.Manifest
	// resources are the resources of the backup by apiVersion and kind.
	resources map[string]*resource
	// saved are the UIDs of the objects in the backup.
	saved map[types.UID]bool

	mu     sync.Mutex
	report Report
	// currentUIDs maps the UIDs of objects that were handled to their UIDs on the cluster; empty for objects that
	// were not restored.
	currentUIDs map[types.UID]types.UID
	// namespaces are the results of ensureNamespace, by namespace.
	namespaces map[string]error
}

// readUIDs reads the UIDs of all objects. It reads the whole backup, which checks it.
func (r *run) readUIDs(ctx context.Context) error {
	return r.readObjects(ctx, func(line []byte) error {
		var object struct {
			Metadata struct {
				UID types.UID `json:"uid"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(line, &object); err != nil {
			return fmt.Errorf("%w: decode object: %w", archive.ErrDamaged, err)
		}
		r.saved[object.Metadata.UID] = true
		return nil
	})
}

// readObjects calls f for every object of the backup.
func (r *run) readObjects(ctx context.Context, f func(line []byte) error) error {
	return archive.Read(ctx, r.bucket, r.manifest, r.options.Identities, f)
}

// restoreRound restores the objects whose owners were handled before this round, and returns how many objects remain.
// With force, it restores all objects that were not handled. An object that cannot be restored counts as handled.
func (r *run) restoreRound(ctx context.Context, force bool) (remaining int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrent)
	done := r.copyDone() // a copy, because the goroutines of this round change the original
	err = r.readObjects(ctx, func(line []byte) error {
		object := &unstructured.Unstructured{}
		if err := kjson.Unmarshal(line, &object.Object); err != nil {
			return fmt.Errorf("%w: decode object: %w", archive.ErrDamaged, err)
		}
		switch {
		case done[object.GetUID()]:
			return nil
		case !force && r.needsOwner(object, done):
			remaining++
			return nil
		}
		group.Go(func() error {
			r.restoreAndReport(ctx, object)
			return ctx.Err()
		})
		return ctx.Err()
	})
	if waitErr := group.Wait(); err == nil {
		err = waitErr
	}
	return remaining, err
}

// copyDone returns the UIDs of the objects that were handled, as a copy.
func (r *run) copyDone() map[types.UID]bool {
	out := make(map[types.UID]bool, len(r.currentUIDs))
	for uid := range r.currentUIDs {
		out[uid] = true
	}
	return out
}

// needsOwner reports whether an owner of the object is in the backup and was not handled yet.
func (r *run) needsOwner(object *unstructured.Unstructured, done map[types.UID]bool) bool {
	for _, owner := range object.GetOwnerReferences() {
		if r.saved[owner.UID] && !done[owner.UID] {
			return true
		}
	}
	return false
}

// restoreAndReport restores one object and reports the result. It also records the object's UID on the cluster for the
// objects that it owns: the saved UID in a dry run, and none after a failure.
func (r *run) restoreAndReport(ctx context.Context, saved *unstructured.Unstructured) {
	uid := saved.GetUID()
	result := Result{Namespace: saved.GetNamespace(), Name: saved.GetName(), Resource: saved.GetKind()}
	current := uid
	resource, ok := r.resources[saved.GetAPIVersion()+" "+saved.GetKind()]
	switch {
	case !ok:
		result.Action, result.Problem = Fail, "the manifest does not name its resource"
	default:
		result.Resource = resource.Name()
		if resource.problem != "" {
			result.Action, result.Problem = Fail, resource.problem
			break
		}
		live, err := r.restoreObject(ctx, resource, saved, &result)
		if err != nil {
			result.Action, result.Problem = Fail, err.Error()
		} else if live != nil {
			current = live.GetUID()
		}
	}
	if result.Action == Fail {
		current = "" // no object may have it as its owner
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.currentUIDs[uid] = current
	r.report.addResult(result)
	if r.options.Observe != nil {
		r.options.Observe(result)
	}
}
