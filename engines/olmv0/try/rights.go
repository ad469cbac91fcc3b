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

// otherNamespace is a namespace in which an operator has only its cluster-wide permissions.
const otherNamespace = metav1.NamespaceDefault

// checkPermissions queries the permissions of each ServiceAccount of the ClusterServiceVersion from the API server,
// and compares them with the permissions that the ClusterServiceVersion requests.
func (t *trial) checkPermissions(ctx context.Context) (string, error) {
	requested := slices.DeleteFunc(t.Bundle.Bundle.Rights(), func(r bundles.Right) bool { return !r.IsRequested() })
	rules, missing := 0, 0
	for _, account := range listAccounts(requested) {
		own, err := t.readRules(ctx, account, t.namespace)
		if err != nil {
			return "", err
		}
		cluster, err := t.readRules(ctx, account, otherNamespace)
		if err != nil {
			return "", err
		}
		r := compareRights(requested, account, own, cluster)
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

// listAccounts returns the ServiceAccounts that get permissions, sorted.
func listAccounts(requested []bundles.Right) []string {
	var out []string
	for _, r := range requested {
		out = append(out, r.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// readRules returns the permissions of a ServiceAccount of the trial in a namespace.
func (t *trial) readRules(ctx context.Context, account, namespace string) (authorizationv1.SubjectRulesReviewStatus,
	error) {
	var none authorizationv1.SubjectRulesReviewStatus
	config := rest.CopyConfig(t.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: fmt.Sprintf("system:serviceaccount:%s:%s", t.namespace, account),
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + t.namespace, "system:authenticated"},
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return none, fmt.Errorf("connect to the cluster: %w", err)
	}
	review := &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	review, err = api.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return none, fmt.Errorf("find out what ServiceAccount %s may do: %w", account, err)
	}
	return review.Status, nil
}

// compareRights compares the permissions of a ServiceAccount in its namespace (own) and in another namespace
// (cluster) with the requested permissions. It is pure.
func compareRights(requested []bundles.Right, account string,
	own, cluster authorizationv1.SubjectRulesReviewStatus) Rights {
	out := Rights{ServiceAccount: account}
	for _, r := range requested {
		if r.Name != account {
			continue
		}
		granted, scope := own, " in its namespace"
		if r.Scope == bundles.InCluster {
			granted, scope = cluster, " in the whole cluster"
		}
		out.Rules++
		for _, m := range listUncovered(r.Rule, granted) {
			out.Missing = append(out.Missing, m+scope)
		}
	}
	return out
}

// listUncovered returns the permissions of a rule that are not granted.
func listUncovered(rule rbacv1.PolicyRule, granted authorizationv1.SubjectRulesReviewStatus) []string {
	var out []string
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			if !isPathGranted(granted.NonResourceRules, verb, path) {
				out = append(out, verb+" "+path)
			}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if !isResourceGranted(granted.ResourceRules, verb, group, resource, rule.ResourceNames) {
					out = append(out, strings.TrimSuffix(verb+" "+resource+"."+group, "."))
				}
			}
		}
	}
	return out
}

// isPathGranted reports whether a verb on a non-resource path is granted.
func isPathGranted(granted []authorizationv1.NonResourceRule, verb, path string) bool {
	return slices.ContainsFunc(granted, func(g authorizationv1.NonResourceRule) bool {
		return hasOrAll(g.Verbs, verb) && hasPath(g.NonResourceURLs, path)
	})
}

// isResourceGranted reports whether a verb on a resource is granted. only are the names of objects; empty for all
// objects. One granted rule must cover all the names.
func isResourceGranted(granted []authorizationv1.ResourceRule, verb, group, resource string, only []string) bool {
	return slices.ContainsFunc(granted, func(g authorizationv1.ResourceRule) bool {
		if !hasOrAll(g.Verbs, verb) || !hasOrAll(g.APIGroups, group) || !hasResource(g.Resources, resource) {
			return false
		}
		if len(g.ResourceNames) == 0 {
			return true
		}
		missing := func(name string) bool { return !slices.Contains(g.ResourceNames, name) }
		return len(only) > 0 && !slices.ContainsFunc(only, missing)
	})
}

// hasOrAll reports whether the granted values include the wanted value or "*".
func hasOrAll(granted []string, wanted string) bool {
	return slices.Contains(granted, wanted) || slices.Contains(granted, rbacv1.VerbAll)
}

// hasResource is like hasOrAll, and also supports a subresource of all resources, such as */scale.
func hasResource(granted []string, wanted string) bool {
	_, sub, found := strings.Cut(wanted, "/")
	return hasOrAll(granted, wanted) || found && slices.Contains(granted, "*/"+sub)
}

// hasPath reports whether the granted paths include the wanted path. A granted path may end with "*".
func hasPath(granted []string, wanted string) bool {
	return slices.ContainsFunc(granted, func(g string) bool {
		prefix, all := strings.CutSuffix(g, "*")
		return g == wanted || all && strings.HasPrefix(wanted, prefix)
	})
}
