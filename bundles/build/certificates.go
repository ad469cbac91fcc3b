// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/bundles"
)

// certificates are the known facts about the certificates of webhooks.
type certificates struct {
	// servers are the Deployments that serve webhooks.
	servers map[string]bool
	// certManagerSecrets are the Secrets that a Certificate of cert-manager creates.
	certManagerSecrets map[string]bool
	// signs are the signs that the operator does not use OLM's certificate.
	signs []bundles.OwnCertificate
}

// checkCertificates leaves Certificates and Issuers out of the bundle, and removes the certificate of cert-manager
// from Deployments that serve webhooks: in a bundle, no program creates its Secret, so a pod that mounts it would
// never start. OLM mounts its own certificate instead. A program that serves another certificate is reported: OLM
// writes the CA of its own certificate into the webhook configurations, so the API server trusts no other certificate.
func (a *assembler) checkCertificates(webhooks []operatorsv1alpha1.WebhookDescription) {
	c := certificates{servers: map[string]bool{}, certManagerSecrets: map[string]bool{},
		signs: bundles.OwnCertificates(a.csv)}
	for _, w := range webhooks {
		c.servers[w.DeploymentName] = true
	}
	for _, o := range a.objects.certificates {
		if name := readSecretName(o); name != "" {
			c.certManagerSecrets[name] = true
		}
		a.leaveOut(o, a.explainOmission(o, c))
	}
	for i, d := range a.objects.deployments {
		spec := &a.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i].Spec
		if c.servers[d.GetName()] {
			a.unmountCertificates(d, spec, c)
		} else {
			a.reportMissingCertificates(d, spec, c.certManagerSecrets)
		}
	}
	a.reportCertificates(c)
	a.reportReplaced(c)
}

// readSecretName returns the Secret that a Certificate of cert-manager is written to; empty for an Issuer.
func readSecretName(certificate object) string {
	name, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName")
	return name
}

// explainOmission returns the reason why a Certificate or Issuer is not in the bundle.
func (a *assembler) explainOmission(o object, c certificates) string {
	secret := readSecretName(o)
	switch {
	case secret == "":
		return "a bundle cannot ask cert-manager for certificates"
	case a.isForWebhook(o, c):
		return "OLM makes the certificates of webhooks itself"
	}
	return fmt.Sprintf("OLM makes certificates of webhooks only, so there is no Secret %s unless somebody else makes "+
		"it", secret)
}

// isForWebhook reports whether webhooks are served with a certificate. This is the case if the certificate is for the
// name of a webhook's Service, or if a Deployment that serves webhooks mounts it at OLM's path or reads it from
// another path.
func (a *assembler) isForWebhook(certificate object, c certificates) bool {
	names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	if slices.ContainsFunc(names, func(name string) bool {
		service, _, _ := strings.Cut(name, ".")
		return a.webhookDeployments[service] != ""
	}) {
		return true
	}
	secret := readSecretName(certificate)
	return slices.ContainsFunc(a.objects.deployments, func(d typedObject[appsv1.Deployment]) bool {
		pod := &d.value.Spec.Template.Spec
		isAtOLMPath := slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			atOLM, _ := findMounts(pod, v.Name)
			return atOLM && v.Secret != nil && v.Secret.SecretName == secret
		})
		return c.isServing(d.GetName(), secret) || c.servers[d.GetName()] && isAtOLMPath
	})
}

