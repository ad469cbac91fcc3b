// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Validate returns an error for values that an API server admits and a rollout cannot use: selectors that are not
// valid, and gates that can never pass. The error names the value and its field in the spec of a ManagedOperator or
// an OperatorRollout.
func Validate(clusters metav1.LabelSelector, strategy v1alpha1.RolloutStrategy) error {
	spec, options := field.NewPath("spec"), validation.LabelSelectorValidationOptions{}
	problems := validation.ValidateLabelSelector(&clusters, options, spec.Child("clusterSelector"))
	if c := strategy.Preflight; c != nil && c.Job != nil {
		problems = append(problems, validateJob(spec.Child("strategy", "preflight", "job"), *c.Job)...)
	}
	waves := spec.Child("strategy", "waves")
	for i, w := range strategy.Waves {
		selector := w.Selector
		problems = append(problems, validateGates(w, waves.Index(i), tenantScope)...)
		problems = append(problems,
			validation.ValidateLabelSelector(selector, options, waves.Index(i).Child("selector"))...)
	}
	return problems.ToAggregate()
}
