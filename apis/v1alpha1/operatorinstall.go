// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperatorInstall is one operator on one cluster. It is in the cluster's namespace on the hub. The rollout writes its
// spec, and the cluster's agent writes its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=oi,categories=bellwether
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Desired",type=string,JSONPath=`.spec.admission.release.version`
// +kubebuilder:printcolumn:name="Installed",type=string,JSONPath=`.status.installed.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OperatorInstall struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OperatorInstallSpec `json:"spec"`
	// +optional
	Status OperatorInstallStatus `json:"status,omitempty"`
}

// OperatorInstallSpec is the desired state of the operator on this cluster.
type OperatorInstallSpec struct {
	// Operator names the ManagedOperator.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="operator cannot be changed"
	Operator OperatorReference `json:"operator"`

	// Cluster names the FleetCluster.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cluster cannot be changed"
	Cluster string `json:"cluster"`

	// Admission is the release that this cluster was admitted to. Without an admission, the agent does nothing.
	// +optional
	Admission *Admission `json:"admission,omitempty"`

	// Blocks in force on the operator's catalog: the agent upgrades neither to such a version nor through one,
	// whatever the admission's catalog has.
	// +listType=map
	// +listMapKey=package
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=200
	// +optional
	Blocks []VersionBlock `json:"blocks,omitempty"`

	// Holds are the holds of the ManagedOperator. The agent keeps them on its cluster. A hub that has lost its
	// objects restores them from there.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Holds []VersionHold `json:"holds,omitempty"`

	// Drift is what the agent does if the installed objects differ from the release with its settings. Empty
	// means Report.
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`

	// RemovalPolicy is carried out when this object is deleted. Empty means Orphan.
	// +optional
	RemovalPolicy RemovalPolicy `json:"removalPolicy,omitempty"`

	// Services of the operator that are probed on this cluster, from its OperatorSLO. Only the hub's slo controller
	// writes them.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Services []ProbedService `json:"services,omitempty"`

	// Monitor creates a PodMonitor of the operator's pods on this cluster, from its OperatorSLO. Only the hub's slo
	// controller writes it.
	// +optional
	Monitor *PodMetrics `json:"monitor,omitempty"`

	// Backup defines when the agent saves the operator's custom resources, from the ManagedOperator.
	// +optional
	Backup *BackupPolicy `json:"backup,omitempty"`

	// StorageMigration makes the agent write the operator's custom resources again if their storage version has
	// changed. If it is not set, the agent does not change them.
	// +optional
	StorageMigration *StorageMigration `json:"storageMigration,omitempty"`

	// Jobs that the agent runs for a rollout, if the cluster's owner allows them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=12
	// +optional
	Jobs []RequestedJob `json:"jobs,omitempty"`
}

// OperatorReference names a ManagedOperator on the hub.
type OperatorReference struct {
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// MaxRevision is the largest revision of a rollout, because the names of rollouts are limited in length.
const MaxRevision = 999_999_999_999

// Admission is the permission of a rollout: this cluster may be changed to this release.
type Admission struct {
	// Rollout is the name of the OperatorRollout that admitted the cluster.
	// +kubebuilder:validation:MaxLength=63
	Rollout string `json:"rollout"`
	// RolloutUID is the UID of that OperatorRollout.
	// +kubebuilder:validation:MaxLength=63
	RolloutUID string `json:"rolloutUID"`
	// Revision of that OperatorRollout. The agent refuses an admission with a lower revision than the last admission
	// it acted on.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999999999
	Revision int64 `json:"revision"`
	// +kubebuilder:validation:MaxLength=40
	Wave string `json:"wave"`
	// Hash identifies the release.
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash"`
	// AdmittedAt is the hub's time of admission, at which the wave's deadline begins.
	AdmittedAt metav1.Time `json:"admittedAt"`
	// Attempt is the rollout's spec.retries at the time of this admission.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Attempt int64 `json:"attempt,omitempty"`

	Release Release `json:"release"`

	// Rollback permits a rollback to an older version. If it is not set, the agent installs only versions that the
	// catalog has an upgrade path to.
	// +optional
	Rollback *AdmissionRollback `json:"rollback,omitempty"`

	// Previous is the release that the cluster ran when it was admitted. A rollback returns the cluster to it. It is
	// absent if the operator was not installed.
	// +optional
	Previous *PreviousRelease `json:"previous,omitempty"`

	// Recovered is true if the hub found the admission on the cluster. It was given by an OperatorRollout that this
	// hub does not have.
	// +optional
	Recovered bool `json:"recovered,omitempty"`
}

