// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides which release a ManagedOperator means, whether that
// needs another rollout, and which OperatorInstalls must be removed. It is
// pure. It admits no clusters: the rollout controller does.
package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/engines/claim"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// Install is an OperatorInstall of the operator.
type Install struct {
	removal.Install
	Installed     catalogs.Installed
	SucceededHash string
	// Admitted is what a rollout reads of the object.
	Admitted rollouts.Install
	// Rollout that the cluster is a member of.
	Rollout string
	// Revision is that of the admission; 0 where there is none.
	Revision int64
	// Observed is the revision that the agent says it has acted on: any number.
	Observed int64
	Ready    bool
	// StalledReason is why the agent cannot proceed; empty if it can.
	StalledReason string
	// Blocks that the object carries, in the form that Encode gives.
	Blocks string
	// Holds that the object carries.
	Holds []v1alpha1.VersionHold
	// Release is what the cluster was admitted to; nil if that is nothing.
	Release *v1alpha1.Release
	// Kept is what the cluster keeps of the operator, which the hub does not know of.
	Kept *v1alpha1.KeptAdmission
	// Drift is the policy that the object carries; empty means Report.
	Drift v1alpha1.DriftPolicy
	// Backup is the backup policy that the object carries.
	Backup *v1alpha1.BackupPolicy
	// StorageMigration is what the object asks of the agent.
	StorageMigration *v1alpha1.StorageMigration
}

// Failure is a condition's reason and the cause.
type Failure struct {
	Reason string
	Cause  string
}

// Input is everything that the decision depends on.
type Input struct {
	// Now is the hub's time.
	Now      time.Time
	Operator *v1alpha1.ManagedOperator
	// Catalog is nil if it does not exist.
	Catalog *v1alpha1.OperatorCatalog
	// Package in the catalog's digest; nil if it was not read.
	Package *catalogs.Package
	// PackageFailure is why it could not be read.
	PackageFailure *Failure
	// Clusters is the whole fleet.
	Clusters []rollouts.Cluster
	Installs []Install
	Rollouts []v1alpha1.OperatorRollout
	// Claims of all other ManagedOperators, in any order.
	Claims []claim.Claim
	// Access are all FleetAccess objects, and Freezes all FleetFreezes.
	Access  []v1alpha1.FleetAccess
	Freezes []v1alpha1.FleetFreeze
	// Cycle is a way by which the operator depends on itself; empty if it does not.
	Cycle string
}

// Supersede ends a running rollout in favour of a newer one.
type Supersede struct {
	Rollout string
	Reason  string
}

// Block sets why a rollout's version is blocked; an empty reason says that it
// is no longer blocked.
type Block struct {
	Rollout string
	Reason  string
}

// Decision is what to do now, in the order of the fields, and what to report.
type Decision struct {
	AddFinalizer bool
	// Holds are the versions that are to be held; nil where spec.holds is right.
	Holds *[]v1alpha1.VersionHold
	// Recover are the OperatorInstalls that get the admission that their cluster keeps.
	Recover []Recovery
	Block   *Block
	// SetBlocks names the OperatorInstalls whose blocks are not Blocks yet, or whose holds
	// are not those of the spec.
	SetBlocks []types.NamespacedName
	Blocks    []v1alpha1.VersionBlock
	// SetBackup names the OperatorInstalls whose backup policy is not that of the
	// spec.
	SetBackup []types.NamespacedName
	// SetStorageMigration names the OperatorInstalls that ask for something else than
	// StorageMigration.
	SetStorageMigration []types.NamespacedName
	StorageMigration    *v1alpha1.StorageMigration
	// SetDrift names the OperatorInstalls whose drift policy is not that of the
	// operator yet.
	SetDrift       []types.NamespacedName
	Supersede      *Supersede
	Create         *v1alpha1.OperatorRollout
	DeleteRollouts []string
	Removals       []removal.Step
	// Lost are rollouts that somebody else has deleted.
	Lost []v1alpha1.RolloutOutcome
	// Announce is a version that begins to wait for an approval; nil where none does.
	Announce *v1alpha1.AvailableVersion
	// Decided are decisions that are new in the status.
	Decided []v1alpha1.Decision
	// RemoveFinalizer allows the object's deletion. The executor first checks
	// with a read past the cache that nothing is left.
	RemoveFinalizer bool
	Status          v1alpha1.ManagedOperatorStatus
	RecheckAfter    time.Duration
}

