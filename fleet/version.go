// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/version"
)

// setVersion sets the condition VersionSupported, or removes it if the versions cannot be compared. The condition is
// only a warning: the hub refuses nothing.
func setVersion(in Input, status *v1alpha1.FleetClusterStatus) {
	agent := status.Versions.Agent
	set := func(supported bool, reason, message string) {
		conditions.Set(&status.Conditions, in.Cluster.Generation, v1alpha1.ConditionVersionSupported, supported, reason,
			message)
	}
	skewText := fmt.Sprintf("the agent is version %s and the hub %s, which are more than one minor version apart: ",
		agent, in.HubVersion)
	switch version.Compare(in.HubVersion, agent) {
	case version.SkewSupported:
		set(true, v1alpha1.ReasonSucceeded, fmt.Sprintf("the agent is version %s and the hub %s", agent, in.HubVersion))
	case version.SkewAgentOld:
		set(false, v1alpha1.ReasonAgentTooOld,
			skewText+"upgrade the agent with `bellwether fleet join "+in.Cluster.Name+
				"`, or with the tool that installs its chart")
	case version.SkewHubOld:
		set(false, v1alpha1.ReasonHubTooOld,
			skewText+"upgrade the hub with `bellwether install hub`, or with the tool "+
				"that installs its chart")
	case version.SkewUnknown:
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionVersionSupported)
	}
}
