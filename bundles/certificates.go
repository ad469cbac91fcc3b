// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// OLM mounts the certificate of webhooks at these paths into the containers of the Deployment that serves the webhooks
// (AddDefaultCertVolumeAndVolumeMounts in pkg/controller/install/certresources.go of OLM v0.46). The folders contain no
// other files; in particular, no certificate of a CA.
const (
	// WebhookCertificates has tls.crt and tls.key. It is the default path of controller-runtime.
	WebhookCertificates = "/tmp/k8s-webhook-server/serving-certs"
	// apiCertificates has the same certificate as apiserver.crt and apiserver.key. OLM v1 mounts nothing at this path.
	apiCertificates = "/apiserver.local.config/certificates"
)

// olmVolumes are the names of OLM's volumes. OLM v0 keeps the path of an existing mount of a volume with such a name,
// but replaces the content by its certificate.
var olmVolumes = []string{"webhook-cert", "apiservice-cert"}

// WebhookService returns the name of the Service that OLM creates for a webhook (ServiceName in
// pkg/controller/install/certresources.go of OLM v0.46).
func WebhookService(w operatorsv1alpha1.WebhookDescription) string {
	return w.DomainName() + "-service"
}

// OwnCertificate is a sign that an operator serves its webhooks with a certificate that OLM did not create. This
// fails under OLM: OLM writes the CA of its certificate into the webhook configurations, so the API server trusts no
// other CA.
type OwnCertificate struct {
	// Deployment and Container are the names of the Deployment and the container that have the sign.
	Deployment, Container string
	// Secret is the Secret that holds the certificate; empty if the sign is a flag or a variable only.
	Secret string
	// Makes is true if the program creates certificates, and false if it reads one.
	Makes bool
	// Certain is true if the certificate is almost certainly for the webhooks.
	Certain bool
	// Description describes what the container does, as a clause without its subject.
	Description string
	// Path is the place in the ClusterServiceVersion, in the form that Position takes.
	Path []any
}

// OwnCertificates returns the signs that an operator serves webhooks with a certificate that OLM did not create, in the
// order of the ClusterServiceVersion; none if there are no webhooks. Signs are: Secrets that are mounted into
// containers which serve webhooks, flags and variables that name the path of a certificate, and flags that make a
// program create certificates. A container with OLM's path in its settings or mounts uses OLM's certificate.
func OwnCertificates(csv *operatorsv1alpha1.ClusterServiceVersion) []OwnCertificate {
	if len(csv.Spec.WebhookDefinitions) == 0 {
		return nil
	}
	writesCA := canChangeConfigurations(csv)
	var out []OwnCertificate
	for i, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := &d.Spec.Template.Spec
		for j, c := range pod.Containers {
			reader := certificateReader{pod: pod, container: c, settings: listSettings(c), writesCA: writesCA,
				path: []any{"spec", "install", "spec", "deployments", i, "spec", "template", "spec", "containers", j}}
			signs := reader.findMakers()
			if isWebhookContainer(csv, d, c) && !reader.hasOLMPath() {
				signs = slices.Concat(reader.findSecrets(), reader.findPaths(), signs)
			}
			for k := range signs {
				signs[k].Deployment, signs[k].Container = d.Name, c.Name
			}
			out = append(out, signs...)
		}
	}
	return out
}

// isWebhookContainer reports whether a container serves webhooks of its Deployment: either the container has the port
// to which OLM's Service sends requests, or no container of the Deployment declares the port and the container is not
// a proxy for metrics.
func isWebhookContainer(csv *operatorsv1alpha1.ClusterServiceVersion, d operatorsv1alpha1.StrategyDeploymentSpec,
	c corev1.Container) bool {
	for _, w := range csv.Spec.WebhookDefinitions {
		if w.DeploymentName != d.Name {
			continue
		}
		hasWebhookPort := func(c corev1.Container) bool { return hasPort(c, w) }
		isDeclared := slices.ContainsFunc(d.Spec.Template.Spec.Containers, hasWebhookPort)
		isProxy := slices.Contains(splitWords(c.Name), "proxy")
		if hasWebhookPort(c) || !isDeclared && !isProxy {
			return true
		}
	}
	return false
}

// hasPort reports whether a container declares the target port of a webhook, by number or by name.
func hasPort(c corev1.Container, w operatorsv1alpha1.WebhookDescription) bool {
	target := intstr.FromInt32(cmp.Or(w.ContainerPort, 443))
	if w.TargetPort != nil {
		target = *w.TargetPort
	}
	return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
		if target.Type == intstr.String {
			return p.Name == target.StrVal
		}
		return p.ContainerPort == target.IntVal
	})
}