// KeptAdmission is the record that a cluster keeps of an operator that runs on it: the admission that its agent acted
// on last, and the holds that were in force.
type KeptAdmission struct {
	Admission Admission `json:"admission"`
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Holds []VersionHold `json:"holds,omitempty"`
}

// AdmissionRollback permits an agent to roll back to an older version.
type AdmissionRollback struct {
	// Force permits the rollback although custom resources may lose data for which there is no backup.
	// +optional
	Force bool `json:"force,omitempty"`
}

// PreviousRelease is the release that a cluster ran before, without its package and its catalog, which are the same
// as in the release after it.
type PreviousRelease struct {
	// +kubebuilder:validation:MaxLength=63
	Channel string `json:"channel"`
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// Bundle is the name of the bundle, which is the name of its CSV.
	// +kubebuilder:validation:MaxLength=253
	Bundle string `json:"bundle"`
	// Install settings; absent if they are the same as in the release after it.
	// +optional
	Install *InstallSettings `json:"install,omitempty"`
}

// OperatorInstallStatus is what the agent observed on its cluster. Its fields have the same meaning for every engine;
// details of an engine are in separate fields.
type OperatorInstallStatus struct {
	// ObservedGeneration is the generation of the spec that the observation was
	// made for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Reconciling, Stalled, Drifted, StorageMigrated, and those of
	// the engine: CatalogServed, Resolved, PlanApproved and Installed for OLM v0.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.message) <= 4096)",message="a condition's message may have 4096 characters at most"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedRevision is the revision of the newest admission that the agent acted on.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999999999
	ObservedRevision int64 `json:"observedRevision,omitempty"`

	// Kept is the record that the cluster keeps of the operator, if it is newer than spec.admission or spec.admission
	// is missing, because the hub or its etcd was lost. The hub continues from it.
	// +optional
	Kept *KeptAdmission `json:"kept,omitempty"`

	// Adopted describes the Subscription that the agent took over; absent if it took over none.
	// +optional
	Adopted *AdoptedSubscription `json:"adopted,omitempty"`

	// Installed is the installed version, whether it works or not.
	// +optional
	Installed *InstalledVersion `json:"installed,omitempty"`

	// SucceededHash is the hash of the admission whose release the agent found
	// installed, and SucceededAt is when it first did.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	SucceededHash string `json:"succeededHash,omitempty"`
	// +optional
	SucceededAt *metav1.Time `json:"succeededAt,omitempty"`

	// Path holds the bundles that are still to be installed, in order: the first 100.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	Path []string `json:"path,omitempty"`

	// Problems are why pods of the operator are not available, the likeliest cause first: the first 8. They are read
	// from the pods, not from their logs.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Problems []WorkloadProblem `json:"problems,omitempty"`

	// Correction describes the last correction of the agent; absent if no correction was needed.
	// +optional
	Correction *DriftCorrection `json:"correction,omitempty"`

	// StorageMigrations are the progress of storage migrations, for each definition that needed one.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=resource
	// +optional
	StorageMigrations []StorageMigrationProgress `json:"storageMigrations,omitempty"`

	// Jobs are the results of spec.jobs.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=24
	// +optional
	Jobs []JobResult `json:"jobs,omitempty"`

	// OLM has the details of an operator that OLM v0 installs.
	// +optional
	OLM *OLMStatus `json:"olm,omitempty"`
}

