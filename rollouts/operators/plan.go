// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operators decides which release a ManagedOperator selects, whether that needs another rollout, and which
// OperatorInstalls must be removed. It chooses the target version of a spec with a range of versions or no version, and
// maintains the log of the decisions that people and the hub made. It is pure. It admits no clusters; the
// rollout controller admits clusters.
package operators

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
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// Install is the data that the decision needs of an OperatorInstall of the operator.
type Install struct {
	removal.Install
	Installed     catalogs.Installed
	SucceededHash string
	// Admitted is the data that a rollout reads from the object.
	Admitted rollouts.Install
	// Rollout is the rollout that the cluster is a member of.
	Rollout string
	// Revision is the revision of the admission; 0 if there is none.
	Revision int64
	// Observed is the revision that the agent reports to have acted on. An agent can report any number.
	Observed int64
	Ready    bool
	// StalledReason is why the agent cannot proceed; empty if it can.
	StalledReason string
	// Blocks are the blocks in the object, in the format of Encode.
	Blocks string
	// Holds are the holds in the object.
	Holds []v1alpha1.VersionHold
	// Release is the admitted release; nil if there is none.
	Release *v1alpha1.Release
	// Kept is what the cluster keeps of an admission that is not recorded on the hub; nil if there is none.
	Kept *v1alpha1.KeptAdmission
	// Drift is the drift policy in the object; empty means Report.
	Drift v1alpha1.DriftPolicy
	// Backup is the backup policy in the object.
	Backup *v1alpha1.BackupPolicy
	// StorageMigration is the request for a storage migration in the object.
	StorageMigration *v1alpha1.StorageMigration
}

// Failure is a condition's reason and the cause.
type Failure struct {
	Reason string
	Cause  string
}

// Input has all data that the decision depends on.
type Input struct {
	// Now is the hub's time.
	Now      time.Time
	Operator *v1alpha1.ManagedOperator
	// Catalog is nil if it does not exist.
	Catalog *v1alpha1.OperatorCatalog
	// Package is the package in the catalog's digest; nil if it was not read.
	Package *catalogs.Package
	// PackageFailure is why the package could not be read.
	PackageFailure *Failure
	// Clusters is the whole fleet.
	Clusters []rollouts.Cluster
	Installs []Install
	Rollouts []v1alpha1.OperatorRollout
	// Claims are the claims of all other ManagedOperators, in any order.
	Claims []engines.Claim
	// Access are all FleetAccess objects. Freezes are all FleetFreezes.
	Access  []v1alpha1.FleetAccess
	Freezes []v1alpha1.FleetFreeze
	// Cycle is a chain of dependencies from the operator to itself; empty if there is none.
	Cycle string
}

// Supersede ends a running rollout in favour of a newer one.
type Supersede struct {
	Rollout string
	Reason  string
}

// Block sets why a rollout's version is blocked. An empty reason removes the block.
type Block struct {
	Rollout string
	Reason  string
}

// Decision has the changes, which the executor makes in the order of the fields, and the new status.
type Decision struct {
	AddFinalizer bool
	// Holds are the versions that must be held; nil if spec.holds is correct.
	Holds *[]v1alpha1.VersionHold
	// Recover are the OperatorInstalls that get the admission that their cluster keeps.
	Recover []Recovery
	Block   *Block
	// SetBlocks are the OperatorInstalls whose blocks differ from Blocks, or whose holds differ from the spec's holds.
	SetBlocks []types.NamespacedName
	Blocks    []v1alpha1.VersionBlock
	// SetBackup are the OperatorInstalls whose backup policy differs from the spec's policy.
	SetBackup []types.NamespacedName
	// SetStorageMigration are the OperatorInstalls whose request differs from StorageMigration.
	SetStorageMigration []types.NamespacedName
	StorageMigration    *v1alpha1.StorageMigration
	// SetDrift are the OperatorInstalls whose drift policy differs from the operator's policy.
	SetDrift       []types.NamespacedName
	Supersede      *Supersede
	Create         *v1alpha1.OperatorRollout
	DeleteRollouts []string
	Removals       []removal.Step
	// Lost are rollouts that were deleted by someone else than the hub.
	Lost []v1alpha1.RolloutOutcome
	// Announce is a version that begins to wait for an approval; nil if there is none.
	Announce *v1alpha1.AvailableVersion
	// Decided are decisions that are new in the status.
	Decided []v1alpha1.Decision
	// RemoveFinalizer permits the object's deletion. The executor first checks with an uncached read that no install
	// is left.
	RemoveFinalizer bool
	Status          v1alpha1.ManagedOperatorStatus
	RecheckAfter    time.Duration
}

