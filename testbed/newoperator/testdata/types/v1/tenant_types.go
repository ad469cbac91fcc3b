package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TenantSpec is what is wanted.
type TenantSpec struct {
	// Owner is the team that the tenant belongs to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the owner cannot be changed"
	Owner string `json:"owner"`

	// Quota is how many pods the tenant may have.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Quota int32 `json:"quota,omitempty"`

	// BackupSchedule says when the tenant is backed up, in the format of cron.
	// +optional
	BackupSchedule string `json:"backupSchedule,omitempty"`

	// RestoreFrom names a backup to restore.
	// +optional
	RestoreFrom string `json:"restoreFrom,omitempty"`
}

// TenantStatus is what was seen.
type TenantStatus struct {
	// Conditions has the condition Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`

// Tenant is a team's share of a cluster.
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TenantSpec   `json:"spec"`
	Status TenantStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// TenantList is a list of tenants.
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Tenant `json:"items"`
}
