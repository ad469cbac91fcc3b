// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bellwether-dev/bellwether/bundles"
)

// elsewhere is a namespace in which an operator has only what it has in all of them.
const elsewhere = metav1.NamespaceDefault

// checkPermissions asks the API server, as each ServiceAccount of the
// ClusterServiceVersion, what it may do, and compares that with what the
// ClusterServiceVersion asks for.
func (t *trial) checkPermissions(ctx context.Context) (string, error) {
	asked := slices.DeleteFunc(t.Bundle.Bundle.Rights(), func(r bundles.Right) bool { return !r.IsAsked() })
	rules, missing := 0, 0
	for _, account := range accounts(asked) {
		own, err := t.rulesOf(ctx, account, t.namespace)
		if err != nil {
			return "", err
		}
		cluster, err := t.rulesOf(ctx, account, elsewhere)
		if err != nil {
			return "", err
		}
		r := compareRights(asked, account, own, cluster)
		t.report.Rights = append(t.report.Rights, r)
		rules += r.Rules
		missing += len(r.Missing)
		for _, m := range r.Missing {
			t.report.Problems = append(t.report.Problems,
				fmt.Sprintf("ServiceAccount %s was not granted: %s", account, m))
		}
	}
	if missing > 0 {
		return fmt.Sprintf("%d permissions of the ClusterServiceVersion were not granted", missing), nil
	}
	return fmt.Sprintf("the ServiceAccounts have all permissions of the ClusterServiceVersion (%d rules)", rules), nil
}

// accounts are the ServiceAccounts that get permissions, sorted.
func accounts(asked []bundles.Right) []string {
	var out []string
	for _, r := range asked {
		out = append(out, r.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// rulesOf returns what a ServiceAccount of the trial may do in a namespace.
func (t *trial) rulesOf(ctx context.Context, account, namespace string) (authorizationv1.SubjectRulesReviewStatus,
	error) {
	var none authorizationv1.SubjectRulesReviewStatus
	config := rest.CopyConfig(t.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: fmt.Sprintf("system:serviceaccount:%s:%s", t.namespace, account),
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + t.namespace, "system:authenticated"},
	}
	as, err := kubernetes.NewForConfig(config)
	if err != nil {
		return none, fmt.Errorf("connect to the cluster: %w", err)
	}
	review := &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	review, err = as.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return none, fmt.Errorf("find out what ServiceAccount %s may do: %w", account, err)
	}
	return review.Status, nil
}

// compareRights compares what a ServiceAccount may do in its namespace, and in another
// one, with what the ClusterServiceVersion asks for. It is pure.
func compareRights(asked []bundles.Right, account string,
	own, cluster authorizationv1.SubjectRulesReviewStatus) Rights {
	out := Rights{ServiceAccount: account}
	for _, r := range asked {
		if r.Name != account {
			continue
		}
		granted, where := own, " in its namespace"
		if r.Scope == bundles.InCluster {
			granted, where = cluster, " in the whole cluster"
		}
		out.Rules++
		for _, m := range uncovered(r.Rule, granted) {
			out.Missing = append(out.Missing, m+where)
		}
	}
	return out
}

// uncovered lists what a rule permits and the API server does not.
func uncovered(rule rbacv1.PolicyRule, granted authorizationv1.SubjectRulesReviewStatus) []string {
	var out []string
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			if !coversPath(granted.NonResourceRules, verb, path) {
				out = append(out, verb+" "+path)
			}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if !coversResource(granted.ResourceRules, verb, group, resource, rule.ResourceNames) {
					out = append(out, strings.TrimSuffix(verb+" "+resource+"."+group, "."))
				}
			}
		}
	}
	return out
}

func coversPath(granted []authorizationv1.NonResourceRule, verb, path string) bool {
	return slices.ContainsFunc(granted, func(g authorizationv1.NonResourceRule) bool {
		return has(g.Verbs, verb) && hasPath(g.NonResourceURLs, path)
	})
}

func coversResource(granted []authorizationv1.ResourceRule, verb, group, resource string, only []string) bool {
	return slices.ContainsFunc(granted, func(g authorizationv1.ResourceRule) bool {
		if !has(g.Verbs, verb) || !has(g.APIGroups, group) || !hasResource(g.Resources, resource) {
			return false
		}
		if len(g.ResourceNames) == 0 {
			return true
		}
		missing := func(name string) bool { return !slices.Contains(g.ResourceNames, name) }
		return len(only) > 0 && !slices.ContainsFunc(only, missing)
	})
}

func has(granted []string, wanted string) bool {
	return slices.Contains(granted, wanted) || slices.Contains(granted, rbacv1.VerbAll)
}

// hasResource also knows the form of a subresource of all resources, such as */scale.
func hasResource(granted []string, wanted string) bool {
	_, sub, found := strings.Cut(wanted, "/")
	return has(granted, wanted) || found && slices.Contains(granted, "*/"+sub)
}

func hasPath(granted []string, wanted string) bool {
	return slices.ContainsFunc(granted, func(g string) bool {
		prefix, all := strings.CutSuffix(g, "*")
		return g == wanted || all && strings.HasPrefix(wanted, prefix)
	})
}