// Next decides.
//
//	spec.adopt, nothing was taken over yet ─▶ release as installed, and the target after its rollout
//	spec ─▶ target in the catalog ─▶ release ─┬─ same as the newest rollout's ─▶ report
//	                                          ├─ differs, none runs ───────────▶ next rollout
//	                                          ├─ differs, Supersede ───────────▶ end the running one, next rollout
//	                                          └─ differs, Finish ──────────────▶ wait
//	the newest one ended RolledBack ─▶ version held, rollback ─▶ wait for it to end
//	found on clusters, not resumed ─▶ admission and holds recovered ─▶ wait for a person
//	blocks ─▶ written for the agents and for the newest rollout, whatever else is decided
//	frozen ─▶ nothing is recovered or removed there
//	deleted ─▶ rollouts deleted ─▶ installs removed by policy ─▶ gone
func Next(in Input) Decision {
	p := newPass(in)
	p.decide()
	p.spareFrozen()
	return p.decision
}

func (p *pass) decide() {
	p.recordAdoption()
	p.count()
	p.recordDecisions()
	if p.Operator.DeletionTimestamp != nil {
		p.remove()
		return
	}
	p.decision.AddFinalizer = !hasFinalizer(p.Operator)
	p.recover()
	p.block()
	p.setDrift()
	p.setBackup()
	p.setStorageMigration()
	p.reviseHolds()
	summary := p.reconcileRollouts()
	p.prune()
	p.recordHistory()
	p.reportHolds()
	p.reportAccess()
	conditions.Summarize(&p.decision.Status.Conditions, p.Operator.Generation, summary)
}

// pass is one run of Next.
type pass struct {
	Input
	decision Decision
	selector labels.Selector
	// invalid is why the spec cannot be used, with the name of the field.
	invalid error
	// selected clusters, by name; those that leave the fleet are not among them.
	selected map[string]rollouts.Cluster
	known    map[string]rollouts.Cluster
	byName   map[string]Install // by cluster
	newest   *v1alpha1.OperatorRollout
	// lastRecoverable is the highest revision of an admission found on a cluster that the hub goes on from.
	lastRecoverable int64
	// offered is the package without its blocked versions; nil if it was not
	// read or nothing is left.
	offered *catalogs.Package
	// nothingLeft is why nothing is left of it.
	nothingLeft error
	// blocks in force on the package, by version.
	blocks map[string]v1alpha1.VersionBlock
	// withoutPath are clusters that cannot follow, where others can.
	withoutPath pathReport
	// unreachable are deselected clusters whose agent is offline.
	unreachable []string
	// paused are clusters that the operator is to be uninstalled from, and is not as long as they are paused.
	paused []string
	// problemOfTarget is what keeps the target from being rolled out, once what is installed was taken over.
	problemOfTarget string
	// uninstallFailed are clusters that cannot uninstall the operator, if that
	// keeps the removal from others from beginning.
	uninstallFailed []string
}

func newPass(in Input) *pass {
	p := &pass{
		Input: in, selected: map[string]rollouts.Cluster{}, known: map[string]rollouts.Cluster{},
		byName: map[string]Install{},
	}
	p.decision.Status = *in.Operator.Status.DeepCopy()
	p.decision.Status.Removal = nil
	spec := in.Operator.Spec
	p.invalid = rollouts.Validate(spec.ClusterSelector, spec.Strategy)
	selector, err := metav1.LabelSelectorAsSelector(&spec.ClusterSelector)
	p.selector = selector
	if p.invalid == nil {
		p.invalid = err
	}
	if p.invalid == nil {
		p.invalid = backups.Validate(spec.Backup)
	}
	for _, c := range in.Clusters {
		p.known[c.Name] = c
		if err == nil && !c.Deleting && p.selector.Matches(labels.Set(c.Labels)) {
			p.selected[c.Name] = c
		}
	}
	for _, i := range in.Installs {
		p.byName[i.Cluster] = i
	}
	for i := range in.Rollouts {
		if p.newest == nil || in.Rollouts[i].Spec.Revision > p.newest.Spec.Revision {
			p.newest = &in.Rollouts[i]
		}
	}
	admitted := make([]rollouts.Install, len(in.Installs))
	for i := range in.Installs {
		admitted[i] = in.Installs[i].Admitted
	}
	p.lastRecoverable = rollouts.LastRecoverable(admitted, p.resumed())
	p.readBlocks()
	return p
}

