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

// ListRequests returns a request for each object of a kind that the function accepts. The
// objects are shared with the cache, so accepts must not change them. list is an empty
// list of that kind. ListRequests is used by watches, which cannot return an error, so an
// error of the list is logged.
func ListRequests[O client.Object](ctx context.Context, cache client.Reader, list client.ObjectList,
	accepts func(O) bool, options ...client.ListOption) []reconcile.Request {
	var requests []reconcile.Request
	err := cache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if o := item.(O); accepts(o) {
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

// ListRequestsOfCluster calls mapInstall for each OperatorInstall on a cluster, and returns all
// requests. An error of the list is logged.
func ListRequestsOfCluster(ctx context.Context, cache client.Reader, cluster string,
	mapInstall func(context.Context, client.Object) []reconcile.Request) []reconcile.Request {
	var installs v1alpha1.OperatorInstallList
	err := cache.List(ctx, &installs, client.InNamespace(v1alpha1.ClusterNamespace(cluster)),
		client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot list OperatorInstalls for a watch", "cluster", cluster)
	}
	var all []reconcile.Request
	for i := range installs.Items {
		all = append(all, mapInstall(ctx, &installs.Items[i])...)
	}
	return all
}
