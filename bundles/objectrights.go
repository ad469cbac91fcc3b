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

// installedKinds maps each kind that OLM v0.46 installs to the API groups whose objects this package supports. The
// kinds come from ExecutePlan in pkg/controller/operators/catalog/operator.go and from supportedresources.go in the
// same folder. OLM uses the kind only.
var installedKinds = map[string][]string{
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

// IsInstalledByOLM reports whether OLM v0 installs objects of a kind. An InstallPlan with an object of another
// kind fails.
func IsInstalledByOLM(kind string) bool { return installedKinds[kind] != nil }

// listObjectRights returns the rights that an object gives that is not an RBAC object; nil if it gives none. An object
// that this package does not support, a Subscription and a default PriorityClass give unknown rights.
func (b *Bundle) listObjectRights(o *Object) []Right {
	kind, group := o.GetKind(), o.GroupVersionKind().Group
	switch {
	case kind == operatorsv1alpha1.SubscriptionKind:
		return []Right{newUnknownRight(o, FromObject, nil, "Subscription %s makes OLM install another operator",
			o.GetName())}
	case !slices.Contains(installedKinds[kind], group):
		return []Right{newUnknownRight(o, FromObject, []any{"kind"}, "what %s %s of API group %s does is not known",
			kind, o.GetName(), cmp.Or(group, "core"))}
	case kind == kindSecret:
		return b.listTokenRights(o)
	case kind == kindServiceMonitor:
		return listPrometheusRights(o)
	case kind == kindPriorityClass && o.Object["globalDefault"] == true:
		return []Right{newUnknownRight(o, FromObject, []any{"globalDefault"},
			"PriorityClass %s holds for all pods of the cluster that name none", o.GetName())}
	default:
		return nil
	}
}

// listTokenRights returns a right if Kubernetes writes the token of a service account that is not the operator's into
// a Secret.
func (b *Bundle) listTokenRights(o *Object) []Right {
	account := o.GetAnnotations()[corev1.ServiceAccountNameKey]
	if o.Object["type"] != string(corev1.SecretTypeServiceAccountToken) || b.listOwnAccounts()[account] {
		return nil
	}
	return []Right{{Rule: newTokenRule(account), Source: FromObject, Scope: InNamespace,
		Name:   "Secret " + o.GetName() + ", which gets a token of service account " + account,
		Object: o, Path: []any{"metadata", "annotations", corev1.ServiceAccountNameKey}}}
}

// newTokenRule returns a rule that permits to create tokens of the given service accounts, or of all if none is given.
func newTokenRule(accounts ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"},
		ResourceNames: accounts, Verbs: []string{"create"}}
}

// listPrometheusRights returns a right for each field of a ServiceMonitor that makes Prometheus send its own token to
// the selected pods: a file of Prometheus, or a scrape class that the owner of Prometheus defines. A ServiceMonitor
// can also make Prometheus send Secrets of the namespace; these do not count, because the operator's pods can mount
// them anyway.
func listPrometheusRights(o *Object) []Right {
	endpoints, _, err := unstructured.NestedFieldNoCopy(o.Object, "spec", "endpoints")
	class, _, classErr := unstructured.NestedString(o.Object, "spec", "scrapeClass")
	if err != nil || classErr != nil {
		return []Right{newUnknownRight(o, FromObject, nil, "%s %s cannot be read", o.GetKind(), o.GetName())}
	}
	s := tokenCollector{object: o}
	s.walk([]any{"spec", "endpoints"}, endpoints)
	if class != "" {
		s.addRight("spec", "scrapeClass")
	}
	slices.SortFunc(s.rights, func(a, b Right) int { return strings.Compare(a.Name, b.Name) })
	return s.rights
}

// tokenCollector collects a right for each field of a ServiceMonitor that makes Prometheus send a token.
type tokenCollector struct {
	object *Object
	rights []Right
}

// walk visits all fields below value, which is at path, and adds a right for each file that Prometheus sends.
func (s *tokenCollector) walk(path []any, value any) {
	switch v := value.(type) {
	case []any:
		for i, child := range v {
			s.walk(append(slices.Clip(path), i), child)
		}
	case map[string]any:
		for name, child := range v {
			fieldPath := append(slices.Clip(path), name)
			if file, _ := child.(string); file != "" && isSentFile(name) {
				s.addRight(fieldPath...)
			}
			s.walk(fieldPath, child)
		}
	}
}

// isSentFile reports whether a field names a file whose content Prometheus sends. Files of certificates and keys do not
// count: Prometheus only proves that it has the key.
func isSentFile(field string) bool {
	return strings.HasSuffix(field, "File") && !slices.Contains([]string{"caFile", "certFile", "keyFile"}, field)
}

// addRight adds a right for the field at path.
func (s *tokenCollector) addRight(path ...any) {
	s.rights = append(s.rights, Right{Rule: newTokenRule(), Source: FromObject, Scope: InCluster, Object: s.object,
		Path: path,
		Name: fmt.Sprintf("%s %s, whose %s has Prometheus send its own token", s.object.GetKind(), s.object.GetName(),
			path[len(path)-1])})
}
