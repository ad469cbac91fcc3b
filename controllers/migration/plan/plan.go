// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides which custom resources an agent has stored anew, and what the
// status of an OperatorInstall says about it. It is pure: it has no client, clock or
// logger.
package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/freeze"
	"github.com/bellwether-dev/bellwether/rollouts/veto"
)

const (
	// recheckBlocked is when to look again for what a person grants or permits.
	recheckBlocked = time.Minute
	// recheckSteady is when to look at the definitions again where nothing is to do.
	recheckSteady = 30 * time.Minute
	// retryFailed is how long after the end of a pass objects that failed are tried
	// again.
	retryFailed = 10 * time.Minute
	// maxProgress bounds the list in the status, as the API does.
	maxProgress = 20
	// maxVersions bounds how many versions an entry of it names, as the API does.
	maxVersions = 20
	maxMessage  = 1024
)

// Definition is what matters of a CustomResourceDefinition that the operator owns.
type Definition struct {
	Group, Plural string
	// Version is one that is served: the storage version if that is. Empty if none is.
	Version string
	// Storage is the version that objects are written in, and Stored are all that they
	// may be stored as.
	Storage    string
	Stored     []string
	Generation int64
}

// Name is the name of the definition.
func (d Definition) Name() string { return d.Plural + "." + d.Group }

// IsMigrated tells whether all objects are stored in the storage version.
func (d Definition) IsMigrated() bool { return len(d.old()) == 0 }

// old are the versions, other than the storage version, that objects may be stored
// as.
func (d Definition) old() []string {
	return slices.DeleteFunc(slices.Clone(d.Stored), func(v string) bool { return v == d.Storage })
}

// Observe reads a definition.
func Observe(crd *apiextensionsv1.CustomResourceDefinition) Definition {
	d := Definition{Group: crd.Spec.Group, Plural: crd.Spec.Names.Plural, Stored: crd.Status.StoredVersions,
		Generation: crd.Generation}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			d.Storage = v.Name
		}
		if v.Served && (v.Storage || d.Version == "") {
			d.Version = v.Name
		}
	}
	return d
}

// Input is everything that a decision rests on.
type Input struct {
	Now     time.Time
	Install *v1alpha1.OperatorInstall
	// Installed says that an operator is there, and Definitions are those that it owns.
	Installed   bool
	Definitions []Definition
	// Forbidden are those whose objects the agent may not store anew, or whose status
	// it may not write.
	Forbidden []string
	// Veto is what the cluster's owner refuses; nil if that is nothing.
	Veto *v1alpha1.ClusterVeto
	// Freeze is the FleetFreeze of the cluster; nil if there is none.
	Freeze *v1alpha1.FleetFreeze
}

// Decision is what to do next, and what the status says.
type Decision struct {
	// Migrate is the definition whose objects are stored anew now; nil for none.
	Migrate *Definition
	// Progress is what the status says of each definition; the one of Migrate is among
	// them.
	Progress []v1alpha1.StorageMigrationProgress
	// Condition is StorageMigrated; nil where nobody asks for a migration.
	Condition *metav1.Condition
	// RecheckAfter is when to decide again; zero if only a change matters.
	RecheckAfter time.Duration
}

// IsAsked tells whether the agent is asked to migrate.
func IsAsked(install *v1alpha1.OperatorInstall) bool {
	return install.Spec.StorageMigration != nil && install.DeletionTimestamp.IsZero()
}

// Next decides.
//
//	not asked ─▶ nothing
//	not installed, a permission is missing, all is migrated, vetoed ─▶ say so
//	the rollout goes on, or the release was reached by a rollback ───▶ say what is to be migrated
//	otherwise ─▶ migrate the first definition that needs it
func Next(in Input) Decision {
	if !IsAsked(in.Install) {
		return Decision{}
	}
	d := Decision{Progress: slices.Clone(in.Install.Status.StorageMigrations)}
	pending := slices.DeleteFunc(slices.Clone(in.Definitions), Definition.IsMigrated)
	switch {
	case !in.Installed:
		d.wait(v1alpha1.ReasonWaiting, "The operator is not installed.", recheckBlocked)
	case len(in.Forbidden) > 0:
		d.forbidden(in)
	case len(pending) == 0:
		d.set(true, v1alpha1.ReasonSucceeded, "All custom resources of the operator are stored in the storage version "+
			"of their definitions.")
		d.RecheckAfter = recheckSteady
	case in.Freeze != nil:
		d.wait(v1alpha1.ReasonFrozen, describe(pending)+" That does not go on: "+freeze.Message(in.Freeze)+".",
			recheckBlocked)
	case veto.Covers(in.Veto, in.Install.Spec.Operator):
		d.wait(v1alpha1.ReasonVetoed, describe(pending)+" That does not begin: "+veto.Message(in.Veto)+".",
			recheckBlocked)
	case in.Install.Spec.Admission != nil && in.Install.Spec.Admission.Rollback != nil:
		d.wait(v1alpha1.ReasonWaiting, describe(pending)+" They stay as they are after a rollback, until another "+
			"release is rolled out.", 0)
	case !isRolledOut(in.Install):
		d.wait(v1alpha1.ReasonWaiting, describe(pending)+" That begins once the rollout of the installed release has "+
			"succeeded.", 0)
	default:
		d.migrate(in, pending)
	}
	return d
}

// isRolledOut tells whether the rollout of exactly the release that is installed has
// succeeded.
func isRolledOut(install *v1alpha1.OperatorInstall) bool {
	hash := install.Spec.StorageMigration.ReleaseHash
	return hash != "" && install.Spec.Admission != nil && install.Spec.Admission.Hash == hash &&
		install.Status.SucceededHash == hash && len(install.Status.Path) == 0
}

