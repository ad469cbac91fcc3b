// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// listPolicyLinks says which RolloutPolicies bind a rollout, and what they add. The rollout's conditions report a
// policy that is not met.
func listPolicyLinks(r *v1alpha1.OperatorRollout) []Link {
	var links []Link
	for _, a := range r.Status.Policies {
		added := cmp.Or(phrase.OneLine(strings.Join(a.Added, "; ")), "nothing that the strategy does not ask for")
		links = append(links, Link{
			Text: fmt.Sprintf("RolloutPolicy %s adds: %s", a.Name, added),
			Evidence: []Evidence{{Object: readRolloutStatus(r).object, Field: "status.policies[" + a.Name + "]",
				Observed: added}},
		})
	}
	return links
}
