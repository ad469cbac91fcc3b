// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OperatorBackup is a copy of the custom resources of one operator on one cluster, in a store. It is in the cluster's
// namespace on the hub. The cluster's agent takes the backup, reads it back, and reports its content.
//
// Its spec cannot be changed. If an OperatorBackup is deleted, the backup stays in the store. The agent removes both
// according to the retention of the ManagedOperator.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ob,categories=bellwether
// +kubebuilder:printcolumn:name="Operator",type=string,JSONPath=`.spec.operator.name`
// +kubebuilder:printcolumn:name="Trigger",type=string,JSONPath=`.spec.trigger`
// +kubebuilder:printcolumn:name="Bundle",type=string,JSONPath=`.status.bundle`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.status.bytes`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OperatorBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an OperatorBackup cannot be changed: make another one"
	Spec OperatorBackupSpec `json:"spec"`
	// +optional
	Status OperatorBackupStatus `json:"status,omitempty"`
}

// BackupTrigger is why a backup is taken.
//
// +kubebuilder:validation:Enum=Manual;Upgrade;Schedule
type BackupTrigger string

const (
	// BackupTriggerManual means that a person requested the backup. Retention does not remove it.
	BackupTriggerManual BackupTrigger = "Manual"
	// BackupTriggerUpgrade means that the backup is taken before an upgrade, which waits for it.
	BackupTriggerUpgrade BackupTrigger = "Upgrade"
	// BackupTriggerSchedule means that the backup is due by the schedule.
	BackupTriggerSchedule BackupTrigger = "Schedule"
)

// OperatorBackupSpec defines what is saved, and where.
//
// +kubebuilder:validation:XValidation:rule="(self.trigger == 'Upgrade') == has(self.upgrade)",message="upgrade is set for the trigger Upgrade, and for no other"
type OperatorBackupSpec struct {
	// Operator names the ManagedOperator whose custom resources are saved.
	Operator OperatorReference `json:"operator"`

	// Trigger is why the backup is taken.
	// +kubebuilder:default=Manual
	// +optional
	Trigger BackupTrigger `json:"trigger,omitempty"`

	// Upgrade is the upgrade that waits for the backup.
	// +optional
	Upgrade *BackupUpgrade `json:"upgrade,omitempty"`

	BackupSettings `json:",inline"`
}

// BackupUpgrade is an upgrade from one bundle to the next bundle of its path.
type BackupUpgrade struct {
	// Revision and Hash identify the admission.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999999999
	Revision int64 `json:"revision"`
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash"`
	// From is the bundle that is installed when the backup is taken.
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from"`
	// To is the bundle that is installed after the backup.
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to"`
}

// BackupSettings define where and how backups are stored.
//
// +kubebuilder:validation:XValidation:rule="!has(self.secrets) || (has(self.recipients) && size(self.recipients) > 0)",message="a backup with Secrets has to be encrypted: set recipients"
type BackupSettings struct {
	// Store is the URL of the folder that backups are written to, such as s3://bucket/prefix?region=eu-central-1 or
	// file:///var/lib/bellwether/backups. The agent writes only to stores that its flag --backup-store allows. Empty
	// means the first of them.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || self.startsWith('s3://') || self.startsWith('file:///')",message="store must be a URL that begins with s3:// or file:///"
	// +optional
	Store string `json:"store,omitempty"`

	// CredentialsSecret names a Secret in the agent's namespace on its cluster with the keys accessKeyID and
	// secretAccessKey, and optionally sessionToken. Empty means the credentials of the agent's environment.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	CredentialsSecret string `json:"credentialsSecret,omitempty"`

	// Recipients are the public keys of age (age1...) that backups are encrypted for. If empty, backups are not
	// encrypted. Clusters do not need the private keys; a restore does.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:Pattern=`^age1[a-z0-9]+$`
	// +listType=set
	// +optional
	Recipients []string `json:"recipients,omitempty"`

	// MaxSize is the maximum size of one backup in the store. A larger backup fails and is removed from the store.
	// Default 1Gi.
	// +optional
	MaxSize *resource.Quantity `json:"maxSize,omitempty"`

	// Secrets selects Secrets by their labels, in all namespaces, that are saved with the custom resources. If it is
	// not set, no Secret is saved. The backup must be encrypted.
	// +optional
	Secrets *metav1.LabelSelector `json:"secrets,omitempty"`
}