// canChangeConfigurations reports whether the operator has the right to change webhook configurations, and so can write
// a CA into them. A wildcard API group or resource does not count, because it does not show the purpose.
func canChangeConfigurations(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	strategy := csv.Spec.InstallStrategy.StrategySpec
	return slices.ContainsFunc(slices.Concat(strategy.ClusterPermissions, strategy.Permissions),
		func(p operatorsv1alpha1.StrategyDeploymentPermissions) bool {
			return slices.ContainsFunc(p.Rules, func(r rbacv1.PolicyRule) bool {
				isForConfigurations := slices.Contains(r.Resources, "validatingwebhookconfigurations") ||
					slices.Contains(r.Resources, "mutatingwebhookconfigurations")
				return slices.Contains(r.APIGroups, "admissionregistration.k8s.io") && isForConfigurations &&
					canWrite(r)
			})
		})
}

// setting is a flag, an environment variable, or a positional argument of a container.
type setting struct {
	// name is the flag or variable as it is written; empty for a positional argument.
	name, value string
	path        []any
}

func (s setting) String() string {
	if s.name == "" || s.value == "" {
		return s.name + s.value
	}
	return s.name + "=" + s.value
}

// listSettings returns the settings of a container. A flag can have its value in the next argument.
func listSettings(c corev1.Container) []setting {
	var out []setting
	for _, list := range []struct {
		field string
		args  []string
	}{{"command", c.Command}, {"args", c.Args}} {
		for i, arg := range list.args {
			last := len(out) - 1
			switch flag, value, _ := strings.Cut(arg, "="); {
			case strings.HasPrefix(arg, "-"):
				out = append(out, setting{name: flag, value: value, path: []any{list.field, i}})
			case i > 0 && strings.HasPrefix(list.args[i-1], "-") && out[last].value == "":
				out[last].value = arg
			default:
				out = append(out, setting{value: arg, path: []any{list.field, i}})
			}
		}
	}
	for i, e := range c.Env {
		out = append(out, setting{name: e.Name, value: e.Value, path: []any{"env", i}})
	}
	return out
}

// certificateReader finds signs of certificates in one container of a Deployment.
type certificateReader struct {
	pod       *corev1.PodSpec
	container corev1.Container
	settings  []setting
	// writesCA is true if the operator has the right to change webhook configurations.
	writesCA bool
	path     []any
}

// hasOLMPath reports whether a setting or a mount of the container has one of OLM's paths.
func (r certificateReader) hasOLMPath() bool {
	return slices.ContainsFunc(r.settings, func(s setting) bool {
		return strings.Contains(s.value, WebhookCertificates) || strings.Contains(s.value, apiCertificates)
	}) || slices.ContainsFunc(r.container.VolumeMounts, isOLMMount)
}

// isOLMMount reports whether a mount has one of OLM's volumes or paths.
func isOLMMount(m corev1.VolumeMount) bool {
	return slices.Contains(olmVolumes, m.Name) || path.Clean(m.MountPath) == WebhookCertificates ||
		path.Clean(m.MountPath) == apiCertificates
}

// findSecrets returns a sign for each Secret with a certificate that the container mounts: the names of the volume, the
// Secret or the path are about certificates, or a setting names a file of the Secret as a certificate.
func (r certificateReader) findSecrets() []OwnCertificate {
	var out []OwnCertificate
	for i, m := range r.container.VolumeMounts {
		for _, secret := range listSecrets(r.pod, m.Name) {
			nameWords := splitWords(m.Name, secret, m.MountPath)
			pathSetting := slices.IndexFunc(r.settings,
				func(s setting) bool { return s.isPath() && isBelow(s.value, m.MountPath) })
			if !nameWords.isAboutCertificate() && pathSetting < 0 {
				continue
			}
			text := fmt.Sprintf("mounts Secret %s at %s", secret, m.MountPath)
			if pathSetting >= 0 {
				text += fmt.Sprintf(", which %s names", r.settings[pathSetting].name)
			}
			out = append(out, OwnCertificate{Secret: secret, Description: text, Path: r.joinPath("volumeMounts", i),
				Certain: nameWords.isAboutWebhook() || pathSetting >= 0 || r.writesCA})
		}
	}
	return out
}

