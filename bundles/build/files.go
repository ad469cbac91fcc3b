// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Files are the files of a bundle, by their slash-separated path in it.
type Files map[string][]byte

const annotationsFile = bundles.MetadataDir + "/annotations.yaml"

// ReadFiles reads the files of an existing bundle folder, without hidden files. Errors match ErrInput, or are errors of
// the file system.
func ReadFiles(fsys fs.FS) (Files, error) {
	files, remaining := Files{}, int64(bundles.MaxBytes)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("read folder: %w", err)
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return newInputError("%s is a link or a device: a bundle has files only", name)
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("read folder: %w", err)
		}
		if remaining -= info.Size(); remaining < 0 {
			return newInputError("the folder has more than %d MiB; OLM installs bundles of about 1 MiB, compressed",
				bundles.MaxBytes>>20)
		}
		files[name], err = fs.ReadFile(fsys, name)
		if err != nil {
			return fmt.Errorf("read folder: %w", err)
		}
		return nil
	})
	return files, err
}

// Reuse returns an existing bundle folder as a result, unchanged. It applies the same validation as Assemble. Errors
// match ErrInput, or are errors of the file system.
func Reuse(fsys fs.FS) (*Result, error) {
	files, err := ReadFiles(fsys)
	if err != nil {
		return nil, err
	}
	b, err := bundles.Read(fsys)
	if errors.Is(err, bundles.ErrNotBundle) || errors.Is(err, bundles.ErrTooLarge) {
		return nil, newInputError("%v", err)
	}
	if err != nil {
		return nil, err
	}
	r := &Result{Name: b.Name, Package: b.Package, Version: b.Version.String(), Files: files}
	return r, r.validateBundle(b)
}

// newInputError returns an InputError with one problem.
func newInputError(format string, args ...any) error {
	return &InputError{[]string{fmt.Sprintf(format, args...)}}
}

// encodeFiles returns all files of the bundle.
func (a *assembler) encodeFiles() (Files, error) {
	csv, err := toUnstructured(a.csv)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kindCSV, err)
	}
	delete(csv.Object, "status")
	out := Files{}
	if err := out.put(path.Join(bundles.ManifestsDir, strings.ToLower(a.options.Package)+".clusterserviceversion.yaml"),
		csv.Object); err != nil {
		return nil, err
	}
	for _, crd := range a.objects.crds {
		name := fmt.Sprintf("%s_%s.yaml", crd.value.Spec.Group, crd.value.Spec.Names.Plural)
		if err := out.putObject(name, crd.object); err != nil {
			return nil, err
		}
	}
	for _, o := range a.objects.manifests {
		gvk := o.GroupVersionKind()
		name := strings.ReplaceAll(fmt.Sprintf("%s_%s_%s_%s.yaml", o.GetName(), gvk.Group, gvk.Version, gvk.Kind), "__",
			"_")
		if err := out.putObject(name, o); err != nil {
			return nil, err
		}
	}
	for _, o := range a.objects.scorecard {
		if err := out.put("tests/scorecard/config.yaml", o.Object); err != nil {
			return nil, err
		}
	}
	for name, text := range a.options.Metadata {
		out[path.Join(bundles.MetadataDir, name)] = text
	}
	return out, out.put(annotationsFile, map[string]any{"annotations": a.listAnnotations()})
}

// toUnstructured converts an API object to an unstructured object.
func toUnstructured(v any) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &out.Object); err != nil {
		return nil, err
	}
	prune(out.Object)
	return out, nil
}

// prune removes creationTimestamp fields that are null. Go types write them into pod templates.
func prune(v any) {
	switch v := v.(type) {
	case map[string]any:
		if created, ok := v["creationTimestamp"]; ok && created == nil {
			delete(v, "creationTimestamp")
		}
		for _, child := range v {
			prune(child)
		}
	case []any:
		for _, child := range v {
			prune(child)
		}
	}
}

var unsafeCharacters = regexp.MustCompile(`[^a-z0-9._-]+`)

// putObject adds a manifest, and changes the name so that it is safe on every file system and not used yet. It removes
// the namespace and the status from the object.
func (f Files) putObject(name string, o object) error {
	o.SetNamespace("")
	delete(o.Object, "status")
	prune(o.Object)
	name = strings.TrimLeft(unsafeCharacters.ReplaceAllString(strings.ToLower(name), "-"), ".-")
	base, file := strings.TrimSuffix(name, ".yaml"), path.Join(bundles.ManifestsDir, name)
	for i := 2; f[file] != nil; i++ {
		file = path.Join(bundles.ManifestsDir, fmt.Sprintf("%s-%d.yaml", base, i))
	}
	return f.put(file, o.Object)
}

// put adds a file with a value as YAML.
func (f Files) put(name string, v any) error {
	text, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	f[name] = text
	return nil
}
