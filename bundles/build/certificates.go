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

// certificates are what is known of the certificates of webhooks.
type certificates struct {
	// answering are the Deployments that answer webhooks.
	answering map[string]bool
	// made are the Secrets that a Certificate of cert-manager makes.
	made map[string]bool
	// own are the signs that the operator does not use OLM's certificate.
	own []bundles.OwnCertificate
}

// checkCertificates takes the certificate of cert-manager out of a Deployment whose webhooks OLM serves: nobody makes
// that Secret any more, and a pod that mounts it would never start. OLM mounts its own. A program that serves another
// certificate, whoever makes it, is reported: OLM writes the CA of its own into the webhook configurations, so the API
// server trusts no other.
func (a *assembly) checkCertificates(webhooks []operatorsv1alpha1.WebhookDescription) {
	c := certificates{answering: map[string]bool{}, made: map[string]bool{}, own: bundles.OwnCertificates(a.csv)}
	for _, w := range webhooks {
		c.answering[w.DeploymentName] = true
	}
	for _, o := range a.objects.certificates {
		if name := secretOf(o); name != "" {
			c.made[name] = true
		}
		a.leaveOut(o, a.whyWithout(o, c))
	}
	for i, d := range a.objects.deployments {
		spec := &a.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i].Spec
		if c.answering[d.GetName()] {
			a.unmount(d, spec, c)
		} else {
			a.missCertificates(d, spec, c.made)
		}
	}
	a.reportCertificates(c)
	a.reportReplaced(c)
}

// secretOf is the Secret that a Certificate of cert-manager is written into; empty for an Issuer.
func secretOf(certificate object) string {
	name, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName")
	return name
}

// whyWithout says why a bundle has no Certificate or Issuer. OLM makes certificates for webhooks, and no others.
func (a *assembly) whyWithout(o object, c certificates) string {
	secret := secretOf(o)
	switch {
	case secret == "":
		return "a bundle cannot ask cert-manager for certificates"
	case a.isOfWebhook(o, c):
		return "OLM makes the certificates of webhooks itself"
	}
	return fmt.Sprintf("OLM makes certificates of webhooks only, so there is no Secret %s unless somebody else makes "+
		"it", secret)
}

// isOfWebhook says whether webhooks are served with a certificate: it is for the name of their Service, or the
// Deployment that answers them mounts it where OLM does, or it reads it from elsewhere.
func (a *assembly) isOfWebhook(certificate object, c certificates) bool {
	names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	if slices.ContainsFunc(names, func(name string) bool {
		service, _, _ := strings.Cut(name, ".")
		return a.answeredBy[service] != ""
	}) {
		return true
	}
	secret := secretOf(certificate)
	return slices.ContainsFunc(a.objects.deployments, func(d typed[appsv1.Deployment]) bool {
		pod := &d.value.Spec.Template.Spec
		return c.serves(d.GetName(), secret) || c.answering[d.GetName()] &&
			slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
				atOLM, _ := mounted(pod, v.Name)
				return atOLM && v.Secret != nil && v.Secret.SecretName == secret
			})
	})
}

func (a *assembly) unmount(d typed[appsv1.Deployment], spec *appsv1.DeploymentSpec, c certificates) {
	pod := &spec.Template.Spec
	for _, v := range slices.Clone(pod.Volumes) {
		if v.Secret == nil || a.hasSecret(v.Secret.SecretName) {
			continue
		}
		atOLM, elsewhere := mounted(pod, v.Name)
		switch {
		case atOLM && elsewhere == "":
			a.warn("%v: volume %s with Secret %s is left out, for OLM mounts a certificate of its own at %s", d, v.Name,
				v.Secret.SecretName, bundles.WebhookCertificates)
			pod.Volumes = slices.DeleteFunc(pod.Volumes, func(have corev1.Volume) bool { return have.Name == v.Name })
			for i := range pod.Containers {
				pod.Containers[i].VolumeMounts = slices.DeleteFunc(pod.Containers[i].VolumeMounts,
					func(m corev1.VolumeMount) bool { return m.Name == v.Name })
			}
		case !c.made[v.Secret.SecretName]:
		case c.serves(d.GetName(), v.Secret.SecretName):
			a.problem("%v mounts Secret %s at %s; cert-manager makes it, which a bundle cannot ask for. Let the "+
				"program read its certificate from %s, where OLM mounts one",
				d, v.Secret.SecretName, cmp.Or(elsewhere, "no path"), bundles.WebhookCertificates)
		default:
			a.missCertificate(d, v)
		}
	}
}

// serves says whether a Deployment serves its webhooks with the certificate in a Secret.
func (c certificates) serves(deployment, secret string) bool {
	return slices.ContainsFunc(c.own, func(own bundles.OwnCertificate) bool {
		return own.Deployment == deployment && own.Secret == secret
	})
}

// mounted reports whether a volume is mounted at OLM's place, and where else; empty if nowhere. Into containers that
// only run at the start OLM mounts nothing, so what they mount counts as elsewhere.
func mounted(pod *corev1.PodSpec, volume string) (atOLM bool, elsewhere string) {
	for i, c := range slices.Concat(pod.Containers, pod.InitContainers) {
		for _, m := range c.VolumeMounts {
			switch {
			case m.Name != volume:
			case i < len(pod.Containers) && strings.TrimSuffix(m.MountPath, "/") == bundles.WebhookCertificates:
				atOLM = true
			default:
				elsewhere = m.MountPath
			}
		}
	}
	return atOLM, elsewhere
}

