// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore writes the objects of a backup to a cluster: those that are
// gone are created, and those that exist get the fields back that they have lost.
// It never changes a value that an object has, and deletes nothing. What is written
// to an existing object is decided in package plan.
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

// FieldManager owns the fields that a restore writes.
const FieldManager = "bellwether-restore"

// workers is how many objects are restored at a time.
const workers = 8

// Options of a restore.
type Options struct {
	// Identities decrypt the backup.
	Identities []age.Identity
	// DryRun changes nothing.
	DryRun bool
	// CreateNamespaces creates namespaces that are not there.
	CreateNamespaces bool
	// Observe receives the result of each object, one at a time; nil if only the
	// report is wanted.
	Observe func(Result)
}

// Cluster is the cluster that is restored to.
type Cluster struct {
	Client dynamic.Interface
	Mapper meta.RESTMapper
}

// Run restores a backup. The whole backup is read and checked before anything is
// written. That an object cannot be restored is in the report and no error.
//
// Objects that are owned by others of the backup come after these, since an owner
// has another UID once it was created again.
func Run(ctx context.Context, cluster Cluster, bucket *blob.Bucket, m *archive.Manifest, o Options) (Report, error) {
	run := &run{
		cluster: cluster, options: o, bucket: bucket, manifest: m, report: Report{DryRun: o.DryRun},
		resources: map[string]*resource{}, saved: map[types.UID]bool{}, now: map[types.UID]types.UID{},
		namespaces: map[string]error{},
	}
	if err := run.index(ctx); err != nil {
		return run.report, err
	}
	if err := run.readResources(ctx); err != nil {
		return run.report, err
	}
	for force := false; ; {
		before := len(run.now)
		left, err := run.round(ctx, force)
		if err != nil || left == 0 {
			return run.report, err
		}
		force = len(run.now) == before // owners own each other: their references are dropped
	}
}

// run is one restore.
type run struct {
	cluster  Cluster
	options  Options
	bucket   *blob.Bucket
	manifest *archive.Manifest
	// resources by apiVersion and kind.
	resources map[string]*resource
	// saved are the UIDs of the objects in the backup.
	saved map[types.UID]bool

	mu     sync.Mutex
	report Report
	// now maps the UIDs of objects that were dealt with to those that they have in
	// the cluster.
	now        map[types.UID]types.UID
	namespaces map[string]error
}

// index reads the whole backup, which checks it.
func (r *run) index(ctx context.Context) error {
	return r.each(ctx, func(line []byte) error {
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

func (r *run) each(ctx context.Context, f func(line []byte) error) error {
	return archive.Read(ctx, r.bucket, r.manifest, r.options.Identities, f)
}

// round restores those objects whose owners were dealt with, and returns how many
// are left. With force it restores all of them.
func (r *run) round(ctx context.Context, force bool) (left int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	done := r.dealtWith()
	err = r.each(ctx, func(line []byte) error {
		object := &unstructured.Unstructured{}
		if err := kjson.Unmarshal(line, &object.Object); err != nil {
			return fmt.Errorf("%w: decode object: %w", archive.ErrDamaged, err)
		}
		switch {
		case done[object.GetUID()]:
			return nil
		case !force && r.awaitsOwner(object, done):
			left++
			return nil
		}
		group.Go(func() error {
			r.restore(ctx, object)
			return ctx.Err()
		})
		return ctx.Err()
	})
	if waitErr := group.Wait(); err == nil {
		err = waitErr
	}
	return left, err
}

func (r *run) dealtWith() map[types.UID]bool {
	out := make(map[types.UID]bool, len(r.now))
	for uid := range r.now {
		out[uid] = true
	}
	return out
}

func (r *run) awaitsOwner(object *unstructured.Unstructured, done map[types.UID]bool) bool {
	for _, owner := range object.GetOwnerReferences() {
		if r.saved[owner.UID] && !done[owner.UID] {
			return true
		}
	}
	return false
}

func (r *run) restore(ctx context.Context, saved *unstructured.Unstructured) {
	uid := saved.GetUID()
	result := Result{Namespace: saved.GetNamespace(), Name: saved.GetName(), Resource: saved.GetKind()}
	now := uid
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
		live, err := r.write(ctx, resource, saved, &result)
		if err != nil {
			result.Action, result.Problem = Fail, err.Error()
		} else if live != nil {
			now = live.GetUID()
		}
	}
	if result.Action == Fail {
		now = "" // nothing may refer to it as its owner
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now[uid] = now
	r.report.add(result)
	if r.options.Observe != nil {
		r.options.Observe(result)
	}
}
