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

// Dependency is an operator that must be Ready on a cluster before another operator is changed there.
type Dependency struct {
	v1alpha1.OperatorDependency
	// Installs are the installs of the operator, by cluster.
	Installs map[string]*v1alpha1.OperatorInstall
}

// findUnmetDependency returns the hold of a cluster on which a dependency is not met. It returns nil if all are met.
func findUnmetDependency(dependencies []Dependency, cluster string) *rollouts.Hold {
	for _, d := range dependencies {
		if problem := d.explainProblem(d.Installs[cluster]); problem != "" {
			return &rollouts.Hold{Reason: v1alpha1.ReasonDependencyNotMet,
				Message: fmt.Sprintf("operator %s, which must come first, %s", d.Name, problem)}
		}
	}
	return nil
}

// explainProblem says why the dependency is not met. It returns "" if it is met. o is nil if there is no install.
func (d Dependency) explainProblem(o *v1alpha1.OperatorInstall) string {
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

// isAtLeast reports whether a version is at least the minimum. A version that cannot be parsed is not.
func isAtLeast(version, minimum string) bool {
	if minimum == "" {
		return true
	}
	parsed, err := semver.Parse(version)
	if err != nil {
		return false
	}
	parsedMinimum, err := semver.Parse(minimum)
	return err == nil && parsed.GTE(parsedMinimum)
}

// FindCycle returns a chain of dependencies from an operator to itself, such as "a, b, a". It returns "" if there is
// none. All operators must be in the same namespace.
func FindCycle(name string, operators []v1alpha1.ManagedOperator) string {
	dependencies := map[string][]v1alpha1.OperatorDependency{}
	for i := range operators {
		dependencies[operators[i].Name] = operators[i].Spec.DependsOn
	}
	isVisited := map[string]bool{}
	// walk returns path, continued until it reaches name again; nil if it cannot.
	var walk func(path []string) []string
	walk = func(path []string) []string {
		for _, d := range dependencies[path[len(path)-1]] {
			next := append(slices.Clone(path), d.Name)
			if d.Name == name {
				return next
			}
			if isVisited[d.Name] {
				continue
			}
			isVisited[d.Name] = true
			if found := walk(next); found != nil {
				return found
			}
		}
		return nil
	}
	return strings.Join(walk([]string{name}), ", ")
}
