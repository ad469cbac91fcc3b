// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fakeSecrets answers each Get with a Secret or an error, and counts them.
type fakeSecrets struct {
	client.Reader
	value string
	err   error
	gets  int
}

func (f *fakeSecrets) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	f.gets++
	if f.err == nil {
		into.(*corev1.Secret).Data = map[string][]byte{"token": []byte(f.value)}
	}
	return f.err
}

func TestSecretCache(t *testing.T) {
	now := time.Now()
	api := &fakeSecrets{value: "one"}
	cache := newSecretCache(api, func() time.Time { return now })
	get := func() (value, unreadable string) {
		secret := cache.readObjects(t.Context(), kindSecret, "ns", []string{"api"})["api"]
		return string(secret.Data["token"]), secret.Unreadable
	}
	resource := schema.GroupResource{Resource: "secrets"}
	for _, step := range []struct {
		name       string
		change     func()
		value      string
		unreadable string
		gets       int
	}{
		{name: "first", change: func() {}, value: "one", gets: 1},
		{name: "soon after", change: func() { api.value = "two" }, value: "one", gets: 1},
		{name: "later", change: func() { now = now.Add(secretMaxAge) }, value: "two", gets: 2},
		{name: "API server does not answer", change: func() {
			now, api.err = now.Add(secretMaxAge), errors.New("connection refused")
		}, value: "two", gets: 3},
		{name: "for too long", change: func() { now = now.Add(secretRetention) }, unreadable: "connection refused",
			gets: 4},
		{name: "again", change: func() { api.err = nil }, value: "two", gets: 5},
		{name: "permission removed", change: func() {
			now, api.err = now.Add(secretMaxAge), apierrors.NewForbidden(resource, "api", errors.New("no"))
		}, unreadable: "may not read Secret ns/api", gets: 6},
		{name: "no longer used after that", change: func() { api.err = errors.New("connection refused") },
			unreadable: "connection refused", gets: 7},
		{name: "deleted", change: func() { api.err = apierrors.NewNotFound(resource, "api") },
			unreadable: "Secret ns/api does not exist", gets: 8},
	} {
		step.change()
		value, unreadable := get()
		if value != step.value || (unreadable == "") != (step.unreadable == "") ||
			!strings.Contains(unreadable, step.unreadable) || api.gets != step.gets {
			t.Errorf("%s: got %q, %q after %d requests; want %+v", step.name, value, unreadable, api.gets, step)
		}
	}
}
