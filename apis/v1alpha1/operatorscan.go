// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OperatorScan lists the operators that OLM runs on a cluster, whatever installed them. The cluster's namespace on
// the hub has one OperatorScan, which the hub creates. The agent writes its status when the list has changed. It has
// no spec. `bellwether fleet scan` shows the scans of all clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=oscan,categories=bellwether
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels.bellwether\.dev/cluster`
// +kubebuilder:printcolumn:name="OLM",type=string,JSONPath=`.status.olm`
// +kubebuilder:printcolumn:name="Operators",type=integer,JSONPath=`.status.counts.operators`
// +kubebuilder:printcolumn:name="Managed",type=integer,JSONPath=`.status.counts.managed`
// +kubebuilder:printcolumn:name="Changed",type=date,JSONPath=`.status.observedAt`
// +kubebuilder:printcolumn:name="Not read",type=string,JSONPath=`.status.notRead`,priority=1
type OperatorScan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Status OperatorScanStatus `json:"status,omitempty"`
}

// OLMPresence says whether a cluster serves the API of OLM v0.
//
// +kubebuilder:validation:Enum=Served;NotServed
type OLMPresence string

const (
	// OLMServed means that the cluster serves the API.
	OLMServed OLMPresence = "Served"
	// OLMNotServed means that the cluster does not serve the API, so that no operator was searched.
	OLMNotServed OLMPresence = "NotServed"
)

// OperatorScanStatus is what the agent found. It has at most 64 KiB as JSON: what does not fit is counted
// in truncated.
type OperatorScanStatus struct {
	// ObservedAt is when the agent first observed this status. While the cluster is online, the status has not
	// changed since. Absent if no agent has reported yet.
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`

	// OLM says whether the cluster serves the API of OLM v0.
	// +optional
	OLM OLMPresence `json:"olm,omitempty"`

	// NotRead is why a part of the status could not be read recently: that part is from the last successful read.
	// Empty while everything can be read.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	NotRead string `json:"notRead,omitempty"`

	// Counts are the counts of everything that was found, before the list was truncated.
	// +optional
	Counts ScanCounts `json:"counts,omitempty"`

	// Operators are the Subscriptions with the CSVs that they installed, and the CSVs without a Subscription;
	// sorted by namespace and name. They do not include copies that OLM makes of a CSV in other namespaces, and
	// OLM's own CSV.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +optional
	Operators []FoundOperator `json:"operators,omitempty"`

	// Namespaces are the namespaces of the operators, with OLM's objects for the namespace as a whole.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +optional
	Namespaces []FoundNamespace `json:"namespaces,omitempty"`

	// CatalogSources of all namespaces, by namespace and name.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	CatalogSources []FoundCatalogSource `json:"catalogSources,omitempty"`

	// OwnerlessDefinitions are CustomResourceDefinitions that OLM made and no CSV owns: their operator was removed,
	// and their objects may still exist.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	OwnerlessDefinitions []string `json:"ownerlessDefinitions,omitempty"`

	// Truncated counts what was found and is not listed; absent if everything is listed.
	// +optional
	Truncated *ScanTruncation `json:"truncated,omitempty"`
}

// ScanCounts counts operators of one cluster.
type ScanCounts struct {
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Operators int32 `json:"operators"`
	// Managed are the operators whose Subscription Bellwether writes.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Managed int32 `json:"managed"`
}

// ScanTruncation counts what a scan does not list.
type ScanTruncation struct {
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Operators int32 `json:"operators,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Namespaces int32 `json:"namespaces,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	CatalogSources int32 `json:"catalogSources,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	OwnerlessDefinitions int32 `json:"ownerlessDefinitions,omitempty"`
	// Details counts entries of lists within the listed objects, such as definitions of an operator, and texts that
	// were truncated.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Details int32 `json:"details,omitempty"`
}

// FoundOperator is an operator in OLM: a Subscription, a CSV, or both.
type FoundOperator struct {
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Subscription is absent for a CSV that no Subscription has installed.
	// +optional
	Subscription *FoundSubscription `json:"subscription,omitempty"`

	// CSV is the CSV that the Subscription has installed, or is about to install. Absent if there is none.
	// +optional
	CSV *FoundCSV `json:"csv,omitempty"`

	// Others are further CSVs of the same upgrade that still exist: a CSV that CSV replaces, or that replaces it.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Others []FoundVersion `json:"others,omitempty"`

	// Managed is true if Bellwether created the Subscription, or has taken it over.
	// +optional
	Managed bool `json:"managed,omitempty"`

	// Operator is the ManagedOperator that manages it.
	// +optional
	Operator *OperatorReference `json:"operator,omitempty"`
}

