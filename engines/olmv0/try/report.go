// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"errors"
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Report is the result of a trial.
type Report struct {
	Package string `json:"package"`
	Bundle  string `json:"bundle"`
	// From is the bundle that was installed first; empty if there is none.
	From        string                            `json:"from,omitempty"`
	Namespace   string                            `json:"namespace,omitempty"`
	InstallMode operatorsv1alpha1.InstallModeType `json:"installMode,omitempty"`
	Steps       []Step                            `json:"steps"`
	// Examples are the custom resources that were created.
	Examples []Example `json:"examples,omitempty"`
	Pods     Pods      `json:"pods"`
	// Rights are the permissions of the ServiceAccounts of the ClusterServiceVersion.
	Rights []Rights `json:"rights,omitempty"`
	// Denials are the requests of the operator that RBAC denied and that logs of pods or Events contain.
	Denials []Denial `json:"denials,omitempty"`
	// Problems are why the bundle does not pass; empty if it does.
	Problems []string `json:"problems,omitempty"`
	// Notes are remarks that need no action.
	Notes []string `json:"notes,omitempty"`
	// Complete is set if the trial carried out all steps.
	Complete bool `json:"complete"`
	// Kept is set if everything was left on the cluster.
	Kept bool `json:"kept,omitempty"`
}

// Step is a part of a trial.
type Step struct {
	Name    string  `json:"name"`
	Passed  bool    `json:"passed"`
	Message string  `json:"message"`
	Seconds float64 `json:"seconds"`
	// Stopped is set if an error, which Run returns, ended the trial in this step.
	Stopped bool `json:"-"`
}

// Passed reports whether the trial found no problems.
func (r *Report) Passed() bool { return len(r.Problems) == 0 }

// State is the state of an example.
type State string

// The states of an example.
const (
	// Ready is the state of an object whose status matches its spec.
	Ready State = "Ready"
	// NotReady is the state of any other object with a status.
	NotReady State = "NotReady"
	// NoStatus is the state of an object without a status.
	NoStatus State = "NoStatus"
	// Refused is the state of an object that the API server does not accept.
	Refused State = "Refused"
)

// Example is a custom resource of the annotation alm-examples.
type Example struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace,omitempty"`
	// Of is the bundle that has the example.
	Of      string `json:"of"`
	State   State  `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
}

func (e Example) String() string { return e.Kind + "/" + e.Name }

// Pods counts the pods in the namespace of the trial.
type Pods struct {
	Total int `json:"total"`
	// Stubs are pods of a testbed that run nothing.
	Stubs int `json:"stubs"`
}

// IsStub reports whether the operator did not run, because all its pods are stubs.
func (p Pods) IsStub() bool { return p.Total > 0 && p.Stubs == p.Total }

// Rights are the permissions of a ServiceAccount.
type Rights struct {
	ServiceAccount string `json:"serviceAccount"`
	// Rules is how many rules the ClusterServiceVersion has for the ServiceAccount.
	Rules int `json:"rules"`
	// Missing are permissions that the ClusterServiceVersion requests and that were not granted.
	Missing []string `json:"missing,omitempty"`
}

// Denial is a request that RBAC denied.
type Denial struct {
	User     string `json:"user"`
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Group    string `json:"group,omitempty"`
	// Scope is "in the namespace NAME" or "at the cluster scope".
	Scope string `json:"scope,omitempty"`
	// Source is the log or Event that contains the denial.
	Source string `json:"source"`
}

func (d Denial) String() string {
	resource := d.Resource
	if d.Group != "" {
		resource += "." + d.Group
	}
	return strings.TrimSpace(fmt.Sprintf("%s may not %s %s %s", d.User, d.Verb, resource, d.Scope))
}

// setBundles sets the bundles of the report, and adds a note if the new bundle does not declare the upgrade.
func (r *Report) setBundles(o Options) {
	r.Package, r.Bundle = o.Bundle.Bundle.Package, o.Bundle.Bundle.Name
	if o.From != nil {
		r.From = o.From.Bundle.Name
		if !declaresUpgrade(o.Bundle.Bundle, o.From.Bundle) {
			r.addNote("%s names %s in none of replaces, skips and olm.skipRange. The catalog that it is published in "+
				"must have the upgrade.", r.Bundle, r.From)
		}
	}
}

// addNote adds a remark.
func (r *Report) addNote(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// failure is an error that means that the bundle does not work.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

func (f *failure) Is(target error) bool { return target == errBundle }

// failf returns a failure.
func failf(format string, args ...any) error { return &failure{text: fmt.Sprintf(format, args...)} }

// formatError returns an error as text for the report.
func formatError(err error) string {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.text
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return err.Error()
}
