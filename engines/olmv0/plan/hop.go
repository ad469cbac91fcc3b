// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Installed returns the CSV that the Subscription names as installed. OLM names the CSV as soon as it exists, so the
// caller must also check its phase (olm.md, fact 10). During a first installation, OLM names the CSV only as the
// current CSV, until OLM has detected that the CSV exists.
func (c Cluster) Installed() (CSV, bool) {
	sub, ok := c.findSubscription()
	if !ok {
		return CSV{}, false
	}
	return c.findCSV(cmp.Or(sub.InstalledCSV, sub.CurrentCSV))
}

// MayAdvance reports whether the next hop may be offered under an admission:
//
//	installed CSV            under this admission   under an earlier admission
//	none, or Succeeded       yes                    yes
//	Failed                   no: a person decides   yes: this may be its fix
//	Pending, requirements    no                     yes, after abandoning it
//	Pending, not upgradeable no                     no: the operator forbids it
//	any other phase          no                     yes, after installPatience and abandoning it
//
// OLM itself replaces only a CSV that is Succeeded or Failed. A CSV that replaces a Pending CSV waits forever, and
// OLM resolves nothing while the previous CSV is Replacing. Therefore an unfinished CSV is abandoned first.
func (c Cluster) MayAdvance(now time.Time, revision int64) bool {
	csv, ok := c.Installed()
	if !ok || csv.Phase == string(operatorsv1alpha1.CSVPhaseSucceeded) {
		return true
	}
	if c.findApprovedRevision(csv.Name) == revision {
		return false
	}
	return csv.Phase == string(operatorsv1alpha1.CSVPhaseFailed) || csv.isUnrecoverable(now)
}

// MayGoBack reports whether an older version may be offered in place of the installed version, under the admission of a
// rollback with this revision. It reports false while the CSV that the installed CSV replaces still exists, because
// withdraw must first stop that upgrade, and false if OLM already installs the version of this admission.
func (c Cluster) MayGoBack(revision int64) bool {
	csv, ok := c.Installed()
	if !ok {
		return false
	}
	_, isHalfway := c.findCSV(csv.Replaces)
	return !isHalfway && c.findApprovedRevision(csv.Name) != revision
}

// CurrentHop returns the upgrade that OLM carries out now: the old CSV, which stays until the new CSV is Succeeded,
// and the new CSV. ok is false if there is no upgrade, or if the next hop may be offered instead.
//
// The view that led to the hop must stay during the hop. Another view would make OLM resolve, which fails and delays
// the hop, because OLM limits its own requests.
func (c Cluster) CurrentHop(now time.Time, revision int64) (from, to CSV, ok bool) {
	installed, ok := c.Installed()
	if !ok {
		return CSV{}, CSV{}, false
	}
	for _, csv := range c.CSVs {
		previous, exists := c.findCSV(csv.Replaces)
		isInstalled := csv.Name == installed.Name
		switch {
		case !exists, csv.Deleting, csv.isFinished():
			// the CSV is not the new CSV of an upgrade
		// OLM names the old CSV as installed, or already the new CSV; a new CSV that may be replaced is no current hop.
		case csv.Replaces == installed.Name, isInstalled && !c.MayAdvance(now, revision):
			return previous, csv, true
		}
	}
	return CSV{}, CSV{}, false
}

// isFinished reports whether OLM has finished the installation of a CSV, or has begun to replace it.
func (c CSV) isFinished() bool {
	switch operatorsv1alpha1.ClusterServiceVersionPhase(c.Phase) {
	case operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseReplacing, operatorsv1alpha1.CSVPhaseDeleting:
		return true
	}
	return false
}

// isEnding reports whether a CSV is being deleted or will soon be deleted.
func (c CSV) isEnding() bool {
	return c.Deleting || c.Phase == string(operatorsv1alpha1.CSVPhaseDeleting)
}

// CSVsBefore returns the names of the CSVs that existed before the hop to the named CSV, sorted: all CSVs except for
// the CSVs of the hop's InstallPlans. If to is empty, it returns the names of all CSVs.
func (c Cluster) CSVsBefore(to string) []string {
	isNew := map[string]bool{}
	for _, p := range c.InstallPlans {
		if to == "" || !slices.Contains(p.CSVs, to) {
			continue
		}
		for _, name := range p.CSVs {
			isNew[name] = true
		}
	}
	var names []string
	for _, csv := range c.CSVs {
		if !isNew[csv.Name] {
			names = append(names, csv.Name)
		}
	}
	slices.Sort(names)
	return names
}

// findApprovedRevision returns the revision under which a CSV's InstallPlan was approved; 0 if Bellwether did not
// approve it, or the plan was deleted.
func (c Cluster) findApprovedRevision(csv string) int64 {
	var revision int64
	for _, p := range c.InstallPlans {
		if slices.Contains(p.CSVs, csv) {
			revision = max(revision, p.Revision)
		}
	}
	return revision
}

// isUnrecoverable reports whether an unfinished CSV has had enough time to finish, so that it may be abandoned.
func (c CSV) isUnrecoverable(now time.Time) bool {
	switch {
	case c.Reason == string(operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable):
		return false // the previous operator forbids the upgrade, and may permit it at any time
	case c.Reason == string(operatorsv1alpha1.CSVReasonRequirementsNotMet):
		return now.Sub(c.Since) >= requirementsGrace
	default:
		// OLM restarts a failed installation, so the age of the phase alone is not enough.
		return now.Sub(c.Created) >= installPatience && now.Sub(c.Since) >= csvFailedGrace
	}
}

// findSubscription returns the operator's Subscription; false if there is none.
func (c Cluster) findSubscription() (Subscription, bool) {
	for _, s := range c.Subscriptions {
		if s.IsOwn {
			return s, true
		}
	}
	return Subscription{}, false
}

// findCSV returns a CSV of the operator's namespace; false if it does not exist.
func (c Cluster) findCSV(name string) (CSV, bool) {
	for _, csv := range c.CSVs {
		if csv.Name == name {
			return csv, true
		}
	}
	return CSV{}, false
}