// FoundSubscription is a Subscription.
type FoundSubscription struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=253
	Package string `json:"package"`
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Channel string `json:"channel,omitempty"`
	// Source and SourceNamespace name the CatalogSource.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Source string `json:"source,omitempty"`
	// +kubebuilder:validation:MaxLength=63
	// +optional
	SourceNamespace string `json:"sourceNamespace,omitempty"`
	// Approval of InstallPlans: Manual or Automatic.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Approval string `json:"approval,omitempty"`
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StartingCSV string `json:"startingCSV,omitempty"`

	// Config are the fields of spec.config that are set.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Config []string `json:"config,omitempty"`
	// ConfigNotSupported are the fields of Config that a ManagedOperator cannot set.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	ConfigNotSupported []string `json:"configNotSupported,omitempty"`
	// Settings are the values of the fields that a ManagedOperator can set, as the JSON of an OperatorConfig; empty
	// if they have more than 4096 characters.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Settings string `json:"settings,omitempty"`

	// InstalledCSV and CurrentCSV are from OLM's status: the installed CSV, and the CSV that the Subscription is
	// about to install.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	InstalledCSV string `json:"installedCSV,omitempty"`
	// +kubebuilder:validation:MaxLength=253
	// +optional
	CurrentCSV string `json:"currentCSV,omitempty"`
	// InstallPlan is the last InstallPlan that OLM made for the Subscription.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	InstallPlan string `json:"installPlan,omitempty"`
	// NotResolved is why OLM finds no version to install, or cannot unpack it; empty otherwise.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	NotResolved string `json:"notResolved,omitempty"`

	// Dependency is true if OLM created the Subscription because another operator needs the package.
	// +optional
	Dependency bool `json:"dependency,omitempty"`
	// GitOps is the tool that writes the Subscription from a repository or a release, by its labels and annotations,
	// such as "Argo CD (team/echo)". Empty if there are no such labels and annotations.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	GitOps string `json:"gitOps,omitempty"`
	// Writers are the field managers that own fields of the spec.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Writers []string `json:"writers,omitempty"`
	// Finalizers prevent the deletion of the Subscription.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Finalizers []string `json:"finalizers,omitempty"`
	// Deleting is true if the Subscription was deleted, and its finalizers keep it.
	// +optional
	Deleting bool `json:"deleting,omitempty"`
}

// FoundCSV is a ClusterServiceVersion.
type FoundCSV struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Phase string `json:"phase,omitempty"`
	// Reason and Message are from OLM's status, unless the phase is Succeeded.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Reason string `json:"reason,omitempty"`
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Replaces string `json:"replaces,omitempty"`

	// Owned are the CustomResourceDefinitions that the CSV owns.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Owned []FoundDefinition `json:"owned,omitempty"`
	// Missing are the names of the owned definitions that are not on the cluster.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Missing []string `json:"missing,omitempty"`
	// Required are the names of definitions of other operators that the CSV needs.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Required []string `json:"required,omitempty"`

	// Deployments that OLM made for the CSV.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Deployments []FoundDeployment `json:"deployments,omitempty"`
	// EditedBy are field managers other than OLM's that own fields of the spec: the CSV was edited.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	EditedBy []string `json:"editedBy,omitempty"`
	// Finalizers prevent the deletion of the CSV, without OLM's own finalizer.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Finalizers []string `json:"finalizers,omitempty"`
	// Deleting is true if the CSV was deleted, and its finalizers keep it.
	// +optional
	Deleting bool `json:"deleting,omitempty"`
}

// FoundVersion is a further CSV of the same upgrade.
type FoundVersion struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Phase string `json:"phase,omitempty"`
}

// FoundDefinition is a CustomResourceDefinition that a CSV owns.
type FoundDefinition struct {
	// Name of the definition, such as echoservers.example.com.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Version string `json:"version,omitempty"`
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Kind string `json:"kind,omitempty"`
}

// FoundDeployment is a Deployment of an operator.
type FoundDeployment struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Replicas in the spec of the Deployment.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Replicas int32 `json:"replicas"`
	// Ready are the replicas that are available.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Ready int32 `json:"ready"`
	// Bundle is the number of replicas in the CSV. It differs from replicas if the Deployment was scaled.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Bundle int32 `json:"bundle"`
}

// FoundNamespace has OLM's objects for all operators of a namespace.
type FoundNamespace struct {
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	OperatorGroups []FoundOperatorGroup `json:"operatorGroups,omitempty"`
	// InstallPlans that are not complete.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	InstallPlans []FoundInstallPlan `json:"installPlans,omitempty"`
}

// FoundOperatorGroup is an OperatorGroup.
type FoundOperatorGroup struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Targets are the target namespaces of the group. If they are empty and there is no selector, the group selects
	// all namespaces.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Targets []string `json:"targets,omitempty"`
	// Selector is true if the group selects namespaces by their labels.
	// +optional
	Selector bool `json:"selector,omitempty"`
	// ServiceAccount is the ServiceAccount whose permissions limit OLM; empty if there is none.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// FoundInstallPlan is an InstallPlan.
type FoundInstallPlan struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Phase string `json:"phase,omitempty"`
	// +optional
	Approved bool `json:"approved,omitempty"`
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	CSVs []string `json:"csvs,omitempty"`
}

// FoundCatalogSource is a CatalogSource.
type FoundCatalogSource struct {
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// State of OLM's connection to the CatalogSource, such as READY; empty if OLM reports none.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	State string `json:"state,omitempty"`
	// Image of the CatalogSource; empty if it has none.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`
	// Managed is true if it is a catalog view of Bellwether.
	// +optional
	Managed bool `json:"managed,omitempty"`
}

// OperatorScanList is a list of OperatorScans.
//
// +kubebuilder:object:root=true
type OperatorScanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatorScan `json:"items"`
}
