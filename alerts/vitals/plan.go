// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vitals interprets observations of an operator: whether it is within the grace period of
// an upgrade, whether one of its custom resources is ready, and how an admission ended. It is pure:
// its inputs are observations and the time, and it must not read a clock, a cluster or a metric.
package vitals

import (
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Grace is how long each step of an admitted upgrade excuses an operator that
// is not Succeeded. It is twice as long as OLM itself waits for Deployments.
const Grace = 10 * time.Minute

// CSV contains the fields of a ClusterServiceVersion that are needed here.
type CSV struct {
	Name, Replaces string
	Created        time.Time
}

// Observation is the observed state of an operator that is being installed or upgraded.
type Observation struct {
	Install *v1alpha1.OperatorInstall
	// Subscribed is when the Subscription was created; zero if there is none.
	Subscribed time.Time
	// Installed and Current are the CSVs that the Subscription names; either may
	// be empty.
	Installed, Current string
	// CSVs are all CSVs in the operator's namespace.
	CSVs []CSV
}

// IsUpgrading reports whether the operator is within the grace period of an admitted release that
// has not succeeded yet. The period starts at the latest of these times: the admission, the
// creation of the newest of the operator's CSVs and, if nothing is installed, the creation of the
// Subscription. So each step has its own period, and the time before OLM begins does not count.
func IsUpgrading(h Observation, now time.Time) bool {
	admission := h.Install.Spec.Admission
	if admission == nil || h.Install.Status.SucceededHash == admission.Hash {
		return false
	}
	since := admission.AdmittedAt.Time
	if h.Installed == "" && h.Subscribed.After(since) {
		since = h.Subscribed
	}
	own := h.OwnCSVs()
	for _, csv := range h.CSVs {
		if slices.Contains(own, csv.Name) && csv.Created.After(since) {
			since = csv.Created
		}
	}
	return now.Sub(since) < Grace
}

// IsInstalling reports whether the operator is within the grace period and did not run before this
// admission, so that missing Deployments are expected. The Subscription shows this, because it exists
// through every upgrade. SucceededHash does not show it, because it is empty during an upgrade.
func IsInstalling(h Observation, now time.Time) bool {
	return IsUpgrading(h, now) && (h.Subscribed.IsZero() ||
		!h.Subscribed.Before(h.Install.Spec.Admission.AdmittedAt.Time))
}

// InstalledRelease returns the hash of the release that an installed version belongs
// to: the admitted release if it has that version, otherwise the release that
// succeeded before. It is empty while OLM changes from one release to the other.
func InstalledRelease(install *v1alpha1.OperatorInstall, version string) string {
	if a := install.Spec.Admission; a != nil && a.Release.Version == version {
		return a.Hash
	}
	return install.Status.SucceededHash
}

// OwnCSVs returns the names of the CSVs that belong to the operator: the CSVs that
// its Subscription names, CSVs that they replace, and CSVs that replace them.
func (h Observation) OwnCSVs() []string {
	var own []string
	for _, name := range []string{h.Installed, h.Current} {
		if name != "" && !slices.Contains(own, name) {
			own = append(own, name)
		}
	}
	for range h.CSVs { // each pass finds at least one CSV, or is the last pass
		count := len(own)
		for _, csv := range h.CSVs {
			own = h.addLinked(own, csv)
		}
		if len(own) == count {
			break
		}
	}
	return own
}

// addLinked adds a CSV if the CSV that it replaces belongs to the operator. If the CSV
// itself belongs to the operator, it adds the CSV that it replaces, if that CSV exists.
func (h Observation) addLinked(own []string, csv CSV) []string {
	exists := slices.ContainsFunc(h.CSVs, func(c CSV) bool { return c.Name == csv.Replaces })
	switch isOwn, isReplacedOwn := slices.Contains(own, csv.Name), slices.Contains(own, csv.Replaces); {
	case isOwn && !isReplacedOwn && exists:
		return append(own, csv.Replaces)
	case !isOwn && isReplacedOwn && csv.Replaces != "":
		return append(own, csv.Name)
	}
	return own
}
