// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freeze finds what has stopped Bellwether on a cluster. It is pure. Hub, agents and command line ask it.
package freeze

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Of returns the first freeze, by its name, that a cluster is under; nil if there is none. One that is being deleted
// has ended.
func Of(all []v1alpha1.FleetFreeze, cluster string) *v1alpha1.FleetFreeze {
	var found *v1alpha1.FleetFreeze
	for i := range all {
		f := &all[i]
		if f.DeletionTimestamp.IsZero() && (found == nil || f.Name < found.Name) && covers(f, cluster) {
			found = f
		}
	}
	return found
}

func covers(f *v1alpha1.FleetFreeze, cluster string) bool {
	return slices.ContainsFunc(f.Spec.Clusters, func(pattern string) bool {
		matched, err := path.Match(pattern, cluster)
		return matched && err == nil
	})
}

// Message says what a freeze is and how it ends, as a sentence without a stop.
func Message(f *v1alpha1.FleetFreeze) string {
	return fmt.Sprintf("FleetFreeze %s stops all changes there: %s; to end it, a person runs `bellwether fleet "+
		"unfreeze %s`", f.Name, strings.TrimRight(f.Spec.Reason, ". "), f.Name)
}