// unmountCertificates removes the volumes that OLM replaces from spec, the spec of a Deployment that serves webhooks.
// It reports other volumes with a certificate of cert-manager. Secrets of the bundle are not changed.
func (a *assembler) unmountCertificates(d typedObject[appsv1.Deployment], spec *appsv1.DeploymentSpec, c certificates) {
	pod := &spec.Template.Spec
	for _, v := range slices.Clone(pod.Volumes) {
		if v.Secret == nil || a.hasSecret(v.Secret.SecretName) {
			continue
		}
		atOLM, elsewhere := findMounts(pod, v.Name)
		switch {
		case atOLM && elsewhere == "":
			a.warn("%v: volume %s with Secret %s is left out, for OLM mounts a certificate of its own at %s", d, v.Name,
				v.Secret.SecretName, bundles.WebhookCertificates)
			pod.Volumes = slices.DeleteFunc(pod.Volumes, func(have corev1.Volume) bool { return have.Name == v.Name })
			for i := range pod.Containers {
				pod.Containers[i].VolumeMounts = slices.DeleteFunc(pod.Containers[i].VolumeMounts,
					func(m corev1.VolumeMount) bool { return m.Name == v.Name })
			}
		case !c.certManagerSecrets[v.Secret.SecretName]: // another program may create the Secret
		case c.isServing(d.GetName(), v.Secret.SecretName):
			a.addProblem("%v mounts Secret %s at %s; cert-manager makes it, which a bundle cannot ask for. Let the "+
				"program read its certificate from %s, where OLM mounts one",
				d, v.Secret.SecretName, cmp.Or(elsewhere, "no path"), bundles.WebhookCertificates)
		default:
			a.reportMissingCertificate(d, v)
		}
	}
}

// isServing reports whether a Deployment serves its webhooks with the certificate in a Secret.
func (c certificates) isServing(deployment, secret string) bool {
	return slices.ContainsFunc(c.signs, func(own bundles.OwnCertificate) bool {
		return own.Deployment == deployment && own.Secret == secret
	})
}

// findMounts reports whether a volume is mounted at OLM's path, and returns another path where it is mounted; empty if
// there is none. Mounts of init containers always count as another path, because OLM mounts nothing into them.
func findMounts(pod *corev1.PodSpec, volume string) (atOLM bool, elsewhere string) {
	for i, c := range slices.Concat(pod.Containers, pod.InitContainers) {
		for _, m := range c.VolumeMounts {
			switch {
			case m.Name != volume: // a mount of another volume
			case i < len(pod.Containers) && strings.TrimSuffix(m.MountPath, "/") == bundles.WebhookCertificates:
				atOLM = true
			default:
				elsewhere = m.MountPath
			}
		}
	}
	return atOLM, elsewhere
}

// reportMissingCertificates reports Secrets that a Deployment mounts and that cert-manager would have created. It is
// for Deployments that serve no webhook.
func (a *assembler) reportMissingCertificates(d typedObject[appsv1.Deployment], spec *appsv1.DeploymentSpec,
	certManagerSecrets map[string]bool) {
	for _, v := range spec.Template.Spec.Volumes {
		if v.Secret != nil && certManagerSecrets[v.Secret.SecretName] {
			a.reportMissingCertificate(d, v)
		}
	}
}

// reportMissingCertificate reports the Secret of a volume that cert-manager would have created, unless it is optional.
func (a *assembler) reportMissingCertificate(d typedObject[appsv1.Deployment], v corev1.Volume) {
	if v.Secret.Optional == nil || !*v.Secret.Optional {
		a.addProblem("%v mounts Secret %s, which cert-manager makes; a bundle cannot ask for that, and its pods "+
			"would never start. Do without it, or make the volume optional", d, v.Secret.SecretName)
	}
}

// hasSecret reports whether the manifests contain a Secret.
func (a *assembler) hasSecret(name string) bool {
	return slices.ContainsFunc(a.objects.manifests,
		func(o object) bool { return o.GetKind() == kindSecret && o.GetName() == name })
}

// reportCertificates reports a problem for a Secret that is certainly the certificate of a webhook, and warnings for
// other signs. Secrets of cert-manager were already reported.
func (a *assembler) reportCertificates(c certificates) {
	for _, own := range c.signs {
		place := fmt.Sprintf("%s: container %s %s", a.formatDeployment(own.Deployment), own.Container, own.Description)
		switch {
		case c.certManagerSecrets[own.Secret]: // unmountCertificates reported it
		case own.Makes:
			a.warn("%s, by which it seems to make certificates; OLM makes that of the webhooks, and writes the CA "+
				"into webhook configurations that it names itself. Turn it off, unless it is for something else", place)
		case own.Secret == "":
			a.warn("%s. The API server trusts only the certificate that OLM mounts at %s, as tls.crt and tls.key. Let "+
				"the program read it from there", place, bundles.WebhookCertificates)
		case own.Certain && !a.canLoseNamed(kindSecret, own.Secret):
			a.addProblem("%s. The API server trusts only the certificate that OLM mounts at %s, as tls.crt and "+
				"tls.key, so it would refuse to call the webhooks. Have the program read it from there, by a flag or "+
				"a variable, and remove the volume. If the Secret is for something else, use --leave-out %s/%s", place,
				bundles.WebhookCertificates, kindSecret, own.Secret)
		default:
			a.warn("%s. If that is the certificate of its webhooks: the API server trusts only the one that OLM "+
				"mounts at %s, as tls.crt and tls.key. Let the program read it from "+
				"there", place, bundles.WebhookCertificates)
		}
	}
}

