// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remotewrite

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

// Audience is that of the tokens with which clusters send. It is not the API server's: a
// token that a Prometheus has opens nothing else.
const Audience = "bellwether-remote-write"

const (
	// tokenFor is how long a token counts that was checked: as long as a revoked one
	// goes on.
	tokenFor = time.Minute
	// maxTokens bounds how many are remembered, of good and bad ones each, and of addresses.
	maxTokens = 20_000
	// maxTokenBytes is more than API servers make.
	maxTokenBytes = 8 << 10
	// maxReviews is how many reviews are under way.
	maxReviews = 8
	// failureRate is how many bad tokens of one cluster an address may have reviewed each second, after the first
	// maxFailures. Tokens that were good are reviewed all the same. Behind a proxy all clusters have one address, so
	// for tokens of any cluster there is much more room.
	failureRate, maxFailures         = 1, 10
	addressFailureRate, maxOfAddress = 20, 200
)

// errTooMany says that the sender has to try again.
var errTooMany = errors.New("try again later")

// Tokens knows clusters by the tokens of their agents' ServiceAccounts on the hub.
type Tokens struct {
	// Hub makes TokenReviews and reads FleetClusters, without a cache.
	Hub client.Client
	Now func() time.Time

	reviews singleflight.Group

	mu sync.Mutex
	// good and bad are what reviews said. No number of bad tokens displaces a good one.
	good, bad map[tokenKey]checked
	// failures are those of senders, and of addresses with any cluster.
	failures map[claimant]*rate.Limiter
	// underWay is how many reviews are.
	underWay int
}

// claimant is somebody at an address who says that he is a cluster; empty for any.
type claimant struct{ address, cluster string }

type tokenKey = [sha256.Size]byte

type checked struct {
	cluster string
	err     error
	until   time.Time
}

// Cluster returns the cluster whose token it is, which somebody at an address sent. The error wraps ErrUnauthenticated
// if it is that of none.
func (t *Tokens) Cluster(ctx context.Context, token, address string) (string, error) {
	key := sha256.Sum256([]byte(token))
	found, known := t.recall(key)
	if known && t.Now().Before(found.until) {
		return found.cluster, found.err
	}
	claimed, err := looksLikeOne(token, t.Now())
	if err != nil {
		return "", err
	}
	from := claimant{networkOf(address), claimed}
	if err := t.enter(from, known && found.err == nil); err != nil {
		return "", err
	}
	defer t.leave()
	cluster, err, _ := t.reviews.Do(string(key[:]), func() (any, error) {
		cluster, err := t.review(ctx, token)
		if err == nil || errors.Is(err, ErrUnauthenticated) {
			t.remember(key, checked{cluster: cluster, err: err})
		}
		return cluster, err
	})
	if errors.Is(err, ErrUnauthenticated) {
		t.failed(from)
	}
	return cluster.(string), err
}

// networkOf is the address itself, or what IPv6 gives to one network, since whoever has that has all of its addresses.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	return netip.PrefixFrom(ip.WithZone(""), 64).Masked().String()
}

// recall returns what the last review of a token said, which may be outdated.
func (t *Tokens) recall(key tokenKey) (checked, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.good[key]
	if !ok {
		found, ok = t.bad[key]
	}
	return found, ok
}

func (t *Tokens) remember(key tokenKey, c checked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	into := &t.good
	if c.err != nil {
		into = &t.bad
		delete(t.good, key)
	}
	if *into == nil {
		*into = map[tokenKey]checked{}
	}
	now := t.Now()
	if len(*into) >= maxTokens {
		maps.DeleteFunc(*into, func(_ tokenKey, old checked) bool { return !now.Before(old.until) })
	}
	if len(*into) < maxTokens {
		c.until = now.Add(tokenFor)
		(*into)[key] = c
	}
}

// enter begins a review, unless too many are under way, or the sender has sent too many bad tokens and this one was
// not good before.
func (t *Tokens) enter(s claimant, wasGood bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	isLimited := func(s claimant) bool {
		l := t.failures[s]
		return l != nil && l.TokensAt(t.Now()) < 1
	}
	switch {
	case !wasGood && (isLimited(s) || isLimited(claimant{address: s.address})):
		return fmt.Errorf("%w: %s sent many tokens that are those of no cluster", errTooMany, s.address)
	case t.underWay >= maxReviews:
		return fmt.Errorf("%w: the hub is asked about %d tokens at the moment", errTooMany, maxReviews)
	}
	t.underWay++
	return nil
}

func (t *Tokens) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.underWay--
}

func (t *Tokens) failed(s claimant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(s, failureRate, maxFailures)
	t.count(claimant{address: s.address}, addressFailureRate, maxOfAddress)
}

func (t *Tokens) count(s claimant, limit rate.Limit, burst int) {
	now := t.Now()
	if t.failures[s] == nil {
		if len(t.failures) >= maxTokens {
			isOver := func(_ claimant, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(l.Burst()) }
			maps.DeleteFunc(t.failures, isOver)
		}
		if t.failures == nil || len(t.failures) >= maxTokens {
			t.failures = map[claimant]*rate.Limiter{}
		}
		t.failures[s] = rate.NewLimiter(limit, burst)
	}
	t.failures[s].AllowN(now, 1)
}

// looksLikeOne returns the cluster that a token says it is of. It refuses what no API server would take for the token
// of an agent, by what the token says of itself, so that nobody needs to ask one. Its signature is not looked at.
func looksLikeOne(token string, now time.Time) (string, error) {
	var claims jwt.RegisteredClaims
	if len(token) > maxTokenBytes {
		return "", fmt.Errorf("%w: it has more than %d bytes", ErrUnauthenticated, maxTokenBytes)
	}
	_, _, err := jwt.NewParser().ParseUnverified(token, &claims)
	cluster, isAgent := clusterOf(claims.Subject)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: it is no token of a ServiceAccount", ErrUnauthenticated)
	case !slices.Contains(claims.Audience, Audience):
		return "", fmt.Errorf("%w: it is not for the audience %s", ErrUnauthenticated, Audience)
	case !isAgent:
		return "", fmt.Errorf("%w: it is not that of the ServiceAccount of an agent", ErrUnauthenticated)
	case claims.ExpiresAt == nil || claims.ExpiresAt.Before(now):
		return "", fmt.Errorf("%w: it has expired", ErrUnauthenticated)
	}
	return cluster, nil
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
