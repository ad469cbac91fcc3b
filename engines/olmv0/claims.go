// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/engines/localpolicy"
)

// The agent reads the accounts and roles that a bundle names if the policy of the cluster's owner limits permissions.
//
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;clusterroles,verbs=get
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings;clusterrolebindings,verbs=list

// claimReader reads the objects that bundles claim and that the cluster already has. It does not use the cache.
type claimReader struct {
	live client.Reader
	// source is the CatalogSource that serves the operator.
	source string
}

// judgeClaims returns a RefusalError if a bundle claims objects that others made, or if the objects cannot be read.
func (c claimReader) judgeClaims(ctx context.Context, all []*localpolicy.Claims) error {
	for _, claims := range all {
		cluster, err := c.readClaimed(ctx, claims)
		if err != nil {
			return localpolicy.RefuseUnreadable(claims.Bundle, err)
		}
		if err := claims.Judge(cluster); err != nil {
			return err
		}
	}
	return nil
}

// readClaimed reads the objects of the cluster that the claims of a bundle are compared with.
func (c claimReader) readClaimed(ctx context.Context, claims *localpolicy.Claims) (localpolicy.Cluster, error) {
	out := localpolicy.Cluster{Source: c.source, Roles: map[localpolicy.Role]metav1.PartialObjectMetadata{}}
	for _, name := range claims.Accounts {
		kind := corev1.SchemeGroupVersion.WithKind("ServiceAccount")
		account, exists, err := c.readMetadata(ctx, kind, claims.Namespace, name)
		if err != nil {
			return out, err
		}
		if exists {
			out.Accounts = append(out.Accounts, account)
		}
	}
	for _, role := range claims.Roles {
		namespace := claims.Namespace
		if role.Kind == "ClusterRole" {
			namespace = ""
		}
		live, exists, err := c.readMetadata(ctx, rbacv1.SchemeGroupVersion.WithKind(role.Kind), namespace, role.Name)
		if err != nil {
			return out, err
		}
		if exists {
			out.Roles[role] = live
		}
	}
	return out, c.readLists(ctx, claims.Namespace, &out)
}

// readMetadata reads the metadata of an object; false if the object does not exist.
func (c claimReader) readMetadata(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (
	metav1.PartialObjectMetadata, bool, error) {
	live := metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kind)
	err := c.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &live)
	if apierrors.IsNotFound(err) {
		return live, false, nil
	}
	if err != nil {
		return live, false, fmt.Errorf("get %s %s: %w", kind.Kind, name, err)
	}
	return live, true, nil
}

// readLists adds the bindings of the cluster, and the Subscriptions and InstallPlans of a namespace.
func (c claimReader) readLists(ctx context.Context, namespace string, cluster *localpolicy.Cluster) error {
	var (
		bindings        rbacv1.RoleBindingList
		clusterBindings rbacv1.ClusterRoleBindingList
		subscriptions   operatorsv1alpha1.SubscriptionList
		plans           operatorsv1alpha1.InstallPlanList
	)
	if err := c.live.List(ctx, &bindings); err != nil {
		return fmt.Errorf("list RoleBindings: %w", err)
	}
	if err := c.live.List(ctx, &clusterBindings); err != nil {
		return fmt.Errorf("list ClusterRoleBindings: %w", err)
	}
	if err := c.live.List(ctx, &subscriptions, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list Subscriptions: %w", err)
	}
	if err := c.live.List(ctx, &plans, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list InstallPlans: %w", err)
	}
	cluster.RoleBindings, cluster.ClusterRoleBindings = bindings.Items, clusterBindings.Items
	cluster.Subscriptions, cluster.InstallPlans = subscriptions.Items, plans.Items
	return nil
}
