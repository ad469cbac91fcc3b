// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ImageUse is the purpose for which a bundle names an image.
type ImageUse string

// The uses of images.
const (
	// ContainerImage and VolumeImage are images that a pod of the operator runs or mounts.
	ContainerImage ImageUse = "container"
	VolumeImage    ImageUse = "volume"
	// VariableImage is an image that the operator starts, from an environment variable RELATED_IMAGE_*.
	VariableImage ImageUse = "variable"
	// RelatedImage is an image in spec.relatedImages, the list of images that the operator can start.
	RelatedImage ImageUse = "related image"
	// AnnotationImage is an image in an annotation, for information only.
	AnnotationImage ImageUse = "annotation"
)

// DefaultAccount is the service account of pods that do not name a service account.
const DefaultAccount = "default"

// Image is an image that a bundle names.
type Image struct {
	// Ref is the image reference as it is written in the bundle.
	Ref string
	Use ImageUse
	// Owner is the Deployment and the container or volume, as in "manager/web". Name is the name of the variable or of
	// the entry in spec.relatedImages. Both can be empty.
	Owner, Name string
	// Path is the place in the ClusterServiceVersion, in the form that Position takes.
	Path []any
}

// PinImage returns the reference of an image with the digest in place of its tag or of another digest.
func PinImage(image, digest string) string {
	name, _, _ := strings.Cut(image, "@")
	// A colon before the last slash precedes the port of the registry.
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name + "@" + digest
}

// Images returns every image that the bundle names, in the order of the ClusterServiceVersion. An image that is named
// twice is returned twice.
func (b *Bundle) Images() []Image {
	var out []Image
	for i, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := d.Spec.Template.Spec
		path := []any{"spec", "install", "spec", "deployments", i, "spec", "template", "spec"}
		out = slices.Concat(out,
			listContainerImages(d.Name, pod.InitContainers, slices.Concat(path, []any{"initContainers"})),
			listContainerImages(d.Name, pod.Containers, slices.Concat(path, []any{"containers"})))
		for j, v := range pod.Volumes {
			if v.Image != nil {
				out = append(out, Image{Ref: v.Image.Reference, Use: VolumeImage, Owner: d.Name + "/" + v.Name,
					Path: slices.Concat(path, []any{"volumes", j, "image", "reference"})})
			}
		}
	}
	for i, related := range b.CSV.Spec.RelatedImages {
		out = append(out, Image{Ref: related.Image, Use: RelatedImage, Name: related.Name,
			Path: []any{"spec", "relatedImages", i, "image"}})
	}
	if image := b.CSV.Annotations[AnnotationContainerImage]; image != "" {
		out = append(out, Image{Ref: image, Use: AnnotationImage,
			Path: []any{"metadata", "annotations", AnnotationContainerImage}})
	}
	return out
}

// listContainerImages returns the images of containers and of their RELATED_IMAGE_* variables. path is the place of the
// list of containers.
func listContainerImages(deployment string, containers []corev1.Container, path []any) []Image {
	var out []Image
	for i, c := range containers {
		owner, containerPath := deployment+"/"+c.Name, slices.Concat(path, []any{i})
		out = append(out, Image{Ref: c.Image, Use: ContainerImage, Owner: owner,
			Path: slices.Concat(containerPath, []any{"image"})})
		for j, env := range c.Env {
			if strings.HasPrefix(env.Name, RelatedImagePrefix) && env.Value != "" {
				out = append(out, Image{Ref: env.Value, Use: VariableImage, Owner: owner, Name: env.Name,
					Path: slices.Concat(containerPath, []any{"env", j, "value"})})
			}
		}
	}
	return out
}

// NodeAccess is a way in which a pod gets access to its node.
type NodeAccess struct {
	// Description describes the access as a clause without its subject, such as "mounts /etc of the node".
	Description string
	// Path is the place in the pod's spec.
	Path []any
}

// ListPodNodeAccess returns the access to the node that the fields of a pod give, independent of its containers.
func ListPodNodeAccess(pod corev1.PodSpec) []NodeAccess {
	var out []NodeAccess
	add := func(present bool, text string, path ...any) {
		if present {
			out = append(out, NodeAccess{text, path})
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

// ListContainerNodeAccess returns the access to the node that the security contexts of the pod's containers give.
func ListContainerNodeAccess(pod corev1.PodSpec) []NodeAccess {
	var out []NodeAccess
	for field, containers := range map[string][]corev1.Container{
		"initContainers": pod.InitContainers, "containers": pod.Containers} {
		for i, c := range containers {
			if c.SecurityContext != nil {
				out = append(out, listPowers(*c.SecurityContext, field, i, "securityContext")...)
			}
		}
	}
	return out
}

// listPowers returns the access to the node that a security context gives. path is its place in the pod's spec.
func listPowers(c corev1.SecurityContext, path ...any) []NodeAccess {
	var out []NodeAccess
	if c.Privileged != nil && *c.Privileged {
		out = append(out, NodeAccess{"runs a privileged container", slices.Concat(path, []any{"privileged"})})
	}
	if c.Capabilities != nil {
		for _, added := range c.Capabilities.Add {
			name := strings.TrimPrefix(string(added), "CAP_")
			if name != "NET_BIND_SERVICE" { // the restricted level of Pod Security permits it
				out = append(out, NodeAccess{"has the capability " + name, slices.Concat(path, []any{"capabilities"})})
			}
		}
	}
	return out
}

// ReadServiceAccount returns the service account of a pod. As in the API server, the deprecated field counts if the
// current field is empty.
func ReadServiceAccount(pod corev1.PodSpec) string {
	return cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount, DefaultAccount)
}
