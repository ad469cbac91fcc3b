// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"path"
	"slices"
	"testing/fstest" // an fs.FS of files in memory

	"github.com/operator-framework/api/pkg/encoding"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Bundle parses the files as OLM does. Errors wrap bundles.ErrNotBundle or bundles.ErrTooLarge.
func (f Files) Bundle() (*bundles.Bundle, error) {
	fsys := fstest.MapFS{}
	for name, text := range f {
		fsys[name] = &fstest.MapFile{Data: text, Mode: 0o644}
	}
	return bundles.Read(fsys)
}

// listManifests returns the paths of the manifest files, sorted.
func (f Files) listManifests(annotations map[string]string) []string {
	folder := bundles.ManifestsFolder(annotations)
	var out []string
	for name := range f {
		if path.Dir(name) == folder && bundles.IsManifest(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// validate checks the files with the validators of operator-framework/api that every bundle must pass. It ignores their
// warnings, which are reported by the linter.
func (r *Result) validate() error {
	b, err := r.Files.Bundle()
	if err != nil {
		return newInputError("%v", err)
	}
	return r.validateBundle(b)
}

// validateBundle checks a parsed bundle with the validators of operator-framework/api that every bundle must pass. It
// ignores their warnings.
func (r *Result) validateBundle(b *bundles.Bundle) error {
	m, err := r.toValidatorBundle(b)
	if err != nil {
		return err
	}
	var problems []string
	for _, result := range validation.DefaultBundleValidators.Validate(m.ObjectsToValidate()...) {
		for _, e := range result.Errors {
			problems = append(problems, phrase.OneLine(e.Detail))
		}
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return &InputError{slices.Compact(problems)}
	}
	return nil
}

// toValidatorBundle converts a bundle to the type of the validators.
func (r *Result) toValidatorBundle(b *bundles.Bundle) (*manifests.Bundle, error) {
	m := &manifests.Bundle{
		Name: b.Name, Package: b.Package, Channels: b.Channels, DefaultChannel: b.DefaultChannel, CSV: b.CSV,
		V1CRDs: b.CRDs,
	}
	for _, o := range b.Objects {
		m.Objects = append(m.Objects, o.Unstructured)
		if o.GroupVersionKind() == apiextensionsv1beta1.SchemeGroupVersion.WithKind("CustomResourceDefinition") {
			crd := &apiextensionsv1beta1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, crd); err != nil {
				return nil, newInputError("%s: %v", o.File, err)
			}
			m.V1beta1CRDs = append(m.V1beta1CRDs, crd)
		}
	}
	var failed []error
	for _, text := range r.Files {
		packed, err := encoding.GzipBase64Encode(text)
		failed = append(failed, err)
		m.Size += int64(len(text))
		m.CompressedSize += int64(len(packed))
	}
	return m, errors.Join(failed...)
}
