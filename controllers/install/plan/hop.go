// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Installed returns the CSV that the Subscription says is installed. OLM names
// it as soon as it exists, so its phase must be looked at too (olm.md, fact 10).
func (c Cluster) Installed() (CSV, bool) {
	sub, ok := c.subscription()
	if !ok || sub.InstalledCSV == "" {
		return CSV{}, false
	}
	return c.csv(sub.InstalledCSV)
}

// MayAdvance tells whether the next hop may be offered: nothing is installed,
// or what is installed has finished, one way or the other. An operator that
// never came up holds the next hop back only for so long, since the next
// release may be its fix.
func (c Cluster) MayAdvance(now time.Time) bool {
	csv, ok := c.Installed()
	if !ok {
		return true
	}
	switch operatorsv1alpha1.ClusterServiceVersionPhase(csv.Phase) {
	case operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseFailed:
		return true
	default:
		return now.Sub(csv.Created) > hopPatience
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
