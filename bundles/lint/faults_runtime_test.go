// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/bundles"
)

var podPath = []any{"spec", "template", "spec"}

func deploymentSpots(d *draft) []spot {
	return d.each(d.csv(), "spec", "install", "spec", "deployments")
}

func podSpots(d *draft) []spot {
	var out []spot
	for _, s := range deploymentSpots(d) {
		out = append(out, s.below(podPath...))
	}
	return out
}

func containerSpots(d *draft) []spot {
	var out []spot
	for _, s := range podSpots(d) {
		out = append(out, d.each(s, "containers")...)
	}
	return out
}

// requesting is the condition that a container requests a resource, or has a limit for it.
func requesting(resource string) func(*draft, spot) bool {
	return func(d *draft, s spot) bool {
		return d.get(s, "resources", "requests", resource) != nil || d.get(s, "resources", "limits", resource) != nil
	}
}

func unrequested(resource string) func(*draft, spot) spot {
	return func(d *draft, s spot) spot {
		d.set(s, nil, "resources", "limits", resource)
		return d.set(s, nil, "resources", "requests", resource).above(1)
	}
}

// removing plants a fault that is a field that is gone; the rule reports it at the object that had it.
func removing(field string) func(*draft, spot) spot {
	return func(d *draft, s spot) spot { return d.set(s, nil, field).above(1) }
}

func isLeaderElection(arg any) bool {
	text, _ := arg.(string)
	return strings.Contains(text, "leader-elect")
}

// withoutLeader starts two replicas that do not elect a leader.
func withoutLeader(d *draft, s spot) spot {
	for _, c := range d.each(s, append(slices.Clone(podPath), "containers")...) {
		for _, field := range []string{"command", "args"} {
			if list := d.list(c, field); list != nil {
				d.set(c, slices.DeleteFunc(slices.Clone(list), isLeaderElection), field)
			}
		}
	}
	d.add(s, "--leader-elect=false", append(slices.Clone(podPath), "containers", 0, "args")...)
	return d.set(s, int64(2), "spec", "replicas")
}

func isSingle(d *draft, s spot) bool {
	replicas := d.get(s, "spec", "replicas")
	return replicas == nil || replicas == int64(1)
}

// isCollected says whether the metrics of the operator can be collected.
func isCollected(d *draft, _ spot) bool {
	return len(checkMetrics(&Input{Bundle: d.predecessor})) == 0
}

// withoutMetrics removes what leads to metrics.
func withoutMetrics(d *draft, _ spot) spot {
	d.documents = slices.DeleteFunc(d.documents, func(doc manifest) bool {
		return doc.content["kind"] == "Service" || doc.content["kind"] == "PodMonitor"
	})
	return d.csv().below("spec", "install", "spec", "deployments")
}

func runtimeFaults() []injector {
	const security = "securityContext"
	return []injector{
		{"runtime-cpu-request", "a container requests no CPU", only(containerSpots, requesting("cpu")),
			unrequested("cpu")},
		{"runtime-memory-request", "a container requests no memory", only(containerSpots, requesting("memory")),
			unrequested("memory")},
		{"runtime-liveness", "the liveness probe is gone", only(containerSpots, having("livenessProbe")),
			removing("livenessProbe")},
		{"runtime-readiness", "the readiness probe is gone", only(containerSpots, having("readinessProbe")),
			removing("readinessProbe")},
		{"runtime-leader-election", "there are two replicas, and leader election is off",
			only(deploymentSpots, isSingle), withoutLeader},
		{"runtime-metrics", "the Services and PodMonitors are gone", only(csvSpot, isCollected), withoutMetrics},
		{"runtime-pdb", "there are two replicas and no budget", only(deploymentSpots, isSingle),
			setting(int64(2), "spec", "replicas")},
		{"runtime-service-account", "a Deployment runs as an account that no permissions name", podSpots,
			func(d *draft, s spot) spot { return d.set(s, "planted", "serviceAccountName").above(1) }},
		{"runtime-missing-object", "a container needs a Secret that is not there", containerSpots,
			adding(map[string]any{"secretRef": map[string]any{"name": "planted"}}, "envFrom")},
		{"runtime-missing-object", "a volume needs a ConfigMap that is not there", podSpots, adding(map[string]any{
			"name": "planted", "configMap": map[string]any{"name": "planted"}}, "volumes")},
		{"runtime-run-as-root", "a container runs as user 0", containerSpots, func(d *draft, s spot) spot {
			return d.set(s, int64(0), security, "runAsUser").above(1)
		}},
		{"runtime-run-as-root", "nothing says that a container is not run as root", only(containerSpots,
			isKnownNonRoot), func(d *draft, s spot) spot {
			for _, at := range []spot{s.below(security), s.above(2).below(security)} {
				d.set(at, nil, "runAsNonRoot")
				d.set(at, nil, "runAsUser")
			}
			return s.below(security)
		}},
		{"runtime-privilege-escalation", "a container is privileged", containerSpots,
			setting(true, security, "privileged")},
		{"runtime-privilege-escalation", "nothing says that a container may not gain privileges", only(containerSpots,
			having(security, "allowPrivilegeEscalation")), setting(nil, security, "allowPrivilegeEscalation")},
		{"runtime-host-access", "a Pod uses the network of the node", podSpots, setting(true, "hostNetwork")},
		{"runtime-host-access", "a Pod uses the processes of the node", podSpots, setting(true, "hostPID")},
		{"runtime-host-access", "a Pod uses the memory segments of the node", podSpots, setting(true, "hostIPC")},
		{"runtime-host-access", "a Pod mounts a folder of the node", podSpots, adding(map[string]any{
			"name": "planted", "hostPath": map[string]any{"path": "/var/run"}}, "volumes")},
		{"runtime-capabilities", "a container has the capability SYS_ADMIN", containerSpots,
			setting(map[string]any{"drop": []any{"ALL"}, "add": []any{"SYS_ADMIN"}}, security, "capabilities")},
		{"runtime-capabilities", "a container keeps the default capabilities", only(containerSpots,
			having(security, "capabilities", "drop")), setting(nil, security, "capabilities")},
		{"runtime-seccomp", "a container runs without seccomp", containerSpots,
			setting(map[string]any{"type": "Unconfined"}, security, "seccompProfile")},
	}
}

