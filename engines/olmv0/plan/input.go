// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what the agent does next with OLM v0 for one operator on
// one cluster. It is pure: its input is what was observed, its output are
// actions and a report. It must not read a clock, a cluster or a registry.
package plan

import (
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/engines/olmv0/drift"
	"github.com/bellwether-dev/bellwether/engines/olmv0/steps"
)

// Input is everything that one decision rests on.
type Input struct {
	Now     time.Time
	Install *v1alpha1.OperatorInstall
	Offer   Offer
	View    View
	Cluster Cluster
	// Backups are those of the cluster on the hub.
	Backups []v1alpha1.OperatorBackup
}

// Offer is what the published catalog says about the way from what is
// installed to what was admitted.
type Offer struct {
	// Pending says what is being read, and since when; empty when it was read. The
	// other fields are empty until then.
	Pending string
	// Problem is what keeps the catalog from being used; nil when it was read.
	Problem *Problem
	// Blocked is why the admitted version must not be installed; empty where it
	// may. There is no Path and no Next then.
	Blocked string
	// Path holds the bundles that are still to be installed, in order. It is
	// empty when the target is installed.
	Path []string
	// Next is the bundle that the view offers now; empty when the target is
	// installed or the last hop has not finished.
	Next string
	// Admitted are the names of all CSVs that the next InstallPlan may hold:
	// Next and what it depends on.
	Admitted []string
	// Route is how OLM gets the content of Next.
	Route v1alpha1.BundleRoute
	// Rollback is what it takes to go back from Next to what is installed; empty where
	// the catalog does not say.
	Rollback registryv1.RollbackClass
	// ViewHash identifies the content that the view should have; empty where there
	// is nothing to show.
	ViewHash string
	// Versions maps the package's bundle names to their versions.
	Versions map[string]string
	// Package is the package of the catalog, also where there is a Problem with the way to the release; nil until it
	// was read.
	Package *adoption.Package
	// Expected is what the served bundle sets; nil where its manifests are not known.
	Expected *drift.Expected
	// Content has the bundles that OLM may install from the view, by the names of their ClusterServiceVersions; nil for
	// one whose content OLM takes from its image.
	Content map[string]*steps.Bundle
}

// Problem is something that a person, or another component, must correct.
type Problem struct {
	Reason  string
	Message string
}

// View is what the agent's catalog server serves for this install.
type View struct {
	// Hash of the served content; empty when nothing is served.
	Hash    string
	Address string
	// Idle is for how long nobody has been connected to it; zero while somebody is.
	Idle time.Duration
}

// Cluster is what was seen on the fleet cluster, all of it in the operator's
// namespace where nothing else is said.
type Cluster struct {
	// OLM tells whether the cluster serves OLM's API.
	OLM            bool
	Namespace      Namespace
	OperatorGroups []OperatorGroup
	CatalogSource  *CatalogSource
	Subscriptions  []Subscription
	InstallPlans   []InstallPlan
	CSVs           []CSV
	// Elsewhere holds CSVs of the same package in other namespaces, as
	// "namespace/name".
	Elsewhere []string
	// Undefined are the CustomResourceDefinitions that the installed CSV owns and that are not there, sorted.
	Undefined []string
	// Unserved are the Services that came with the installed CSV and that are not there, sorted.
	Unserved []string
	// Deployments that the installed CSV made.
	Deployments []Deployment
	// Found is everything of OLM on the cluster. It is known only where an operator may be adopted: the release permits
	// that, and no Subscription is the operator's.
	Found *v1alpha1.OperatorScanStatus
	// Drifted are the fields of the installed CSV and of its Deployments that differ
	// from Offer.Expected, sorted. They are known only if Compared.
	Drifted  []drift.Field
	Compared bool
}

// Object identifies an object as it was observed, so that an action changes
// nothing else.
type Object struct {
	UID             types.UID
	ResourceVersion string
}

// Namespace is the operator's namespace.
type Namespace struct {
	Object
	Exists      bool
	Terminating bool
	// Managed says that Bellwether made it.
	Managed bool
	// InSync says that it is as its template asks.
	InSync bool
	// Kept says that it was marked to be kept when the operator is removed.
	Kept bool
	// Occupied names what lives in it beside the operator; it is filled only
	// while the operator is being removed. Empty means that nothing does.
	Occupied string
}

// OperatorGroup is an OperatorGroup in the operator's namespace.
type OperatorGroup struct {
	Object
	Name    string
	Managed bool
	InSync  bool
	// Targets are the namespaces it selects; empty means all of them.
	Targets []string
	// Selector says that it selects namespaces by label.
	Selector bool
}

