// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localpolicy decides what of the hub's admissions an agent carries out. The
// policy is a ConfigMap on the agent's cluster, which only the owner of the cluster
// writes. It holds whatever the hub says, so a hub that was taken over cannot go beyond
// it, but for what docs/security.md lists.
//
// The package is pure. What it judges comes from the hub and from catalogs, neither of
// which is trusted.
package localpolicy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/origin"
	"github.com/bellwether-dev/bellwether/phrase"
)

// ConfigMap is the name of the ConfigMap, in the agent's namespace on its cluster.
const ConfigMap = "bellwether-policy"

// Key is the ConfigMap's key whose value is a Spec, as YAML.
const Key = "policy.yaml"

// Policy is what the owner of a cluster permits.
type Policy struct {
	Spec Spec
	// OwnNamespace is the agent's.
	OwnNamespace string
	// Invalid is why the ConfigMap cannot be read; nothing is permitted then.
	Invalid string
	// Absent says that there is no ConfigMap. Nothing is limited then but what the hub tells the agent itself.
	Absent bool
}

// Spec is what the owner writes. What is left out is not limited, except for
// deniedNamespaces.
type Spec struct {
	// TrustedKeys are public keys in PEM. A catalog must be signed by one of them,
	// whatever keys the hub names, or none.
	TrustedKeys []string `json:"trustedKeys,omitempty"`
	// AllowedRegistries are those of catalogs, bundles and operators: a host, such as
	// registry.example.com, or a host with the beginning of a repository's name, such as
	// registry.example.com/team.
	AllowedRegistries []string `json:"allowedRegistries,omitempty"`
	// DeniedNamespaces are patterns of namespaces that no operator is installed into.
	// Default: kube-*, the agent's own namespace and those of OLM.
	DeniedNamespaces []string `json:"deniedNamespaces,omitempty"`
	// Permissions limit what a bundle may ask for.
	Permissions Permissions `json:"permissions,omitzero"`
}

// Permissions limit the rights that bundles ask for, in whatever namespaces.
type Permissions struct {
	// DenyClusterWildcards denies cluster-wide rules with a wildcard in apiGroups,
	// resources, verbs or nonResourceURLs.
	DenyClusterWildcards bool `json:"denyClusterWildcards,omitempty"`
	// Denied are rights that no bundle may have, nor a part of them. Where such a rule
	// has no resourceNames it is about all objects, and each of them.
	Denied []rbacv1.PolicyRule `json:"denied,omitempty"`
	// Maximum, where it is set, holds all rights that a bundle may have.
	Maximum []rbacv1.PolicyRule `json:"maximum,omitempty"`
}

func (p Permissions) isSet() bool {
	return p.DenyClusterWildcards || len(p.Denied) > 0 || len(p.Maximum) > 0
}

// RefusalError is what a policy does not permit. It is an error, and the finding that the
// agent reports.
type RefusalError struct{ Reason, Message string }

func (r *RefusalError) Error() string { return r.Message }

func refuse(format string, args ...any) *RefusalError {
	return &RefusalError{Reason: v1alpha1.ReasonLocalPolicy, Message: fmt.Sprintf(
		"The policy of the cluster's owner does not permit this release: "+format+". Change the release, or ask the "+
			"owner of the cluster to change ConfigMap "+ConfigMap+" beside the agent.", args...)}
}

// Parse reads the ConfigMap's data. A policy that cannot be read permits nothing: what
// its owner meant to forbid is not known.
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

// maxShown bounds what is shown of what others wrote.
const maxShown = 300

func (s Spec) validate() error {
	for i, key := range s.TrustedKeys {
		if _, err := origin.Fingerprint(key); err != nil {
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

func (p Permissions) validate() error {
	for _, rule := range slices.Concat(p.Denied, p.Maximum) {
		aboutResources := len(rule.APIGroups) > 0 && len(rule.Resources) > 0
		if len(rule.Verbs) == 0 || len(rule.NonResourceURLs) == 0 && !aboutResources {
			return fmt.Errorf("permissions: a rule needs verbs, and apiGroups and resources or nonResourceURLs: %s",
				describe(rule))
		}
	}
	return nil
}

// defaultDenied are Kubernetes' namespaces and those in which OLM runs. The chart's list has OpenShift's besides.
var defaultDenied = []string{"kube-*", "olm", "openshift-operator-lifecycle-manager", "openshift-marketplace"}

// deniesNamespace returns the pattern that denies a namespace; empty where none does.
func (p *Policy) deniesNamespace(name string) string {
	patterns := p.Spec.DeniedNamespaces
	if patterns == nil {
		patterns = defaultDenied
		if name == p.OwnNamespace {
			return name
		}
	}
	for _, pattern := range patterns {
		if matched, err := path.Match(pattern, name); err != nil || matched {
			return pattern
		}
	}
	return ""
}
