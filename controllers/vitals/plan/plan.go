// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what the vital signs of an operator mean: whether it is
// within the grace of an upgrade, whether one of its custom resources is ready,
// and how an admission ended. It is pure: what was observed comes in, with the
// time. It must not read a clock, a cluster or a metric.
package plan

import (
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Grace is how long each hop of an admitted upgrade excuses an operator that is
// not Succeeded. It is twice what OLM itself waits for Deployments.
const Grace = 10 * time.Minute

// CSV is what counts of a ClusterServiceVersion.
type CSV struct {
	Name, Replaces string
	Created        time.Time
}

// Hop is what was observed of an operator on its way to a release.
type Hop struct {
	Install *v1alpha1.OperatorInstall
	// Subscribed is when the Subscription was made; zero if it was not.
	Subscribed time.Time
	// Installed and Current are the CSVs that the Subscription names; either may
	// be empty.
	Installed, Current string
	// CSVs are all of the operator's namespace.
	CSVs []CSV
}

// Upgrading tells whether the operator is within the grace of an admitted
// release that has not succeeded yet. The grace runs from the latest of the
// admission, the newest of the operator's CSVs and, where nothing is installed,
// the Subscription. So each hop has its own; an admission that waits for hours
// before OLM begins has used none of it; one that takes longer is no excuse.
func Upgrading(h Hop, now time.Time) bool {
	admission := h.Install.Spec.Admission
	if admission == nil || h.Install.Status.SucceededHash == admission.Hash {
		return false
	}
	since := admission.AdmittedAt.Time
	if h.Installed == "" && h.Subscribed.After(since) {
		since = h.Subscribed
	}
	own := h.Own()
	for _, csv := range h.CSVs {
		if slices.Contains(own, csv.Name) && csv.Created.After(since) {
			since = csv.Created
		}
	}
	return now.Sub(since) < Grace
}

// Installing tells whether the operator is within that grace and did not run
// before this admission: none of its Deployments can be missed yet. Its
// Subscription says so, which outlives every upgrade. SucceededHash does not: it
// is empty from the beginning of an upgrade to its end, when Deployments count
// the most.
func Installing(h Hop, now time.Time) bool {
	return Upgrading(h, now) && (h.Subscribed.IsZero() ||
		!h.Subscribed.Before(h.Install.Spec.Admission.AdmittedAt.Time))
}

// Release returns the hash of the release that an installed version belongs to:
// the admitted one if it has that version, otherwise the one that succeeded
// before. It is empty between the two, while OLM goes from one to the other.
func Release(install *v1alpha1.OperatorInstall, version string) string {
	if a := install.Spec.Admission; a != nil && a.Release.Version == version {
		return a.Hash
	}
	return install.Status.SucceededHash
}

// Own returns the names of the CSVs that belong to the operator, and not to
// something else in its namespace: those that its Subscription names, and what
// they replace or are replaced by.
func (h Hop) Own() []string {
	var own []string
	for _, name := range []string{h.Installed, h.Current} {
		if name != "" && !slices.Contains(own, name) {
			own = append(own, name)
		}
	}
	for range h.CSVs {
		before := len(own)
		for _, csv := range h.CSVs {
			own = h.join(own, csv)
		}
		if len(own) == before {
			break
		}
	}
	return own
}

// join adds what a CSV links to those that are the operator's already.
func (h Hop) join(own []string, csv CSV) []string {
	there := slices.ContainsFunc(h.CSVs, func(c CSV) bool { return c.Name == csv.Replaces })
	switch has, hasReplaced := slices.Contains(own, csv.Name), slices.Contains(own, csv.Replaces); {
	case has && !hasReplaced && there:
		return append(own, csv.Replaces)
	case !has && hasReplaced && csv.Replaces != "":
		return append(own, csv.Name)
	}
	return own
}