// CatalogSource is the one that points to the view.
type CatalogSource struct {
	Object
	Name    string
	Managed bool
	InSync  bool
	// Address of the view that it names, as host:port.
	Address string
	// State of OLM's connection, ConnectionReady when it is good, and when OLM
	// recorded it.
	State   string
	StateAt time.Time
}

// Subscription is a Subscription in the operator's namespace.
type Subscription struct {
	Object
	Name    string
	Package string
	// Ours says that it is the operator's: Bellwether made it, or adopted it. At most one is.
	Ours bool
	// InSync says that it is as its template asks.
	InSync bool
	// Adopted says what it was before it was adopted; nil for one that was not. AwaitsView says that it has been, and
	// does not take its versions from the view yet.
	Adopted    *v1alpha1.AdoptedSubscription
	AwaitsView bool
	// Keeps says that it has a record of an admission, and Outdated that it has none of
	// this one.
	Keeps, Outdated bool
	InstalledCSV    string
	CurrentCSV      string
	// Awaits names the InstallPlan that OLM waits for before it resolves again;
	// empty if there is none.
	Awaits string
	// Plan is the UID of the InstallPlan that its status refers to.
	Plan types.UID
	// ResolutionFailed is OLM's message; empty when resolution did not fail.
	ResolutionFailed string
	// LastUpdated is when OLM, or the agent, last wrote its status.
	LastUpdated time.Time
	// UnpackFailed is OLM's message when it gave up to unpack a bundle's image;
	// empty otherwise.
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
	// Message is OLM's, for instance why it tries a step again.
	Message string
	// Started is when OLM began to carry it out, and Completed when it was done with that, the last time; zero where it
	// has not.
	Started, Completed time.Time
	// FailedAt is when it failed.
	FailedAt time.Time
	// Failure says at which step it failed and why.
	Failure string
	// Subscribes holds those CSVs for which the plan makes a Subscription:
	// dependencies that nothing subscribes to yet.
	Subscribes []string
	// Services are those that its steps make, by the CSV that they come with.
	Services map[string][]string
	// Sources are the CatalogSources that the steps of its CSVs come from.
	Sources []StepSource
	// Revision of the admission for which it was approved; 0 if it was not
	// approved by Bellwether.
	Revision int64
	// Compared says that its steps were compared with Offer.Content, as far as that has the bundles. It is so only of a
	// plan that MayBeSetGoing.
	Compared bool
	// Differs is how its steps differ, as a clause; empty where they do not.
	Differs string
	// Repeats says that another plan differed from the same view before.
	Repeats bool
}

// MayBeSetGoing tells whether the agent can have OLM carry the plan out, by an approval or by trying it again.
func (p InstallPlan) MayBeSetGoing() bool {
	switch operatorsv1alpha1.InstallPlanPhase(p.Phase) {
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		return !p.Approved
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		return true
	default:
		return false
	}
}

// StepSource says that a step of an InstallPlan comes from a CatalogSource.
type StepSource struct {
	CSV string
	// Namespace and Name are those of the CatalogSource.
	Namespace, Name string
}

// String returns the CatalogSource.
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
	// Since is when it entered its phase.
	Since time.Time
	// Missing names the requirements that are not met, and Lost those of them that the bundle itself
	// brings.
	Missing  []string
	Lost     []string
	Deleting bool
	// Ours says that it belongs to the package.
	Ours bool
}

// Deployment is one that OLM made for the installed CSV.
type Deployment struct {
	Object
	Name string
	// Replicas are those that it asks for, and Unavailable those of them that are
	// not available.
	Replicas    int32
	Unavailable int32
	// Problems are why they, or the pods of a new version, are not.
	Problems []v1alpha1.WorkloadProblem
	// Configured says that its pods have the install settings' configuration.
	Configured bool
}

// Kinds that an Action names.
const (
	KindNamespace     = "Namespace"
	KindOperatorGroup = "OperatorGroup"
	KindCatalogSource = "CatalogSource"
	KindSubscription  = "Subscription"
	KindInstallPlan   = "InstallPlan"
	KindCSV           = drift.KindCSV
	KindDeployment    = drift.KindDeployment
)

// LabelOwner names, on an object that OLM made, the CSV that it belongs to.
const LabelOwner = "olm.owner"

// ConnectionReady is the state of a CatalogSource that OLM is connected to.
const ConnectionReady = "READY"

// The states of a connection that OLM tries to make: it goes from one to the other
// with each attempt.
const (
	connectionConnecting = "CONNECTING"
	connectionFailed     = "TRANSIENT_FAILURE"
)

// Verb is what an Action does.
type Verb string

