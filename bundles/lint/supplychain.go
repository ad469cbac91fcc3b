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
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

const (
	labelArch      = "operatorframework.io/arch."
	labelOS        = "operatorframework.io/os."
	labelSupported = "supported"
)

// supplyChainRules are about where images come from.
func supplyChainRules() []Rule {
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

// deployedImages are the images that the ClusterServiceVersion has OLM run, and
// those that the operator is told to run.
func deployedImages(b *bundles.Bundle) []bundles.Image {
	return slices.DeleteFunc(b.Images(), func(i bundles.Image) bool {
		return i.Use == bundles.RelatedImage || i.Use == bundles.AnnotationImage
	})
}

// Images returns the images that a bundle names, each once.
func Images(b *bundles.Bundle) []string {
	var out []string
	for _, u := range firstUses(b.Images()) {
		if _, err := reference.ParseNormalizedNamed(u.Ref); err == nil {
			out = append(out, u.Ref)
		}
	}
	return out
}

// firstUses keeps the first place of each image.
func firstUses(uses []bundles.Image) []bundles.Image {
	seen := map[string]bool{}
	return slices.DeleteFunc(uses, func(u bundles.Image) bool {
		again := seen[u.Ref]
		seen[u.Ref] = true
		return again
	})
}

func checkImageDigest(in *Input) []Finding {
	var out []Finding
	for _, u := range firstUses(in.Bundle.Images()) {
		named, err := reference.ParseNormalizedNamed(u.Ref)
		if err != nil {
			continue
		}
		if _, pinned := named.(reference.Canonical); !pinned {
			out = append(out, at(in.Bundle.CSVObject(), fmt.Sprintf("image %s has no digest", u.Ref), u.Path...))
		}
	}
	return out
}

func checkImageInvalid(in *Input) []Finding {
	var out []Finding
	for _, u := range firstUses(deployedImages(in.Bundle)) {
		if _, err := reference.ParseNormalizedNamed(u.Ref); err != nil {
			out = append(out, at(in.Bundle.CSVObject(),
				fmt.Sprintf("%q is no image reference: %s", u.Ref, clip(err.Error())), u.Path...))
		}
	}
	return out
}

func checkImageUnlisted(in *Input) []Finding {
	listed := map[string]bool{}
	for _, related := range in.Bundle.CSV.Spec.RelatedImages {
		listed[related.Image] = true
	}
	var out []Finding
	for _, u := range firstUses(deployedImages(in.Bundle)) {
		if u.Ref != "" && !listed[u.Ref] {
			out = append(out, at(in.Bundle.CSVObject(), fmt.Sprintf("image %s is not in spec.relatedImages", u.Ref),
				u.Path...))
		}
	}
	return out
}

func checkContainerImage(in *Input) []Finding {
	o, deployed := in.Bundle.CSVObject(), deployedImages(in.Bundle)
	image := in.Bundle.CSV.Annotations[registryv1.AnnotationContainerImage]
	switch {
	case image == "":
		return []Finding{at(o, "the annotation containerImage is missing", "metadata", "annotations")}
	case slices.ContainsFunc(deployed, func(u bundles.Image) bool { return u.Ref == image }):
		return nil
	}
	return []Finding{at(o, fmt.Sprintf("the annotation names %s, which no Deployment runs", image), "metadata",
		"annotations", registryv1.AnnotationContainerImage)}
}

func checkImageMissing(in *Input) []Finding {
	var out []Finding
	for u, err := range lookedUp(in) {
		if err == nil {
			continue
		}
		f := at(in.Bundle.CSVObject(), fmt.Sprintf("image %s is not in its registry", u.Ref), u.Path...)
		if !errors.Is(err, fs.ErrNotExist) {
			f.Severity, f.Message = Warning, fmt.Sprintf("image %s could not be looked up: %s", u.Ref,
				clip(err.Error()))
		}
		out = append(out, f)
	}
	return out
}

// lookedUp yields every image that a Deployment runs or that is listed, if
// somebody asked the registries, with the error of that.
func lookedUp(in *Input) func(yield func(bundles.Image, error) bool) {
	return func(yield func(bundles.Image, error) bool) {
		if in.Images == nil {
			return
		}
		for _, u := range firstUses(in.Bundle.Images()) {
			if _, err := reference.ParseNormalizedNamed(u.Ref); err != nil {
				continue
			}
			if _, err := in.Images.Platforms(u.Ref); !yield(u, err) {
				return
			}
		}
	}
}

// claimed are the platforms that a bundle says it runs on.
func claimed(b *bundles.Bundle) []string {
	architectures, systems := labelled(b, labelArch, "amd64"), labelled(b, labelOS, "linux")
	var out []string
	for _, system := range systems {
		for _, architecture := range architectures {
			out = append(out, system+"/"+architecture)
		}
	}
	return out
}

func labelled(b *bundles.Bundle, prefix, otherwise string) []string {
	var out []string
	for name, value := range b.CSV.Labels {
		if rest, ok := strings.CutPrefix(name, prefix); ok && value == labelSupported {
			out = append(out, rest)
		}
	}
	if len(out) == 0 {
		return []string{otherwise}
	}
	slices.Sort(out)
	return out
}

func checkImagePlatform(in *Input) []Finding {
	var out []Finding
	for u, err := range lookedUp(in) {
		if err != nil {
			continue
		}
		have, _ := in.Images.Platforms(u.Ref)
		missing := slices.DeleteFunc(claimed(in.Bundle), func(p string) bool { return slices.Contains(have, p) })
		if len(missing) > 0 {
			out = append(out, at(in.Bundle.CSVObject(),
				fmt.Sprintf("image %s is not built for %s, only for %s", u.Ref,
					strings.Join(missing, " and "), strings.Join(have, ", ")), u.Path...))
		}
	}
	return out
}

func checkImageUnlabelled(in *Input) []Finding {
	var all []string
	first := true
	for u, err := range lookedUp(in) {
		if err != nil {
			return nil
		}
		have, _ := in.Images.Platforms(u.Ref)
		if first {
			all, first = slices.Clone(have), false
		}
		all = slices.DeleteFunc(all, func(p string) bool { return !slices.Contains(have, p) })
	}
	has := claimed(in.Bundle)
	all = slices.DeleteFunc(all, func(p string) bool {
		return slices.Contains(has, p) ||
			!strings.HasPrefix(p, "linux/")
	})
	if len(all) == 0 {
		return nil
	}
	return []Finding{at(in.Bundle.CSVObject(),
		fmt.Sprintf("every image is built for %s, which no label claims", strings.Join(all, " and ")), "metadata",
		"labels")}
}
