// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// judge says what is wrong with policies, with their Secrets.
func judge(in Input, operators []paging.Operator,
	written map[types.NamespacedName]paging.Policy) map[types.NamespacedName]paging.Problem {
	out := paging.Check(in.Policies, paging.Hub{Namespace: in.Namespace, Objects: in.Kind == KindObject,
		Operators: operators, CheckPagerDuty: in.PagerDuty.Check})
	for i := range in.Policies {
		key := keyOfObject(&in.Policies[i])
		if _, wrong := out[key]; wrong {
			continue
		}
		if problem := checkSecrets(in, paging.PolicyOf(&in.Policies[i])); problem.Reason != "" {
			out[key] = problem
		} else if err := in.Refused[key]; err != nil {
			out[key] = paging.Problem{Reason: v1alpha1.ReasonConfigurationInvalid, Message: err.Error()}
		}
	}
	checkNames(in, out, written)
	return out
}

// checkNames finds a policy with the name of the fleet's, which was deleted and stays in
// force: both cannot be in one configuration.
func checkNames(in Input, problems map[types.NamespacedName]paging.Problem,
	written map[types.NamespacedName]paging.Policy) {
	for i := range in.Policies {
		p := &in.Policies[i]
		if _, wrong := problems[keyOfObject(p)]; !wrong && p.Spec.Scope == v1alpha1.PagingFleet &&
			p.DeletionTimestamp == nil {
			return
		}
	}
	for i := range in.Policies {
		p := &in.Policies[i]
		_, wrong := problems[keyOfObject(p)]
		if !wrong && p.Spec.Scope != v1alpha1.PagingFleet && written[keyOfObject(p)].IsFleet() {
			problems[keyOfObject(p)] = paging.Problem{Reason: v1alpha1.ReasonPolicyConflict, Message: "a policy of " +
				"this name with the scope Fleet was deleted, and stays in force until there is another one: create " +
				"one, or use another name here"}
		}
	}
}

// checkSecrets never puts a value into a message.
func checkSecrets(in Input, p paging.Policy) paging.Problem {
	for _, use := range p.Secrets() {
		seen := in.Secrets[SecretRef{p.Namespace, use.Name, use.Key}]
		problem := seen.Problem
		if problem == "" {
			problem = use.Format.Check(seen.Value)
		}
		if problem != "" {
			return paging.Problem{Reason: v1alpha1.ReasonSecretUnavailable, Message: fmt.Sprintf(
				"%s: key %s of Secret %s: %s", use.Of, use.Key, use.Name, problem)}
		}
	}
	return paging.Problem{}
}