const (
	// Serve serves the offered view.
	Serve Verb = "serve"
	// StopServing stops serving the view.
	StopServing Verb = "stop serving"
	// Apply applies the object rendered from the template of its kind.
	Apply Verb = "apply"
	// Approve approves an InstallPlan.
	Approve Verb = "approve"
	// Retry makes OLM carry out a failed InstallPlan again.
	Retry Verb = "retry"
	// Redo makes OLM carry out again the steps of a Complete InstallPlan for the CSV Value, without those for
	// definitions of custom resources.
	Redo Verb = "redo"
	// Delete deletes an object.
	Delete Verb = "delete"
	// TakeOver makes a Subscription of somebody else the operator's: its approval becomes Manual, and what it was is
	// recorded in it. Nothing else of it changes.
	TakeOver Verb = "take over"
	// GiveBack makes a Subscription that was taken over what it was.
	GiveBack Verb = "give back"
	// Adopt makes the Subscription name Value as its installed CSV, as if OLM had
	// installed it for that Subscription.
	Adopt Verb = "adopt into"
	// Reset makes OLM forget what it planned for the Subscription; Value is the
	// CSV that is installed, if there is one.
	Reset Verb = "reset"
	// Reprocess makes OLM process a CSV from the beginning: one that it left in phase
	// Replacing, or one that it installs with old settings.
	Reprocess Verb = "reprocess"
	// SetReplacing makes OLM replace a CSV with its successor, whatever phase it is in.
	SetReplacing Verb = "mark as being replaced"
	// Abandon makes OLM fail an unfinished CSV, so that another may replace it.
	Abandon Verb = "abandon"
	// Detach removes spec.replaces of a CSV, so that it can be replaced by what it
	// replaced.
	Detach Verb = "detach"
	// Correct puts back what differs from the bundle in a CSV or a Deployment: the
	// observed fields that are of this object.
	Correct Verb = "correct"
	// Forget removes the record of the admission from the Subscription.
	Forget Verb = "forget the admission in"
	// Keep marks the namespace to be kept when the operator is removed; Value says
	// what is in it.
	Keep Verb = "keep"
)

// Action is one idempotent step. It is comparable.
type Action struct {
	Verb Verb
	Kind string
	Name string
	// Object is the one that was observed under this name. The action fails, and
	// is planned again, if it was changed or replaced since.
	Object Object
	Value  string
}

// How long to wait where no watch tells of a change.
const (
	recheckSoon    = time.Second
	recheckProblem = 30 * time.Second
	recheckSteady  = 5 * time.Minute

	// csvFailedGrace is how long a CSV may be Failed before it needs a person:
	// OLM passes through Failed on its way and retries.
	csvFailedGrace = time.Minute
	// settleAfter is how long after it was taken over a Subscription is left as it is: OLM may have begun to resolve
	// while approval was automatic, and makes an InstallPlan that is approved.
	settleAfter = 5 * time.Second
	// requirementsGrace is how long a CSV may miss requirements before it needs
	// a person: a CRD takes a moment until it is served, and a
	// busy OLM another one to notice.
	requirementsGrace = time.Minute
	// installPatience is how long an operator whose Deployments do not come up
	// holds back the release that a later admission brings. OLM's own limit is
	// the same, after which it starts anew.
	installPatience = 5 * time.Minute
	// viewGrace is for how long nobody may be connected to a view before it counts as
	// unreachable: gRPC waits for up to two minutes between attempts to connect, and
	// 20 seconds for each.
	viewGrace = 3 * time.Minute
	// resolveGrace is how long OLM's word that it cannot resolve may be about
	// the view that was served before this one.
	resolveGrace = time.Minute
	// reinstallGrace is how long after OLM began an installation it is not made to
	// begin again.
	reinstallGrace = 30 * time.Second
	// subscribeGrace is how long after it made an InstallPlan OLM may take to note in a
	// Subscription that the plan is for it.
	subscribeGrace = 10 * time.Second
	// replanAfter is how long an InstallPlan is kept that differs from what is served as another one did before. OLM
	// may make them of what it read of an earlier view, for up to half an hour.
	replanAfter = 10 * time.Minute
	// inertAfter is when an InstallPlan that was approved before OLM asked for
	// it is given up (olm.md, fact 4).
	inertAfter = time.Minute

	// redoPatience is how long OLM may take to carry an InstallPlan out again before a withdrawal goes on without:
	// OLM itself gives up after a minute, and never where it lacks a right.
	redoPatience = 2 * time.Minute

	retryPlanMin = 30 * time.Second
	retryPlanMax = 15 * time.Minute

	retryResolutionMin = 20 * time.Second
	retryResolutionMax = 5 * time.Minute
)
