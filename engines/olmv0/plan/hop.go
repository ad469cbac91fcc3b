// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Installed returns the CSV that the Subscription says is installed. OLM names
// it as soon as it exists, so its phase must be looked at too (olm.md, fact 10). What
// OLM installs first is named as the current one only, until OLM has seen that it
// exists.
func (c Cluster) Installed() (CSV, bool) {
	sub, ok := c.subscription()
	if !ok {
		return CSV{}, false
	}
	return c.csv(cmp.Or(sub.InstalledCSV, sub.CurrentCSV))
}

// MayAdvance tells whether the next hop may be offered under an admission:
//
//	what is installed       under this admission   under an earlier one
//	nothing, or Succeeded   yes                    yes
//	Failed                  no: a person decides   yes: this may be its fix
//	Pending, requirements   no                     yes, abandoning it
//	Pending, not upgradeable no                    no: the operator said so
//	anything else           no                     yes after installPatience, abandoning it
//
// OLM itself replaces only what is Succeeded or Failed. A CSV that replaces a
// Pending one waits for ever, and nothing is resolved while the one before is
// Replacing. Hence an unfinished CSV is abandoned first.
func (c Cluster) MayAdvance(now time.Time, revision int64) bool {
	csv, ok := c.Installed()
	if !ok || csv.Phase == string(operatorsv1alpha1.CSVPhaseSucceeded) {
		return true
	}
	if c.approvedUnder(csv.Name) == revision {
		return false
	}
	return csv.Phase == string(operatorsv1alpha1.CSVPhaseFailed) || csv.isUnrecoverable(now)
}

// MayGoBack tells whether an older version may be offered in place of what is
// installed, under an admission that asks for that. What did not finish is not
// waited for; where the version before it is still there it is withdrawn first.
func (c Cluster) MayGoBack(revision int64) bool {
	csv, ok := c.Installed()
	if !ok {
		return false
	}
	_, isHalfway := c.csv(csv.Replaces)
	return !isHalfway && c.approvedUnder(csv.Name) != revision
}

// CurrentHop returns the upgrade that OLM carries out now: the new CSV, and the
// one that it replaces, which stays until the new one is Succeeded. There is none
// where the next hop may be offered instead.
//
// The view that led to the hop must be kept meanwhile. Another view would make
// OLM resolve during the hop: that fails, and delays the hop, because OLM limits
// its own requests.
func (c Cluster) CurrentHop(now time.Time, revision int64) (from, to CSV, ok bool) {
	installed, ok := c.Installed()
	if !ok {
		return CSV{}, CSV{}, false
	}
	for _, csv := range c.CSVs {
		before, there := c.csv(csv.Replaces)
		switch {
		case !there, csv.Deleting, csv.isFinished():
		case csv.Replaces == installed.Name, csv.Name == installed.Name && !c.MayAdvance(now, revision):
			return before, csv, true
		}
	}
	return CSV{}, CSV{}, false
}

// isFinished tells whether OLM has finished the installation of a CSV, or has
// begun to replace it.
func (c CSV) isFinished() bool {
	switch operatorsv1alpha1.ClusterServiceVersionPhase(c.Phase) {
	case operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseReplacing, operatorsv1alpha1.CSVPhaseDeleting:
		return true
	}
	return false
}

// isEnding tells whether a CSV is being deleted, or is about to be.
func (c CSV) isEnding() bool {
	return c.Deleting || c.Phase == string(operatorsv1alpha1.CSVPhaseDeleting)
}

// CSVsBefore returns the names of the CSVs that were there before the hop to the
// named one, sorted; of all of them if to is empty.
func (c Cluster) CSVsBefore(to string) []string {
	brought := map[string]bool{}
	for _, p := range c.InstallPlans {
		if to == "" || !slices.Contains(p.CSVs, to) {
			continue
		}
		for _, name := range p.CSVs {
			brought[name] = true
		}
	}
	var names []string
	for _, csv := range c.CSVs {
		if !brought[csv.Name] {
			names = append(names, csv.Name)
		}
	}
	slices.Sort(names)
	return names
}

// approvedUnder returns the revision under which a CSV's InstallPlan was
// approved; 0 if that was not done by Bellwether, or its plan is gone.
func (c Cluster) approvedUnder(csv string) int64 {
	var revision int64
	for _, p := range c.InstallPlans {
		if slices.Contains(p.CSVs, csv) {
			revision = max(revision, p.Revision)
		}
	}
	return revision
}

// isUnrecoverable tells whether an unfinished CSV has been waited for long
// enough.
func (c CSV) isUnrecoverable(now time.Time) bool {
	switch {
	case c.Reason == string(operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable):
		return false
	case c.Reason == string(operatorsv1alpha1.CSVReasonRequirementsNotMet):
		return now.Sub(c.Since) >= requirementsGrace
	default:
		// OLM starts a failed installation anew, so its phase alone is never old.
		return now.Sub(c.Created) >= installPatience && now.Sub(c.Since) >= csvFailedGrace
	}
}

func (c Cluster) subscription() (Subscription, bool) {
	for _, s := range c.Subscriptions {
		if s.Ours {
			return s, true
		}
	}
	return Subscription{}, false
}

func (c Cluster) csv(name string) (CSV, bool) {
	for _, csv := range c.CSVs {
		if csv.Name == name {
			return csv, true
		}
	}
	return CSV{}, false
}
