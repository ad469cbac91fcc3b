// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"
)

// TestVersionApprovalPolicy evaluates which users may approve a version of an operator. The
// testbed verifies that API servers enforce the policy.
func TestVersionApprovalPolicy(t *testing.T) {
	const olga, anna = "olga", "anna" // anna has the role bellwether-approve
	roles := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string,
		error) {
		if a.GetUser().GetName() == anna && a.GetVerb() == "approve" && a.GetAPIGroup() == "bellwether.dev" &&
			a.GetResource() == "managedoperators" && a.GetNamespace()+"/"+a.GetName() == "team/echo" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	operator := func(updates object) object {
		spec := object{"version": "1.x"}
		if updates != nil {
			spec["updates"] = updates
		}
		return object{"metadata": object{"name": "echo", "namespace": "team"}, "spec": spec}
	}
	approved := func(version, by string) object {
		return operator(object{"minor": "Approval",
			"approved": object{"version": version, "by": by, "reason": "tested"}})
	}
	policy := operator(object{"minor": "Approval"})
	p, there := policies(t)["bellwether-approvals-versions"]
	if !there {
		t.Fatal("nothing keeps people from approving versions")
	}
	e := newEvaluator(t)
	for name, test := range map[string]struct {
		by      string
		is, was any
		want    string
	}{
		"no updates":                      {olga, operator(nil), nil, ""},
		"a policy":                        {olga, policy, operator(nil), ""},
		"an approval, without the role":   {olga, approved("1.2.0", olga), policy, "olga may not approve a version"},
		"the role is named":               {olga, approved("1.2.0", olga), policy, "bellwether-approve has"},
		"an approval":                     {anna, approved("1.2.0", anna), policy, ""},
		"an approval of a new operator":   {anna, approved("1.2.0", anna), nil, ""},
		"a new operator brings one along": {olga, approved("1.2.0", anna), nil, "olga may not approve a version"},
		"an approval in another's name":   {anna, approved("1.2.0", olga), policy, "by must be 'anna'"},
		"another version instead": {olga, approved("1.3.0", anna), approved("1.2.0", anna),
			"olga may not approve a version"},
		"an approval that stays":                {olga, approved("1.2.0", anna), approved("1.2.0", anna), ""},
		"an approval that is withdrawn":         {olga, policy, approved("1.2.0", anna), ""},
		"an approval that goes with the policy": {olga, operator(nil), approved("1.2.0", anna), ""},
		"a new operator without a name": {olga, object{"metadata": object{"generateName": "a-", "namespace": "team"},
			"spec": object{}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := e.denies(t, p, object{"object": test.is, "oldObject": test.was,
				"authorizer": library.NewAuthorizerVal(&user.DefaultInfo{Name: test.by}, roles),
				"request":    object{"userInfo": object{"username": test.by}}})
			if (got != "") != (test.want != "") || !strings.Contains(got, test.want) {
				t.Errorf("the policy says %q, want %q", got, test.want)
			}
		})
	}
}