// The reasons of problems. FailedCreate and CrashLoopBackOff are spelled as in Kubernetes.
const (
	ProblemCrashLoopBackOff  = "CrashLoopBackOff"
	ProblemImagePull         = "ImagePull"
	ProblemContainerConfig   = "ContainerConfig"
	ProblemContainerFailed   = "ContainerFailed"
	ProblemContainerNotReady = "ContainerNotReady"
	ProblemUnschedulable     = "Unschedulable"
	ProblemFailedCreate      = "FailedCreate"
	// ProblemPodsNotRead means that the pods could not be read, so that the cause is not known.
	ProblemPodsNotRead = "PodsNotRead"
)

// WorkloadProblem is a cause why pods of a Deployment are not available.
type WorkloadProblem struct {
	// Deployment in the operator's namespace.
	// +kubebuilder:validation:MaxLength=253
	Deployment string `json:"deployment"`

	// Container that has the problem; absent if the whole pod has it.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Container string `json:"container,omitempty"`

	// Reason is one of FailedCreate, Unschedulable, ImagePull, ContainerConfig, CrashLoopBackOff,
	// ContainerFailed, ContainerNotReady and PodsNotRead.
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// Message has the details from Kubernetes: the exceeded quota, the image, how the container ended, the probe that
	// does not succeed.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`

	// Pods is how many pods have the problem; absent if no pod was created.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Pods int32 `json:"pods,omitempty"`
}

// DriftCorrection counts how often the agent corrected fields. After five corrections within an hour it stops until
// the hour is over, because another program keeps changing the fields.
type DriftCorrection struct {
	// Fields that were corrected last: the first three.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=600
	Fields []string `json:"fields"`
	// Count is how often fields were corrected since FirstTime.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Count int32 `json:"count"`
	// FirstTime and LastTime are the times of the first and the last correction.
	FirstTime metav1.Time `json:"firstTime"`
	LastTime  metav1.Time `json:"lastTime"`
}

// InstalledVersion is a version of the operator on the fleet cluster.
type InstalledVersion struct {
	// Bundle is the name of the version's bundle.
	// +kubebuilder:validation:MaxLength=253
	Bundle string `json:"bundle"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`
}

// AdoptedSubscription is a Subscription of OLM before it was adopted. An annotation of the Subscription has the
// whole spec.
type AdoptedSubscription struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Since is when the Subscription was adopted.
	Since metav1.Time `json:"since"`
	// Bundle is the CSV that was installed at that time.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Bundle string `json:"bundle,omitempty"`
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
}

// BundleRoute is how OLM gets a bundle's content.
//
// +kubebuilder:validation:Enum=Inline;Unpack
type BundleRoute string

const (
	// RouteInline serves the manifests in the catalog view.
	RouteInline BundleRoute = "Inline"
	// RouteUnpack lets OLM unpack the bundle's image with a Job, because the
	// manifests are too large to be inlined.
	RouteUnpack BundleRoute = "Unpack"
)

// OLMStatus names the objects of OLM v0 on the fleet cluster that belong to an
// operator. They are in the release's namespace.
type OLMStatus struct {
	// +kubebuilder:validation:MaxLength=253
	// +optional
	CatalogSource string `json:"catalogSource,omitempty"`
	// ViewAddress is the address of the catalog view.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ViewAddress string `json:"viewAddress,omitempty"`
	// Route is how OLM gets the content of the next bundle.
	// +optional
	Route BundleRoute `json:"route,omitempty"`
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Subscription string `json:"subscription,omitempty"`
	// InstallPlan is the newest InstallPlan.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	InstallPlan string `json:"installPlan,omitempty"`
	// CSVPhase is the phase of the installed ClusterServiceVersion in OLM.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	CSVPhase string `json:"csvPhase,omitempty"`
}

// OperatorInstallList is a list of OperatorInstalls.
//
// +kubebuilder:object:root=true
type OperatorInstallList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatorInstall `json:"items"`
}
