// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

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
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

func versions(from, to *bundles.Bundle) []Change {
	subject := cmp.Or(to.Package, to.Name)
	a, b := facts(from), facts(to)
	var out []Change
	for _, c := range tree(subject, "", a, b) {
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

// facts are what a bundle says of itself besides texts for people.
func facts(b *bundles.Bundle) any {
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
	return asTree(struct {
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

func images(from, to *bundles.Bundle) []Change {
	a, b := imagesOf(from), imagesOf(to)
	var out []Change
	for subject := range union(a, b) {
		if a[subject] == b[subject] {
			continue
		}
		c := Change{Kind: kindOf(a[subject], b[subject]), Subject: subject, From: a[subject], To: b[subject]}
		if strings.Contains(c.From, "@") && c.To != "" && !strings.Contains(c.To, "@") {
			c.Weight, c.Note = Attention, "it is no longer pinned by its digest"
		}
		out = append(out, c)
	}
	return out
}

// imagesOf are a bundle's images by where they are used.
func imagesOf(b *bundles.Bundle) map[string]string {
	out := map[string]string{}
	used := map[string]bool{}
	for _, i := range b.Images() {
		switch i.Use {
		case bundles.RelatedImage:
			if !used[i.Ref] {
				out["related image "+i.Name] = i.Ref
			}
			continue
		case bundles.AnnotationImage: // for people
			continue
		case bundles.VolumeImage:
			out["volume "+i.Of] = i.Ref
		case bundles.ContainerImage, bundles.VariableImage:
			out[strings.TrimSpace("container "+i.Of+" "+i.Name)] = i.Ref
		}
		used[i.Ref] = true
	}
	return out
}

func union[V any](a, b map[string]V) map[string]bool {
	out := map[string]bool{}
	for key := range a {
		out[key] = true
	}
	for key := range b {
		out[key] = true
	}
	return out
}

func deployments(from, to *bundles.Bundle) []Change {
	a, b := deploymentsOf(from), deploymentsOf(to)
	var out []Change
	for name := range union(a, b) {
		if a[name] == nil || b[name] == nil {
			c := change("deployment "+name, "", a[name], b[name])
			c.From, c.To = "", ""
			out = append(out, c)
			continue
		}
		for _, c := range tree("deployment "+name, "", a[name], b[name]) {
			out = append(out, weighPod(c))
		}
	}
	return out
}

// deploymentsOf are the Deployments as they run. Images have an area of their own.
func deploymentsOf(b *bundles.Bundle) map[string]any {
	out := map[string]any{}
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		spec := d.Spec.DeepCopy()
		forgetImages(&spec.Template.Spec)
		tree, _ := asTree(spec).(map[string]any)
		// What is within the pod is what reviewers know by heart; spare them the way there.
		template, _ := tree["template"].(map[string]any)
		if pod, ok := template["spec"].(map[string]any); ok {
			delete(template, "spec")
			maps.Copy(tree, pod)
		}
		out[d.Name] = tree
	}
	return out
}

// forgetImages empties the images that Bundle.Images returns of a pod.
func forgetImages(pod *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Image = ""
			for j, env := range containers[i].Env {
				if strings.HasPrefix(env.Name, registryv1.RelatedImagePrefix) {
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

// weighPod finds what gives a program more power over its node, or its pods another life.
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

func webhooks(from, to *bundles.Bundle) []Change {
	a, b := webhooksOf(from), webhooksOf(to)
	var out []Change
	for name := range union(a, b) {
		if a[name] == nil || b[name] == nil {
			c := change(name, "", a[name], b[name])
			c.From, c.To = "", ""
			if c.Kind == Added {
				c.Weight, c.Note = Attention, "it can refuse or change users' objects"
			}
			out = append(out, c)
			continue
		}
		for _, c := range tree(name, "", a[name], b[name]) {
			if c.Path == "failurePolicy" && c.To == "Fail" {
				c.Weight, c.Note = Attention, "when it is down, requests are refused"
			}
			out = append(out, c)
		}
	}
	return out
}

func webhooksOf(b *bundles.Bundle) map[string]any {
	out := map[string]any{}
	for _, w := range b.CSV.Spec.WebhookDefinitions {
		out[string(w.Type)+" "+w.GenerateName] = asTree(w)
	}
	return out
}

// dependencies compares what must be there before the operator.
func dependencies(from, to *bundles.Bundle) []Change {
	a, b := dependenciesOf(from), dependenciesOf(to)
	var out []Change
	for name := range union(a, b) {
		switch {
		case !a[name]:
			out = append(out, Change{Kind: Added, Weight: Attention, Subject: name,
				Note: "OLM v0 installs it as well, OLM v1 refuses to install without"})
		case !b[name]:
			out = append(out, Change{Kind: Removed, Subject: name})
		}
	}
	return out
}

func dependenciesOf(b *bundles.Bundle) map[string]bool {
	out := map[string]bool{}
	for _, p := range b.Dependencies {
		out[p.Type+" "+compact(p.Value)] = true
	}
	for _, p := range b.Properties { // of which most say what the bundle is, not what it needs
		if strings.HasSuffix(p.Type, ".required") || p.Type == registryv1.PropertyConstraint {
			out[p.Type+" "+compact(p.Value)] = true
		}
	}
	for _, crd := range b.CSV.Spec.CustomResourceDefinitions.Required {
		out["CRD "+crd.Name+" "+crd.Version] = true
	}
	return out
}

func compact(value json.RawMessage) string {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return string(value)
	}
	return text(v)
}

// manifests compares everything that has no area of its own.
func manifests(from, to *bundles.Bundle) []Change {
	a, b := manifestsOf(from), manifestsOf(to)
	var out []Change
	for name := range union(a, b) {
		if a[name] == nil || b[name] == nil {
			c := change(name, "", a[name], b[name])
			c.From, c.To = "", ""
			out = append(out, c)
			continue
		}
		out = append(out, tree(name, "", a[name], b[name])...)
	}
	return out
}

func manifestsOf(b *bundles.Bundle) map[string]any {
	out := map[string]any{}
	for _, o := range b.Objects {
		if o == b.CSVObject() || o == b.CRDObject(o.GetName()) && hasCRD(b, o.GetName()) {
			continue
		}
		copied := o.DeepCopy()
		if o.GetKind() == "Secret" {
			hide(copied)
		}
		unstructured.RemoveNestedField(copied.Object, "metadata", "creationTimestamp")
		out[o.GetKind()+" "+o.GetName()] = any(copied.Object)
	}
	return out
}

func hasCRD(b *bundles.Bundle, name string) bool { return crdsByName(b)[name] != nil }

// hide replaces secret values by a part of their hashes, which tells that they changed.
func hide(secret *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(secret.Object, field)
		for key, value := range values {
			sum := sha256.Sum256([]byte(text(value)))
			values[key] = "hidden, " + hex.EncodeToString(sum[:4])
		}
		if len(values) > 0 {
			secret.Object[field] = values
		}
	}
}
