// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what the agent does next with OLM v0 for one operator on one cluster. It also finds
// the fields of installed objects that differ from the bundle. It is pure: its input is an observation, its output are
// actions and a report. It must not read a clock, a cluster or a registry.
package plan

import (
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/engines/adoption"
)

// Input is all data that one decision depends on.
type Input struct {
	Now     time.Time
	Install *v1alpha1.OperatorInstall
	Offer   Offer
	View    View
	Cluster Cluster
	// Backups are the OperatorBackups of the cluster on the hub.
	Backups []v1alpha1.OperatorBackup
}

// Offer is what the published catalog has for an install: the way from the installed version to the admitted release.
type Offer struct {
	// Pending says which catalog is being read, and since when; empty once it was read. The other fields are empty
	// until then.
	Pending string
	// Problem is why the catalog cannot be used; nil if it can.
	Problem *Problem
	// Blocked is why the admitted version must not be installed; empty if it may be installed. If Blocked is set,
	// Path and Next are empty.
	Blocked string
	// Path holds the bundles that are still to be installed, in order. It is empty if the target is installed.
	Path []string
	// Next is the bundle that the view offers now; empty if the target is installed or the last hop has not finished.
	Next string
	// Admitted are the names of all CSVs that the next InstallPlan may have: Next and its dependencies.
	Admitted []string
	// Route is how OLM gets the content of Next.
	Route v1alpha1.BundleRoute
	// Rollback is what a rollback from Next to the installed bundle needs; empty if the catalog does not say.
	Rollback bundles.RollbackClass
	// ViewHash identifies the content that the view should have; empty if there is nothing to serve.
	ViewHash string
	// Versions maps the package's bundle names to their versions.
	Versions map[string]string
	// Package is the package of the catalog, which is set even if there is a Problem with the way to the release; nil
	// until the catalog was read, and for a release that adopts no operator.
	Package *adoption.Package
	// Expected has the fields that the served bundle sets; nil if its manifests are not known.
	Expected *ExpectedFields
	// Content has the bundles that OLM may install from the view.
	Content Contents
}

// Problem is a state that a person, or another component, must correct.
type Problem struct {
	Reason  string
	Message string
}

// View describes what the agent's catalog server serves for this install.
type View struct {
	// Hash identifies the served content; empty if nothing is served.
	Hash    string
	Address string
	// Idle is how long the view has had no connection; zero while a client is connected.
	Idle time.Duration
}

// Cluster is the observed state of the fleet cluster. Its objects are in the operator's namespace unless a field
// says otherwise.
type Cluster struct {
	// OLM is set if the cluster serves OLM's API.
	OLM            bool
	Namespace      Namespace
	OperatorGroups []OperatorGroup
	CatalogSource  *CatalogSource
	Subscriptions  []Subscription
	InstallPlans   []InstallPlan
	CSVs           []CSV
	// OtherNamespaces are CSVs of the same package in other namespaces, as "namespace/name".
	OtherNamespaces []string
	// MissingDefinitions are the CustomResourceDefinitions that the installed CSV owns and the cluster does not
	// have, sorted.
	MissingDefinitions []string
	// MissingServices are the Services that were created with the installed CSV and that the cluster does not
	// have, sorted.
	MissingServices []string
	// Deployments are the Deployments of the installed CSV.
	Deployments []Deployment
	// Found is everything that OLM has on the cluster. It is set only if an operator may be adopted: the release
	// permits the adoption, and the operator has no Subscription.
	Found *v1alpha1.OperatorScanStatus
	// Drifted are the fields of the installed CSV and its Deployments that differ from Offer.Expected, sorted. They
	// are known only if Compared is set.
	Drifted  []DriftField
	Compared bool
}

// Object identifies an observed version of an object, so that an action changes no other version.
type Object struct {
	UID             types.UID
	ResourceVersion string
}

