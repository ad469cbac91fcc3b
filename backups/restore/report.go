// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import "fmt"

// Action is what a restore does with an object.
type Action string

const (
	// Create creates an object that is gone.
	Create Action = "Create"
	// Fill brings back fields that an object has lost.
	Fill Action = "Fill"
	// None leaves an object as it is.
	None Action = "None"
	// Fail says that the object was not restored; Problem says why.
	Fail Action = "Fail"
)

// Result is what a restore did, or with a dry run would do, with one object.
type Result struct {
	Action Action `json:"action"`
	// Resource is the plural and the group.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Fields are those that are brought back.
	Fields []string `json:"fields,omitempty"`
	// Kept are fields with another value than in the backup; they stay.
	Kept []string `json:"kept,omitempty"`
	// Pruned are fields that the API server did not take, because the
	// CustomResourceDefinition does not have them.
	Pruned []string `json:"pruned,omitempty"`
	// DroppedOwners are owners that do not exist, so that the object no longer
	// refers to them.
	DroppedOwners []string `json:"droppedOwners,omitempty"`
	Problem       string   `json:"problem,omitempty"`
}

// Object names the object.
func (r Result) Object() string {
	if r.Namespace == "" {
		return r.Resource + " " + r.Name
	}
	return fmt.Sprintf("%s %s/%s", r.Resource, r.Namespace, r.Name)
}

// Report counts what a restore did, or would do.
type Report struct {
	DryRun    bool  `json:"dryRun,omitempty"`
	Objects   int64 `json:"objects"`
	Created   int64 `json:"created"`
	Filled    int64 `json:"filled"`
	Unchanged int64 `json:"unchanged"`
	Failed    int64 `json:"failed"`
	// Fields were brought back, and Kept ones have another value and stay.
	Fields int64 `json:"fields"`
	Kept   int64 `json:"kept"`
	Pruned int64 `json:"pruned"`
	// DroppedOwners is how many references to owners were left out.
	DroppedOwners int64 `json:"droppedOwners"`
}

func (r *Report) add(result Result) {
	r.Objects++
	switch result.Action {
	case Create:
		r.Created++
	case Fill:
		r.Filled++
	case None:
		r.Unchanged++
	case Fail:
		r.Failed++
	}
	r.Fields += int64(len(result.Fields))
	r.Kept += int64(len(result.Kept))
	r.Pruned += int64(len(result.Pruned))
	r.DroppedOwners += int64(len(result.DroppedOwners))
}
