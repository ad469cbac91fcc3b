// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// kinds are what OLM v0.46 installs, each with the API groups whose objects are known here: the kinds that ExecutePlan
// in pkg/controller/operators/catalog/operator.go knows, and those of supportedresources.go beside it. OLM goes by the
// kind alone.
var kinds = map[string][]string{
	kindCSV: {operatorsv1alpha1.GroupName}, operatorsv1alpha1.SubscriptionKind: {operatorsv1alpha1.GroupName},
	"CustomResourceDefinition": {"apiextensions.k8s.io"},
	"ConfigMap":                {""}, kindSecret: {""}, "Service": {""}, rbacv1.ServiceAccountKind: {""},
	"Role": {rbacv1.GroupName}, "RoleBinding": {rbacv1.GroupName},
	"ClusterRole": {rbacv1.GroupName}, "ClusterRoleBinding": {rbacv1.GroupName},
	"PrometheusRule":        {"monitoring.coreos.com", "monitoring.rhobs"},
	kindServiceMonitor:      {"monitoring.coreos.com", "monitoring.rhobs"},
	"PodDisruptionBudget":   {"policy"},
	kindPriorityClass:       {"scheduling.k8s.io"},
	"VerticalPodAutoscaler": {"autoscaling.k8s.io"},
	"NetworkPolicy":         {"networking.k8s.io"},
	"ConsoleYAMLSample":     {groupConsole}, "ConsoleQuickStart": {groupConsole}, "ConsoleCLIDownload": {groupConsole},
	"ConsoleLink": {groupConsole}, "ConsolePlugin": {groupConsole},
}

const (
	kindSecret         = "Secret"
	kindServiceMonitor = "ServiceMonitor"
	kindPriorityClass  = "PriorityClass"
	groupConsole       = "console.openshift.io"
)

// InstalledByOLM tells whether OLM v0 installs objects of a kind. An InstallPlan with others fails.
func InstalledByOLM(kind string) bool { return kinds[kind] != nil }

// objectRights are what an object gives that is no RBAC.
func (b *Bundle) objectRights(o *Object) []Right {
	kind, group := o.GetKind(), o.GroupVersionKind().Group
	switch {
	case kind == operatorsv1alpha1.SubscriptionKind:
		return []Right{unknown(o, FromObject, nil, "Subscription %s makes OLM install another operator", o.GetName())}
	case !slices.Contains(kinds[kind], group):
		return []Right{unknown(o, FromObject, []any{"kind"}, "what %s %s of API group %s does is not known", kind,
			o.GetName(), cmp.Or(group, "core"))}
	case kind == kindSecret:
		return b.tokenSecret(o)
	case kind == kindServiceMonitor:
		return sentByPrometheus(o)
	case kind == kindPriorityClass && o.Object["globalDefault"] == true:
		return []Right{unknown(o, FromObject, []any{"globalDefault"},
			"PriorityClass %s holds for all pods of the cluster that name none", o.GetName())}
	default:
		return nil
	}
}

// tokenSecret says that Kubernetes writes a token of somebody else's account into a Secret.
func (b *Bundle) tokenSecret(o *Object) []Right {
	account := o.GetAnnotations()[corev1.ServiceAccountNameKey]
	if o.Object["type"] != string(corev1.SecretTypeServiceAccountToken) || b.ownAccounts()[account] {
		return nil
	}
	return []Right{{Rule: tokenOf(account), Source: FromObject, Scope: InNamespace,
		Name:   "Secret " + o.GetName() + ", which gets a token of service account " + account,
		Object: o, Path: []any{"metadata", "annotations", corev1.ServiceAccountNameKey}}}
}

// tokenOf is the right to get tokens of some service accounts, or of all.
func tokenOf(accounts ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"},
		ResourceNames: accounts, Verbs: []string{"create"}}
}

// sentByPrometheus says that a ServiceMonitor has Prometheus send a token of its own to the pods that it selects: from
// a file, or by a scrape class of Prometheus' owner. Secrets of the namespace, which it can send as well, the
// operator's pods can mount.
func sentByPrometheus(o *Object) []Right {
	endpoints, _, err := unstructured.NestedFieldNoCopy(o.Object, "spec", "endpoints")
	class, _, classErr := unstructured.NestedString(o.Object, "spec", "scrapeClass")
	if err != nil || classErr != nil {
		return []Right{unknown(o, FromObject, nil, "%s %s cannot be read", o.GetKind(), o.GetName())}
	}
	s := sent{object: o}
	s.walk([]any{"spec", "endpoints"}, endpoints)
	if class != "" {
		s.add("spec", "scrapeClass")
	}
	slices.SortFunc(s.rights, func(a, b Right) int { return strings.Compare(a.Name, b.Name) })
	return s.rights
}

// sent collects by what a ServiceMonitor sends a token.
type sent struct {
	object *Object
	rights []Right
}

func (s *sent) walk(path []any, value any) {
	switch v := value.(type) {
	case []any:
		for i, child := range v {
			s.walk(append(slices.Clip(path), i), child)
		}
	case map[string]any:
		for name, child := range v {
			at := append(slices.Clip(path), name)
			if file, _ := child.(string); file != "" && isSentFile(name) {
				s.add(at...)
			}
			s.walk(at, child)
		}
	}
}

// isSentFile tells whether a field names a file that Prometheus sends. Of certificates it proves only that it has the
// key.
func isSentFile(field string) bool {
	return strings.HasSuffix(field, "File") && !slices.Contains([]string{"caFile", "certFile", "keyFile"}, field)
}

func (s *sent) add(path ...any) {
	s.rights = append(s.rights, Right{Rule: tokenOf(), Source: FromObject, Scope: InCluster, Object: s.object,
		Path: path,
		Name: fmt.Sprintf("%s %s, whose %s has Prometheus send its own token", s.object.GetKind(), s.object.GetName(),
			path[len(path)-1])})
}
