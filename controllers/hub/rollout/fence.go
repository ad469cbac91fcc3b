// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// errRolloutChanged cancels all actions of a pass.
var errRolloutChanged = errors.New("the rollout was changed since it was read")

// fence lets the actions of one pass continue only while the rollout is the same as when the
// decision was made: not paused, not aborted, and with the batch that names the clusters. Each
// action checks the fence. Actions that check at the same time share one read, because the API
// server decodes the whole rollout for each read.
type fence struct {
	// read returns an error if the rollout was changed.
	read  func() error
	reads sharedReader[struct{}]
}

// check returns the error of a read that starts after the call, or nil if
// the rollout is unchanged.
func (f *fence) check() error {
	_, err := f.reads.read(func() (struct{}, error) { return struct{}{}, f.read() })
	return err
}

// checkUnchanged returns an error if the rollout was changed or deleted since it was read. It
// requests only the metadata, because the status can name hundreds of clusters.
func (r *Reconciler) checkUnchanged(ctx context.Context, ro *v1alpha1.OperatorRollout) error {
	var current metav1.PartialObjectMetadata
	current.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("OperatorRollout"))
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(ro), &current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read rollout: %w", err)
	}
	if err != nil || current.UID != ro.UID || current.ResourceVersion != ro.ResourceVersion ||
		current.DeletionTimestamp != nil {
		return errors.Join(errRolloutChanged, apierrors.NewConflict(schema.GroupResource{
			Group: v1alpha1.SchemeGroupVersion.Group, Resource: "operatorrollouts"}, ro.Name, errRolloutChanged))
	}
	return nil
}
