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

// Where OLM mounts the certificate of webhooks into the containers of the Deployment that answers them
// (AddDefaultCertVolumeAndVolumeMounts in pkg/controller/install/certresources.go of OLM v0.46). Nothing else is there:
// no certificate of a CA.
const (
	// WebhookCertificates has tls.crt and tls.key. It is where controller-runtime looks by default.
	WebhookCertificates = "/tmp/k8s-webhook-server/serving-certs"
	// apiCertificates has the same as apiserver.crt and apiserver.key. OLM v1 mounts nothing there any more.
	apiCertificates = "/apiserver.local.config/certificates"
)

// olmVolumes are the names of OLM's volumes. OLM v0 leaves a mount of such a name at its path, with its own certificate
// in it.
var olmVolumes = []string{"webhook-cert", "apiservice-cert"}

// WebhookService is the name of the Service that OLM makes for a webhook (ServiceName in
// pkg/controller/install/certresources.go of OLM v0.46).
func WebhookService(w operatorsv1alpha1.WebhookDescription) string {
	return w.DomainName() + "-service"
}

// OwnCertificate is a sign that an operator serves its webhooks with a certificate that is not OLM's. OLM writes the CA
// of its certificate into the webhook configurations, so the API server trusts no other.
type OwnCertificate struct {
	// Deployment and Container are the names of where the sign is.
	Deployment, Container string
	// Secret is the one that holds the certificate; empty where the sign is a flag or a variable only.
	Secret string
	// Makes says that the program makes certificates, and not that it reads one.
	Makes bool
	// Certain says that the certificate can hardly be for anything but the webhooks.
	Certain bool
	// What says what the container does, as a clause without its subject.
	What string
	// Path is the place in the ClusterServiceVersion, as Position takes it.
	Path []any
}

// OwnCertificates returns the signs, in the order of the ClusterServiceVersion. Without webhooks there are none. It
// looks at Secrets that the containers which answer webhooks mount, at flags and variables that name a path of a
// certificate, and at flags by which programs make certificates. A container that is told of OLM's path, or has a mount
// there, reads OLM's.
func OwnCertificates(csv *operatorsv1alpha1.ClusterServiceVersion) []OwnCertificate {
	if len(csv.Spec.WebhookDefinitions) == 0 {
		return nil
	}
	writesCA := canChangeConfigurations(csv)
	var out []OwnCertificate
	for i, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := &d.Spec.Template.Spec
		for j, c := range pod.Containers {
			at := certificateReader{pod: pod, container: c, settings: settingsOf(c), writesCA: writesCA,
				path: []any{"spec", "install", "spec", "deployments", i, "spec", "template", "spec", "containers", j}}
			signs := at.findMakers()
			if isAnswering(csv, d, c) && !at.hasOLMPath() {
				signs = slices.Concat(at.findSecrets(), at.findPaths(), signs)
			}
			for k := range signs {
				signs[k].Deployment, signs[k].Container = d.Name, c.Name
			}
			out = append(out, signs...)
		}
	}
	return out
}

// isAnswering says whether a container answers webhooks: it has the port to which OLM's Service sends, or no container
// of the Deployment says that it has and it is not a proxy for metrics.
func isAnswering(csv *operatorsv1alpha1.ClusterServiceVersion, d operatorsv1alpha1.StrategyDeploymentSpec,
	c corev1.Container) bool {
	for _, w := range csv.Spec.WebhookDefinitions {
		if w.DeploymentName != d.Name {
			continue
		}
		has := func(c corev1.Container) bool { return hasPort(c, w) }
		if has(c) || !slices.ContainsFunc(d.Spec.Template.Spec.Containers, has) &&
			!slices.Contains(wordsOf(c.Name), "proxy") {
			return true
		}
	}
	return false
}

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

// canChangeConfigurations says whether the operator may change webhook configurations, and so write a CA into them. A
// wildcard says nothing of what it is for.
func canChangeConfigurations(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	strategy := csv.Spec.InstallStrategy.StrategySpec
	return slices.ContainsFunc(slices.Concat(strategy.ClusterPermissions, strategy.Permissions),
		func(p operatorsv1alpha1.StrategyDeploymentPermissions) bool {
			return slices.ContainsFunc(p.Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.APIGroups, "admissionregistration.k8s.io") &&
					slices.ContainsFunc(r.Resources, func(resource string) bool {
						return resource == "validatingwebhookconfigurations" ||
							resource == "mutatingwebhookconfigurations"
					}) && slices.ContainsFunc(r.Verbs, func(verb string) bool {
					return verb == "update" || verb == "patch" || verb == rbacv1.VerbAll
				})
			})
		})
}

// setting is a flag, a variable, or an argument that is neither, of a container.
type setting struct {
	// name is as it is written; empty for an argument that is no flag.
	name, value string
	path        []any
}

func (s setting) String() string {
	if s.name == "" || s.value == "" {
		return s.name + s.value
	}
	return s.name + "=" + s.value
}

// settingsOf returns the settings of a container. A flag may have its value in the next argument.
func settingsOf(c corev1.Container) []setting {
	var out []setting
	for _, list := range []struct {
		field string
		args  []string
	}{{"command", c.Command}, {"args", c.Args}} {
		for i, arg := range list.args {
			last := len(out) - 1
			switch flag, value, _ := strings.Cut(arg, "="); {
			case strings.HasPrefix(arg, "-"):
				out = append(out, setting{flag, value, []any{list.field, i}})
			case i > 0 && strings.HasPrefix(list.args[i-1], "-") && out[last].value == "":
				out[last].value = arg
			default:
				out = append(out, setting{"", arg, []any{list.field, i}})
			}
		}
	}
	for i, e := range c.Env {
		out = append(out, setting{e.Name, e.Value, []any{"env", i}})
	}
	return out
}

