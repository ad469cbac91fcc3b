// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy

import "github.com/bellwether-dev/bellwether/apis/v1alpha1"

// listStorageMigration returns the remedies for storage migrations.
func listStorageMigration() []Remedy {
	skip := do("To leave the objects as they are, set spec.storageMigration of the ManagedOperator to Manual.")
	return []Remedy{
		{Reason: v1alpha1.ReasonStorageMigrationForbidden, Means: "The agent is not permitted to store custom " +
			"resources again, or to write status.storedVersions of their definition.", Do: []Action{
			do("Have the owner of the cluster grant what the message names: a ClusterRole with the label " +
				"bellwether.dev/aggregate-to-agent-migration=true."), skip}, Next: retry},
		{Reason: v1alpha1.ReasonStorageMigrationFailed, Means: "Custom resources could not be stored again. The " +
			"message names the first of them, with the errors.", Do: []Action{
			do("Correct these objects, or what refuses to have them written, such as a webhook."), skip},
			Next: "The objects stay as they are, and old versions stay in status.storedVersions. " + retry},
	}
}
