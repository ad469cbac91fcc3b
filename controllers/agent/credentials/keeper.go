// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

const (
	// renewalDivisor divides the lifetime of a token: a token is renewed after a quarter of its
	// lifetime. An agent that is switched off can still use the token for the remaining time.
	renewalDivisor = 4
	// jitter prevents agents that started together from renewing at the same time.
	jitter = 0.2
	// authorityInterval is how often the hub's certificate authority is read.
	authorityInterval = time.Hour
	// maxWait limits the time until a changed clock, or the end of a suspension of
	// the machine, is detected.
	maxWait = time.Minute
	// requestTimeout limits each attempt of a task.
	requestTimeout = 30 * time.Second
)

// Keeper renews credentials until its context ends. It is a manager.Runnable.
type Keeper struct {
	Credentials *Credentials
	Store       Store
	// Hub is a client with the credentials.
	Hub client.Client
	// Namespace is the namespace of the cluster on the hub.
	Namespace string
	// Lifetime is the requested lifetime of tokens. The hub may shorten it.
	Lifetime time.Duration
	// Failed is called after each failed attempt.
	Failed func(error)
	// Now is the clock of the agent's machine.
	Now func() time.Time

	mu sync.Mutex
}

// Start renews the token at once, because its age is unknown, and then each time a part of its
// lifetime has passed. It also follows the hub's certificate authority. It does nothing if the
// kubeconfig has no token. It returns when the context ends.
func (k *Keeper) Start(ctx context.Context) error {
	if !k.Credentials.renewable {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.repeat(ctx, "renew the token for the hub", k.renewToken) })
	if k.Credentials.authorityFile != "" {
		group.Go(func() error {
			return k.repeat(ctx, "follow the hub's certificate authority", k.followAuthority)
		})
	}
	return group.Wait()
}

// repeat runs a task until the context ends. The task returns the time until its next run. A
// failed task is retried with growing delays.
func (k *Keeper) repeat(ctx context.Context, name string, task func(context.Context) (time.Duration, error)) error {
	backoff := newBackoff()
	failing := false
	for {
		started := k.Now()
		taskCtx, cancel := context.WithTimeout(ctx, requestTimeout)
		next, err := task(taskCtx)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the end of ctx is not a failure
		case err != nil:
			err = fmt.Errorf("%s: %w", name, err)
			if !failing {
				log.FromContext(ctx).Error(err, "Retrying")
			}
			k.Failed(err)
			next = backoff.Step()
		default:
			if failing {
				log.FromContext(ctx).Info("Succeeded again", "task", name)
			}
			backoff, next = newBackoff(), wait.Jitter(next, jitter)
		}
		failing = err != nil
		if !k.waitFor(ctx, started, next) {
			return nil
		}
	}
}

// newBackoff returns the delays after failed attempts.
func newBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 5 * time.Second, Factor: 2, Jitter: 0.5, Steps: 8, Cap: 5 * time.Minute}
}

// waitFor waits until the duration has passed since a time. It returns false if
// the context ends earlier.
func (k *Keeper) waitFor(ctx context.Context, since time.Time, duration time.Duration) bool {
	for {
		remaining := duration - computeElapsed(since, k.Now())
		if remaining <= 0 {
			return true
		}
		timer := time.NewTimer(min(remaining, maxWait))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

// computeElapsed returns the time from since to now: the longer of the times by the monotonic
// clock and by the wall clock. The monotonic clock stops while a machine is suspended, and the
// wall clock can be set back. An early renewal does no harm.
func computeElapsed(since, now time.Time) time.Duration {
	// Round(0) removes the monotonic clock.
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// renewToken requests a new token, uses and stores it, and returns the time until the next
// renewal. It does not compare the token's expiry with the agent's clock.
func (k *Keeper) renewToken(ctx context.Context) (time.Duration, error) {
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = k.Namespace, v1alpha1.AgentServiceAccount
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(k.Lifetime / time.Second)),
	}}
	if err := k.Hub.SubResource("token").Create(ctx, account, request); err != nil {
		return 0, fmt.Errorf("request a token of ServiceAccount %s: %w", client.ObjectKeyFromObject(account), err)
	}
	token := request.Status.Token
	k.Credentials.token.Store(&token)
	if err := k.storeChange(ctx, func(r *renewedCredentials) { r.Token = token }); err != nil {
		return 0, err
	}
	log.FromContext(ctx).V(1).Info("Renewed the token for the hub")
	return readLifetime(request) / renewalDivisor, nil
}

// readLifetime returns the lifetime of a new token: the shorter of the lifetime in the hub's
// response and the lifetime in the token.
func readLifetime(answer *authenticationv1.TokenRequest) time.Duration {
	granted := time.Duration(ptr.Deref(answer.Spec.ExpirationSeconds, 0)) * time.Second
	claims, err := parseToken(answer.Status.Token)
	if err != nil || claims.lifetime() <= 0 {
		return granted
	}
	return min(granted, claims.lifetime())
}

// storeChange changes the renewed credentials, in the store first and then in memory.
func (k *Keeper) storeChange(ctx context.Context, change func(*renewedCredentials)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.Credentials.inUse
	change(&next)
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode credentials: %w", err)
	}
	if err := k.Store.Save(ctx, text); err != nil {
		return err
	}
	k.Credentials.inUse = next
	return nil
}

// authorityConfigMap is the ConfigMap in each namespace in which a cluster publishes
// its certificate authority.
const authorityConfigMap = "kube-root-ca.crt"

// followAuthority replaces the certificates in use by the bundle that chooseAuthority returns,
// in the store first and then in the file. It returns the time until the next check.
func (k *Keeper) followAuthority(ctx context.Context) (time.Duration, error) {
	var published corev1.ConfigMap
	name := client.ObjectKey{Namespace: k.Namespace, Name: authorityConfigMap}
	if err := k.Hub.Get(ctx, name, &published); err != nil {
		return 0, fmt.Errorf("get ConfigMap %s: %w", name, err)
	}
	k.mu.Lock()
	adopted := len(k.Credentials.inUse.Authority) > 0
	k.mu.Unlock()
	current, err := os.ReadFile(k.Credentials.authorityFile)
	if err != nil {
		return 0, fmt.Errorf("read the certificate authority in use: %w", err)
	}
	next, err := chooseAuthority(authorityBundles{current: current, adopted: adopted,
		published: []byte(published.Data["ca.crt"])}, func(bundle []byte) error {
		return Verify(ctx, k.Credentials.config, bundle)
	})
	if err != nil || next == nil {
		return authorityInterval, err
	}
	if err := k.storeChange(ctx, func(r *renewedCredentials) { r.Authority = next }); err != nil {
		return 0, err
	}
	if err := replaceFile(k.Credentials.authorityFile, next); err != nil {
		return 0, err
	}
	log.FromContext(ctx).Info("Took over the certificate authority that the hub publishes")
	return authorityInterval, nil
}
