// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// findRecoveryHold returns a hold for every cluster if any cluster keeps an admission that this hub did not make and
// that no person has agreed to continue from. Otherwise it returns nil. Implausibly high revisions do not count.
func findRecoveryHold(in Input) *rollouts.Hold {
	count, lastRecoverable := 0, rollouts.LastRecoverable(in.Installs, in.Resumed)
	for _, install := range in.Installs {
		if !install.Deleting && IsRecovered(install, in.Resumed) && install.Recovered <= lastRecoverable {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	return &rollouts.Hold{Reason: v1alpha1.ReasonRecovered, Message: fmt.Sprintf(
		"the operator was found on %s, where this hub did not install it; resume it with `bellwether operator resume "+
			"%s`",
		phrase.Count(count, "cluster"), in.Operator.Name)}
}

// IsRecovered reports whether an install has an admission that was found on its cluster and is newer than the revision
// that a person agreed to continue from.
func IsRecovered(install rollouts.Install, resumed int64) bool { return install.Recovered > resumed }

// findUnreportedHold returns the hold of a cluster until the agent has reported its admission. Otherwise it
// returns nil.
func findUnreportedHold(installs map[string]rollouts.Install, cluster string) *rollouts.Hold {
	if !installs[cluster].Unreported {
		return nil
	}
	return &rollouts.Hold{Reason: v1alpha1.ReasonReportPending,
		Message: "it is not known yet what the cluster runs, because its agent has not reported on this operator: " +
			"if it has not within a few minutes, check with `bellwether fleet list` that the cluster is online, " +
			"and if it is not, let it join again with `bellwether fleet join`"}
}
