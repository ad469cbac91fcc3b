// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
)

// TestPoliciesThatCannotBeRead has a hub that drops packets, one that refuses, and one that answers.
func TestPoliciesThatCannotBeRead(t *testing.T) {
	const unread = "some of the pages below may be tickets, since the hub's PagingPolicies could not be read: "
	for name, tc := range map[string]struct {
		list func(context.Context) error
		want string
		took time.Duration
	}{
		"no answer": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			unread + "no answer within 3s\n", 3 * time.Second},
		"refused":   {func(context.Context) error { return errors.New("go away") }, unread + "go away\n", 0},
		"an answer": {func(context.Context) error { return nil }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				streams, _, _, stderr := genericiooptions.NewTestIOStreams()
				a := NewEnv("bellwether", streams)
				a.Flags.Namespace = new("default")
				a.Connect = func() (client.WithWatch, error) {
					return fake.NewClientBuilder().WithScheme(hub.Scheme).WithInterceptorFuncs(interceptor.Funcs{
						List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList,
							_ ...client.ListOption) error {
							return tc.list(ctx)
						}}).Build(), nil
				}
				begin := time.Now()
				notified := a.NewNotifiedFunc(t.Context())
				if took := time.Since(begin); took != tc.took {
					t.Errorf("it took %s, want %s", took, tc.took)
				}
				if kind := notified(map[string]string{series.Severity: series.Page}); kind != series.Page {
					t.Errorf("people are notified of a %s", kind)
				}
				if got := stderr.String(); got != tc.want {
					t.Errorf("stderr is %q, want %q", got, tc.want)
				}
			})
		})
	}
}