// Namespace is the operator's namespace.
type Namespace struct {
	Object
	Exists      bool
	Terminating bool
	// Managed is set if Bellwether created the namespace.
	Managed bool
	// InSync is set if the namespace matches its template.
	InSync bool
	// Kept is set if the namespace is marked to be kept when the operator is removed.
	Kept bool
	// Occupied names an object in the namespace that does not belong to the operator; empty if there is none. It is
	// set only while the operator is being removed.
	Occupied string
}

// OperatorGroup is an OperatorGroup in the operator's namespace.
type OperatorGroup struct {
	Object
	Name    string
	Managed bool
	InSync  bool
	// Targets are the namespaces that the group selects; empty for all namespaces.
	Targets []string
	// Selector is set if the group selects namespaces by label.
	Selector bool
}

// CatalogSource is the CatalogSource that points to the view.
type CatalogSource struct {
	Object
	Name    string
	Managed bool
	InSync  bool
	// Address is the address of the view in the spec, as host:port.
	Address string
	// State is the state of OLM's connection, ConnectionReady if the connection works. StateAt is when OLM recorded
	// the state.
	State   string
	StateAt time.Time
}

// Subscription is a Subscription in the operator's namespace.
type Subscription struct {
	Object
	Name    string
	Package string
	// IsOwn is set if Bellwether made or adopted the Subscription for this operator. It is set for at most
	// one Subscription.
	IsOwn bool
	// InSync is set if the Subscription matches its template.
	InSync bool
	// Adopted describes the Subscription before it was adopted; nil if it was not adopted. AwaitsView is set if it
	// was adopted and does not use the view as its source yet.
	Adopted    *v1alpha1.AdoptedSubscription
	AwaitsView bool
	// Keeps is set if the Subscription has a record of an admission, and Outdated if it has no record of
	// this admission.
	Keeps, Outdated bool
	InstalledCSV    string
	CurrentCSV      string
	// Awaits names the InstallPlan that OLM waits for before it resolves again; empty if OLM waits for none.
	Awaits string
	// Plan is the UID of the InstallPlan that the status refers to.
	Plan types.UID
	// ResolutionFailed is OLM's message if resolution failed; empty otherwise.
	ResolutionFailed string
	// LastUpdated is when OLM, or the agent, last wrote the status.
	LastUpdated time.Time
	// UnpackFailed is OLM's message if OLM gave up unpacking the image of a bundle; empty otherwise.
	UnpackFailed string
}

// InstallPlan is an InstallPlan in the operator's namespace.
type InstallPlan struct {
	Object
	Name     string
	Phase    string
	Approved bool
	CSVs     []string
	Created  time.Time
	// Message is OLM's message, for instance why it retries a step.
	Message string
	// Started is when OLM last began to carry out the plan, and Completed when it last finished; zero if it has not.
	Started, Completed time.Time
	// FailedAt is when the plan failed.
	FailedAt time.Time
	// Failure says where or why the plan failed. It follows the word "failed": "at the step ...", or "because ...".
	Failure string
	// Subscribes are the CSVs for which the plan creates a Subscription: dependencies without a Subscription.
	Subscribes []string
	// Services are the Services that the steps create, by the CSV that they belong to.
	Services map[string][]string
	// Sources are the CatalogSources that the steps come from.
	Sources []StepSource
	// Revision is the revision of the admission for which the plan was approved; 0 if Bellwether did not approve it.
	Revision int64
	// Compared is set if the steps were compared with Offer.Content, which may lack some bundles. It is set only
	// for a plan for which CanBeStarted is true.
	Compared bool
	// Difference is how the steps differ, as a clause; empty if they do not differ.
	Difference string
	// IsRepeated is set if another plan already differed from the same view.
	IsRepeated bool
}

// CanBeStarted reports whether the agent can make OLM carry out the plan, by an approval or a retry.
func (p InstallPlan) CanBeStarted() bool {
	switch operatorsv1alpha1.InstallPlanPhase(p.Phase) {
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		return !p.Approved
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		return true
	default:
		return false
	}
}

// StepSource is the CatalogSource that a step of an InstallPlan comes from, and the CSV that the step is for.
type StepSource struct {
	CSV string
	// Namespace and Name identify the CatalogSource.
	Namespace, Name string
}