// certificateReader is a container of a Deployment.
type certificateReader struct {
	pod       *corev1.PodSpec
	container corev1.Container
	settings  []setting
	// writesCA says that the operator may change webhook configurations.
	writesCA bool
	path     []any
}

// hasOLMPath says whether the container has OLM's path in its settings or mounts.
func (r certificateReader) hasOLMPath() bool {
	return slices.ContainsFunc(r.settings, func(s setting) bool {
		return strings.Contains(s.value, WebhookCertificates) || strings.Contains(s.value, apiCertificates)
	}) || slices.ContainsFunc(r.container.VolumeMounts, isOLMMount)
}

func isOLMMount(m corev1.VolumeMount) bool {
	return slices.Contains(olmVolumes, m.Name) || path.Clean(m.MountPath) == WebhookCertificates ||
		path.Clean(m.MountPath) == apiCertificates
}

// findSecrets returns the Secrets with a certificate that the container mounts.
func (r certificateReader) findSecrets() []OwnCertificate {
	var out []OwnCertificate
	for i, m := range r.container.VolumeMounts {
		for _, secret := range secretsOf(r.pod, m.Name) {
			about := wordsOf(m.Name, secret, m.MountPath)
			named := slices.IndexFunc(r.settings,
				func(s setting) bool { return s.isPath() && isBelow(s.value, m.MountPath) })
			if !about.isCertificate() && named < 0 {
				continue
			}
			what := fmt.Sprintf("mounts Secret %s at %s", secret, m.MountPath)
			if named >= 0 {
				what += fmt.Sprintf(", which %s names", r.settings[named].name)
			}
			out = append(out, OwnCertificate{Secret: secret, What: what, Path: r.at("volumeMounts", i),
				Certain: about.isWebhook() || named >= 0 || r.writesCA})
		}
	}
	return out
}

// secretsOf are the names of the Secrets in a volume.
func secretsOf(pod *corev1.PodSpec, volume string) []string {
	var out []string
	for _, v := range pod.Volumes {
		switch {
		case v.Name != volume:
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

// findPaths returns the settings that name a path of a certificate at which no Secret is mounted. Several of one
// container are one sign.
func (r certificateReader) findPaths() []OwnCertificate {
	var texts []string
	var out OwnCertificate
	for _, s := range r.settings {
		if !s.isPath() || slices.ContainsFunc(r.container.VolumeMounts, func(m corev1.VolumeMount) bool {
			return len(secretsOf(r.pod, m.Name)) > 0 && isBelow(s.value, m.MountPath)
		}) {
			continue
		}
		if texts == nil {
			out.Path = r.at(s.path...)
		}
		texts = append(texts, s.String())
		out.Certain = out.Certain || wordsOf(s.name).isWebhook()
	}
	if texts == nil {
		return nil
	}
	out.What = "has " + strings.Join(texts, ", ")
	return []OwnCertificate{out}
}

// isPath says whether a setting names a path of a certificate or its key.
func (s setting) isPath() bool {
	return s.name != "" && path.IsAbs(s.value) && wordsOf(s.name).isCertificate()
}

func isBelow(file, folder string) bool {
	file, folder = path.Clean(file), path.Clean(folder)
	return file == folder || strings.HasPrefix(file, folder+"/")
}

// findMakers returns the flags by which the program makes certificates.
func (r certificateReader) findMakers() []OwnCertificate {
	var out []OwnCertificate
	for _, s := range r.settings {
		about := wordsOf(s.name)
		if s.value == "false" || !about.isCertificate() || !about.isMade() {
			continue
		}
		out = append(out, OwnCertificate{Makes: true, What: "has " + s.String(), Path: r.at(s.path...)})
	}
	return out
}

func (r certificateReader) at(path ...any) []any { return slices.Concat(r.path, path) }

// words are those of names of flags, variables, volumes, Secrets and paths, in lower case.
type words []string

func wordsOf(names ...string) words {
	var out words
	for _, name := range names {
		out = append(out, strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})...)
	}
	return out
}

var (
	// forOthers are words in names of certificates that are not those of a webhook server: of clients, of CAs, and of
	// other servers.
	forOthers = []string{"metrics", "client", "ca", "cacert", "cas", "trust", "trusted", "truststore", "root", "ssl",
		"etcd", "kafka", "postgres", "postgresql", "mysql", "redis", "mongo", "db", "database", "vault", "ldap", "oidc",
		"ssh", "git", "registry", "kubelet", "kubeconfig", "proxy", "upstream", "peer", "license"}
	// making are how words begin that say that certificates are made, and negating are words that say the opposite.
	making   = []string{"rotat", "generat", "provision", "selfsign", "self"}
	negating = []string{"disable", "disabled", "no", "skip", "without"}
)

// isCertificate says whether the words can be about the certificate of a webhook server.
func (w words) isCertificate() bool {
	return slices.ContainsFunc(w, func(word string) bool {
		return strings.Contains(word, "cert") || word == "tls" || word == "pki" || word == "x509"
	}) && !slices.ContainsFunc(w, func(word string) bool { return slices.Contains(forOthers, word) })
}

// isWebhook says whether the words are about a webhook server.
func (w words) isWebhook() bool {
	return slices.ContainsFunc(w, func(word string) bool {
		return strings.Contains(word, "webhook") || strings.Contains(word, "admission") || word == "serving"
	})
}

// isMade says whether words about a certificate say that it is made.
func (w words) isMade() bool {
	return slices.ContainsFunc(w, func(word string) bool {
		return slices.ContainsFunc(making, func(start string) bool { return strings.HasPrefix(word, start) })
	}) && !slices.ContainsFunc(w, func(word string) bool { return slices.Contains(negating, word) })
}
