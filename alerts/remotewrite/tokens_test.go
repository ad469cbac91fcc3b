// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remotewrite

import (
	"context"
	"errors"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestTokens decides what the review of a token means. testbed/telemetry does it with a real API server.
func TestTokens(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, authenticationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	agent := func(namespace string) string { return "system:serviceaccount:" + namespace + ":bellwether-agent" }
	status := func(user string, audiences ...string) authenticationv1.TokenReviewStatus {
		return authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: audiences,
			User: authenticationv1.UserInfo{Username: user}}
	}
	reviews, asked := map[string]authenticationv1.TokenReviewStatus{
		"good":          status(agent("bellwether-prod-eu"), Audience),
		"for the hub":   status(agent("bellwether-prod-eu"), "https://kubernetes.default.svc"),
		"no audiences":  status(agent("bellwether-prod-eu")),
		"no cluster":    status(agent("bellwether-system"), Audience),
		"another's":     status("system:serviceaccount:bellwether-prod-eu:default", Audience),
		"elsewhere":     status(agent("payments"), Audience),
		"no name":       status(agent("bellwether-"), Audience),
		"a person":      status("bellwether-prod-eu:bellwether-agent", Audience),
		"unknown":       {Error: "expired"},
		"expired, says": {Authenticated: false, User: authenticationv1.UserInfo{Username: agent("bellwether-prod-eu")}},
	}, 0
	hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1alpha1.FleetCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "prod-eu"}}).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			review := o.(*authenticationv1.TokenReview)
			asked++
			if review.Spec.Token == "down" {
				return errors.New("the API server is down")
			}
			review.Status = reviews[review.Spec.Token]
			return nil
		}})
	now := time.Unix(0, 0)
	tokens := &Tokens{Hub: hub, Now: func() time.Time { return now }}
	for token := range reviews {
		cluster, err := tokens.Cluster(t.Context(), token)
		if token == "good" {
			if err != nil || cluster != "prod-eu" {
				t.Errorf("%s: %q, %v", token, cluster, err)
			}
			continue
		}
		if !errors.Is(err, ErrUnauthenticated) || cluster != "" {
			t.Errorf("%s: %q, %v", token, cluster, err)
		}
	}
	if _, err := tokens.Cluster(t.Context(), "down"); err == nil || errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a review that fails is the sender's fault: %v", err)
	}
	// A token that was good stays so for a minute, also while the API server is down.
	before := asked
	reviews["good"] = authenticationv1.TokenReviewStatus{}
	now = now.Add(tokenFor - time.Second)
	if cluster, err := tokens.Cluster(t.Context(), "good"); err != nil || cluster != "prod-eu" || asked != before {
		t.Errorf("a known token: %q, %v", cluster, err)
	}
	now = now.Add(2 * time.Second)
	if _, err := tokens.Cluster(t.Context(), "good"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a token that was revoked: %v", err)
	}
}
