// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestRevokedAccessEnds revokes the access of an agent that requests new tokens all the time, and of one whose cluster
// is removed and joins again at once. The API server accepts their tokens for some seconds more.
func TestRevokedAccessEnds(t *testing.T) {
	h := start(t)
	for name, revoke := range map[string]func(*v1alpha1.FleetCluster){
		"revoked-renews": func(c *v1alpha1.FleetCluster) { must(t, h.Delete(t.Context(), accountOf(c))) },
		"removed-renews": func(c *v1alpha1.FleetCluster) {
			must(t, h.Delete(t.Context(), c))
			h.gone(t, c)
			again := fleetCluster(c.Name)
			must(t, h.Create(t.Context(), again))
			t.Cleanup(func() { h.sweep(again) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := fleetCluster(name)
			agent := h.join(t, cluster)
			// The API server remembers the token.
			must(t, agent.Create(t.Context(), &authenticationv1.SelfSubjectReview{}))
			revoke(cluster)
			eventually(t, func() error {
				request := &authenticationv1.TokenRequest{}
				err := agent.SubResource("token").Create(t.Context(), accountOf(cluster), request)
				switch {
				case err == nil:
					t.Fatal("an agent whose access was revoked got a new token")
				case !apierrors.IsUnauthorized(err):
					return fmt.Errorf("%w: the answer to a request for a token is %q", errNotYet,
						apierrors.ReasonForError(err))
				}
				return nil
			})

			account := accountOf(cluster)
			eventually(t, func() error { return h.Get(t.Context(), client.ObjectKeyFromObject(account), account) })
			joined := h.as(t, h.agentConfig(t, cluster))
			eventually(t, func() error {
				return joined.SubResource("token").Create(t.Context(), accountOf(cluster),
					&authenticationv1.TokenRequest{})
			})
		})
	}
}
