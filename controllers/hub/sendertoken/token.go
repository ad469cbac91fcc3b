// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sendertoken requests the tokens with which a cluster sends series to the
// gate on the hub, and keeps a token in a Secret for the cluster's Prometheus. The
// tokens give no other access.
package sendertoken

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/telemetry"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

const (
	// lifetime is how long a token is valid. A token is renewed after half of its lifetime, so
	// that it stays valid during an outage of the hub for which senders can buffer samples.
	lifetime = 6 * time.Hour
	// requestTimeout bounds a request for a token.
	requestTimeout = 30 * time.Second
	// minRetry and maxRetry are the shortest and the longest wait after a failure.
	minRetry, maxRetry = 5 * time.Second, 5 * time.Minute
	fieldOwner         = "bellwether-agent-sender-token"
)

// Source requests tokens. It is an oauth2.TokenSource.
type Source struct {
	// Hub is a client as the cluster's agent.
	Hub client.Client
	// Namespace of the cluster on the hub.
	Namespace string
}

// Request returns a new token, when it was issued and when it expires. Both
// times are by the hub's clock.
func (s Source) Request(ctx context.Context) (token string, issued, ends time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace,
		Name: v1alpha1.AgentServiceAccount}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{telemetry.Audience}, ExpirationSeconds: ptr.To(int64(lifetime / time.Second))}}
	if err := s.Hub.SubResource("token").Create(ctx, account, request); err != nil {
		return "", time.Time{}, time.Time{}, fmt.Errorf("request a token to send series with: %w", err)
	}
	ends = request.Status.ExpirationTimestamp.Time
	granted := time.Duration(ptr.Deref(request.Spec.ExpirationSeconds, 0)) * time.Second
	return request.Status.Token, ends.Add(-granted), ends, nil
}

// Token implements oauth2.TokenSource.
func (s Source) Token() (*oauth2.Token, error) {
	token, _, ends, err := s.Request(context.Background())
	if err != nil {
		return nil, err
	}
	return &oauth2.Token{AccessToken: token, Expiry: ends}, nil
}

// Publisher keeps a valid token in a Secret.
type Publisher struct {
	Source Source
	// Local is a client of the agent's own cluster, and Secret is the Secret in that cluster.
	// The Secret's namespace must exist.
	Local  client.Client
	Secret types.NamespacedName
}

// Start renews the token until the context ends. It implements manager.Runnable.
func (p *Publisher) Start(ctx context.Context) error {
	backoff := wait.Backoff{Duration: minRetry, Factor: 2, Jitter: 0.5, Steps: 10, Cap: maxRetry}
	for failures := backoff; ; {
		next, err := p.renew(ctx)
		if err != nil {
			next = failures.Step()
			log.FromContext(ctx).Error(err, "Cannot renew the token of the cluster's Prometheus", "secret", p.Secret,
				"retryAfter", next.String())
		} else {
			failures = backoff
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// renew requests a token, writes it into the Secret, and returns how long to wait before the
// next renewal: about half of the token's lifetime.
func (p *Publisher) renew(ctx context.Context) (time.Duration, error) {
	token, issued, ends, err := p.Source.Request(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secret := corev1ac.Secret(p.Secret.Name, p.Secret.Namespace).
		WithLabels(map[string]string{"app.kubernetes.io/managed-by": "bellwether"}).
		WithData(map[string][]byte{slo.SenderTokenKey: []byte(token)})
	if err := p.Local.Apply(ctx, secret, client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
		return 0, fmt.Errorf("apply Secret %s: %w", p.Secret, err)
	}
	return wait.Jitter(max(ends.Sub(issued)/2, minRetry), 0.1), nil
}