// BackupPolicy defines when the custom resources of an operator are saved, and how long backups are kept.
type BackupPolicy struct {
	BackupSettings `json:",inline"`

	// BeforeUpgrade defines before which upgrades a backup is taken. The upgrade waits until the backup was read back
	// and is complete.
	// +kubebuilder:default=WhenNeeded
	// +optional
	BeforeUpgrade BeforeUpgrade `json:"beforeUpgrade,omitempty"`

	// Schedule is when additional backups are taken, in the format of cron: for example "0 3 * * *" or "@daily". The
	// time zone is the agent's, unless the schedule begins with CRON_TZ=, such as "CRON_TZ=Europe/Berlin 0 3 * * *".
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// Retention defines which backups are removed. Backups that people requested are never removed.
	// +optional
	Retention BackupRetention `json:"retention,omitempty"`
}

// BeforeUpgrade defines before which upgrades a backup is taken.
//
// +kubebuilder:validation:Enum=Never;WhenNeeded;Always
type BeforeUpgrade string

const (
	// BeforeUpgradeNever takes no backup before an upgrade.
	BeforeUpgradeNever BeforeUpgrade = "Never"
	// BeforeUpgradeWhenNeeded takes a backup unless the catalog says that the upgrade can be rolled back in place.
	BeforeUpgradeWhenNeeded BeforeUpgrade = "WhenNeeded"
	// BeforeUpgradeAlways takes a backup before every upgrade.
	BeforeUpgradeAlways BeforeUpgrade = "Always"
)

// BackupRetention defines which backups are removed. The newest complete backup of an operator is always kept.
type BackupRetention struct {
	// Keep is how many backups of an operator are kept on each cluster.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Keep *int32 `json:"keep,omitempty"`

	// MaxAge is the age at which a backup is removed even if there are no more than Keep.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h')",message="maxAge must be at least 1h"
	// +optional
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
}

// OperatorBackupStatus is the agent's report about a backup.
type OperatorBackupStatus struct {
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Reconciling, Stalled. Ready is True once the backup was read
	// back from the store and is complete.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.message) <= 4096)",message="a condition's message may have 4096 characters at most"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Location is the URL of the folder that has the backup.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Location string `json:"location,omitempty"`

	// TakenAt is when the first object was read.
	// +optional
	TakenAt *metav1.Time `json:"takenAt,omitempty"`
	// VerifiedAt is when the backup was read back and found complete.
	// +optional
	VerifiedAt *metav1.Time `json:"verifiedAt,omitempty"`

	// Bundle and Version are the bundle and version of the installed operator.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Bundle string `json:"bundle,omitempty"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`

	// Objects is how many objects the backup has, and Bytes its size in the store.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Objects int64 `json:"objects,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Bytes int64 `json:"bytes,omitempty"`

	// Manifest is the SHA-256 of the backup's manifest, which has the checksums of
	// everything else.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Manifest string `json:"manifest,omitempty"`

	// Encrypted is true if an identity is needed to read the backup.
	// +optional
	Encrypted bool `json:"encrypted,omitempty"`

	// Resources counts the objects of each resource: the first 100 resources.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Resources []BackedUpResource `json:"resources,omitempty"`
}

// BackedUpResource is a resource in a backup.
type BackedUpResource struct {
	// Name is the plural and the group, such as echoservers.echo.example.com.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Version is the storage version, in which the objects were saved.
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Objects int64 `json:"objects"`
}

// OperatorBackupList is a list of OperatorBackups.
//
// +kubebuilder:object:root=true
type OperatorBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatorBackup `json:"items"`
}
