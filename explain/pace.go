// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// listPaceLinks says how error budgets slow down a running rollout.
func listPaceLinks(r *v1alpha1.OperatorRollout) []Link {
	pace := r.Status.Pace
	if pace == nil || r.Status.Phase.Ended() {
		return nil
	}
	evidence := phrase.OneLine(pace.Evidence)
	l := Link{Text: fmt.Sprintf("the pace of the rollout is %d %%: %s", pace.Percent, evidence),
		Evidence: []Evidence{{Object: readRolloutStatus(r).object, Field: "status.pace", Observed: evidence,
			Time: pace.At}}}
	switch {
	case pace.Reason != "":
		l.State, l.Reason = Waiting, pace.Reason
	case pace.Percent < 100:
		l.State, l.Reason = Progressing, v1alpha1.ReasonProgressing
	default:
		l.State, l.Check = Healthy, "the error budgets permit the full pace"
	}
	return []Link{l}
}
