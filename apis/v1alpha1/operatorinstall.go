// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperatorInstall is one operator on one cluster. It lives in the cluster's
// namespace on the hub: the rollout writes its spec, the cluster's agent its
// status.
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

// OperatorInstallSpec is what the hub wants on this cluster.
type OperatorInstallSpec struct {
	// Operator names the ManagedOperator.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="operator cannot be changed"
	Operator OperatorReference `json:"operator"`

	// Cluster names the FleetCluster.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cluster cannot be changed"
	Cluster string `json:"cluster"`

	// Admission is the release that this cluster was admitted to. Without one
	// the agent does nothing.
	// +optional
	Admission *Admission `json:"admission,omitempty"`

	// Blocks in force on the operator's catalog: the agent goes neither to such a
	// version nor through one, whatever the admission's catalog says.
	// +listType=map
	// +listMapKey=package
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=200
	// +optional
	Blocks []VersionBlock `json:"blocks,omitempty"`

	// Holds are those of the ManagedOperator. The agent keeps them on its cluster, from
	// where a hub that has lost its objects gets them back.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Holds []VersionHold `json:"holds,omitempty"`

	// Drift says what the agent does where what is installed differs from the
	// release as it is configured. Empty means Report.
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`

	// RemovalPolicy is carried out when this object is deleted. Empty means Orphan.
	// +optional
	RemovalPolicy RemovalPolicy `json:"removalPolicy,omitempty"`

	// Services of the operator that are probed on this cluster: those of its
	// OperatorSLO. Only the hub's slo controller writes them.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Services []ProbedService `json:"services,omitempty"`

	// Monitor asks for a PodMonitor of the operator's pods on this cluster, as
	// its OperatorSLO does. Only the hub's slo controller writes it.
	// +optional
	Monitor *PodMetrics `json:"monitor,omitempty"`

	// Backup says when the agent saves the operator's custom resources, as the
	// ManagedOperator does.
	// +optional
	Backup *BackupPolicy `json:"backup,omitempty"`

	// StorageMigration asks the agent to have the operator's custom resources stored
	// anew where their storage version has changed. Without it the agent leaves them
	// as they are.
	// +optional
	StorageMigration *StorageMigration `json:"storageMigration,omitempty"`

	// Jobs that the agent is to run for a rollout, where the cluster's owner allows
	// them.
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

// MaxRevision is the largest revision of a rollout. The names of rollouts have room for its digits.
const MaxRevision = 999_999_999_999

// Admission is a rollout's stamp: this cluster may go to this release.
type Admission struct {
	// Rollout is the name of the OperatorRollout that admitted it.
	// +kubebuilder:validation:MaxLength=63
	Rollout string `json:"rollout"`
	// RolloutUID is the UID of that OperatorRollout.
	// +kubebuilder:validation:MaxLength=63
	RolloutUID string `json:"rolloutUID"`
	// Revision of that OperatorRollout. The agent refuses a stamp with a lower
	// revision than the last one it acted on.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999999999
	Revision int64 `json:"revision"`
	// +kubebuilder:validation:MaxLength=40
	Wave string `json:"wave"`
	// Hash identifies the release.
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash"`
	// AdmittedAt is the hub's time of admission, from which the wave's deadline
	// is counted.
	AdmittedAt metav1.Time `json:"admittedAt"`
	// Attempt is the rollout's spec.retries at the time of this admission.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Attempt int64 `json:"attempt,omitempty"`

	Release Release `json:"release"`

	// Rollback says that going back to an older version is intended. Without it the
	// agent goes to no version that the catalog has no upgrade path to.
	// +optional
	Rollback *AdmissionRollback `json:"rollback,omitempty"`

	// Previous is the release that the cluster ran when it was admitted, which a
	// rollback takes it back to. It is absent where nothing was installed.
	// +optional
	Previous *PreviousRelease `json:"previous,omitempty"`

	// Recovered says that the hub found the admission on the cluster. It was given by an
	// OperatorRollout that this hub does not have.
	// +optional
	Recovered bool `json:"recovered,omitempty"`
}

// KeptAdmission is what a cluster keeps of an operator that runs on it: the admission
// that its agent acted on last, and the holds that were in force.
type KeptAdmission struct {
	Admission Admission `json:"admission"`
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Holds []VersionHold `json:"holds,omitempty"`
}

// AdmissionRollback permits an agent to go back to an older version.
type AdmissionRollback struct {
	// Force goes back although custom resources may lose data for which there is no
	// backup.
	// +optional
	Force bool `json:"force,omitempty"`
}

