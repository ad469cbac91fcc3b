// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// ImageUse is what a bundle names an image for.
type ImageUse string

// The uses of images.
const (
	// ContainerImage and VolumeImage are run or mounted by a pod of the operator.
	ContainerImage ImageUse = "container"
	VolumeImage    ImageUse = "volume"
	// VariableImage tells the operator, in a variable RELATED_IMAGE_*, what to run.
	VariableImage ImageUse = "variable"
	// RelatedImage is in the list of what the operator may run.
	RelatedImage ImageUse = "related image"
	// AnnotationImage is for people to read.
	AnnotationImage ImageUse = "annotation"
)

// DefaultAccount is the service account of pods that name none.
const DefaultAccount = "default"

// Image is an image that a bundle names.
type Image struct {
	// Ref is the image as it is named there.
	Ref string
	Use ImageUse
	// Of is the Deployment and the container or volume, as in "manager/web", and Name the variable or what the list
	// calls the image. Either may be empty.
	Of, Name string
	// Path is where the ClusterServiceVersion names it, as Position takes it.
	Path []any
}

// Images returns every image that the bundle names, in the order of the ClusterServiceVersion; one that is named twice
// is there twice.
func (b *Bundle) Images() []Image {
	var out []Image
	for i, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := d.Spec.Template.Spec
		path := []any{"spec", "install", "spec", "deployments", i, "spec", "template", "spec"}
		out = slices.Concat(out,
			containerImages(d.Name, pod.InitContainers, slices.Concat(path, []any{"initContainers"})),
			containerImages(d.Name, pod.Containers, slices.Concat(path, []any{"containers"})))
		for j, v := range pod.Volumes {
			if v.Image != nil {
				out = append(out, Image{Ref: v.Image.Reference, Use: VolumeImage, Of: d.Name + "/" + v.Name,
					Path: slices.Concat(path, []any{"volumes", j, "image", "reference"})})
			}
		}
	}
	for i, related := range b.CSV.Spec.RelatedImages {
		out = append(out, Image{Ref: related.Image, Use: RelatedImage, Name: related.Name,
			Path: []any{"spec", "relatedImages", i, "image"}})
	}
	if image := b.CSV.Annotations[registryv1.AnnotationContainerImage]; image != "" {
		out = append(out, Image{Ref: image, Use: AnnotationImage,
			Path: []any{"metadata", "annotations", registryv1.AnnotationContainerImage}})
	}
	return out
}

func containerImages(deployment string, containers []corev1.Container, path []any) []Image {
	var out []Image
	for i, c := range containers {
		of, at := deployment+"/"+c.Name, slices.Concat(path, []any{i})
		out = append(out, Image{Ref: c.Image, Use: ContainerImage, Of: of, Path: slices.Concat(at, []any{"image"})})
		for j, env := range c.Env {
			if strings.HasPrefix(env.Name, registryv1.RelatedImagePrefix) && env.Value != "" {
				out = append(out, Image{Ref: env.Value, Use: VariableImage, Of: of, Name: env.Name,
					Path: slices.Concat(at, []any{"env", j, "value"})})
			}
		}
	}
	return out
}

// NodeAccess is a way by which a pod reaches beyond itself on its node.
type NodeAccess struct {
	// What is a clause without its subject, such as "mounts /etc of the node".
	What string
	// Path is where the pod's spec has it.
	Path []any
}

// NodeAccessOf returns how a pod reaches its node itself, whatever its containers may do.
func NodeAccessOf(pod corev1.PodSpec) []NodeAccess {
	var out []NodeAccess
	add := func(is bool, what string, path ...any) {
		if is {
			out = append(out, NodeAccess{what, path})
		}
	}
	add(pod.HostPID, "shares the processes of the node (hostPID)", "hostPID")
	add(pod.HostIPC, "shares the memory segments of the node (hostIPC)", "hostIPC")
	add(pod.HostNetwork, "shares the network of the node (hostNetwork)", "hostNetwork")
	for i, v := range pod.Volumes {
		if v.HostPath != nil {
			add(true, fmt.Sprintf("mounts %s of the node", v.HostPath.Path), "volumes", i, "hostPath")
		}
	}
	return out
}

// PowersOf returns how the containers of a pod reach its node.
func PowersOf(pod corev1.PodSpec) []NodeAccess {
	var out []NodeAccess
	for field, containers := range map[string][]corev1.Container{
		"initContainers": pod.InitContainers, "containers": pod.Containers} {
		for i, c := range containers {
			if c.SecurityContext != nil {
				out = append(out, powers(*c.SecurityContext, field, i, "securityContext")...)
			}
		}
	}
	return out
}

func powers(c corev1.SecurityContext, path ...any) []NodeAccess {
	var out []NodeAccess
	if c.Privileged != nil && *c.Privileged {
		out = append(out, NodeAccess{"runs a privileged container", slices.Concat(path, []any{"privileged"})})
	}
	if c.Capabilities != nil {
		for _, added := range c.Capabilities.Add {
			name := strings.TrimPrefix(string(added), "CAP_")
			if name != "NET_BIND_SERVICE" { // which Pod Security's restricted level permits
				out = append(out, NodeAccess{"has the capability " + name, slices.Concat(path, []any{"capabilities"})})
			}
		}
	}
	return out
}

// AccountOf returns the service account of a pod, as the API server has it: the old field counts where the new one is
// empty.
func AccountOf(pod corev1.PodSpec) string {
	return cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount, DefaultAccount)
}