// isKnownNonRoot says whether a container has a setting that keeps it from running as root.
func isKnownNonRoot(d *draft, s spot) bool {
	return d.get(s, "securityContext", "runAsNonRoot") == true ||
		d.get(s.above(2), "securityContext", "runAsNonRoot") == true
}

func imageFaults() []injector {
	return []injector{
		{"image-digest", "an image has a tag and no digest", containerSpots,
			setting("registry.example.com/planted:latest", "image")},
		{"image-invalid", "an image reference has a wrong syntax", containerSpots,
			setting("registry.example.com/Planted Fault", "image")},
		{"image-unlisted", "an image is not among the related images", containerSpots,
			setting("registry.example.com/planted:latest", "image")},
		{"image-unlisted", "an image that the operator runs is not among the related images", containerSpots,
			func(d *draft, s spot) spot {
				return d.add(s, map[string]any{"name": "RELATED_IMAGE_PLANTED",
					"value": "registry.example.com/planted:latest"}, "env")
			}},
		{"container-image", "the annotation names an image that no Deployment runs", csvSpot,
			setting("registry.example.com/planted:latest", "metadata", annotationsPath,
				bundles.AnnotationContainerImage)},
		{"image-missing", "an image is not in its registry", containerSpots, withRegistry("linux/amd64", func(
			known knownImages, image string) {
			delete(known, image)
		})},
		{"image-platform", "an image is not built for a platform that is claimed", containerSpots, withRegistry(
			"linux/amd64", func(known knownImages, image string) { known[image] = []string{"linux/s390x"} })},
	}
}

// withRegistry gives the draft an image of its own and a registry that has all images, and then changes what it knows
// about that image.
func withRegistry(platform string, change func(knownImages, string)) func(*draft, spot) spot {
	return func(d *draft, s spot) spot {
		const planted = "registry.example.com/planted:latest"
		known := knownImages{planted: {platform}}
		for _, u := range d.predecessor.Images() {
			known[u.Ref] = []string{platform}
		}
		change(known, planted)
		d.images = known
		return d.set(s, planted, "image")
	}
}

// validWebhook is a webhook for the operator's own kinds with nothing wrong.
func validWebhook(deployment string, group any) map[string]any {
	return map[string]any{"generateName": "planted.example.com", "type": "ValidatingAdmissionWebhook",
		"deploymentName": deployment, "containerPort": int64(443), "webhookPath": "/planted",
		"admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "failurePolicy": "Ignore",
		"timeoutSeconds": int64(5), "rules": []any{webhookRule(group, "faults")}}
}

func webhookRule(group any, resource string) map[string]any {
	return map[string]any{"apiGroups": []any{group}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"},
		"resources": []any{resource}}
}

// webhookWith plants a webhook of which some fields are wrong; the rule reports it at one of them.
func webhookWith(at string, wrong map[string]any) func(*draft, spot) spot {
	return func(d *draft, s spot) spot {
		w := validWebhook(d.text(s, "name"), "planted.example.com")
		for name, value := range wrong {
			w[name] = value
			if value == nil {
				delete(w, name)
			}
		}
		return d.add(d.csv(), w, "spec", "webhookdefinitions").below(at)
	}
}

// isWithoutCertificate says whether nothing of a container names a place at which OLM mounts its certificate.
func isWithoutCertificate(d *draft, s spot) bool {
	text := fmt.Sprint(d.fields(s))
	return !slices.ContainsFunc([]string{bundles.WebhookCertificates, "/apiserver.local.config/certificates",
		"webhook-cert", "apiservice-cert"}, func(name string) bool { return strings.Contains(text, name) })
}

