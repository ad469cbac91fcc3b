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

// Kubernetes is the newest version of Kubernetes of which the removed APIs are known: that of the module k8s.io/api.
// What later versions remove is known as far as it was announced by then.
const Kubernetes = "1.37"

// lifecycle is implemented by the types of k8s.io/api that Kubernetes removes. API servers stop serving them by the
// same methods.
type lifecycle interface {
	APILifecycleRemoved() (major, minor int)
}

// removedByLifecycle returns the first version of Kubernetes that does not serve a kind; empty where none is known.
func removedByLifecycle(kind schema.GroupVersionKind) string {
	object, err := scheme.Scheme.New(kind)
	if err != nil {
		return ""
	}
	removed, ok := object.(lifecycle)
	if !ok {
		return ""
	}
	major, minor := removed.APILifecycleRemoved()
	return fmt.Sprintf("%d.%d", major, minor)
}

// RemovedResource is a resource that no version of its group has any more.
type RemovedResource struct {
	Group, Resource string
	// In is the first version of Kubernetes without it, such as 1.25.
	In string
}

// String names it as kubectl does.
func (r RemovedResource) String() string { return r.Resource + "." + r.Group }

// removedResources are listed by the deprecation guide of Kubernetes. Rights say no version of an API, so a resource is
// here only if it is in no version of the group.
var removedResources = []RemovedResource{
	{"policy", "podsecuritypolicies", "1.25"}, {"extensions", "podsecuritypolicies", "1.16"},
	{"extensions", "ingresses", "1.22"}, {"extensions", "deployments", "1.16"}, {"extensions", "daemonsets", "1.16"},
	{"extensions", "replicasets", "1.16"}, {"extensions", "networkpolicies", "1.16"},
	{"auditregistration.k8s.io", "auditsinks", "1.19"},
	{"settings.k8s.io", "podpresets", "1.20"},
}

// RemovedResources returns the resources that a rule names and some version of Kubernetes does not have any more.
// Wildcards name nothing: they are about all that exists.
func RemovedResources(rule rbacv1.PolicyRule) []RemovedResource {
	var out []RemovedResource
	for _, r := range removedResources {
		if slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, r.Resource) {
			out = append(out, r)
		}
	}
	return out
}
