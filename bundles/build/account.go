// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

// Placement is the result for one object of the input.
type Placement struct {
	// Object is the kind and name of the object, and the place where it was read.
	Object string `json:"object"`
	// Becomes is the place of the object in the bundle, or the reason why it is left out.
	Becomes string `json:"becomes"`
}

// The results for objects of the input.
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

// record stores the result for an object.
func (a *assembler) record(o object, becomes string) { a.placements[o.Unstructured] = becomes }

// leaveOut records that an object is not in the bundle, and adds a warning with the reason.
func (a *assembler) leaveOut(o object, reason string) {
	a.record(o, leftOut+reason)
	a.warn("%v is left out: %s", o, reason)
}

// listPlacements returns the result for every object of the input, in the order of the input. It reports a problem for
// an object without a result, because such an object would be missing without a message.
func (a *assembler) listPlacements(objects []object) []Placement {
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
			a.addProblem("%v would be neither in the bundle nor reported as left out; this is a defect of Bellwether",
				o)
		}
		out = append(out, Placement{Object: o.String(), Becomes: becomes})
	}
	return out
}

// recordAll records the same result for all objects.
func recordAll[T any](a *assembler, objects []typedObject[T], becomes string) {
	for _, o := range objects {
		a.record(o.object, becomes)
	}
}
