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

// errRolloutChanged ends all actions of a pass.
var errRolloutChanged = errors.New("the rollout was changed since it was read")

// fence lets actions of one pass through while the rollout is as the decision saw it: not paused, not aborted, and with
// the very batch that names the clusters. The API server is asked after each action has asked for it, and once for all
// actions that have asked by then: it decodes the whole rollout for each answer.
type fence struct {
	// read fails if the rollout is not as it was.
	read  func() error
	reads shared[struct{}]
}

// pass returns the result of a read that begins after the call.
func (f *fence) pass() error {
	_, err := f.reads.get(func() (struct{}, error) { return struct{}{}, f.read() })
	return err
}

// unchanged fails if a rollout is not as it was read. Its metadata tells, and is all that travels: a status names
// hundreds of clusters.
func (r *Reconciler) unchanged(ctx context.Context, ro *v1alpha1.OperatorRollout) error {
	var now metav1.PartialObjectMetadata
	now.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("OperatorRollout"))
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(ro), &now)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read rollout: %w", err)
	}
	if err != nil || now.UID != ro.UID || now.ResourceVersion != ro.ResourceVersion || now.DeletionTimestamp != nil {
		return errors.Join(errRolloutChanged, apierrors.NewConflict(schema.GroupResource{
			Group: v1alpha1.SchemeGroupVersion.Group, Resource: "operatorrollouts"}, ro.Name, errRolloutChanged))
	}
	return nil
}
