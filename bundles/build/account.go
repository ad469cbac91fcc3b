// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

// Placement says what became of one object of the input.
type Placement struct {
	// Object is its kind and name, and where it was read.
	Object string `json:"object"`
	// Becomes is where it is in the bundle, or that it is left out, and why.
	Becomes string `json:"becomes"`
}

// What becomes of objects.
const (
	becomesManifest    = "a manifest"
	becomesBase        = "the base of the " + kindCSV
	becomesStrategy    = "a Deployment of the install strategy"
	becomesPermissions = "permissions of the " + kindCSV
	becomesBoth        = "permissions of the " + kindCSV + ", and a manifest"
	becomesBinding     = "a binding that OLM makes for the permissions"
	becomesAccount     = "a service account that OLM makes"
	becomesWebhooks    = "webhook definitions of the " + kindCSV
	becomesExample     = "an example in the annotation " + annotationExamples
	becomesScorecard   = "the configuration of the scorecard"
	leftOut            = "left out: "
)

// record notes what became of an object.
func (a *assembly) record(o object, becomes string) { a.placements[o.Unstructured] = becomes }

// leaveOut records and reports that an object is not in the bundle, and why.
func (a *assembly) leaveOut(o object, reason string) {
	a.record(o, leftOut+reason)
	a.warn("%v is left out: %s", o, reason)
}

// account lists what became of every object of the input, in its order. An object that nobody placed is a problem: it
// would be missing without a word.
func (a *assembly) account(objects []object) []Placement {
	for _, o := range a.objects.manifests {
		if a.placements[o.Unstructured] == "" {
			a.record(o, becomesManifest)
		}
	}
	recordAll(a, a.bases, becomesBase)
	recordAll(a, a.objects.deployments, becomesStrategy)
	recordAll(a, a.objects.crds, becomesManifest)
	recordAll(a, a.objects.validating, becomesWebhooks)
	recordAll(a, a.objects.mutating, becomesWebhooks)
	for _, o := range a.objects.examples {
		a.record(o, becomesExample)
	}
	for _, o := range a.objects.scorecard {
		a.record(o, becomesScorecard)
	}
	out := make([]Placement, 0, len(objects))
	for _, o := range objects {
		becomes := a.placements[o.Unstructured]
		if becomes == "" {
			a.problem("%v would be neither in the bundle nor reported as left out; this is a defect of Bellwether", o)
		}
		out = append(out, Placement{Object: o.String(), Becomes: becomes})
	}
	return out
}

func recordAll[T any](a *assembly, objects []typed[T], becomes string) {
	for _, o := range objects {
		a.record(o.object, becomes)
	}
}