// Next returns the decision.
//
//	spec.adopt, nothing was taken over yet ─▶ release as installed, and the target after its rollout
//	spec ─▶ target in the catalog ─▶ release ─┬─ same as the newest rollout's ─▶ report
//	                                          ├─ differs, none runs ───────────▶ next rollout
//	                                          ├─ differs, Supersede ───────────▶ end the running one, next rollout
//	                                          └─ differs, Finish ──────────────▶ wait
//	the newest one ended RolledBack ─▶ version held, rollback ─▶ wait for it to end
//	found on clusters, not resumed ─▶ admission and holds recovered ─▶ wait for a person
//	blocks ─▶ written for the agents and for the newest rollout, independent of other decisions
//	frozen ─▶ nothing is recovered or removed there
//	deleted ─▶ rollouts deleted ─▶ installs removed by policy ─▶ gone
func Next(in Input) Decision {
	p := newPass(in)
	p.decide()
	p.dropFrozenRemovals()
	return p.decision
}

// decide computes the whole decision, except for the effect of freezes on removals.
func (p *pass) decide() {
	p.recordAdoption()
	p.reportCounts()
	p.recordDecisions()
	if p.Operator.DeletionTimestamp != nil {
		p.removeOperator()
		return
	}
	p.decision.AddFinalizer = !hasFinalizer(p.Operator)
	p.recoverAdmissions()
	p.setBlocks()
	p.setDrift()
	p.setBackup()
	p.setStorageMigration()
	p.reviseHolds()
	summary := p.reconcileRollouts()
	p.pruneRollouts()
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
	// specError is why the spec cannot be used, with the name of the field; nil if it can be used.
	specError error
	// selected are the selected clusters by name, without clusters that leave the fleet.
	selected         map[string]rollouts.Cluster
	fleet            map[string]rollouts.Cluster
	installByCluster map[string]Install // by cluster
	newest           *v1alpha1.OperatorRollout
	// lastRecoverable is the highest revision of a cluster's admission that the hub continues from.
	lastRecoverable int64
	// offered is the package without its blocked versions; nil if it was not read or all its versions are blocked.
	offered *catalogs.Package
	// allBlockedError is why the package offers no version.
	allBlockedError error
	// blocks are the blocks in force on the package, by version.
	blocks map[string]v1alpha1.VersionBlock
	// withoutPath has the clusters without an upgrade path, if other clusters have one.
	withoutPath pathReport
	// unreachable are deselected clusters whose agent is offline.
	unreachable []string
	// paused are clusters from which the operator is not uninstalled while they are paused.
	paused []string
	// targetProblem is why the target cannot be rolled out after the take-over of the installed operators.
	targetProblem string
	// uninstallFailed are clusters that cannot uninstall the operator, if they block the removal from other clusters.
	uninstallFailed []string
}