// listSecrets returns the names of the Secrets in the volume with the given name.
func listSecrets(pod *corev1.PodSpec, volume string) []string {
	var out []string
	for _, v := range pod.Volumes {
		switch {
		case v.Name != volume: // another volume
		case v.Secret != nil:
			out = append(out, v.Secret.SecretName)
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				if source.Secret != nil {
					out = append(out, source.Secret.Name)
				}
			}
		}
	}
	return out
}

// findPaths returns a sign for the settings that name the path of a certificate where no Secret is mounted; nil if
// there are none. All such settings of a container are combined into one sign.
func (r certificateReader) findPaths() []OwnCertificate {
	var texts []string
	var out OwnCertificate
	for _, s := range r.settings {
		isInSecret := slices.ContainsFunc(r.container.VolumeMounts, func(m corev1.VolumeMount) bool {
			return len(listSecrets(r.pod, m.Name)) > 0 && isBelow(s.value, m.MountPath)
		})
		if !s.isPath() || isInSecret { // findSecrets reports Secrets
			continue
		}
		if texts == nil {
			out.Path = r.joinPath(s.path...)
		}
		texts = append(texts, s.String())
		out.Certain = out.Certain || splitWords(s.name).isAboutWebhook()
	}
	if texts == nil {
		return nil
	}
	out.Description = "has " + strings.Join(texts, ", ")
	return []OwnCertificate{out}
}

// isPath reports whether a setting names the path of a certificate or of its key.
func (s setting) isPath() bool {
	return s.name != "" && path.IsAbs(s.value) && splitWords(s.name).isAboutCertificate()
}

// isBelow reports whether a file is the folder or a file below it.
func isBelow(file, folder string) bool {
	file, folder = path.Clean(file), path.Clean(folder)
	return file == folder || strings.HasPrefix(file, folder+"/")
}

// findMakers returns a sign for each flag or variable that makes the program create certificates.
func (r certificateReader) findMakers() []OwnCertificate {
	var out []OwnCertificate
	for _, s := range r.settings {
		nameWords := splitWords(s.name)
		if s.value == "false" || !nameWords.isAboutCertificate() || !nameWords.isAboutMaking() {
			continue
		}
		out = append(out, OwnCertificate{Makes: true, Description: "has " + s.String(), Path: r.joinPath(s.path...)})
	}
	return out
}

// joinPath returns the place of a field of the container in the ClusterServiceVersion.
func (r certificateReader) joinPath(path ...any) []any { return slices.Concat(r.path, path) }

// words are the words in the names of flags, variables, volumes, Secrets and paths, in lower case.
type words []string

// splitWords returns the words of all names, in lower case.
func splitWords(names ...string) words {
	var out words
	for _, name := range names {
		out = append(out, strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})...)
	}
	return out
}

var (
	// otherCertificateWords are words in the names of certificates that do not belong to a webhook server, but to a
	// client, a CA or another server.
	otherCertificateWords = []string{"metrics", "client", "ca", "cacert", "cas", "trust", "trusted", "truststore",
		"root", "ssl",
		"etcd", "kafka", "postgres", "postgresql", "mysql", "redis", "mongo", "db", "database", "vault", "ldap", "oidc",
		"ssh", "git", "registry", "kubelet", "kubeconfig", "proxy", "upstream", "peer", "license"}
	// makingPrefixes are the prefixes of words about creating certificates; negatingWords mean the opposite.
	makingPrefixes = []string{"rotat", "generat", "provision", "selfsign", "self"}
	negatingWords  = []string{"disable", "disabled", "no", "skip", "without"}
)

// isAboutCertificate reports whether the words can describe the certificate of a webhook server.
func (w words) isAboutCertificate() bool {
	return slices.ContainsFunc(w, func(word string) bool {
		return strings.Contains(word, "cert") || word == "tls" || word == "pki" || word == "x509"
	}) && !slices.ContainsFunc(w, func(word string) bool { return slices.Contains(otherCertificateWords, word) })
}

// isAboutWebhook reports whether the words describe a webhook server.
func (w words) isAboutWebhook() bool {
	return slices.ContainsFunc(w, func(word string) bool {
		return strings.Contains(word, "webhook") || strings.Contains(word, "admission") || word == "serving"
	})
}

// isAboutMaking reports whether words about a certificate say that the program creates the certificate.
func (w words) isAboutMaking() bool {
	return slices.ContainsFunc(w, func(word string) bool {
		return slices.ContainsFunc(makingPrefixes, func(prefix string) bool { return strings.HasPrefix(word, prefix) })
	}) && !slices.ContainsFunc(w, func(word string) bool { return slices.Contains(negatingWords, word) })
}
