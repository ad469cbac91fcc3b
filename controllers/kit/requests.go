// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Requests returns a request for each object of a kind that which accepts. The
// objects are those of the cache: which must not change them. list is an empty list
// of that kind. It is for watches, which cannot return an error: if the objects
// cannot be listed, that is logged.
func Requests[O client.Object](ctx context.Context, cache client.Reader, list client.ObjectList, which func(O) bool,
	in ...client.ListOption) []reconcile.Request {
	var requests []reconcile.Request
	err := cache.List(ctx, list, append(in, client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if o := item.(O); which(o) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
			return nil
		})
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot list objects for a watch", "list", fmt.Sprintf("%T", list))
	}
	return requests
}

// RequestsForInstallsOn returns the requests for the OperatorInstalls on a cluster.
func RequestsForInstallsOn(ctx context.Context, cache client.Reader, cluster string,
	requests func(context.Context, client.Object) []reconcile.Request) []reconcile.Request {
	var installs v1alpha1.OperatorInstallList
	err := cache.List(ctx, &installs, client.InNamespace(v1alpha1.ClusterNamespace(cluster)),
		client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot list OperatorInstalls for a watch", "cluster", cluster)
	}
	var all []reconcile.Request
	for i := range installs.Items {
		all = append(all, requests(ctx, &installs.Items[i])...)
	}
	return all
}
