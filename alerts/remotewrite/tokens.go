// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remotewrite

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Audience is that of the tokens with which clusters send. It is not the API server's: a
// token that a Prometheus has opens nothing else.
const Audience = "bellwether-remote-write"

const (
	// tokenFor is how long a token counts that was checked: as long as a revoked one
	// goes on.
	tokenFor = time.Minute
	// maxTokens bounds how many are remembered.
	maxTokens = 20_000
)

// Tokens knows clusters by the tokens of their agents' ServiceAccounts on the hub.
type Tokens struct {
	// Hub makes TokenReviews and reads FleetClusters, without a cache.
	Hub client.Client
	Now func() time.Time

	mu    sync.Mutex
	known map[[sha256.Size]byte]checked
}

type checked struct {
	cluster string
	until   time.Time
}

// Cluster returns the cluster whose token it is. The error wraps ErrUnauthenticated if it
// is that of none.
func (t *Tokens) Cluster(ctx context.Context, token string) (string, error) {
	key := sha256.Sum256([]byte(token))
	if cluster, ok := t.recall(key); ok {
		return cluster, nil
	}
	cluster, err := t.review(ctx, token)
	if err != nil {
		return "", err
	}
	t.remember(key, cluster)
	return cluster, nil
}

func (t *Tokens) recall(key [sha256.Size]byte) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.known[key]
	return found.cluster, ok && t.Now().Before(found.until)
}

func (t *Tokens) remember(key [sha256.Size]byte, cluster string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.Now()
	if len(t.known) >= maxTokens {
		for k, c := range t.known {
			if !now.Before(c.until) {
				delete(t.known, k)
			}
		}
	}
	if t.known == nil {
		t.known = map[[sha256.Size]byte]checked{}
	}
	if len(t.known) < maxTokens {
		t.known[key] = checked{cluster, now.Add(tokenFor)}
	}
}

func (t *Tokens) review(ctx context.Context, token string) (string, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token,
		Audiences: []string{Audience}}}
	if err := t.Hub.Create(ctx, review); err != nil {
		return "", fmt.Errorf("review token: %w", err)
	}
	// An API server that knows nothing of audiences returns none.
	if !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, Audience) {
		return "", fmt.Errorf("%w: it is invalid, expired or revoked, or not for the audience %s", ErrUnauthenticated,
			Audience)
	}
	cluster, ok := clusterOf(review.Status.User.Username)
	if !ok {
		return "", fmt.Errorf("%w: %s is not the ServiceAccount of an agent", ErrUnauthenticated,
			review.Status.User.Username)
	}
	var object v1alpha1.FleetCluster
	switch err := t.Hub.Get(ctx, types.NamespacedName{Name: cluster}, &object); {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("%w: there is no FleetCluster %q", ErrUnauthenticated, cluster)
	case err != nil:
		return "", fmt.Errorf("read FleetCluster %s: %w", cluster, err)
	}
	return cluster, nil
}

// clusterOf is the cluster of an agent by the name of its ServiceAccount's user.
func clusterOf(user string) (string, bool) {
	account, ok := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, _ := strings.Cut(account, ":")
	cluster, is := strings.CutPrefix(namespace, v1alpha1.ClusterNamespace(""))
	return cluster, ok && is && name == v1alpha1.AgentServiceAccount && cluster != ""
}
