// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// FreezeOf returns the first freeze, by name, that covers a cluster. It returns nil if there is none. A freeze that is
// being deleted has ended.
func FreezeOf(all []v1alpha1.FleetFreeze, cluster string) *v1alpha1.FleetFreeze {
	var found *v1alpha1.FleetFreeze
	for i := range all {
		f := &all[i]
		if f.DeletionTimestamp.IsZero() && (found == nil || f.Name < found.Name) && hasCluster(f, cluster) {
			found = f
		}
	}
	return found
}

// hasCluster reports whether a freeze covers a cluster.
func hasCluster(f *v1alpha1.FleetFreeze, cluster string) bool {
	return slices.ContainsFunc(f.Spec.Clusters, func(pattern string) bool { return matchesPattern(pattern, cluster) })
}

// matchesPattern reports whether a pattern in the spec of a freeze matches the name of a cluster. An invalid pattern
// matches nothing.
func matchesPattern(pattern, cluster string) bool {
	matched, err := path.Match(pattern, cluster)
	return matched && err == nil
}

// patternCharacters are the characters that the API permits in names and patterns of clusters.
const patternCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-*?"

// IsClusterPattern reports whether the API permits a text in the spec of a freeze, as the name of a cluster or as a
// pattern of names.
func IsClusterPattern(text string) bool { return strings.Trim(text, patternCharacters) == "" }

// MatchClusters returns the names of clusters that a pattern in the spec of a freeze matches, in their order.
func MatchClusters(pattern string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !matchesPattern(pattern, name) })
}

// ListUnrecorded returns the names of the clusters that a freeze covers and whose status does not show a freeze.
func ListUnrecorded(f *v1alpha1.FleetFreeze, clusters []v1alpha1.FleetCluster) []string {
	var out []string
	for i := range clusters {
		c := &clusters[i]
		if c.Status.Freeze == nil && FreezeOf([]v1alpha1.FleetFreeze{*f}, c.Name) != nil {
			out = append(out, c.Name)
		}
	}
	return out
}

// FreezeMessage describes a freeze and how a person ends it, as a sentence without a period.
func FreezeMessage(f *v1alpha1.FleetFreeze) string {
	return fmt.Sprintf("FleetFreeze %s stops all changes there: %s; to end it, a person runs `bellwether fleet "+
		"unfreeze %s`", f.Name, strings.TrimRight(f.Spec.Reason, ". "), f.Name)
}
