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

// TestRemovalPolicy evaluates the policies about removals. The testbed verifies that
// API servers enforce them.
func TestRemovalPolicy(t *testing.T) {
	const olga, rita = "olga", "rita" // rita has the role bellwether-remove
	roles := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string,
		error) {
		allowed := a.GetUser().GetName() == rita && a.GetVerb() == "remove" && a.GetAPIGroup() == "bellwether.dev" &&
			(a.GetResource() == "fleetclusters" && a.GetName() == "prod-1" ||
				a.GetResource() == "managedoperators" && a.GetNamespace()+"/"+a.GetName() == "team/echo")
		if allowed {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	cluster := func(metadata, spec object) object {
		metadata["name"] = "prod-1"
		return object{"metadata": metadata, "spec": spec}
	}
	operator := func(removal object) object {
		spec := object{}
		if removal != nil {
			spec["removal"] = removal
		}
		return object{"metadata": object{"name": "echo", "namespace": "team"}, "spec": spec}
	}
	owned := func(uid string, blocks bool) object {
		return object{"ownerReferences": []any{object{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody",
			"uid": uid, "blockOwnerDeletion": blocks}}}
	}
	leaving := func(more object) object {
		more["deletionTimestamp"] = "2026-03-01T12:00:00Z"
		return more
	}
	const role = "the ClusterRole bellwether-remove has the permission"
	all, e := policies(t), newEvaluator(t)
	for name, test := range map[string]struct {
		policy, by, operation string
		is, was               object
		want                  string
	}{
		"the end of a cluster": {"removals", olga, "DELETE", nil, cluster(object{}, object{}),
			"olga may not remove cluster prod-1 from the fleet: " + role + " (verb remove on fleetclusters prod-1)"},
		"the end of a cluster, with the role": {"removals", rita, "DELETE", nil, cluster(object{}, object{}), ""},
		"the end of another cluster, with a role for one": {"removals", rita, "DELETE", nil,
			object{"metadata": object{"name": "prod-2"}}, "rita may not remove cluster prod-2"},
		"the end of a cluster, by the garbage collector": {"removals",
			"system:serviceaccount:kube-system:generic-garbage-collector", "DELETE", nil, cluster(object{}, object{}),
			""},
		"the end of a cluster, by a controller manager without accounts": {"removals",
			"system:kube-controller-manager", "DELETE", nil, cluster(object{}, object{}), ""},
		"a new cluster": {"removals", olga, "CREATE", cluster(object{}, object{"paused": true}), nil, ""},
		"a new cluster without a name": {"removals", olga, "CREATE",
			object{"metadata": object{"generateName": "a-"}}, nil, ""},
		"how a cluster would leave": {"removals", olga, "UPDATE", cluster(object{}, object{"offboarding": "Uninstall"}),
			cluster(object{}, object{}), ""},
		"how a cluster leaves that is leaving": {"removals", olga, "UPDATE",
			cluster(leaving(object{}), object{"offboarding": "Uninstall"}), cluster(leaving(object{}), object{}),
			"olga may not change how cluster prod-1 leaves the fleet: " + role},
		"when a cluster leaves that is leaving": {"removals", olga, "UPDATE",
			cluster(leaving(object{}), object{"offboardingTimeout": "0s"}), cluster(leaving(object{}), object{}),
			"may not change how"},
		"how a cluster leaves that is leaving, with the role": {"removals", rita, "UPDATE",
			cluster(leaving(object{}), object{"offboarding": "Uninstall"}), cluster(leaving(object{}), object{}), ""},
		"a finalizer of a cluster that is leaving": {"removals", olga, "UPDATE", cluster(leaving(object{}),
			object{"offboarding": "Orphan"}), cluster(leaving(object{"finalizers": []any{"bellwether.dev/hub"}}),
			object{"offboarding": "Orphan"}), ""},
		"an owner of a cluster": {"removals", olga, "UPDATE", cluster(owned("x", false), object{}),
			cluster(object{}, object{}), "olga may not give cluster prod-1 an owner"},
		"an owner of a new cluster": {"removals", olga, "CREATE", cluster(owned("x", false), object{}), nil,
			"may not give cluster prod-1 an owner"},
		"an owner of a cluster, with the role": {"removals", rita, "UPDATE", cluster(owned("x", false), object{}),
			cluster(object{}, object{}), ""},
		"the same owner": {"removals", olga, "UPDATE", cluster(owned("x", true), object{}),
			cluster(owned("x", false), object{}), ""},
		"no owner any more": {"removals", olga, "UPDATE", cluster(object{}, object{}),
			cluster(owned("x", false), object{}), ""},
		"an owner that blocks no more, by the garbage collector": {"removals",
			"system:kube-controller-manager", "UPDATE",
			cluster(owned("x", false), object{}), cluster(owned("x", true), object{}), ""},
		"an operator": {"removals-confirmed", olga, "CREATE", operator(nil), nil, ""},
		"a confirmation": {"removals-confirmed", olga, "UPDATE", operator(object{"confirm": "abc"}), operator(nil),
			"olga may not agree to the removal of operator echo from clusters (spec.removal.confirm): " + role +
				" (verb remove on managedoperators team/echo)"},
		"another confirmation": {"removals-confirmed", olga, "UPDATE", operator(object{"confirm": "def"}),
			operator(object{"confirm": "abc"}), "olga may not agree"},
		"a confirmation of a new operator": {"removals-confirmed", olga, "CREATE",
			operator(object{"confirm": "abc"}), nil, "olga may not agree"},
		"a confirmation, with the role": {"removals-confirmed", rita, "UPDATE", operator(object{"confirm": "abc"}),
			operator(nil), ""},
		"a confirmation that stays": {"removals-confirmed", olga, "UPDATE", operator(object{"confirm": "abc"}),
			operator(object{"confirm": "abc", "confirmAbove": int64(5)}), ""},
		"a confirmation that ends": {"removals-confirmed", olga, "UPDATE", operator(object{}),
			operator(object{"confirm": "abc"}), ""},
		"a higher number": {"removals-confirmed", olga, "UPDATE", operator(object{"confirmAbove": int64(500)}),
			operator(object{"confirmAbove": int64(10)}), "olga may not raise the number of clusters"},
		"a higher number than the default": {"removals-confirmed", olga, "CREATE",
			operator(object{"confirmAbove": int64(6)}), nil, "olga may not raise"},
		"the default instead of a lower number": {"removals-confirmed", olga, "UPDATE", operator(nil),
			operator(object{"confirmAbove": int64(0)}), "olga may not raise"},
		"a higher number, with the role": {"removals-confirmed", rita, "UPDATE",
			operator(object{"confirmAbove": int64(500)}), operator(nil), ""},
		"a lower number": {"removals-confirmed", olga, "UPDATE", operator(object{"confirmAbove": int64(0)}),
			operator(nil), ""},
		"the default, written out": {"removals-confirmed", olga, "UPDATE", operator(object{"confirmAbove": int64(5)}),
			operator(nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			policy, there := all["bellwether-"+test.policy]
			if !there {
				t.Fatalf("nothing forbids it: there is no policy %s", test.policy)
			}
			var is, was any // null is no empty object
			if test.is != nil {
				is = test.is
			}
			if test.was != nil {
				was = test.was
			}
			got := e.denies(t, policy, object{"object": is, "oldObject": was,
				"authorizer": library.NewAuthorizerVal(&user.DefaultInfo{Name: test.by}, roles),
				"request":    object{"userInfo": object{"username": test.by}, "operation": test.operation}})
			if (got != "") != (test.want != "") || !strings.Contains(got, test.want) {
				t.Errorf("the policy says %q, want %q", got, test.want)
			}
		})
	}
}