// PreviousRelease is what a cluster ran before: a release without its package and
// its catalog, which are those of the release that came after it.
type PreviousRelease struct {
	// +kubebuilder:validation:MaxLength=63
	Channel string `json:"channel"`
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// Bundle is the name of the bundle, which is the name of its CSV.
	// +kubebuilder:validation:MaxLength=253
	Bundle string `json:"bundle"`
	// Install settings; absent where they are those of the release that came after it.
	// +optional
	Install *InstallSettings `json:"install,omitempty"`
}

// OperatorInstallStatus is what the agent observed on its cluster. It means the
// same whatever installs the operator there; the details of that are apart.
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

	// ObservedRevision is the revision of the newest admission stamp that the
	// agent acted on.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999999999
	ObservedRevision int64 `json:"observedRevision,omitempty"`

	// Kept is what the cluster keeps of the operator, where that is newer than
	// spec.admission or there is none: the hub, or its etcd, was lost. The hub goes
	// on from it.
	// +optional
	Kept *KeptAdmission `json:"kept,omitempty"`

	// Adopted says what others had installed before the agent took it over; absent where
	// it took nothing over.
	// +optional
	Adopted *AdoptedSubscription `json:"adopted,omitempty"`

	// Installed is the version that is on the cluster, whether it works or not.
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

	// Problems are why pods of the operator are not available, the likeliest cause first: the
	// first 8. They are read from the pods, not from their logs.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Problems []WorkloadProblem `json:"problems,omitempty"`

	// Correction is what the agent put back last; absent where that was never needed.
	// +optional
	Correction *DriftCorrection `json:"correction,omitempty"`

	// StorageMigrations say how far the agent has stored custom resources anew, for
	// each definition that needed it.
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

	// OLM holds the details of an operator that OLM v0 installs.
	// +optional
	OLM *OLMStatus `json:"olm,omitempty"`
}

// The reasons of problems. FailedCreate and CrashLoopBackOff are spelled as Kubernetes spells them.
const (
	ProblemCrashLoopBackOff  = "CrashLoopBackOff"
	ProblemImagePull         = "ImagePull"
	ProblemContainerConfig   = "ContainerConfig"
	ProblemContainerFailed   = "ContainerFailed"
	ProblemContainerNotReady = "ContainerNotReady"
	ProblemUnschedulable     = "Unschedulable"
	ProblemFailedCreate      = "FailedCreate"
	// ProblemPodsNotRead says that the pods could not be read, so that the cause is not known.
	ProblemPodsNotRead = "PodsNotRead"
)

// WorkloadProblem is a cause for which pods of a Deployment are not available.
type WorkloadProblem struct {
	// Deployment in the operator's namespace.
	// +kubebuilder:validation:MaxLength=253
	Deployment string `json:"deployment"`

	// Container that it concerns; absent where that is the whole pod.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Container string `json:"container,omitempty"`

	// Reason is one of FailedCreate, Unschedulable, ImagePull, ContainerConfig, CrashLoopBackOff,
	// ContainerFailed, ContainerNotReady and PodsNotRead.
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// Message has what Kubernetes says of it: the quota that is exceeded, the image, how the container
	// ended, the probe that does not succeed.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`

	// Pods is how many pods have it; absent where none was made.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Pods int32 `json:"pods,omitempty"`
}

// DriftCorrection counts how often the agent put fields back. Once it has done so
// five times within an hour it stops until the hour is over, because something else
// keeps changing them.
type DriftCorrection struct {
	// Fields that were put back last: the first three.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=600
	Fields []string `json:"fields"`
	// Count is how often fields were put back since FirstTime.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Count int32 `json:"count"`
	// FirstTime and LastTime are those of the first and of the last correction.
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

// AdoptedSubscription is a Subscription of OLM as it was before it was adopted. The
// whole spec is recorded in an annotation of the Subscription.
type AdoptedSubscription struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Since is when it was adopted.
	Since metav1.Time `json:"since"`
	// Bundle is the CSV that was installed then.
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

// BundleRoute says how OLM gets a bundle's content.
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
	// ViewAddress is where the agent serves the catalog view.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ViewAddress string `json:"viewAddress,omitempty"`
	// Route says how OLM gets the content of the next bundle.
	// +optional
	Route BundleRoute `json:"route,omitempty"`
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Subscription string `json:"subscription,omitempty"`
	// InstallPlan is the newest one.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	InstallPlan string `json:"installPlan,omitempty"`
	// CSVPhase is the phase of the installed ClusterServiceVersion, as OLM reports
	// it.
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
