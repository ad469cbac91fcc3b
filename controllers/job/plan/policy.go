// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides which Jobs an agent runs on its cluster, and what they are. It
// is pure. What the hub asks for is not trusted: the word of the cluster's owner
// counts, and a request that it does not clearly allow is refused.
package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ConfigMap is the name of the ConfigMap by which the owner of a cluster allows Jobs,
// in the agent's namespace.
const ConfigMap = "bellwether-jobs"

// Keys of the ConfigMap. Each is a list with spaces, commas or new lines in between.
const (
	keyImages          = "images"
	keyNamespaces      = "namespaces"
	keyServiceAccounts = "serviceAccounts"
)

// labelOLM marks objects that OLM installed from a bundle, which the hub chooses.
const labelOLM = "olm.managed"

// Policy is what the owner of a cluster allows. The zero value allows nothing.
type Policy struct {
	// AgentNamespace is where no Job may run: it would be beside the agent's
	// credentials.
	AgentNamespace string
	// Images are whole names, or beginnings that end in *.
	Images          []string
	Namespaces      []string
	ServiceAccounts []string
	// exists says that there is a policy.
	exists bool
}

// ReadPolicy reads the ConfigMap; nil where there is none. One that OLM or another
// controller made is not the owner's word.
func ReadPolicy(c *corev1.ConfigMap, agentNamespace string) Policy {
	p := Policy{AgentNamespace: agentNamespace}
	if c == nil || agentNamespace == "" || len(c.OwnerReferences) > 0 || c.Labels[labelOLM] != "" {
		return p
	}
	list := func(key string) []string { return strings.Fields(strings.ReplaceAll(c.Data[key], ",", " ")) }
	p.exists = true
	p.Images, p.Namespaces, p.ServiceAccounts = list(keyImages), list(keyNamespaces), list(keyServiceAccounts)
	return p
}

// ServiceAccount is the one that the pod of a Job runs as.
func (p Policy) ServiceAccount(t v1alpha1.JobTemplate) string {
	if t.ServiceAccountName == "" && len(p.ServiceAccounts) > 0 {
		return p.ServiceAccounts[0]
	}
	return t.ServiceAccountName
}

// Refusal says why a Job must not run; empty if it may.
func (p Policy) Refusal(t v1alpha1.JobTemplate) string {
	where := fmt.Sprintf("ConfigMap %s in namespace %s of the cluster", ConfigMap, p.AgentNamespace)
	switch {
	case p.AgentNamespace == "":
		return "the agent was started without --own-namespace, so the owner of the cluster cannot allow Jobs"
	case !p.exists:
		return "the owner of the cluster has not allowed Jobs: there is no " + where
	case !slices.ContainsFunc(p.Images, func(pattern string) bool { return matches(pattern, t.Image) }):
		return fmt.Sprintf("image %s is not allowed by key %s of %s", t.Image, keyImages, where)
	case t.Namespace == p.AgentNamespace:
		return fmt.Sprintf("a Job must not run in the agent's namespace %s", t.Namespace)
	case !slices.Contains(p.Namespaces, t.Namespace):
		return fmt.Sprintf("namespace %s is not allowed by key %s of %s", t.Namespace, keyNamespaces, where)
	case !slices.Contains(p.ServiceAccounts, p.ServiceAccount(t)):
		return fmt.Sprintf("ServiceAccount %q is not allowed by key %s of %s", p.ServiceAccount(t),
			keyServiceAccounts, where)
	}
	return ""
}

// matches compares an image with a pattern. Only a * at the end stands for anything.
func matches(pattern, image string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	if isPrefix {
		return strings.HasPrefix(image, prefix)
	}
	return image == pattern
}
