// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy

import "github.com/bellwether-dev/bellwether/apis/v1alpha1"

// listRollback returns the remedies for rollbacks to an older version.
func listRollback() []Remedy {
	show := run("Show the rollout that takes the clusters back", "bellwether rollout get OPERATOR")
	return []Remedy{
		{Reason: v1alpha1.ReasonRolledBack, Means: "The rollout was ended, and the clusters that it admitted are " +
			"taken back to what they ran before.", Do: []Action{show}},
		{Reason: v1alpha1.ReasonRollingBack, Means: "Clusters are being taken back to what they ran before.",
			Next: "OLM installs the older version in the place of the newer one. The operator's Deployments and " +
				"custom resources stay."},
		{Reason: v1alpha1.ReasonVersionHeld, Means: "The wanted version was rolled back, and is held: no cluster is " +
			"brought to it or through it. Where only settings had been changed, these are held at that version, " +
			"whatever becomes of channel and catalog.", Do: []Action{
			do("Set spec.version of the ManagedOperator to a corrected version, publish one in its range, or correct " +
				"spec.install where settings are held."),
			run("If what is held is good, release the hold", "bellwether operator release-hold OPERATOR VERSION")}},
		{Reason: v1alpha1.ReasonRollbackNeedsBackup, Means: "Going back would lose data of custom resources, and " +
			"there is no verified backup of them. Nothing was changed.", Do: []Action{
			do("Publish a corrected version that is newer, and set it in spec.version of the ManagedOperator."),
			run("If the data may be lost, go back all the same",
				"bellwether rollout rollback ROLLOUT --reason TEXT --force")}},
		{Reason: v1alpha1.ReasonRollbackImpossible, Means: "The older version cannot work with what the newer one " +
			"left, or the API server would refuse it. Nothing was changed.", Do: []Action{
			do("Publish a corrected version that is newer, and set it in spec.version of the ManagedOperator.")}},
	}
}