// newPass indexes the input. Its decision has the current status, without the progress of a removal.
func newPass(in Input) *pass {
	p := &pass{
		Input: in, selected: map[string]rollouts.Cluster{}, fleet: map[string]rollouts.Cluster{},
		installByCluster: map[string]Install{},
	}
	p.decision.Status = *in.Operator.Status.DeepCopy()
	p.decision.Status.Removal = nil
	spec := in.Operator.Spec
	p.specError = rollouts.Validate(spec.ClusterSelector, spec.Strategy)
	selector, err := metav1.LabelSelectorAsSelector(&spec.ClusterSelector)
	p.selector = selector
	if p.specError == nil {
		p.specError = err
	}
	if p.specError == nil {
		p.specError = backups.Validate(spec.Backup)
	}
	for _, c := range in.Clusters {
		p.fleet[c.Name] = c
		if err == nil && !c.Deleting && p.selector.Matches(labels.Set(c.Labels)) {
			p.selected[c.Name] = c
		}
	}
	for _, i := range in.Installs {
		p.installByCluster[i.Cluster] = i
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
	p.lastRecoverable = rollouts.LastRecoverable(admitted, p.readResumedRevision())
	p.readBlocks()
	return p
}

// setDrift writes the drift policy to the OperatorInstalls. The policy is not part of the release, so a change of it
// installs nothing.
func (p *pass) setDrift() {
	if len(p.decision.Recover)+len(p.decision.SetBlocks) > 0 {
		return // the next pass does this, because each write needs the current object
	}
	drift := DriftPolicy(p.Operator.Spec.Install.Drift)
	for _, i := range p.Installs {
		if !i.Deleting && i.Drift != drift {
			p.decision.SetDrift = append(p.decision.SetDrift,
				types.NamespacedName{Namespace: i.Namespace, Name: i.Name})
		}
	}
}

// DriftPolicy converts a policy to the form of OperatorInstalls, in which Report is empty.
func DriftPolicy(policy v1alpha1.DriftPolicy) v1alpha1.DriftPolicy {
	if policy == v1alpha1.DriftReport {
		return ""
	}
	return policy
}

// reconcileRollouts starts or ends rollouts and begins removals as the spec requires, and returns a summary of the
// state. Removals begin even if a problem with the release prevents a rollout, but not with an invalid spec.
func (p *pass) reconcileRollouts() conditions.Summary {
	// resolveRelease also sets the target in the status, so it runs even if there is something to wait for.
	release, problem := p.resolveRelease()
	if summary := p.awaitResume(); summary != nil {
		return *summary
	}
	if summary := p.ensureRollback(); summary != nil {
		return *summary
	}
	if problem == nil {
		problem = p.checkHold(release)
	}
	if problem == nil {
		problem = p.checkConflict()
	}
	if problem == nil && !release.AsInstalled && !p.isUnfinishedRollbackTo(release) {
		problem = p.checkPaths(release)
	}
	if p.specError != nil {
		return newStalled(v1alpha1.ReasonInvalidSpec, p.explainInvalidSpec())
	}
	if p.Cycle != "" {
		return newStalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf(
			"spec.dependsOn leads back to the operator itself (%s), so no rollout would ever admit a cluster: remove "+
				"one of these dependencies", p.Cycle))
	}
	if len(p.selected) == 0 {
		// A selector that matches nothing is more likely a mistake than a
		// request to remove everything: nothing is removed.
		return newStalled(v1alpha1.ReasonNoClusters, p.explainNoClusters())
	}
	p.cancelRemovals()
	p.removeDeselected()
	if problem != nil {
		problem.Message += p.noteBlockedClusters() + p.noteRollbackState()
		return *problem
	}
	var summary conditions.Summary
	if p.needsRollout(release) {
		summary = p.startRollout(release)
	} else {
		summary = p.summarizeRollout(release)
	}
	summary.Message += p.collectNotes(release)
	return summary
}

// explainInvalidSpec says why the spec is not valid, and that a running rollout continues.
func (p *pass) explainInvalidSpec() string {
	text := p.specError.Error()
	if isRunning(p.newest) {
		text += fmt.Sprintf("; rollout %s continues as planned", p.newest.Name)
	}
	return text
}

// collectNotes describes the problems of some clusters that do not stop the other clusters.
func (p *pass) collectNotes(release v1alpha1.Release) string {
	var text string
	if len(p.withoutPath.clusters) > 0 {
		text += "; " + p.withoutPath.explain(release)
	}
	text += p.noteAfterAdoption() + p.noteBlockedClusters() + p.noteHolds() + p.noteWaitingApproval() +
		p.noteStaleReports() + p.noteFrozen()
	if r := p.decision.Status.Rollout; r != nil && r.StrategyOutdated {
		text += "; spec.strategy was changed and applies to the next rollout: set spec.restart to start one now"
	}
	if t := p.explainUninstall(); t != "" {
		text += "; no longer selected: " + t
	}
	if len(p.unreachable) > 0 {
		action := "be uninstalled"
		if p.Operator.Spec.RemovalPolicy == v1alpha1.RemovalRestore {
			action = "be put back as they were"
		}
		text += fmt.Sprintf("; no longer selected, but cannot %s because they are offline: %s", action,
			phrase.First(sortNames(p.unreachable), maxNamed))
	}
	return text + p.notePaused()
}

// newStalled returns the summary of a state in which a person must act.
func newStalled(reason, message string) conditions.Summary {
	return conditions.Summary{State: conditions.Stalled, Reason: reason, Message: message}
}

// newWaiting returns the summary of a state that ends by itself or after a planned step.
func newWaiting(reason, message string) conditions.Summary {
	return conditions.Summary{State: conditions.InProgress, Reason: reason, Message: message}
}
