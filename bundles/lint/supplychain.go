// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/bellwether-dev/bellwether/bundles"
)

const (
	labelArch      = "operatorframework.io/arch."
	labelOS        = "operatorframework.io/os."
	labelSupported = "supported"
)

// listSupplyChainRules returns the rules about images.
func listSupplyChainRules() []Rule {
	return []Rule{{
		ID: "image-digest", Title: "An image is not pinned by digest", Severity: Warning, Check: checkImageDigest,
		Why: "A tag can be moved. Clusters that install the same version on different days may then run different " +
			"code, what was tested " +
			"is not what runs, and mirrors for disconnected clusters break: they copy images by digest.",
		Fix: "Write `name@sha256:…` instead of `name:tag`. `bellwether bundle build --pin` resolves tags when the " +
			"bundle is built.",
	}, {
		ID: "image-invalid", Title: "An image reference cannot be parsed", Severity: Error, Check: checkImageInvalid,
		Why: "The kubelet refuses the reference, so the operator's Pod never starts.",
		Fix: "Write it as `registry/repository@sha256:…`.",
	}, {
		ID: "image-unlisted", Title: "An image is used but not listed in relatedImages", Severity: Warning,
		Check: checkImageUnlisted,
		Why: "Mirrors for disconnected clusters copy the images of `spec.relatedImages` and no others. An image that " +
			"is missing there cannot be pulled on such a cluster.",
		Fix: "Add the image to `spec.relatedImages`.",
	}, {
		ID: "container-image", Title: "The annotation containerImage names no image of the bundle", Severity: Info,
		Check: checkContainerImage,
		Why: "Consoles show the annotation as the operator's image. An image of an earlier version there is " +
			"misleading.",
		Fix: "Set the annotation to the image of the operator's Deployment, digest included.",
	}, {
		ID: "image-missing", Title: "An image is not in its registry, or the registry did not answer", Severity: Error,
		Check: checkImageMissing,
		Why: "The image cannot be pulled, so the operator, or what it deploys, never starts. Looked up with " +
			"`--check-images` only.",
		Fix: "Push the image before the bundle, and check name and digest. A registry that did not answer is " +
			"a warning: log in to it.",
	}, {
		ID: "image-platform", Title: "An image lacks an architecture that the bundle claims", Severity: Error,
		Check: checkImagePlatform,
		Why: "OLM offers the operator on every architecture that the labels `operatorframework.io/arch.*` name " +
			"(amd64 without any). On the " +
			"nodes of one that the image lacks, its Pod crashes with `exec format error`. Looked up with " +
			"`--check-images` only.",
		Fix: "Build the image for the architecture too, or remove the label.",
	}, {
		ID:    "image-platform-unlabelled",
		Title: "The operator's images run on an architecture that the bundle does not claim", Severity: Info,
		Check: checkImageUnlabelled,
		Why: "OLM's consoles hide the operator on architectures without a label, although it would run there. Looked " +
			"up with `--check-images` only.",
		Fix: "Add the label `operatorframework.io/arch.NAME: supported` to the ClusterServiceVersion.",
	}}
}

// listDeployedImages returns the images that OLM runs, and the images that the operator runs according to
// its variables.
func listDeployedImages(b *bundles.Bundle) []bundles.Image {
	return slices.DeleteFunc(b.Images(), func(i bundles.Image) bool {
		return i.Use == bundles.RelatedImage || i.Use == bundles.AnnotationImage
	})
}

// ListImages returns the valid images that a bundle names, each only once.
func ListImages(b *bundles.Bundle) []string {
	var out []string
	for _, u := range keepFirstUses(b.Images()) {
		if _, err := reference.ParseNormalizedNamed(u.Ref); err == nil {
			out = append(out, u.Ref)
		}
	}
	return out
}

// keepFirstUses removes repeated uses of an image from uses. It changes uses.
func keepFirstUses(uses []bundles.Image) []bundles.Image {
	isListed := map[string]bool{}
	return slices.DeleteFunc(uses, func(u bundles.Image) bool {
		duplicate := isListed[u.Ref]
		isListed[u.Ref] = true
		return duplicate
	})
}

// checkImageDigest reports images without a digest.
func checkImageDigest(in *Input) []Finding {
	var out []Finding
	for _, u := range keepFirstUses(in.Bundle.Images()) {
		named, err := reference.ParseNormalizedNamed(u.Ref)
		if err != nil {
			continue // rule image-invalid reports the error
		}
		if _, pinned := named.(reference.Canonical); !pinned {
			out = append(out, newObjectFinding(in.Bundle.CSVObject(), fmt.Sprintf("image %s has no digest", u.Ref),
				u.Path...))
		}
	}
	return out
}

// checkImageInvalid reports deployed images whose reference does not parse.
func checkImageInvalid(in *Input) []Finding {
	var out []Finding
	for _, u := range keepFirstUses(listDeployedImages(in.Bundle)) {
		if _, err := reference.ParseNormalizedNamed(u.Ref); err != nil {
			out = append(out, newObjectFinding(in.Bundle.CSVObject(),
				fmt.Sprintf("%q is no image reference: %s", u.Ref, clip(err.Error())), u.Path...))
		}
	}
	return out
}