// String returns the CatalogSource as "namespace/name".
func (s StepSource) String() string { return s.Namespace + "/" + s.Name }

// CSV is a ClusterServiceVersion that was not copied from another namespace.
type CSV struct {
	Object
	Name     string
	Version  string
	Phase    string
	Reason   string
	Message  string
	Replaces string
	Created  time.Time
	// Since is when the CSV entered its phase.
	Since time.Time
	// Missing are the requirements that are not met, and Lost are the unmet requirements that the bundle itself
	// provides.
	Missing  []string
	Lost     []string
	Deleting bool
	// IsOfPackage is set if the CSV belongs to the package.
	IsOfPackage bool
}

// Deployment is a Deployment that OLM made for the installed CSV.
type Deployment struct {
	Object
	Name string
	// Replicas is the number of replicas in the spec, and Unavailable how many of them are not available.
	Replicas    int32
	Unavailable int32
	// Problems are why replicas, or the pods of a new version, are not available.
	Problems []v1alpha1.WorkloadProblem
	// Configured is set if the pods have the configuration of the install settings.
	Configured bool
}

// The kinds of objects that an Action names.
const (
	KindNamespace     = "Namespace"
	KindOperatorGroup = "OperatorGroup"
	KindCatalogSource = "CatalogSource"
	KindSubscription  = "Subscription"
	KindInstallPlan   = "InstallPlan"
	KindCSV           = operatorsv1alpha1.ClusterServiceVersionKind
	KindDeployment    = "Deployment"
	KindDefinition    = "CustomResourceDefinition"
	KindService       = "Service"
)

// The other data that an Action reads.
const (
	// KindCatalog is a published catalog, named by its digest.
	KindCatalog = "Catalog"
	// KindSteps are the steps of an InstallPlan, and KindDrift are the installed objects, each compared with what
	// is served.
	KindSteps = "Steps"
	KindDrift = "Drift"
	// KindPods are the pods of a Deployment, KindOccupants the objects in a namespace, and KindInventory everything
	// that OLM has on the cluster.
	KindPods      = "Pods"
	KindOccupants = "Occupants"
	KindInventory = "Inventory"
	// KindStored are the versions that custom resources are stored in.
	KindStored = "StoredVersions"
)

const (
	// FieldOwner is the field manager of the agent on the fleet cluster.
	FieldOwner = "bellwether-agent"
	// AnnotationKeep marks a namespace that must not be deleted with its operator.
	AnnotationKeep = "bellwether.dev/keep"
)

// LabelOwner is the label with the name of the CSV that an object of OLM belongs to.
const LabelOwner = "olm.owner"

// ConnectionReady is the state of a CatalogSource that OLM is connected to.
const ConnectionReady = "READY"

// The states of a connection that OLM tries to make. OLM alternates between them with each attempt.
const (
	connectionConnecting = "CONNECTING"
	connectionFailed     = "TRANSIENT_FAILURE"
)

// Verb is what an Action does.
type Verb string

