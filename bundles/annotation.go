// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

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

	// MediaType is the media type of registry+v1 bundles, the only bundle format that exists.
	MediaType = "registry+v1"
)

// RelatedImagePrefix is the prefix of the environment variables that name the images which an operator runs.
const RelatedImagePrefix = "RELATED_IMAGE_"
