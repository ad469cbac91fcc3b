// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localpolicy decides which of the hub's admissions an agent carries out. The policy is a ConfigMap on the
// agent's cluster that only the owner of the cluster writes. It applies to every request of the hub, so an attacker who
// controls the hub cannot exceed it, except for the cases in docs/security.md.
//
// The package is pure. Its inputs come from the hub and from catalogs, and neither is trusted.
package localpolicy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// ConfigMap is the name of the ConfigMap, in the agent's namespace on its cluster.
const ConfigMap = "bellwether-policy"

// Key is the ConfigMap's key whose value is a Spec, as YAML.
const Key = "policy.yaml"

// Policy is what the owner of a cluster permits.
type Policy struct {
	Spec Spec
	// OwnNamespace is the agent's namespace.
	OwnNamespace string
	// Invalid is why the ConfigMap cannot be read; empty if it can. While it is set, nothing is permitted.
	Invalid string
	// Absent is set if there is no ConfigMap. Then only the hub's configuration of the agent itself is limited.
	Absent bool
}

// Spec is what the owner writes. Fields that are not set limit nothing, except for deniedNamespaces.
type Spec struct {
	// TrustedKeys are public keys in PEM. A catalog must be signed by one of these keys. If the hub also names keys,
	// the key must be among both.
	TrustedKeys []string `json:"trustedKeys,omitempty"`
	// AllowedRegistries are the registries of catalogs, bundles and operators: a host, such as registry.example.com,
	// or a host with the beginning of a repository's name, such as registry.example.com/team.
	AllowedRegistries []string `json:"allowedRegistries,omitempty"`
	// DeniedNamespaces are patterns of namespaces that no operator is installed into. Default: kube-*, the agent's
	// own namespace and the namespaces of OLM.
	DeniedNamespaces []string `json:"deniedNamespaces,omitempty"`
	// Permissions limit the permissions that a bundle may request.
	Permissions Permissions `json:"permissions,omitzero"`
}

// Permissions limit the permissions that bundles request, in all namespaces.
type Permissions struct {
	// DenyClusterWildcards denies cluster-wide rules with a wildcard in apiGroups,
	// resources, verbs or nonResourceURLs.
	DenyClusterWildcards bool `json:"denyClusterWildcards,omitempty"`
	// Denied are permissions that no bundle may have, not even a part of them. A rule without resourceNames denies
	// the permission on all objects and on each object.
	Denied []rbacv1.PolicyRule `json:"denied,omitempty"`
	// Maximum, if set, are all permissions that a bundle may have.
	Maximum []rbacv1.PolicyRule `json:"maximum,omitempty"`
}

// isSet reports whether any limit is set.
func (p Permissions) isSet() bool {
	return p.DenyClusterWildcards || len(p.Denied) > 0 || len(p.Maximum) > 0
}

// RefusalError is why a policy does not permit a release. It is an error, and the finding that the agent reports.
type RefusalError struct{ Reason, Message string }

func (r *RefusalError) Error() string { return r.Message }

// refuse returns a RefusalError. The format must not end with a full stop.
func refuse(format string, args ...any) *RefusalError {
	return &RefusalError{Reason: v1alpha1.ReasonLocalPolicy, Message: fmt.Sprintf(
		"The policy of the cluster's owner does not permit this release: "+format+". Change the release, or ask the "+
			"owner of the cluster to change ConfigMap "+ConfigMap+" beside the agent.", args...)}
}

// Parse reads the ConfigMap's data. A policy that cannot be read has Invalid set and permits nothing, because it is not
// known what the owner forbids.
func Parse(data map[string]string, ownNamespace string) *Policy {
	p := &Policy{OwnNamespace: ownNamespace}
	text, found := data[Key]
	if !found {
		p.Invalid = "it has no key " + Key
		return p
	}
	if err := yaml.UnmarshalStrict([]byte(text), &p.Spec); err != nil {
		p.Invalid = phrase.Truncate(phrase.OneLine(err.Error()), maxShown)
		return p
	}
	if err := p.Spec.validate(); err != nil {
		p.Invalid = phrase.Truncate(err.Error(), maxShown)
	}
	return p
}

// maxShown limits the length of untrusted texts in messages.
const maxShown = 300

// validate returns an error if a value of the policy is not valid.
func (s Spec) validate() error {
	for i, key := range s.TrustedKeys {
		if _, err := catalogs.KeyFingerprint(key); err != nil {
			return fmt.Errorf("trustedKeys, key %d: %w", i+1, err)
		}
	}
	for _, pattern := range s.DeniedNamespaces {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("deniedNamespaces: %q is no pattern: %w", pattern, err)
		}
	}
	for _, registry := range s.AllowedRegistries {
		if registry == "" || strings.ContainsAny(registry, "*@ ") || strings.Contains(registry, "://") {
			return fmt.Errorf("allowedRegistries: %q is neither a host nor the beginning of a repository", registry)
		}
	}
	return s.Permissions.validate()
}

// validate returns an error if a rule has no verbs or no objects.
func (p Permissions) validate() error {
	for _, rule := range slices.Concat(p.Denied, p.Maximum) {
		hasResources := len(rule.APIGroups) > 0 && len(rule.Resources) > 0
		if len(rule.Verbs) == 0 || len(rule.NonResourceURLs) == 0 && !hasResources {
			return fmt.Errorf("permissions: a rule needs verbs, and apiGroups and resources or nonResourceURLs: %s",
				describeRule(rule))
		}
	}
	return nil
}

// defaultDenied are the namespaces of Kubernetes and OLM. The chart's list also has OpenShift's namespaces.
var defaultDenied = []string{"kube-*", "olm", "openshift-operator-lifecycle-manager", "openshift-marketplace"}

// findDenyingPattern returns the pattern that denies a namespace; empty if the namespace is permitted. Without a list
// of the owner, the default list and the agent's own namespace are denied. An empty list of the owner denies nothing.
func (p *Policy) findDenyingPattern(name string) string {
	patterns := p.Spec.DeniedNamespaces
	if patterns == nil {
		patterns = defaultDenied
		if name == p.OwnNamespace {
			return name
		}
	}
	for _, pattern := range patterns {
		// A pattern that is not valid denies every namespace. Parse already refuses such a policy.
		if matched, err := path.Match(pattern, name); err != nil || matched {
			return pattern
		}
	}
	return ""
}