const (
	// Read reads data that the plan needs, and adds it to the observation. Value says what the data is needed for. It
	// changes nothing on the cluster.
	Read Verb = "read"
	// Serve serves the offered view.
	Serve Verb = "serve"
	// StopServing stops serving the view.
	StopServing Verb = "stop serving"
	// Apply applies the object that is rendered from the template of its kind.
	Apply Verb = "apply"
	// Approve approves an InstallPlan.
	Approve Verb = "approve"
	// Retry makes OLM carry out a failed InstallPlan again.
	Retry Verb = "retry"
	// Redo makes OLM carry out the steps of a Complete InstallPlan for the CSV Value again, except for the steps
	// for CustomResourceDefinitions.
	Redo Verb = "redo"
	// Delete deletes an object.
	Delete Verb = "delete"
	// TakeOver makes a Subscription of another owner the operator's: it sets the approval to Manual and records the
	// previous state in the Subscription. It changes nothing else.
	TakeOver Verb = "take over"
	// GiveBack restores a Subscription that was taken over to its previous state.
	GiveBack Verb = "give back"
	// Adopt sets Value as the installed CSV of the Subscription, as if OLM had installed it for that Subscription.
	Adopt Verb = "adopt into"
	// Reset removes OLM's plan from the status of the Subscription. Value is the installed CSV, or empty.
	Reset Verb = "reset"
	// Reprocess makes OLM process a CSV from the beginning: a CSV that OLM left in phase Replacing, or installs with
	// old settings.
	Reprocess Verb = "reprocess"
	// SetReplacing makes OLM replace a CSV with its successor, in any phase of the CSV.
	SetReplacing Verb = "mark as being replaced"
	// Abandon makes OLM fail an unfinished CSV, so that another CSV can replace it.
	Abandon Verb = "abandon"
	// Detach removes spec.replaces of a CSV, so that the CSV that it replaced can replace it.
	Detach Verb = "detach"
	// Correct sets the observed differing fields of a CSV or a Deployment back to the values of the bundle.
	Correct Verb = "correct"
	// Forget removes the record of the admission from the Subscription.
	Forget Verb = "forget the admission in"
	// Keep marks the namespace to be kept when the operator is removed. Value names an object in it.
	Keep Verb = "keep"
)

// Action is one idempotent step. It is comparable.
type Action struct {
	Verb Verb
	Kind string
	Name string
	// Object is the observed object with this name. The action fails, and is planned again, if the object was changed
	// or replaced since.
	Object Object
	Value  string
}

// The times until the next reconcile where no watch reports a change.
const (
	recheckSoon    = time.Second
	recheckProblem = 30 * time.Second
	recheckSteady  = 5 * time.Minute

	// csvFailedGrace is how long a CSV may be Failed before a person must act: OLM enters Failed for a short time
	// during an installation and retries.
	csvFailedGrace = time.Minute
	// settleAfter is how long a Subscription is not changed after it was taken over: OLM may have begun to resolve
	// while approval was automatic, and then makes an InstallPlan that is approved.
	settleAfter = 5 * time.Second
	// requirementsGrace is how long a CSV may miss requirements before a person must act: a CRD is not served at
	// once, and a busy OLM detects that it is served even later.
	requirementsGrace = time.Minute
	// installPatience is how long an operator whose Deployments do not become available blocks the release of a later
	// admission. After the same time, OLM itself starts the installation again.
	installPatience = 5 * time.Minute
	// viewGrace is how long a view may have no connection before it counts as unreachable: gRPC waits for up to two
	// minutes between attempts to connect, and up to 20 seconds for each attempt.
	viewGrace = 3 * time.Minute
	// resolveGrace is how long a failed resolution in OLM's status may be about the previous view.
	resolveGrace = time.Minute
	// reinstallGrace is the minimum time from the start of an installation until OLM is made to start it again.
	reinstallGrace = 30 * time.Second
	// subscribeGrace is how long OLM may take, after it made an InstallPlan, to record the plan in its Subscription.
	subscribeGrace = 10 * time.Second
	// compareGrace is the minimum age of an InstallPlan that is deleted because it differs from the view: OLM may
	// have made the plan from a newer view than the agent has read.
	compareGrace = 10 * time.Second
	// replanAfter is the same age if another plan already differed from the same view: OLM may make such plans from
	// its cache of an earlier view for up to half an hour.
	replanAfter = 10 * time.Minute
	// inertAfter is how long an InstallPlan that was approved before OLM requested the approval is kept (olm.md,
	// fact 4).
	inertAfter = time.Minute

	// redoPatience is how long a withdrawal waits for OLM to carry out an InstallPlan again: OLM itself gives up
	// after a minute, and never gives up if it lacks a permission.
	redoPatience = 2 * time.Minute

	retryPlanMin = 30 * time.Second
	retryPlanMax = 15 * time.Minute

	retryResolutionMin = 20 * time.Second
	retryResolutionMax = 5 * time.Minute
)