// setDrift passes the drift policy on. It is not part of the release, so that a
// change of it installs nothing.
func (p *pass) setDrift() {
	if len(p.decision.Recover)+len(p.decision.SetBlocks) > 0 {
		return // the next pass does it, since each write needs the object as it is then
	}
	want := DriftPolicy(p.Operator.Spec.Install.Drift)
	for _, i := range p.Installs {
		if !i.Deleting && i.Drift != want {
			p.decision.SetDrift = append(p.decision.SetDrift,
				types.NamespacedName{Namespace: i.Namespace, Name: i.Name})
		}
	}
}

// DriftPolicy returns a policy as OperatorInstalls have it: empty for Report.
func DriftPolicy(policy v1alpha1.DriftPolicy) v1alpha1.DriftPolicy {
	if policy == v1alpha1.DriftReport {
		return ""
	}
	return policy
}

// reconcileRollouts starts or ends rollouts as the spec asks, and summarizes
// the state.
func (p *pass) reconcileRollouts() conditions.Summary {
	release, problem := p.resolve()
	if summary := p.awaitResume(); summary != nil {
		return *summary
	}
	if summary := p.rollBack(); summary != nil {
		return *summary
	}
	if problem == nil {
		problem = p.heldRelease(release)
	}
	if problem == nil {
		problem = p.conflict()
	}
	if problem == nil && !release.AsInstalled && !p.isUnfinishedRollbackTo(release) {
		problem = p.noPath(release)
	}
	if p.invalid != nil {
		return stalled(v1alpha1.ReasonInvalidSpec, p.invalidText())
	}
	if p.Cycle != "" {
		return stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf(
			"spec.dependsOn leads back to the operator itself (%s), so no rollout would ever admit a cluster: remove "+
				"one of these dependencies", p.Cycle))
	}
	if len(p.selected) == 0 {
		// A selector that matches nothing is more likely a mistake than a
		// request to remove everything: nothing is removed.
		return stalled(v1alpha1.ReasonNoClusters, p.noClusters())
	}
	p.takeBack()
	p.removeDeselected()
	if problem != nil {
		problem.Message += p.clustersOnBlocked() + p.stateOfRollback()
		return *problem
	}
	var summary conditions.Summary
	if p.needsRollout(release) {
		summary = p.startRollout(release)
	} else {
		summary = p.summarizeRollout(release)
	}
	summary.Message += p.notes(release)
	return summary
}

// invalidText says what is wrong with the spec, and what happens to the running
// rollout.
func (p *pass) invalidText() string {
	text := p.invalid.Error()
	if isRunning(p.newest) {
		text += fmt.Sprintf("; rollout %s continues as planned", p.newest.Name)
	}
	return text
}

// notes describes problems of some clusters that do not stop the others.
func (p *pass) notes(release v1alpha1.Release) string {
	var text string
	if len(p.withoutPath.clusters) > 0 {
		text += "; " + p.withoutPath.text(release)
	}
	text += p.afterAdoption() + p.clustersOnBlocked() + p.heldVersions() + p.waitsForApproval() + p.staleReports() +
		p.frozenText()
	if r := p.decision.Status.Rollout; r != nil && r.StrategyOutdated {
		text += "; spec.strategy was changed and applies to the next rollout: set spec.restart to start one now"
	}
	if t := p.uninstallText(); t != "" {
		text += "; no longer selected: " + t
	}
	if len(p.unreachable) > 0 {
		cannot := "be uninstalled"
		if p.Operator.Spec.RemovalPolicy == v1alpha1.RemovalRestore {
			cannot = "be put back as they were"
		}
		text += fmt.Sprintf("; no longer selected, but cannot %s because they are offline: %s", cannot,
			phrase.First(sorted(p.unreachable), maxNamed))
	}
	return text + p.pausedText()
}

func stalled(reason, message string) conditions.Summary {
	return conditions.Summary{State: conditions.Stalled, Reason: reason, Message: message}
}

func waiting(reason, message string) conditions.Summary {
	return conditions.Summary{State: conditions.InProgress, Reason: reason, Message: message}
}
