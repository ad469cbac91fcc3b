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
	// renewedAfter is the part of a token's life after which it is renewed. An agent that is switched off can rely
	// on the rest of it.
	renewedAfter = 4
	// jitter keeps agents that started together from renewing together.
	jitter = 0.2
	// authorityEvery is how often the hub's certificate authority is looked at.
	authorityEvery = time.Hour
	// maxWait bounds how long a clock that was set, or a machine that was suspended, goes unnoticed.
	maxWait = time.Minute
	// maxRequest bounds each request.
	maxRequest = 30 * time.Second
)

// Keeper renews credentials until its context ends. It is a manager.Runnable.
type Keeper struct {
	Credentials *Credentials
	Store       Store
	// Hub is a client with the credentials.
	Hub client.Client
	// Namespace of the cluster on the hub.
	Namespace string
	// Lifetime of the tokens that are requested. The hub may shorten it.
	Lifetime time.Duration
	// Failed is told of each attempt that failed.
	Failed func(error)
	// Now is the clock of the agent's machine.
	Now func() time.Time

	mu sync.Mutex
}

// Start renews the token at once, since nobody knows how old it is, and then after a part of its life each time.
func (k *Keeper) Start(ctx context.Context) error {
	if !k.Credentials.renewable {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.repeat(ctx, "renew the token for the hub", k.renew) })
	if k.Credentials.authority != "" {
		group.Go(func() error {
			return k.repeat(ctx, "follow the hub's certificate authority", k.followAuthority)
		})
	}
	return group.Wait()
}

// repeat does a task, and again after as long as the task says. A task that failed is retried with growing delays.
func (k *Keeper) repeat(ctx context.Context, what string, task func(context.Context) (time.Duration, error)) error {
	backoff := newBackoff()
	failing := false
	for {
		began := k.Now()
		once, cancel := context.WithTimeout(ctx, maxRequest)
		next, err := task(once)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was told to stop
		case err != nil:
			err = fmt.Errorf("%s: %w", what, err)
			if !failing {
				log.FromContext(ctx).Error(err, "Retrying")
			}
			k.Failed(err)
			next = backoff.Step()
		default:
			if failing {
				log.FromContext(ctx).Info("Succeeded again", "task", what)
			}
			backoff, next = newBackoff(), wait.Jitter(next, jitter)
		}
		failing = err != nil
		if !k.wait(ctx, began, next) {
			return nil
		}
	}
}

func newBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 5 * time.Second, Factor: 2, Jitter: 0.5, Steps: 8, Cap: 5 * time.Minute}
}

// wait returns true once a time has passed, and false if the context ends before.
func (k *Keeper) wait(ctx context.Context, since time.Time, long time.Duration) bool {
	for {
		left := long - elapsed(since, k.Now())
		if left <= 0 {
			return true
		}
		timer := time.NewTimer(min(left, maxWait))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

// elapsed is what the faster clock says. The monotonic one stops while a machine is suspended, and the other one may
// be set back; to renew too early does no harm.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// renew returns when the new token is to be renewed. What the agent's clock says about its end does not matter.
func (k *Keeper) renew(ctx context.Context) (time.Duration, error) {
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
	if err := k.update(ctx, func(r *renewed) { r.Token = token }); err != nil {
		return 0, err
	}
	log.FromContext(ctx).V(1).Info("Renewed the token for the hub")
	return lifetime(request) / renewedAfter, nil
}

// lifetime is what the hub says in its answer, or in the token if that is less.
func lifetime(answer *authenticationv1.TokenRequest) time.Duration {
	said := time.Duration(ptr.Deref(answer.Spec.ExpirationSeconds, 0)) * time.Second
	claims, err := parse(answer.Status.Token)
	if err != nil || claims.lifetime() <= 0 {
		return said
	}
	return min(said, claims.lifetime())
}

// update stores what changes.
func (k *Keeper) update(ctx context.Context, change func(*renewed)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.Credentials.now
	change(&next)
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode credentials: %w", err)
	}
	if err := k.Store.Save(ctx, text); err != nil {
		return err
	}
	k.Credentials.now = next
	return nil
}

// authorityConfigMap is what each cluster publishes its certificate authority in, in each namespace.
const authorityConfigMap = "kube-root-ca.crt"

// followAuthority takes over the certificates that the hub publishes, if those in use are the hub's own.
func (k *Keeper) followAuthority(ctx context.Context) (time.Duration, error) {
	var published corev1.ConfigMap
	name := client.ObjectKey{Namespace: k.Namespace, Name: authorityConfigMap}
	if err := k.Hub.Get(ctx, name, &published); err != nil {
		return 0, fmt.Errorf("get ConfigMap %s: %w", name, err)
	}
	k.mu.Lock()
	adopted := len(k.Credentials.now.Authority) > 0
	k.mu.Unlock()
	current, err := os.ReadFile(k.Credentials.authority)
	if err != nil {
		return 0, fmt.Errorf("read the certificate authority in use: %w", err)
	}
	next, err := chooseAuthority(authority{current: current, adopted: adopted,
		published: []byte(published.Data["ca.crt"])}, func(bundle []byte) error {
		return Verify(ctx, k.Credentials.config, bundle)
	})
	if err != nil || next == nil {
		return authorityEvery, err
	}
	if err := k.update(ctx, func(r *renewed) { r.Authority = next }); err != nil {
		return 0, err
	}
	if err := replaceFile(k.Credentials.authority, next); err != nil {
		return 0, err
	}
	log.FromContext(ctx).Info("Took over the certificate authority that the hub publishes")
	return authorityEvery, nil
}
