// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// recovery holds back every cluster while one of them keeps an admission that this hub
// did not give, and that no person has agreed to go on from.
func recovery(in Input) *rollouts.Hold {
	found, last := 0, rollouts.LastRecoverable(in.Installs, in.Resumed)
	for _, install := range in.Installs {
		if !install.Deleting && IsRecovered(install, in.Resumed) && install.Recovered <= last {
			found++
		}
	}
	if found == 0 {
		return nil
	}
	return &rollouts.Hold{Reason: v1alpha1.ReasonRecovered, Message: fmt.Sprintf(
		"the operator was found on %s, where this hub did not install it; resume it with `bellwether operator resume "+
			"%s`",
		phrase.Count(found, "cluster"), in.Operator.Name)}
}

// IsRecovered tells whether an install has an admission that was found on its cluster,
// and that is newer than what people have agreed to go on from.
func IsRecovered(install rollouts.Install, resumed int64) bool { return install.Recovered > resumed }

// unreported holds a cluster back until it is known what it keeps of the operator.
func unreported(installs map[string]rollouts.Install, cluster string) *rollouts.Hold {
	if !installs[cluster].Unreported {
		return nil
	}
	return &rollouts.Hold{Reason: v1alpha1.ReasonReportPending,
		Message: "it is not known yet what the cluster runs, because its agent has not reported on this operator: " +
			"if it has not within a few minutes, check with `bellwether fleet list` that the cluster is online, " +
			"and if it is not, let it join again with `bellwether fleet join`"}
}
