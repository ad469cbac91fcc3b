// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func TestAboutDecision(t *testing.T) {
	for _, test := range []struct {
		decision v1alpha1.Decision
		want     string
	}{
		{v1alpha1.Decision{}, "-"},
		{v1alpha1.Decision{Reason: "ticket 4712"}, "ticket 4712"},
		{v1alpha1.Decision{By: "anna", Reason: "ticket 4712"}, "by anna: ticket 4712"},
		{v1alpha1.Decision{On: "gate sre of wave rest", By: "anna"}, "gate sre of wave rest, by anna"},
		{v1alpha1.Decision{On: "gate sre of wave rest", Reason: "looks good"}, "gate sre of wave rest: looks good"},
	} {
		if got := describeDecision(test.decision); got != test.want {
			t.Errorf("%+v: %q, want %q", test.decision, got, test.want)
		}
	}
}