// describe says what has to be migrated.
func describe(pending []Definition) string {
	d := pending[0]
	text := fmt.Sprintf("Objects of %s may be stored as %s", d.Name(), strings.Join(d.old(), ", "))
	if more := len(pending) - 1; more > 0 {
		text += fmt.Sprintf(", and those of %s in old versions too", phrase.Count(more, "other definition"))
	}
	return text + fmt.Sprintf("; they have to be stored anew as %s.", d.Storage)
}

func (d *Decision) set(migrated bool, reason, message string) {
	status := metav1.ConditionFalse
	if migrated {
		status = metav1.ConditionTrue
	}
	d.Condition = &metav1.Condition{Type: v1alpha1.ConditionStorageMigrated, Status: status, Reason: reason,
		Message: phrase.Truncate(message, maxMessage)}
}

func (d *Decision) wait(reason, message string, recheck time.Duration) {
	d.set(false, reason, message)
	d.RecheckAfter = recheck
}

// fail says what went wrong, and what to do.
func (d *Decision) fail(in Input, reason, message string) {
	advice := remedy.Advice(reason, remedy.Agent, remedy.Names{Operator: in.Install.Spec.Operator.Name})
	d.set(false, reason, strings.TrimSpace(phrase.Truncate(message, maxMessage/2)+" "+advice))
}

// forbidden says which permission is missing, with the command that grants it.
func (d *Decision) forbidden(in Input) {
	role := "bellwether-migrate-" + in.Install.Spec.Operator.Name
	d.set(false, v1alpha1.ReasonStorageMigrationForbidden, fmt.Sprintf("The agent may not store objects of %s anew, "+
		"or not write status.storedVersions of the definition. The owner of the cluster can permit it: `kubectl "+
		"create clusterrole %s --verb=list,patch --resource=%s,customresourcedefinitions.apiextensions.k8s.io/status "+
		"&& kubectl label clusterrole %s %s=true`", phrase.First(in.Forbidden, 3), role,
		strings.Join(in.Forbidden, ","), role, v1alpha1.LabelAggregateToMigration))
	d.RecheckAfter = recheckBlocked
}

// migrate chooses the first definition that is not to be left alone for now.
func (d *Decision) migrate(in Input, pending []Definition) {
	var failures []string
	for i := range pending {
		definition := pending[i]
		entry := d.entry(definition)
		switch failure, since := failureOf(definition, entry, in.Now); {
		case failure != "":
			failures = append(failures, failure)
			if d.RecheckAfter == 0 || retryFailed-since < d.RecheckAfter {
				d.RecheckAfter = retryFailed - since
			}
			continue
		case entry == nil, entry.Failed > 0 && entry.EndTime != nil:
			d.put(begin(definition, in.Now))
		}
		d.Migrate, d.RecheckAfter = &definition, 0
		d.set(false, v1alpha1.ReasonProgressing, describe(pending)+" The agent does that now.")
		return
	}
	d.fail(in, v1alpha1.ReasonStorageMigrationFailed, strings.Join(failures, " "))
}

// entry returns what was done for a definition as it is now; nil if nothing was.
func (d *Decision) entry(definition Definition) *v1alpha1.StorageMigrationProgress {
	for i := range d.Progress {
		p := &d.Progress[i]
		if p.Resource == definition.Name() && p.To == definition.Storage &&
			p.DefinitionGeneration == definition.Generation {
			return p
		}
	}
	return nil
}

func begin(d Definition, now time.Time) v1alpha1.StorageMigrationProgress {
	from := d.old()
	return v1alpha1.StorageMigrationProgress{Resource: d.Name(), From: from[:min(len(from), maxVersions)],
		To: d.Storage, DefinitionGeneration: d.Generation, StartTime: metav1.NewTime(now)}
}

// put sets what is said of a definition. The oldest entries are dropped where there
// are too many: what is migrated stands in the definitions.
func (d *Decision) put(entry v1alpha1.StorageMigrationProgress) {
	d.Progress = slices.DeleteFunc(d.Progress,
		func(p v1alpha1.StorageMigrationProgress) bool { return p.Resource == entry.Resource })
	d.Progress = append(d.Progress, entry)
	if len(d.Progress) > maxProgress {
		d.Progress = slices.Delete(d.Progress, 0, len(d.Progress)-maxProgress)
	}
}

// failureOf says why a definition is left alone for now, and since when; empty if it
// is not.
func failureOf(d Definition, p *v1alpha1.StorageMigrationProgress, now time.Time) (string, time.Duration) {
	switch {
	case d.Version == "":
		return fmt.Sprintf("No version of %s is served, so its objects cannot be stored anew.", d.Name()), 0
	case p == nil || p.EndTime == nil || p.Failed == 0 || now.Sub(p.EndTime.Time) >= retryFailed:
		return "", 0
	}
	return fmt.Sprintf("%s of %s could not be stored anew as %s: %s.", phrase.Count(p.Failed, "object"), d.Name(),
		d.Storage, strings.Join(p.Failures, "; ")), now.Sub(p.EndTime.Time)
}

// Current returns what is said of the definition that is migrated.
func (d *Decision) Current() *v1alpha1.StorageMigrationProgress { return d.entry(*d.Migrate) }

// Interrupted reports an error that keeps the agent from going on. It tries again.
func (d *Decision) Interrupted(in Input, err error) {
	d.fail(in, v1alpha1.ReasonStorageMigrationFailed, fmt.Sprintf("The migration of %s was interrupted: %v.",
		d.Migrate.Name(), err))
}
