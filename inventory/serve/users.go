// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/inventory"
)

const (
	// rightsLifetime is how long the answers about a user are used. A revoked token or right is accepted for that long.
	rightsLifetime = 10 * time.Second
	// reviewTimeout limits all reviews of a user.
	reviewTimeout = time.Minute
	// maxUsers is how many users' answers are kept.
	maxUsers = 1000
	// maxTokenBytes is larger than any token of an API server.
	maxTokenBytes = 16 << 10
	// maxReviews is how many reviews are made at a time, for all users together.
	maxReviews = 16
)

// Reviewer implements Users with reviews of the hub's API server.
type Reviewer struct {
	// Client creates reviews, and reads the hub's objects from a cache.
	Client client.Client
	Now    func() time.Time

	requests singleflight.Group
	mu       sync.Mutex
	known    map[tokenKey]knownUser
}

type tokenKey [sha256.Size]byte

type knownUser struct {
	visible inventory.Visible
	until   time.Time
}

// FindVisible implements Users.
func (r *Reviewer) FindVisible(ctx context.Context, token string) (inventory.Visible, error) {
	if len(token) > maxTokenBytes {
		return inventory.Visible{}, fmt.Errorf("%w: the token has more than %d bytes", ErrUnauthenticated,
			maxTokenBytes)
	}
	key := tokenKey(sha256.Sum256([]byte(token)))
	if found, ok := r.findKnown(key); ok {
		return found, nil
	}
	found, err, _ := r.requests.Do(string(key[:]), func() (any, error) {
		// Others wait for the same answer, also if this user goes.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		visible, err := r.review(ctx, token)
		if err == nil {
			r.storeKnown(key, visible)
		}
		return visible, err
	})
	return found.(inventory.Visible), err
}

func (r *Reviewer) findKnown(key tokenKey) (inventory.Visible, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	user, ok := r.known[key]
	return user.visible, ok && r.Now().Before(user.until)
}

func (r *Reviewer) storeKnown(key tokenKey, visible inventory.Visible) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	maps.DeleteFunc(r.known, func(_ tokenKey, u knownUser) bool { return !now.Before(u.until) })
	if r.known == nil {
		r.known = map[tokenKey]knownUser{}
	}
	if len(r.known) < maxUsers {
		r.known[key] = knownUser{visible, now.Add(rightsLifetime)}
	}
}

// review asks the API server who has a token and what that user may list.
func (r *Reviewer) review(ctx context.Context, token string) (inventory.Visible, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := r.Client.Create(ctx, review); err != nil {
		return inventory.Visible{}, fmt.Errorf("%w: the hub's API server does not review the token: %w",
			ErrUnavailable, err)
	}
	if !review.Status.Authenticated {
		return inventory.Visible{}, fmt.Errorf("%w: the hub's API server does not accept the token", ErrUnauthenticated)
	}
	rights, err := r.readRights(ctx, review.Status.User)
	if err != nil {
		return inventory.Visible{}, err
	}
	var access v1alpha1.FleetAccessList
	var clusters v1alpha1.FleetClusterList
	for _, list := range []client.ObjectList{&access, &clusters} {
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return inventory.Visible{}, fmt.Errorf("%w: list %T: %w", ErrUnavailable, list, err)
		}
	}
	return inventory.DecideVisible(rights, access.Items, clusters.Items), nil
}

// readRights asks what a user may list. Namespaces are asked about only if the user may not list everything.
func (r *Reviewer) readRights(ctx context.Context, user authenticationv1.UserInfo) (inventory.Rights, error) {
	var rights inventory.Rights
	var err error
	if rights.ListsClusters, err = r.mayList(ctx, user, "fleetclusters", ""); err != nil {
		return rights, err
	}
	if rights.ListsOperators, err = r.mayList(ctx, user, "managedoperators", ""); err != nil {
		return rights, err
	}
	if rights.ListsOperators && rights.ListsClusters {
		return rights, nil
	}
	var operators v1alpha1.ManagedOperatorList
	if err := r.Client.List(ctx, &operators, client.UnsafeDisableDeepCopy); err != nil {
		return rights, fmt.Errorf("%w: list ManagedOperators: %w", ErrUnavailable, err)
	}
	namespaces := map[string]bool{}
	for i := range operators.Items {
		namespaces[operators.Items[i].Namespace] = true
	}
	if rights.ListsOperators {
		rights.Namespaces = slices.Sorted(maps.Keys(namespaces))
		return rights, nil
	}
	var mu sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxReviews)
	for namespace := range namespaces {
		group.Go(func() error {
			if may, err := r.mayList(groupCtx, user, "managedoperators", namespace); err != nil || !may {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			rights.Namespaces = append(rights.Namespaces, namespace)
			return nil
		})
	}
	return rights, group.Wait()
}

// mayList reports whether a user may list the objects of a resource in a namespace; in all namespaces if it is empty.
func (r *Reviewer) mayList(ctx context.Context, user authenticationv1.UserInfo, resource, namespace string) (bool,
	error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: v1alpha1.SchemeGroupVersion.Group,
			Resource: resource, Namespace: namespace},
	}}
	if err := r.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("%w: the hub's API server does not say what %s may list: %w", ErrUnavailable,
			user.Username, err)
	}
	return review.Status.Allowed, nil
}