// missCertificates warns of a certificate that no webhook needs and that nobody will make.
func (a *assembly) missCertificates(d typed[appsv1.Deployment], spec *appsv1.DeploymentSpec, made map[string]bool) {
	for _, v := range spec.Template.Spec.Volumes {
		if v.Secret != nil && made[v.Secret.SecretName] {
			a.missCertificate(d, v)
		}
	}
}

func (a *assembly) missCertificate(d typed[appsv1.Deployment], v corev1.Volume) {
	if v.Secret.Optional == nil || !*v.Secret.Optional {
		a.problem("%v mounts Secret %s, which cert-manager makes; a bundle cannot ask for that, and its pods "+
			"would never start. Do without it, or make the volume optional", d, v.Secret.SecretName)
	}
}

func (a *assembly) hasSecret(name string) bool {
	return slices.ContainsFunc(a.objects.manifests,
		func(o object) bool { return o.GetKind() == kindSecret && o.GetName() == name })
}

// reportCertificates refuses a Secret that is certainly the certificate of a webhook, and warns of other signs. What
// cert-manager makes was reported before.
func (a *assembly) reportCertificates(c certificates) {
	for _, own := range c.own {
		where := fmt.Sprintf("%s: container %s %s", a.deploymentNamed(own.Deployment), own.Container, own.What)
		switch {
		case c.made[own.Secret]:
		case own.Makes:
			a.warn("%s, by which it seems to make certificates; OLM makes that of the webhooks, and writes the CA "+
				"into webhook configurations that it names itself. Turn it off, unless it is for something else", where)
		case own.Secret == "":
			a.warn("%s. The API server trusts only the certificate that OLM mounts at %s, as tls.crt and tls.key. Let "+
				"the program read it from there", where, bundles.WebhookCertificates)
		case own.Certain && !a.mayLoseNamed(kindSecret, own.Secret):
			a.problem("%s. The API server trusts only the certificate that OLM mounts at %s, as tls.crt and tls.key, "+
				"so it would refuse to call the webhooks. Have the program read it from there, by a flag or a "+
				"variable, and remove the volume. If the Secret is for something else, use --leave-out %s/%s", where,
				bundles.WebhookCertificates, kindSecret, own.Secret)
		default:
			a.warn("%s. If that is the certificate of its webhooks: the API server trusts only the one that OLM "+
				"mounts at %s, as tls.crt and tls.key. Let the program read it from "+
				"there", where, bundles.WebhookCertificates)
		}
	}
}

// deploymentNamed is how messages name a Deployment.
func (a *assembly) deploymentNamed(name string) string {
	for _, d := range a.objects.deployments {
		if d.GetName() == name {
			return d.String()
		}
	}
	return "Deployment " + name
}

// replaced are objects of the input that have another name under OLM, by kind and name, with what messages say of them.
type replaced map[[2]string]string

const kindService = "Service"

// reportReplaced warns of programs that are told the name of a Service or of a webhook configuration which has another
// one under OLM, or of the Secret with the certificate.
func (a *assembly) reportReplaced(c certificates) {
	all := a.replaced(c)
	for _, d := range a.objects.deployments {
		pod := d.value.Spec.Template.Spec
		for _, s := range settingsOf(slices.Concat(pod.InitContainers, pod.Containers)) {
			if what := all.find(s); what != "" {
				a.warn("%v: container %s has %s, which names %s. Change it, or turn off what needs that name", d,
					s.container, s.what, what)
			}
		}
	}
}

func (a *assembly) replaced(c certificates) replaced {
	out := replaced{}
	configuration := func(o object) {
		what := fmt.Sprintf("%s %s; OLM makes others, with names of its own, and writes the CA into them", o.GetKind(),
			o.GetName())
		out[[2]string{kindConfiguration, o.GetName()}] = what
	}
	for _, o := range a.objects.validating {
		configuration(o.object)
	}
	for _, o := range a.objects.mutating {
		configuration(o.object)
	}
	for _, own := range c.own {
		if own.Secret != "" && own.Certain {
			out[[2]string{kindSecret, own.Secret}] = fmt.Sprintf("%s %s; OLM makes the certificate of the webhooks, "+
				"in another one", kindSecret, own.Secret)
		}
	}
	for name, deployment := range a.answeredBy {
		webhook := operatorsv1alpha1.WebhookDescription{DeploymentName: deployment}
		if service := bundles.WebhookService(webhook); service != name {
			out[[2]string{kindService, name}] = fmt.Sprintf("%s %s; the webhooks are behind %s %s, which OLM makes, "+
				"and its certificate is for that name", kindService, name, kindService, service)
		}
	}
	return out
}

// kindConfiguration stands for both kinds of webhook configurations.
const kindConfiguration = "WebhookConfiguration"

// find returns what a setting names; empty if that is nothing which is replaced. The name of a flag decides between
// objects of one name.
func (r replaced) find(s setting) string {
	if services := bundles.ServiceNames(s.text); len(services) > 0 {
		return r[[2]string{kindService, services[0].Name}]
	}
	name := s.value[strings.LastIndex(s.value, "/")+1:]
	flag := strings.ToLower(s.name)
	switch {
	case strings.HasPrefix(s.value, "/") || strings.HasSuffix(flag, "namespace"):
		return ""
	case strings.Contains(flag, "secret"):
		return r[[2]string{kindSecret, name}]
	}
	return cmp.Or(r[[2]string{kindService, name}], r[[2]string{kindConfiguration, name}],
		r[[2]string{kindSecret, name}])
}