// formatDeployment returns the text for a Deployment in messages, with its place if it is among the manifests.
func (a *assembler) formatDeployment(name string) string {
	for _, d := range a.objects.deployments {
		if d.GetName() == name {
			return d.String()
		}
	}
	return "Deployment " + name
}

// replacedNames are objects of the input that have another name under OLM. The key is kind and name, the value is a
// text for messages.
type replacedNames map[[2]string]string

const kindService = "Service"

// reportReplaced warns about programs that are configured with the name of an object that has another name under OLM: a
// Service, a webhook configuration, or the Secret with the certificate.
func (a *assembler) reportReplaced(c certificates) {
	names := a.listReplacedNames(c)
	for _, d := range a.objects.deployments {
		pod := d.value.Spec.Template.Spec
		for _, s := range listSettings(slices.Concat(pod.InitContainers, pod.Containers)) {
			if name := names.findName(s); name != "" {
				a.warn("%v: container %s has %s, which names %s. Change it, or turn off what needs that name", d,
					s.container, s.label, name)
			}
		}
	}
}

// listReplacedNames returns the webhook configurations, certificate Secrets and Services that have another name
// under OLM.
func (a *assembler) listReplacedNames(c certificates) replacedNames {
	out := replacedNames{}
	addConfiguration := func(o object) {
		text := fmt.Sprintf("%s %s; OLM makes others, with names of its own, and writes the CA into them", o.GetKind(),
			o.GetName())
		out[[2]string{kindConfiguration, o.GetName()}] = text
	}
	for _, o := range a.objects.validating {
		addConfiguration(o.object)
	}
	for _, o := range a.objects.mutating {
		addConfiguration(o.object)
	}
	for _, own := range c.signs {
		if own.Secret != "" && own.Certain {
			out[[2]string{kindSecret, own.Secret}] = fmt.Sprintf("%s %s; OLM makes the certificate of the webhooks, "+
				"in another one", kindSecret, own.Secret)
		}
	}
	for name, deployment := range a.webhookDeployments {
		webhook := operatorsv1alpha1.WebhookDescription{DeploymentName: deployment}
		if service := bundles.WebhookService(webhook); service != name {
			out[[2]string{kindService, name}] = fmt.Sprintf("%s %s; the webhooks are behind %s %s, which OLM makes, "+
				"and its certificate is for that name", kindService, name, kindService, service)
		}
	}
	return out
}

// kindConfiguration represents both kinds of webhook configurations.
const kindConfiguration = "WebhookConfiguration"

// findName returns the text about the object that a setting names; empty if the setting names no replaced object. If
// several objects have the same name, the name of the flag decides.
func (r replacedNames) findName(s setting) string {
	if services := bundles.ServiceNames(s.text); len(services) > 0 {
		return r[[2]string{kindService, services[0].Name}]
	}
	name := s.value[strings.LastIndex(s.value, "/")+1:]
	flag := strings.ToLower(s.name)
	switch {
	case strings.HasPrefix(s.value, "/") || strings.HasSuffix(flag, "namespace"): // not the name of an object
		return ""
	case strings.Contains(flag, "secret"):
		return r[[2]string{kindSecret, name}]
	}
	return cmp.Or(r[[2]string{kindService, name}], r[[2]string{kindConfiguration, name}],
		r[[2]string{kindSecret, name}])
}
