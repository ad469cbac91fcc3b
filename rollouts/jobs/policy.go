// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobs decides which Jobs an agent runs on its cluster, and builds them. It is pure. Requests of the hub are
// not trusted: only the cluster's owner allows Jobs, and a request that is not clearly allowed is refused.
package jobs

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ConfigMap is the name of the ConfigMap with which the owner of a cluster allows Jobs, in the agent's namespace.
const ConfigMap = "bellwether-jobs"

// Keys of the ConfigMap. The value of each key is a list, separated by spaces, commas or new lines.
const (
	keyImages          = "images"
	keyNamespaces      = "namespaces"
	keyServiceAccounts = "serviceAccounts"
)

// labelOLM marks objects that OLM installed from a bundle. The hub chooses the bundle, so these objects are
// not trusted.
const labelOLM = "olm.managed"

// Policy has the Jobs that the owner of a cluster allows. The zero value allows none.
type Policy struct {
	// AgentNamespace is the agent's namespace. No Job may run there, because it could read the agent's credentials.
	AgentNamespace string
	// Images are names, or prefixes that end in *.
	Images          []string
	Namespaces      []string
	ServiceAccounts []string
	// exists is true if the owner has written a policy.
	exists bool
}

// ReadPolicy reads the ConfigMap; nil means that there is none. A ConfigMap that OLM or another controller created is
// ignored, because it does not come from the owner.
func ReadPolicy(c *corev1.ConfigMap, agentNamespace string) Policy {
	p := Policy{AgentNamespace: agentNamespace}
	if c == nil || agentNamespace == "" || len(c.OwnerReferences) > 0 || c.Labels[labelOLM] != "" {
		return p
	}
	splitList := func(key string) []string { return strings.Fields(strings.ReplaceAll(c.Data[key], ",", " ")) }
	p.exists = true
	p.Images, p.Namespaces, p.ServiceAccounts = splitList(keyImages), splitList(keyNamespaces),
		splitList(keyServiceAccounts)
	return p
}

// ServiceAccount returns the ServiceAccount of the Job's pod: the requested account or, if none is requested, the first
// allowed account.
func (p Policy) ServiceAccount(t v1alpha1.JobTemplate) string {
	if t.ServiceAccountName == "" && len(p.ServiceAccounts) > 0 {
		return p.ServiceAccounts[0]
	}
	return t.ServiceAccountName
}

// Refusal says why a Job must not run. It returns "" if the Job may run.
func (p Policy) Refusal(t v1alpha1.JobTemplate) string {
	where := fmt.Sprintf("ConfigMap %s in namespace %s of the cluster", ConfigMap, p.AgentNamespace)
	switch {
	case p.AgentNamespace == "":
		return "the agent was started without --own-namespace, so the owner of the cluster cannot allow Jobs"
	case !p.exists:
		return "the owner of the cluster has not allowed Jobs: there is no " + where
	case !slices.ContainsFunc(p.Images, func(pattern string) bool { return isMatch(pattern, t.Image) }):
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

// isMatch reports whether an image matches a pattern. Only a * at the end of the pattern is a wildcard.
func isMatch(pattern, image string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	if isPrefix {
		return strings.HasPrefix(image, prefix)
	}
	return image == pattern
}
