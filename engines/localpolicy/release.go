// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package localpolicy

import (
	"fmt"
	"reflect"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/origin"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Release judges what an admission says itself, before anything is read. It returns the
// keys by one of which the catalog must be signed; none: it need not be. A nil policy
// permits everything.
func (p *Policy) Release(release v1alpha1.Release) (keys []string, err error) {
	asked := release.Catalog.PublicKeys
	if p == nil {
		return asked, nil
	}
	if err := p.config(release); err != nil {
		return nil, err
	}
	if p.Absent {
		return asked, nil
	}
	if p.Invalid != "" {
		return nil, &RefusalError{Reason: v1alpha1.ReasonLocalPolicyInvalid, Message: fmt.Sprintf("The policy of the "+
			"cluster's owner cannot be read, so nothing is installed or changed: %s. Correct ConfigMap %s beside the "+
			"agent, or delete it.", p.Invalid, ConfigMap)}
	}
	namespace := release.TargetNamespace()
	if pattern := p.deniesNamespace(namespace); pattern != "" {
		return nil, refuse("namespace %s is denied (%s)", namespace, pattern)
	}
	source := release.Catalog.Source
	if source.Image == "" && (len(p.Spec.AllowedRegistries) > 0 || len(p.Spec.TrustedKeys) > 0) {
		return nil, refuse("its catalog is the directory %s, which has no registry and no signature", source.Directory)
	}
	if err := p.registry("the catalog", source.Image); err != nil {
		return nil, err
	}
	return p.keys(asked)
}

// config judges what the hub tells operators in the agent's namespace, of which the agent is one. Its environment could
// say where it looks for the owner's policy and which stores it writes backups to.
func (p *Policy) config(release v1alpha1.Release) error {
	config := release.Install.Config
	if config == nil || !p.isOwn(release.TargetNamespace()) {
		return nil
	}
	rest := *config
	rest.Resources, rest.NodeSelector, rest.Tolerations = nil, nil, nil
	if reflect.DeepEqual(rest, v1alpha1.OperatorConfig{}) {
		return nil
	}
	return &RefusalError{Reason: v1alpha1.ReasonLocalPolicy, Message: fmt.Sprintf("The release is for the agent's own "+
		"namespace, %s, where install.config may have resources, nodeSelector and tolerations only: what the agent is "+
		"told is up to the owner of the cluster. Remove env from install.config, and set the agent's flags on the "+
		"cluster, "+
		"in ConfigMap bellwether-agent-settings beside the agent.", p.OwnNamespace)}
}

// keys are those that both hub and owner trust; those of the owner where the hub asks
// for none.
func (p *Policy) keys(asked []string) ([]string, error) {
	if len(p.Spec.TrustedKeys) == 0 {
		return asked, nil
	}
	if len(asked) == 0 {
		return p.Spec.TrustedKeys, nil
	}
	both := origin.Trusted(asked, p.Spec.TrustedKeys)
	if len(both) == 0 {
		return nil, refuse("none of the %s that the hub asks for is among trustedKeys",
			phrase.Count(len(asked), "signing key"))
	}
	return both, nil
}

// Unsigned is the refusal of a catalog that lacks a signature by one of the keys that
// Release returned; nil where only the hub asked for one.
func (p *Policy) Unsigned(cause error) error {
	if p == nil || len(p.Spec.TrustedKeys) == 0 {
		return nil
	}
	return refuse("the catalog is not signed by one of trustedKeys (%s)",
		phrase.Truncate(phrase.OneLine(cause.Error()), maxShown))
}

// registry judges where an image is; none is permitted.
func (p *Policy) registry(what, image string) error {
	if image == "" || len(p.Spec.AllowedRegistries) == 0 {
		return nil
	}
	repository, err := origin.Repository(image)
	if err != nil {
		return refuse("%s has the name %q: %s", what, phrase.Truncate(image, maxShown), err)
	}
	for _, allowed := range p.Spec.AllowedRegistries {
		if origin.IsIn(repository, allowed) {
			return nil
		}
	}
	return refuse("%s is %s, which is not in allowedRegistries", what, repository)
}
