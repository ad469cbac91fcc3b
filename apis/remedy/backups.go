// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy

import "github.com/bellwether-dev/bellwether/apis/v1alpha1"

// listBackup returns the remedies for backups.
func listBackup() []Remedy {
	look := run("Show the backups of the operator", "bellwether backup list --cluster CLUSTER --operator OPERATOR")
	skip := do("To upgrade without a backup, set spec.backup.beforeUpgrade of the ManagedOperator to Never.")
	return []Remedy{
		{Reason: v1alpha1.ReasonBackupPending, Means: "The upgrade waits for a backup of the operator's custom " +
			"resources.", Do: []Action{look},
			Next: "The upgrade goes on as soon as the backup was read back and is complete."},
		{Reason: v1alpha1.ReasonBackupForbidden, Means: "The agent is not permitted to read the custom resources " +
			"that it must save.", Do: []Action{
			do("Have the owner of the cluster grant what the message names: a ClusterRole with the label " +
				"bellwether.dev/aggregate-to-agent-backup=true."), skip}, Next: retry},
		{Reason: v1alpha1.ReasonBackupStoreUnavailable, Means: "The store of the backup cannot be reached or is " +
			"full, or the agent is not permitted to use it.", Do: []Action{
			do("Check the store, its credentials and its free space, and that the flag --backup-store of the agent " +
				"allows it."), skip}, Next: retry},
		{Reason: v1alpha1.ReasonBackupTooLarge, Means: "The backup takes more of the store than it may.", Do: []Action{
			do("Raise spec.backup.maxSize of the ManagedOperator."), skip},
			Next: "Nothing of the backup is left in the store. It is tried again without any further action."},
		{Reason: v1alpha1.ReasonBackupDamaged, Means: "What was read from the store is not what was written to it.",
			Do: []Action{do("Find out what changes files in the store. Do not rely on this backup.")}, Next: retry},
		{Reason: v1alpha1.ReasonBackupFailed, Means: "The backup could not be taken, for the cause in the message.",
			Do: []Action{do("Correct what the message names."), skip}, Next: retry},
	}
}
