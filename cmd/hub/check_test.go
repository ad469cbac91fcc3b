// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/cmd/internal/startup"
)

// TestCheckNeedsALeaderThatRenews verifies that the holder of a Lease that is
// not renewed is not a leader.
func TestCheckNeedsALeaderThatRenews(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		holder string
		renews bool
		want   error
	}{
		"a leader":           {holder: "hub-1", renews: true},
		"a dead leader":      {holder: "hub-1", want: errNotRenewed},
		"nobody":             {want: errNoLeader},
		"nobody, who renews": {renews: true, want: errNoLeader},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				scheme, err := startup.NewScheme()
				if err != nil {
					t.Fatal(err)
				}
				lease := &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: electionLease},
					Spec: coordinationv1.LeaseSpec{HolderIdentity: &test.holder,
						RenewTime: ptr.To(metav1.NewMicroTime(time.Now()))},
				}
				c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(lease).Build()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if test.renews {
					time.AfterFunc(10*time.Second, func() {
						if err := c.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
							t.Error(err)
						}
						lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now()))
						if err := c.Update(ctx, lease); err != nil {
							t.Error(err)
						}
					})
				}
				var said []string
				err = runChecks(ctx, c, "system", func(text string) { said = append(said, text) })
				if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
					t.Errorf("it ends with %v, want %v", err, test.want)
				}
				want := []string{"✓ the API server serves FleetClusters", "✓ a replica of the hub leads"}
				if test.want != nil {
					want = want[:1]
				}
				if !slices.Equal(said, want) {
					t.Errorf("it says %q", said)
				}
			})
		})
	}
}

// deadReader answers no request until the context ends.
type deadReader struct{ client.Reader }

func (deadReader) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestCheckFailsWithoutAnAnswer verifies that an API server that never answers fails the check.
func TestCheckFailsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := runChecks(ctx, deadReader{}, "", func(text string) { t.Errorf("it reports %q", text) })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends with %v, want %v", err, context.DeadlineExceeded)
		}
	})
}
