// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/bundles"
)

// compareVersions returns the changes of the version, the channels, the install modes and similar fields.
func compareVersions(from, to *bundles.Bundle) []Change {
	subject := cmp.Or(to.Package, to.Name)
	var out []Change
	for _, c := range compareTrees(subject, "", readFacts(from), readFacts(to)) {
		switch {
		case c.Path == "version" && to.Version.LT(from.Version):
			c.Weight, c.Note = Attention, "the version gets lower"
		case c.Path == "package":
			c.Weight, c.Note = Breaking, "for OLM it is another operator"
		case c.Path == "minKubeVersion":
			c.Weight, c.Note = Attention, "OLM does not install it on older clusters"
		case strings.HasPrefix(c.Path, "installModes") && c.Kind == Removed:
			c.Weight, c.Note = Breaking, "where it is installed this way, OLM stops it"
		}
		out = append(out, c)
	}
	return out
}

// readFacts returns the fields about the bundle that compareVersions compares.
func readFacts(b *bundles.Bundle) any {
	spec := b.CSV.Spec
	var modes []string
	for _, m := range spec.InstallModes {
		if m.Supported {
			modes = append(modes, string(m.Type))
		}
	}
	channels := slices.Clone(b.Channels)
	slices.Sort(channels)
	slices.Sort(modes)
	return toTree(struct {
		Package        string   `json:"package,omitempty"`
		Version        string   `json:"version"`
		Channels       []string `json:"channels,omitempty"`
		DefaultChannel string   `json:"defaultChannel,omitempty"`
		Replaces       string   `json:"replaces,omitempty"`
		Skips          []string `json:"skips,omitempty"`
		SkipRange      string   `json:"skipRange,omitempty"`
		MinKubeVersion string   `json:"minKubeVersion,omitempty"`
		Maturity       string   `json:"maturity,omitempty"`
		Capabilities   string   `json:"capabilities,omitempty"`
		InstallModes   []string `json:"installModes,omitempty"`
		Cleanup        bool     `json:"cleanup,omitempty"`
	}{
		b.Package, b.Version.String(), channels, b.DefaultChannel, spec.Replaces, spec.Skips,
		b.CSV.Annotations[operatorsv1alpha1.SkipRangeAnnotationKey],
		spec.MinKubeVersion, spec.Maturity, b.CSV.Annotations["capabilities"], modes, spec.Cleanup.Enabled,
	})
}

// compareImages returns the changes of images, by their use. An image that loses its digest needs attention.
func compareImages(from, to *bundles.Bundle) []Change {
	old, current := listImages(from), listImages(to)
	var out []Change
	for subject := range joinKeys(old, current) {
		if old[subject] == current[subject] {
			continue
		}
		c := Change{Kind: toKind(old[subject], current[subject]), Subject: subject, From: old[subject],
			To: current[subject]}
		if strings.Contains(c.From, "@") && c.To != "" && !strings.Contains(c.To, "@") {
			c.Weight, c.Note = Attention, "it is no longer pinned by its digest"
		}
		out = append(out, c)
	}
	return out
}

// listImages returns the images of a bundle by their use, such as "container manager/web". A related image with
// another use is not listed again.
func listImages(b *bundles.Bundle) map[string]string {
	out := map[string]string{}
	used := map[string]bool{}
	for _, i := range b.Images() {
		switch i.Use {
		case bundles.RelatedImage:
			if !used[i.Ref] {
				out["related image "+i.Name] = i.Ref
			}
			continue
		case bundles.AnnotationImage: // for information only
			continue
		case bundles.VolumeImage:
			out["volume "+i.Owner] = i.Ref
		case bundles.ContainerImage, bundles.VariableImage:
			out[strings.TrimSpace("container "+i.Owner+" "+i.Name)] = i.Ref
		}
		used[i.Ref] = true
	}
	return out
}

// joinKeys returns the keys of both maps.
func joinKeys[V any](a, b map[string]V) map[string]bool {
	out := map[string]bool{}
	for key := range a {
		out[key] = true
	}
	for key := range b {
		out[key] = true
	}
	return out
}

// compareDeployments returns the changes of Deployments, without their images.
func compareDeployments(from, to *bundles.Bundle) []Change {
	old, current := listDeployments(from), listDeployments(to)
	var out []Change
	for name := range joinKeys(old, current) {
		if old[name] == nil || current[name] == nil {
			c := newChange("deployment "+name, "", old[name], current[name])
			c.From, c.To = "", "" // a whole object is too long for a report
			out = append(out, c)
			continue
		}
		for _, c := range compareTrees("deployment "+name, "", old[name], current[name]) {
			out = append(out, weighPod(c))
		}
	}
	return out
}

// listDeployments returns the Deployments by name, without images, which compareImages compares.
func listDeployments(b *bundles.Bundle) map[string]any {
	out := map[string]any{}
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		spec := d.Spec.DeepCopy()
		clearImages(&spec.Template.Spec)
		tree, _ := toTree(spec).(map[string]any)
		// Moves the fields of the pod to the top, to shorten the paths in reports.
		template, _ := tree["template"].(map[string]any)
		if pod, ok := template["spec"].(map[string]any); ok {
			delete(template, "spec")
			maps.Copy(tree, pod)
		}
		out[d.Name] = tree
	}
	return out
}

// clearImages clears all images of a pod that Bundle.Images returns.
func clearImages(pod *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Image = ""
			for j, env := range containers[i].Env {
				if strings.HasPrefix(env.Name, bundles.RelatedImagePrefix) {
					containers[i].Env[j].Value = ""
				}
			}
		}
	}
	for _, v := range pod.Volumes {
		if v.Image != nil {
			v.Image.Reference = ""
		}
	}
}

