// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Audience is the audience of the tokens with which clusters send. It differs from the
// audience of the API server, so that the token of a Prometheus gives no other access.
const Audience = "bellwether-remote-write"

const (
	// tokenLifetime is how long the result of a token review is
	// valid. A revoked token is accepted for up to this time.
	tokenLifetime = time.Minute
	// maxTokens is the maximum number of stored results, for
	// valid and for invalid tokens each, and of stored addresses.
	maxTokens = 20_000
	// maxTokenBytes is larger than any token of an API server.
	maxTokenBytes = 8 << 10
	// maxReviews is the maximum number of concurrent reviews.
	maxReviews = 8
	// failureRate is how many invalid tokens of one cluster an address may have reviewed each
	// second, after the first maxFailures. Tokens that were valid before are always reviewed. Behind
	// a proxy all clusters have one address, so the limits for tokens of any cluster are higher.
	failureRate, maxFailures               = 1, 10
	addressFailureRate, maxAddressFailures = 20, 200
)

// errTooMany is wrapped by errors after which the sender must retry.
var errTooMany = errors.New("try again later")

// Tokens authenticates clusters by the tokens of their agents' ServiceAccounts on the hub.
type Tokens struct {
	// Hub creates TokenReviews and reads FleetClusters, without a cache.
	Hub client.Client
	Now func() time.Time

	reviews singleflight.Group

	mu sync.Mutex
	// good and bad are the results of reviews for valid and invalid tokens.
	// They are separate, so that invalid tokens cannot displace valid ones.
	good, bad map[tokenKey]checkedToken
	// failures counts invalid tokens by sender, and by address with any cluster.
	failures map[claimant]*rate.Limiter
	// activeReviews is the number of reviews in progress.
	activeReviews int
}

// claimant is an address that claims to be a cluster. The cluster is empty for any cluster.
type claimant struct{ address, cluster string }

type tokenKey = [sha256.Size]byte

type checkedToken struct {
	cluster string
	err     error
	until   time.Time
}

// Cluster returns the cluster of a token that was sent from an address.
// The error wraps ErrUnauthenticated if the token belongs to no cluster.
func (t *Tokens) Cluster(ctx context.Context, token, address string) (string, error) {
	key := sha256.Sum256([]byte(token))
	found, known := t.findChecked(key)
	if known && t.Now().Before(found.until) {
		return found.cluster, found.err
	}
	claimed, err := checkClaims(token, t.Now())
	if err != nil {
		return "", err
	}
	sender := claimant{toNetwork(address), claimed}
	if err := t.startReview(sender, known && found.err == nil); err != nil {
		return "", err
	}
	defer t.endReview()
	cluster, err, _ := t.reviews.Do(string(key[:]), func() (any, error) {
		cluster, err := t.reviewToken(ctx, token)
		if err == nil || errors.Is(err, ErrUnauthenticated) {
			t.storeChecked(key, checkedToken{cluster: cluster, err: err})
		}
		return cluster, err
	})
	if errors.Is(err, ErrUnauthenticated) {
		t.countFailure(sender)
	}
	return cluster.(string), err
}

// toNetwork returns an IPv4 address unchanged, and the /64 network of an IPv6
// address, because the owner of such a network can use all of its addresses.
func toNetwork(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	return netip.PrefixFrom(ip.WithZone(""), 64).Masked().String()
}

// findChecked returns the last result for a token, which may be expired.
func (t *Tokens) findChecked(key tokenKey) (checkedToken, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.good[key]
	if !ok {
		found, ok = t.bad[key]
	}
	return found, ok
}

// storeChecked stores the result for a token for tokenLifetime, if there is space.
// It also removes an invalid token from the valid tokens.
func (t *Tokens) storeChecked(key tokenKey, c checkedToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	results := &t.good
	if c.err != nil {
		results = &t.bad
		delete(t.good, key)
	}
	if *results == nil {
		*results = map[tokenKey]checkedToken{}
	}
	now := t.Now()
	if len(*results) >= maxTokens {
		maps.DeleteFunc(*results, func(_ tokenKey, old checkedToken) bool { return !now.Before(old.until) })
	}
	if len(*results) < maxTokens {
		c.until = now.Add(tokenLifetime)
		(*results)[key] = c
	}
}