// checkImageUnlisted reports deployed images that are not in spec.relatedImages.
func checkImageUnlisted(in *Input) []Finding {
	listed := map[string]bool{}
	for _, related := range in.Bundle.CSV.Spec.RelatedImages {
		listed[related.Image] = true
	}
	var out []Finding
	for _, u := range keepFirstUses(listDeployedImages(in.Bundle)) {
		if u.Ref != "" && !listed[u.Ref] {
			out = append(out, newObjectFinding(in.Bundle.CSVObject(),
				fmt.Sprintf("image %s is not in spec.relatedImages", u.Ref), u.Path...))
		}
	}
	return out
}

// checkContainerImage reports an annotation containerImage that is missing or names an image that is not deployed.
func checkContainerImage(in *Input) []Finding {
	o, deployed := in.Bundle.CSVObject(), listDeployedImages(in.Bundle)
	image := in.Bundle.CSV.Annotations[bundles.AnnotationContainerImage]
	switch {
	case image == "":
		return []Finding{newObjectFinding(o, "the annotation containerImage is missing", "metadata", "annotations")}
	case slices.ContainsFunc(deployed, func(u bundles.Image) bool { return u.Ref == image }):
		return nil
	}
	return []Finding{newObjectFinding(o, fmt.Sprintf("the annotation names %s, which no Deployment runs", image),
		"metadata", "annotations", bundles.AnnotationContainerImage)}
}

// checkImageMissing reports images that are not in their registry. A registry that does not answer is a warning.
func checkImageMissing(in *Input) []Finding {
	var out []Finding
	for u, err := range lookUpImages(in) {
		if err == nil {
			continue
		}
		f := newObjectFinding(in.Bundle.CSVObject(), fmt.Sprintf("image %s is not in its registry", u.Ref), u.Path...)
		if !errors.Is(err, fs.ErrNotExist) {
			f.Severity, f.Message = Warning, fmt.Sprintf("image %s could not be looked up: %s", u.Ref,
				clip(err.Error()))
		}
		out = append(out, f)
	}
	return out
}

// lookUpImages returns an iterator over every valid image of the bundle, with the error of the query to its registry.
// The iterator is empty if registries were not queried.
func lookUpImages(in *Input) func(yield func(bundles.Image, error) bool) {
	return func(yield func(bundles.Image, error) bool) {
		if in.Images == nil {
			return
		}
		for _, u := range keepFirstUses(in.Bundle.Images()) {
			if _, err := reference.ParseNormalizedNamed(u.Ref); err != nil {
				continue
			}
			if _, err := in.Images.Platforms(u.Ref); !yield(u, err) {
				return
			}
		}
	}
}

// listClaimedPlatforms returns the platforms, such as linux/amd64, for which the labels of the ClusterServiceVersion
// claim support; linux/amd64 if there are no labels.
func listClaimedPlatforms(b *bundles.Bundle) []string {
	architectures, systems := listSupportedLabels(b, labelArch, "amd64"), listSupportedLabels(b, labelOS, "linux")
	var out []string
	for _, system := range systems {
		for _, architecture := range architectures {
			out = append(out, system+"/"+architecture)
		}
	}
	return out
}

// listSupportedLabels returns the sorted names, without the prefix, of the labels with the prefix and the value
// "supported". Without such labels, it returns only the default name.
func listSupportedLabels(b *bundles.Bundle, prefix, defaultName string) []string {
	var out []string
	for name, value := range b.CSV.Labels {
		if suffix, ok := strings.CutPrefix(name, prefix); ok && value == labelSupported {
			out = append(out, suffix)
		}
	}
	if len(out) == 0 {
		return []string{defaultName}
	}
	slices.Sort(out)
	return out
}

// checkImagePlatform reports images that are not built for a claimed platform.
func checkImagePlatform(in *Input) []Finding {
	var out []Finding
	for u, err := range lookUpImages(in) {
		if err != nil {
			continue // rule image-missing reports the error
		}
		platforms, _ := in.Images.Platforms(u.Ref)
		missing := slices.DeleteFunc(listClaimedPlatforms(in.Bundle),
			func(p string) bool { return slices.Contains(platforms, p) })
		if len(missing) > 0 {
			out = append(out, newObjectFinding(in.Bundle.CSVObject(),
				fmt.Sprintf("image %s is not built for %s, only for %s", u.Ref,
					strings.Join(missing, " and "), strings.Join(platforms, ", ")), u.Path...))
		}
	}
	return out
}

// checkImageUnlabelled reports Linux platforms that all images are built for and that no label claims. It reports
// nothing if an image cannot be looked up.
func checkImageUnlabelled(in *Input) []Finding {
	var common []string
	isFirst := true
	for u, err := range lookUpImages(in) {
		if err != nil {
			return nil // rule image-missing reports the error
		}
		platforms, _ := in.Images.Platforms(u.Ref)
		if isFirst {
			common, isFirst = slices.Clone(platforms), false
		}
		common = slices.DeleteFunc(common, func(p string) bool { return !slices.Contains(platforms, p) })
	}
	claimed := listClaimedPlatforms(in.Bundle)
	unclaimed := slices.DeleteFunc(common, func(p string) bool {
		return slices.Contains(claimed, p) || !strings.HasPrefix(p, "linux/")
	})
	if len(unclaimed) == 0 {
		return nil
	}
	return []Finding{newObjectFinding(in.Bundle.CSVObject(),
		fmt.Sprintf("every image is built for %s, which no label claims", strings.Join(unclaimed, " and ")), "metadata",
		"labels")}
}