// isAlone says whether the bundle depends on no other package, which might define any kind.
func isAlone(d *draft, _ spot) bool {
	return !slices.ContainsFunc(slices.Concat(d.predecessor.Dependencies, d.predecessor.Properties),
		func(p bundles.Property) bool {
			return slices.Contains([]string{bundles.PropertyPackage, bundles.PropertyPackageRequired,
				bundles.PropertyConstraint}, p.Type)
		})
}

func webhookFaults() []injector {
	forbidden := func(group, resource string) map[string]any {
		return map[string]any{"rules": []any{webhookRule(group, resource)}}
	}
	conversion := func(fields map[string]any) map[string]any {
		fields["type"], fields["rules"] = "ConversionWebhook", nil
		return fields
	}
	return []injector{
		{"webhook-fail-closed", "a webhook of a single Pod fails closed", only(deploymentSpots, isSingle),
			webhookWith("failurePolicy", map[string]any{"failurePolicy": "Fail"})},
		{"webhook-fail-closed", "a webhook of a single Pod fails closed by default", only(deploymentSpots, isSingle),
			webhookWith("failurePolicy", map[string]any{"failurePolicy": nil})},
		{"webhook-timeout", "a webhook has a time-out of 30 s", deploymentSpots,
			webhookWith("timeoutSeconds", map[string]any{"timeoutSeconds": int64(30)})},
		{"webhook-timeout", "a webhook has no time-out", deploymentSpots,
			webhookWith("timeoutSeconds", map[string]any{"timeoutSeconds": nil})},
		{"webhook-blocks-itself", "a webhook has to approve Pods", deploymentSpots, webhookWith("rules",
			map[string]any{"failurePolicy": "Fail", "rules": []any{webhookRule("", "pods")}})},
		{"webhook-blocks-itself", "a webhook has to approve everything", deploymentSpots, webhookWith("rules",
			map[string]any{"failurePolicy": "Fail", "rules": []any{webhookRule("*", "*")}})},
		{"webhook-side-effects", "a webhook has side effects", deploymentSpots,
			webhookWith("sideEffects", map[string]any{"sideEffects": "Some"})},
		{"webhook-side-effects", "a webhook says nothing of side effects", deploymentSpots,
			webhookWith("sideEffects", map[string]any{"sideEffects": nil})},
		{"webhook-match-policy", "a webhook checks one version of an API", deploymentSpots,
			webhookWith("matchPolicy", map[string]any{"matchPolicy": "Exact"})},
		{"webhook-conversion", "a webhook converts nothing", deploymentSpots,
			webhookWith("conversionCRDs", conversion(map[string]any{}))},
		{"webhook-conversion", "a webhook converts what the bundle does not have", deploymentSpots,
			webhookWith("conversionCRDs", conversion(map[string]any{
				"conversionCRDs": []any{"faults.planted.example.com"}}))},
		{"webhook-deployment", "a webhook belongs to no Deployment", deploymentSpots,
			webhookWith("deploymentName", map[string]any{"deploymentName": "planted"})},
		{"webhook-certificate", "a webhook is served with the certificate in a Secret", only(containerSpots,
			isWithoutCertificate), func(d *draft, s spot) spot {
			deployment := s.above(len(podPath) + 2)
			webhookWith("", map[string]any{"targetPort": int64(39443)})(d, deployment)
			d.add(s, map[string]any{"containerPort": int64(39443)}, "ports")
			d.add(deployment, map[string]any{"name": "planted",
				"secret": map[string]any{"secretName": "webhook-certs"}}, append(slices.Clone(podPath), "volumes")...)
			return d.add(s, map[string]any{"name": "planted", "mountPath": "/planted"}, "volumeMounts")
		}},
		{"argument-namespace", "a variable has the namespace of a Service", containerSpots,
			func(d *draft, s spot) spot {
				d.addObject(service, d.newFile())
				return d.add(s, map[string]any{"name": "PLANTED", "value": "https://planted.planted.svc:443"}, "env")
			}},
		{"crd-undefined", "a webhook is called for a kind that is not defined", only(deploymentSpots,
			isAlone), webhookWith("rules", nil)},
		{"olmv0-webhook-rule", "a webhook matches all API groups", deploymentSpots,
			webhookWith("rules", forbidden("*", "faults"))},
		{"olmv0-webhook-rule", "a webhook matches OLM's own group", deploymentSpots,
			webhookWith("rules", forbidden("operators.coreos.com", "subscriptions"))},
		{"olmv1-webhook-rule", "a webhook matches all API groups", deploymentSpots,
			webhookWith("rules", forbidden("*", "faults"))},
		{"olmv1-webhook", "a webhook has an invalid name", deploymentSpots,
			webhookWith("generateName", map[string]any{"generateName": "Planted_Fault"})},
		{"olmv1-deployment", "the name of a Deployment is invalid", deploymentSpots, setting("Planted_Fault", "name")},
	}
}