// startReview counts a review as active. It returns an error if too many reviews are active,
// or if the sender has sent too many invalid tokens and this token was not valid before.
func (t *Tokens) startReview(s claimant, wasGood bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	isLimited := func(s claimant) bool {
		l := t.failures[s]
		return l != nil && l.TokensAt(t.Now()) < 1
	}
	switch {
	case !wasGood && (isLimited(s) || isLimited(claimant{address: s.address})):
		return fmt.Errorf("%w: %s sent many tokens that belong to no cluster", errTooMany, s.address)
	case t.activeReviews >= maxReviews:
		return fmt.Errorf("%w: the hub is asked about %d tokens at the moment", errTooMany, maxReviews)
	}
	t.activeReviews++
	return nil
}

// endReview counts a review as finished.
func (t *Tokens) endReview() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.activeReviews--
}

// countFailure counts an invalid token of a sender.
func (t *Tokens) countFailure(s claimant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addFailure(s, failureRate, maxFailures)
	t.addFailure(claimant{address: s.address}, addressFailureRate, maxAddressFailures)
}

// addFailure counts an invalid token against a limit.
func (t *Tokens) addFailure(s claimant, limit rate.Limit, burst int) {
	now := t.Now()
	if t.failures[s] == nil {
		if len(t.failures) >= maxTokens {
			isOver := func(_ claimant, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(l.Burst()) }
			maps.DeleteFunc(t.failures, isOver)
		}
		if t.failures == nil || len(t.failures) >= maxTokens { // without space, all counts start again
			t.failures = map[claimant]*rate.Limiter{}
		}
		t.failures[s] = rate.NewLimiter(limit, burst)
	}
	t.failures[s].AllowN(now, 1)
}

// checkClaims returns the cluster that a token claims. It refuses tokens that cannot be a valid
// agent token by their claims, so that no review is needed. It does not verify the signature.
func checkClaims(token string, now time.Time) (string, error) {
	var claims jwt.RegisteredClaims
	if len(token) > maxTokenBytes {
		return "", fmt.Errorf("%w: it has more than %d bytes", ErrUnauthenticated, maxTokenBytes)
	}
	_, _, err := jwt.NewParser().ParseUnverified(token, &claims)
	cluster, isAgent := parseCluster(claims.Subject)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: it is no token of a ServiceAccount", ErrUnauthenticated)
	case !slices.Contains(claims.Audience, Audience):
		return "", fmt.Errorf("%w: it is not for the audience %s", ErrUnauthenticated, Audience)
	case !isAgent:
		return "", fmt.Errorf("%w: it is not the token of an agent's ServiceAccount", ErrUnauthenticated)
	case claims.ExpiresAt == nil || claims.ExpiresAt.Before(now):
		return "", fmt.Errorf("%w: it has expired", ErrUnauthenticated)
	}
	return cluster, nil
}

// reviewToken returns the cluster of a token after the API server has verified the token. The FleetCluster must exist.
func (t *Tokens) reviewToken(ctx context.Context, token string) (string, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token,
		Audiences: []string{Audience}}}
	if err := t.Hub.Create(ctx, review); err != nil {
		return "", fmt.Errorf("review token: %w", err)
	}
	// An API server without support for audiences returns none.
	if !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, Audience) {
		return "", fmt.Errorf("%w: it is invalid, expired or revoked, or not for the audience %s", ErrUnauthenticated,
			Audience)
	}
	cluster, ok := parseCluster(review.Status.User.Username)
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

// parseCluster returns the cluster of an agent from the user
// name of its ServiceAccount. It returns false for other users.
func parseCluster(user string) (string, bool) {
	account, ok := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, _ := strings.Cut(account, ":")
	cluster, hasPrefix := strings.CutPrefix(namespace, v1alpha1.ClusterNamespace(""))
	return cluster, ok && hasPrefix && name == v1alpha1.AgentServiceAccount && cluster != ""
}