// weighPod sets weight and note of a change that gives a program more access to its node, or changes its identity.
func weighPod(c Change) Change {
	for path, note := range map[string]string{
		"hostNetwork": "it uses the node's network", "hostPID": "it can see the node's processes",
		"hostIPC":            "it shares memory with the node",
		"serviceAccountName": "its rights are those of another account",
		"serviceAccount":     "its rights are those of another account",
		"selector":           "Kubernetes refuses to change it: OLM creates the Deployment again",
	} {
		if c.Path == path || strings.HasPrefix(c.Path, path+".") {
			c.Weight, c.Note = Attention, note
		}
	}
	if strings.Contains(c.Path, "securityContext") {
		c.Weight, c.Note = Attention, "it changes what the program may do on its node"
	}
	if strings.HasPrefix(c.Path, "volumes[") && strings.Contains(c.To, "hostPath") {
		c.Weight, c.Note = Attention, "it reads the node's files"
	}
	return c
}

// compareWebhooks returns the changes of webhooks. A new webhook, and one that begins to refuse requests when it is
// down, need attention.
func compareWebhooks(from, to *bundles.Bundle) []Change {
	old, current := listWebhooks(from), listWebhooks(to)
	var out []Change
	for name := range joinKeys(old, current) {
		if old[name] == nil || current[name] == nil {
			c := newChange(name, "", old[name], current[name])
			c.From, c.To = "", "" // a whole object is too long for a report
			if c.Kind == Added {
				c.Weight, c.Note = Attention, "it can refuse or change users' objects"
			}
			out = append(out, c)
			continue
		}
		for _, c := range compareTrees(name, "", old[name], current[name]) {
			if c.Path == "failurePolicy" && c.To == "Fail" {
				c.Weight, c.Note = Attention, "when it is down, requests are refused"
			}
			out = append(out, c)
		}
	}
	return out
}

// listWebhooks returns the webhooks by type and name.
func listWebhooks(b *bundles.Bundle) map[string]any {
	out := map[string]any{}
	for _, w := range b.CSV.Spec.WebhookDefinitions {
		out[string(w.Type)+" "+w.GenerateName] = toTree(w)
	}
	return out
}

// compareDependencies returns the changes of the resources and packages that the operator requires. A new dependency
// needs attention.
func compareDependencies(from, to *bundles.Bundle) []Change {
	old, current := listDependencies(from), listDependencies(to)
	var out []Change
	for name := range joinKeys(old, current) {
		switch {
		case !old[name]:
			out = append(out, Change{Kind: Added, Weight: Attention, Subject: name,
				Note: "OLM v0 installs it as well, OLM v1 refuses to install without"})
		case !current[name]:
			out = append(out, Change{Kind: Removed, Subject: name})
		}
	}
	return out
}

// listDependencies returns the required APIs, packages and CRDs as texts.
func listDependencies(b *bundles.Bundle) map[string]bool {
	out := map[string]bool{}
	for _, p := range b.Dependencies {
		out[p.Type+" "+formatJSON(p.Value)] = true
	}
	for _, p := range b.Properties { // most properties describe the bundle itself
		if strings.HasSuffix(p.Type, ".required") || p.Type == bundles.PropertyConstraint {
			out[p.Type+" "+formatJSON(p.Value)] = true
		}
	}
	for _, crd := range b.CSV.Spec.CustomResourceDefinitions.Required {
		out["CRD "+crd.Name+" "+crd.Version] = true
	}
	return out
}

// formatJSON returns a JSON value in compact form.
func formatJSON(value json.RawMessage) string {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return string(value)
	}
	return formatValue(v)
}

// compareManifests returns the changes of manifests that no other area contains.
func compareManifests(from, to *bundles.Bundle) []Change {
	old, current := listManifests(from), listManifests(to)
	var out []Change
	for name := range joinKeys(old, current) {
		if old[name] == nil || current[name] == nil {
			c := newChange(name, "", old[name], current[name])
			c.From, c.To = "", "" // a whole object is too long for a report
			out = append(out, c)
			continue
		}
		out = append(out, compareTrees(name, "", old[name], current[name])...)
	}
	return out
}

// listManifests returns the manifests by kind and name, without the CSV and the CRDs. Values of Secrets are hidden.
func listManifests(b *bundles.Bundle) map[string]any {
	out := map[string]any{}
	for _, o := range b.Objects {
		isCRD := o == b.CRDObject(o.GetName()) && hasCRD(b, o.GetName())
		if o == b.CSVObject() || isCRD {
			continue
		}
		copied := o.DeepCopy()
		if o.GetKind() == "Secret" {
			hideSecretValues(copied)
		}
		unstructured.RemoveNestedField(copied.Object, "metadata", "creationTimestamp")
		out[o.GetKind()+" "+o.GetName()] = any(copied.Object)
	}
	return out
}

// hasCRD reports whether the bundle has a CRD with the name.
func hasCRD(b *bundles.Bundle, name string) bool { return indexCRDs(b)[name] != nil }

// hideSecretValues replaces the values of a Secret by parts of their hashes, so that changes are visible.
func hideSecretValues(secret *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(secret.Object, field)
		for key, value := range values {
			sum := sha256.Sum256([]byte(formatValue(value)))
			values[key] = "hidden, " + hex.EncodeToString(sum[:4])
		}
		if len(values) > 0 {
			secret.Object[field] = values
		}
	}
}
