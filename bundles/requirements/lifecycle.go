// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package requirements

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Kubernetes is the newest version of Kubernetes whose removed APIs are known; it is the version of the module
// k8s.io/api. Removals in later versions are known only if they were announced before this version.
const Kubernetes = "1.37"

// lifecycle is implemented by the types of k8s.io/api whose APIs Kubernetes removes. API servers use the same methods
// to stop serving an API.
type lifecycle interface {
	APILifecycleRemoved() (major, minor int)
}

// removedKinds are kinds without a type in k8s.io/api, from the deprecation guide of Kubernetes:
// https://kubernetes.io/docs/reference/using-api/deprecation-guide/.
var removedKinds = map[schema.GroupVersionKind]string{
	{Group: "apiextensions.k8s.io", Version: "v1beta1", Kind: "CustomResourceDefinition"}: "1.22",
	{Group: "apiregistration.k8s.io", Version: "v1beta1", Kind: "APIService"}:             "1.22",
	{Group: "policy", Version: "v1beta1", Kind: "PodSecurityPolicy"}:                      "1.25",
	{Group: "autoscaling", Version: "v2beta1", Kind: "HorizontalPodAutoscaler"}:           "1.25",
	{Group: "autoscaling", Version: "v2beta2", Kind: "HorizontalPodAutoscaler"}:           "1.26",
}

// findRemoval returns the first version of Kubernetes that does not serve a kind; empty if none is known.
func findRemoval(kind schema.GroupVersionKind) string {
	object, err := scheme.Scheme.New(kind)
	if err != nil {
		return removedKinds[kind]
	}
	removed, ok := object.(lifecycle)
	if !ok {
		return ""
	}
	major, minor := removed.APILifecycleRemoved()
	return fmt.Sprintf("%d.%d", major, minor)
}

// RemovedResource is a resource that does not exist in any version of its API group.
type RemovedResource struct {
	Group, Resource string
	// In is the first version of Kubernetes without the resource, such as 1.25.
	In string
}

// String returns the name of the resource in the form that kubectl uses.
func (r RemovedResource) String() string { return r.Resource + "." + r.Group }

// removedResources are from the deprecation guide of Kubernetes. Rights do not contain the version of an API, so only
// resources that are removed from all versions of their API group are listed.
var removedResources = []RemovedResource{
	{"policy", "podsecuritypolicies", "1.25"}, {"extensions", "podsecuritypolicies", "1.16"},
	{"extensions", "ingresses", "1.22"}, {"extensions", "deployments", "1.16"}, {"extensions", "daemonsets", "1.16"},
	{"extensions", "replicasets", "1.16"}, {"extensions", "networkpolicies", "1.16"},
	{"auditregistration.k8s.io", "auditsinks", "1.19"},
	{"settings.k8s.io", "podpresets", "1.20"},
}

// RemovedResources returns the removed resources that a rule names. Wildcards do not count, because they match only
// resources that exist.
func RemovedResources(rule rbacv1.PolicyRule) []RemovedResource {
	var out []RemovedResource
	for _, r := range removedResources {
		if slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, r.Resource) {
			out = append(out, r)
		}
	}
	return out
}
