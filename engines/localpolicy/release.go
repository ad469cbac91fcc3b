// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package localpolicy

import (
	"fmt"
	"reflect"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// JudgeRelease judges a release without reading its catalog. The error is a RefusalError if the policy does not permit
// the release. Otherwise JudgeRelease returns the public keys that the owner and the hub trust: one of these keys must
// have signed the catalog. No keys mean that the catalog needs no signature. A nil policy permits everything.
func (p *Policy) JudgeRelease(release v1alpha1.Release) (keys []string, err error) {
	requested := release.Catalog.PublicKeys
	if p == nil {
		return requested, nil
	}
	if err := p.checkConfig(release); err != nil { // applies even if the owner has written no policy
		return nil, err
	}
	if p.Absent {
		return requested, nil
	}
	if p.Invalid != "" {
		return nil, &RefusalError{Reason: v1alpha1.ReasonLocalPolicyInvalid, Message: fmt.Sprintf("The policy of the "+
			"cluster's owner cannot be read, so nothing is installed or changed: %s. Correct ConfigMap %s beside the "+
			"agent, or delete it.", p.Invalid, ConfigMap)}
	}
	namespace := release.TargetNamespace()
	if pattern := p.findDenyingPattern(namespace); pattern != "" {
		return nil, refuse("namespace %s is denied (%s)", namespace, pattern)
	}
	source := release.Catalog.Source
	if source.Image == "" && (len(p.Spec.AllowedRegistries) > 0 || len(p.Spec.TrustedKeys) > 0) {
		return nil, refuse("its catalog is the directory %s, which has no registry and no signature", source.Directory)
	}
	if err := p.checkRegistry("the catalog", source.Image); err != nil {
		return nil, err
	}
	return p.selectKeys(requested)
}

// checkConfig judges the hub's configuration of operators in the agent's namespace, including the agent itself. It
// permits resources, node selectors and tolerations only: environment variables of the agent could change where the
// agent reads the owner's policy, and which stores the agent writes backups to.
func (p *Policy) checkConfig(release v1alpha1.Release) error {
	config := release.Install.Config
	if config == nil || !p.isOwn(release.TargetNamespace()) {
		return nil
	}
	unjudged := *config
	unjudged.Resources, unjudged.NodeSelector, unjudged.Tolerations = nil, nil, nil
	if reflect.DeepEqual(unjudged, v1alpha1.OperatorConfig{}) {
		return nil
	}
	return &RefusalError{Reason: v1alpha1.ReasonLocalPolicy, Message: fmt.Sprintf("The release is for the agent's own "+
		"namespace, %s, where install.config may have resources, nodeSelector and tolerations only: what the agent is "+
		"told is up to the owner of the cluster. Remove env from install.config, and set the agent's flags on the "+
		"cluster, "+
		"in ConfigMap bellwether-agent-settings beside the agent.", p.OwnNamespace)}
}

// selectKeys returns the keys that both the hub and the owner trust, and an error if there are none. If only the hub or
// only the owner names keys, it returns these keys.
func (p *Policy) selectKeys(requested []string) ([]string, error) {
	if len(p.Spec.TrustedKeys) == 0 {
		return requested, nil
	}
	if len(requested) == 0 {
		return p.Spec.TrustedKeys, nil
	}
	common := catalogs.TrustedKeys(requested, p.Spec.TrustedKeys)
	if len(common) == 0 {
		return nil, refuse("none of the %s that the hub asks for is among trustedKeys",
			phrase.Count(len(requested), "signing key"))
	}
	return common, nil
}

// RefuseUnsigned returns the refusal of a catalog that no key of the policy has signed; nil if only the hub requires a
// signature. cause is the error of the signature check with the keys of JudgeRelease.
func (p *Policy) RefuseUnsigned(cause error) error {
	if p == nil || len(p.Spec.TrustedKeys) == 0 {
		return nil
	}
	return refuse("the catalog is not signed by one of trustedKeys (%s)",
		phrase.Truncate(phrase.OneLine(cause.Error()), maxShown))
}

// checkRegistry refuses an image outside the allowed registries. An empty image is permitted. subject is the subject
// of the message.
func (p *Policy) checkRegistry(subject, image string) error {
	if image == "" || len(p.Spec.AllowedRegistries) == 0 {
		return nil
	}
	repository, err := catalogs.Repository(image)
	if err != nil {
		return refuse("%s has the name %q: %s", subject, phrase.Truncate(image, maxShown), err)
	}
	for _, allowed := range p.Spec.AllowedRegistries {
		if catalogs.IsInRegistry(repository, allowed) {
			return nil
		}
	}
	return refuse("%s is %s, which is not in allowedRegistries", subject, repository)
}
