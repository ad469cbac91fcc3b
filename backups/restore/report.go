// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import "fmt"

// Action is what a restore does with an object.
type Action string

const (
	// Create creates an object that does not exist.
	Create Action = "Create"
	// Fill adds the missing fields of an object.
	Fill Action = "Fill"
	// None does not change an object.
	None Action = "None"
	// Fail means that the object was not restored; Problem says why.
	Fail Action = "Fail"
)

// Result is what a restore did, or what a dry run would do, with one object.
type Result struct {
	Action Action `json:"action"`
	// Resource is the plural and the group.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Fields are the fields that are restored.
	Fields []string `json:"fields,omitempty"`
	// Kept are the fields with another value than in the backup. They do not change.
	Kept []string `json:"kept,omitempty"`
	// Pruned are fields that the API server dropped, because the CustomResourceDefinition does not have them.
	Pruned []string `json:"pruned,omitempty"`
	// DroppedOwners are owners that do not exist. The object has no references to them.
	DroppedOwners []string `json:"droppedOwners,omitempty"`
	Problem       string   `json:"problem,omitempty"`
}

// Object returns the resource and the name of the object.
func (r Result) Object() string {
	if r.Namespace == "" {
		return r.Resource + " " + r.Name
	}
	return fmt.Sprintf("%s %s/%s", r.Resource, r.Namespace, r.Name)
}

// Report counts what a restore did, or what a dry run would do.
type Report struct {
	DryRun    bool  `json:"dryRun,omitempty"`
	Objects   int64 `json:"objects"`
	Created   int64 `json:"created"`
	Filled    int64 `json:"filled"`
	Unchanged int64 `json:"unchanged"`
	Failed    int64 `json:"failed"`
	// Fields were restored. Kept fields have another value and do not change.
	Fields int64 `json:"fields"`
	Kept   int64 `json:"kept"`
	Pruned int64 `json:"pruned"`
	// DroppedOwners is how many references to owners were left out.
	DroppedOwners int64 `json:"droppedOwners"`
}

// addResult counts the result of one object.
func (r *Report) addResult(result Result) {
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
