// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
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
			if review.Spec.Token == token("down") {
				return errors.New("the API server is down")
			}
			for name, status := range reviews {
				if review.Spec.Token == token(name) {
					review.Status = status
				}
			}
			return nil
		}})
	now := time.Unix(0, 0)
	tokens := &Tokens{Hub: hub, Now: func() time.Time { return now }}
	ask := func(name, address string) (string, error) { return tokens.Cluster(t.Context(), token(name), address) }
	for name := range reviews {
		cluster, err := ask(name, name)
		if name == "good" {
			if err != nil || cluster != "prod-eu" {
				t.Errorf("%s: %q, %v", name, cluster, err)
			}
			continue
		}
		if !errors.Is(err, ErrUnauthenticated) || cluster != "" {
			t.Errorf("%s: %q, %v", name, cluster, err)
		}
	}
	// A token that was invalid is treated as invalid for a minute without another review.
	before := asked
	for name := range reviews {
		if _, err := ask(name, "again"); name != "good" && !errors.Is(err, ErrUnauthenticated) || asked != before {
			t.Errorf("%s: %v, after %d more reviews", name, err, asked-before)
		}
	}
	if _, err := ask("down", "a"); err == nil || errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a review that fails is the sender's fault: %v", err)
	}
	// A token that was good stays so for a minute, also while the API server is down.
	before = asked
	reviews["good"] = authenticationv1.TokenReviewStatus{}
	now = now.Add(tokenLifetime - time.Second)
	if cluster, err := ask("good", "a"); err != nil || cluster != "prod-eu" || asked != before {
		t.Errorf("a known token: %q, %v", cluster, err)
	}
	now = now.Add(2 * time.Second)
	if _, err := ask("good", "a"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a token that was revoked: %v", err)
	}
}

// token returns a token that an agent with a name could have.
func token(name string) string {
	return tokenWith(`"sub":"system:serviceaccount:bellwether-prod-eu:bellwether-agent","aud":["` + Audience +
		`"],"exp":4102444800,"jti":"` + name + `"`)
}

func tokenWith(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte("{"+claims+"}")) + "." + part([]byte("signature"))
}

// TestTokensThatCannotBe checks that tokens whose claims are not an agent's are not reviewed.
func TestTokensThatCannotBe(t *testing.T) {
	tokens := &Tokens{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }} // no API server
	const agent, audience, ends = `"sub":"system:serviceaccount:bellwether-prod-eu:bellwether-agent"`,
		`"aud":["` + Audience + `"]`, `"exp":1800000001`
	for name, text := range map[string]string{
		"rubbish":          "x",
		"three rubbish":    "x.y.z",
		"no JSON":          "e30.x.y",
		"long":             token(strings.Repeat("x", 1<<20)),
		"another audience": tokenWith(agent + `,"aud":["https://kubernetes.default.svc"],` + ends),
		"no audience":      tokenWith(agent + `,` + ends),
		"another account":  tokenWith(`"sub":"system:serviceaccount:default:default",` + audience + `,` + ends),
		"expired":          tokenWith(agent + `,` + audience + `,"exp":1799999999`),
		"for ever":         tokenWith(agent + `,` + audience),
		"a number":         tokenWith(`"sub":7,` + audience + `,` + ends),
	} {
		cluster, err := tokens.Cluster(t.Context(), text, "a")
		if !errors.Is(err, ErrUnauthenticated) || cluster != "" {
			t.Errorf("%s: %q, %v", name, cluster, err)
		}
	}
}

// TestAddressesAreLimited checks that a sender of many invalid tokens gets no reviews for some
// time, and does not block senders with tokens that are already reviewed, or other senders.
func TestAddressesAreLimited(t *testing.T) {
	now, asked := time.Unix(1_800_000_000, 0), 0
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, authenticationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1alpha1.FleetCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "prod-eu"}}).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			asked++
			if review := o.(*authenticationv1.TokenReview); review.Spec.Token == token("good") {
				agent := "system:serviceaccount:bellwether-prod-eu:bellwether-agent"
				review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{Audience},
					User: authenticationv1.UserInfo{Username: agent}}
			}
			return nil
		}})
	tokens := &Tokens{Hub: hub, Now: func() time.Time { return now }}
	ask := func(name, address string) error {
		_, err := tokens.Cluster(t.Context(), token(name), address)
		return err
	}
	if err := ask("good", "1"); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		_ = ask(fmt.Sprint(i), "1")
	}
	if asked != 1+maxFailures {
		t.Errorf("%d reviews", asked)
	}
	if err := ask("other", "1"); !errors.Is(err, errTooMany) {
		t.Errorf("one more: %v", err)
	}
	if err := ask("good", "1"); err != nil {
		t.Errorf("a token that is known: %v", err)
	}
	if err := ask("new", "2"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("another address: %v", err)
	}
	now = now.Add(2 * time.Second)
	if err := ask("other", "1"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("later: %v", err)
	}
	now = now.Add(2 * tokenLifetime)
	for i := range maxFailures {
		_ = ask(fmt.Sprint("again", i), "1")
		_ = ask(fmt.Sprint("again", i), fmt.Sprintf("2001:db8:0:1::%d", i))
	}
	if err := ask("other", "1"); !errors.Is(err, errTooMany) {
		t.Errorf("again one more: %v", err)
	}
	if err := ask("good", "1"); err != nil {
		t.Errorf("a token that was known: %v", err)
	}
	if err := ask("other", "2001:db8:0:1::ff"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("known tokens count for nobody: %v", err)
	}
	for i := range maxFailures {
		_ = ask(fmt.Sprint("sixth", i), fmt.Sprintf("2001:db8:0:1::%d", i))
	}
	if err := ask("more", "2001:db8:0:1::ff"); !errors.Is(err, errTooMany) {
		t.Errorf("one more of a network: %v", err)
	}
	if err := ask("more", "2001:db8:0:2::ff"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("another network: %v", err)
	}
}
