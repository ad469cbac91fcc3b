// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// findProblems returns the first problem of each policy that has one, by namespace and name: of its spec, of
// its Secrets, of its AlertmanagerConfig if the API server refused it, or of its name.
func findProblems(in Input, operators []Operator,
	written map[types.NamespacedName]Policy) map[types.NamespacedName]Problem {
	out := Check(in.Policies, Hub{Namespace: in.Namespace, Objects: in.Kind == KindObject,
		Operators: operators, CheckPagerDuty: in.PagerDuty.Check})
	for i := range in.Policies {
		key := toObjectKey(&in.Policies[i])
		if _, wrong := out[key]; wrong {
			continue
		}
		if problem := checkSecrets(in, ToPolicy(&in.Policies[i])); problem.Reason != "" {
			out[key] = problem
		} else if err := in.Refused[key]; err != nil {
			out[key] = Problem{Reason: v1alpha1.ReasonConfigurationInvalid, Message: err.Error()}
		}
	}
	checkNames(in, out, written)
	return out
}

// checkNames adds a problem to a policy that has the same name as the deleted
// policy of the fleet that stays in force: both cannot be in one configuration.
func checkNames(in Input, problems map[types.NamespacedName]Problem,
	written map[types.NamespacedName]Policy) {
	for i := range in.Policies {
		p := &in.Policies[i]
		if _, wrong := problems[toObjectKey(p)]; !wrong && p.Spec.Scope == v1alpha1.PagingFleet &&
			p.DeletionTimestamp == nil {
			return // this policy of the fleet replaces the deleted policy
		}
	}
	for i := range in.Policies {
		p := &in.Policies[i]
		_, wrong := problems[toObjectKey(p)]
		if !wrong && p.Spec.Scope != v1alpha1.PagingFleet && written[toObjectKey(p)].IsFleet() {
			problems[toObjectKey(p)] = Problem{Reason: v1alpha1.ReasonPolicyConflict, Message: "a policy of " +
				"this name with the scope Fleet was deleted, and stays in force until there is another one: create " +
				"one, or use another name here"}
		}
	}
}

// checkSecrets returns a problem of the Secrets of a policy. The message never contains a value.
func checkSecrets(in Input, p Policy) Problem {
	for _, use := range p.Secrets() {
		secret := in.Secrets[SecretRef{p.Namespace, use.Name, use.Key}]
		problem := secret.Problem
		if problem == "" {
			problem = use.Format.Check(secret.Value)
		}
		if problem != "" {
			return Problem{Reason: v1alpha1.ReasonSecretUnavailable, Message: fmt.Sprintf(
				"%s: key %s of Secret %s: %s", use.Field, use.Key, use.Name, problem)}
		}
	}
	return Problem{}
}
