// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registryv1

// Annotations of metadata/annotations.yaml, which are also the labels of a bundle's image.
const (
	AnnotationMediaType      = "operators.operatorframework.io.bundle.mediatype.v1"
	AnnotationManifests      = "operators.operatorframework.io.bundle.manifests.v1"
	AnnotationMetadata       = "operators.operatorframework.io.bundle.metadata.v1"
	AnnotationPackage        = "operators.operatorframework.io.bundle.package.v1"
	AnnotationChannels       = "operators.operatorframework.io.bundle.channels.v1"
	AnnotationDefaultChannel = "operators.operatorframework.io.bundle.channel.default.v1"

	// AnnotationContainerImage of a ClusterServiceVersion names the operator's image, for people to read.
	AnnotationContainerImage = "containerImage"

	// MediaType is that of the only bundle format there is.
	MediaType = "registry+v1"
)

// RelatedImagePrefix begins the names of variables that tell an operator which images to run.
const RelatedImagePrefix = "RELATED_IMAGE_"
