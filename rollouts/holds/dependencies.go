// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// Dependency is an operator that has to be Ready on a cluster before another one is
// changed there.
type Dependency struct {
	v1alpha1.OperatorDependency
	// Installs of the operator, by cluster.
	Installs map[string]*v1alpha1.OperatorInstall
}

// unmet is the hold of a cluster on which a dependency is not met; nil if all are.
func unmet(dependencies []Dependency, cluster string) *rollouts.Hold {
	for _, d := range dependencies {
		if problem := d.problem(d.Installs[cluster]); problem != "" {
			return &rollouts.Hold{Reason: v1alpha1.ReasonDependencyNotMet,
				Message: fmt.Sprintf("operator %s, which has to come first, %s", d.Name, problem)}
		}
	}
	return nil
}

// problem says what is missing; empty if nothing is.
func (d Dependency) problem(o *v1alpha1.OperatorInstall) string {
	installed := &v1alpha1.InstalledVersion{}
	if o != nil && o.Status.Installed != nil {
		installed = o.Status.Installed
	}
	switch {
	case o == nil || installed.Bundle == "":
		return "is not installed there"
	case !isAtLeast(installed.Version, d.MinVersion):
		return fmt.Sprintf("has version %s there, and %s is the least", cmp.Or(installed.Version, installed.Bundle),
			d.MinVersion)
	case !rollouts.ObserveInstall(o).Ready:
		return fmt.Sprintf("is not Ready there (%s)", cmp.Or(conditions.Get(o.Status.Conditions,
			v1alpha1.ConditionReady).Reason, "nothing is reported"))
	}
	return ""
}

// isAtLeast tells whether a version is not lower than another one. A version that
// cannot be read is.
func isAtLeast(version, least string) bool {
	if least == "" {
		return true
	}
	is, err := semver.Parse(version)
	if err != nil {
		return false
	}
	want, err := semver.Parse(least)
	return err == nil && is.GTE(want)
}

// Cycle returns a way by which an operator depends on itself, as in "a, b, a"; empty
// if there is none. All operators are of one namespace.
func Cycle(name string, operators []v1alpha1.ManagedOperator) string {
	of := map[string][]v1alpha1.OperatorDependency{}
	for i := range operators {
		of[operators[i].Name] = operators[i].Spec.DependsOn
	}
	seen := map[string]bool{}
	var walk func(path []string) []string
	walk = func(path []string) []string {
		for _, d := range of[path[len(path)-1]] {
			next := append(slices.Clone(path), d.Name)
			if d.Name == name {
				return next
			}
			if seen[d.Name] {
				continue
			}
			seen[d.Name] = true
			if found := walk(next); found != nil {
				return found
			}
		}
		return nil
	}
	return strings.Join(walk([]string{name}), ", ")
}
