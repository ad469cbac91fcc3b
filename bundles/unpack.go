// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// AnnotationsName is the name of the file that OLM's unpacker (util/cpb of OLM) looks for. It walks the whole image,
// takes the last file of that name, and copies the folder that the file names. Labels of the image mean nothing to it.
const AnnotationsName = "annotations.yaml"

// mounted are the folders over which the runtime, or OLM's Job, may mount something: what the image has there is not
// what the unpacker finds.
var mounted = []string{"dev", "proc", "sys", "etc", "run", "var", "bundle", "util"}

// Unpacked is what OLM's unpacker takes from a bundle image.
type Unpacked struct {
	// Manifests is the folder of the manifests.
	Manifests string
	// Files are those in that folder and in that of annotations.yaml, by their names in the image.
	Files map[string][]byte
}

// Unpack finds the bundle among all files of an image, as OLM's unpacker does. The error wraps ErrNotBundle where that
// is ambiguous, or where OLM reads something else than this package.
func Unpack(all map[string][]byte, labels map[string]string) (*Unpacked, error) {
	var found []string
	for name := range all {
		if path.Base(name) == AnnotationsName {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w: it has no file %s", ErrNotBundle, AnnotationsName)
	case 1:
	default:
		return nil, fmt.Errorf("%w: it has %d files %s (%s): OLM takes one of them; leave only that of the bundle",
			ErrNotBundle, len(found), AnnotationsName, strings.Join(found[:2], ", "))
	}
	manifests, err := manifestsFolder(all[found[0]])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", found[0], err)
	}
	if label := labels[registryv1.AnnotationManifests]; label != "" && cleanName(label) != manifests {
		return nil, fmt.Errorf("%w: its label %s says %q, but %s says %q, which is what OLM takes; make them the same",
			ErrNotBundle, registryv1.AnnotationManifests, label, found[0], manifests)
	}
	b := &Unpacked{Manifests: manifests, Files: map[string][]byte{found[0]: all[found[0]]}}
	metadata := path.Dir(found[0])
	for name, content := range all {
		if strings.HasPrefix(name, manifests+"/") || strings.HasPrefix(name, metadata+"/") {
			b.Files[name] = content
		}
	}
	return b, b.checkManifests()
}

// manifestsFolder reads annotations.yaml with the library that the unpacker has: others read unusual documents in
// another way.
func manifestsFolder(annotations []byte) (string, error) {
	if err := untrusted.CheckYAML(annotations); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotBundle, err)
	}
	var in struct {
		Annotations map[string]string `yaml:"annotations"`
	}
	if err := yamlv3.Unmarshal(annotations, &in); err != nil {
		return "", fmt.Errorf("%w: decode: %w", ErrNotBundle, err)
	}
	folder := in.Annotations[registryv1.AnnotationManifests]
	if folder == "" {
		return "", fmt.Errorf("%w: it lacks %s", ErrNotBundle, registryv1.AnnotationManifests)
	}
	cleaned := cleanName(folder)
	first, _, _ := strings.Cut(cleaned, "/")
	if cleaned == "" || slices.Contains(strings.Split(folder, "/"), "..") || slices.Contains(mounted, first) {
		return "", fmt.Errorf("%w: the manifests cannot be in the folder %q", ErrNotBundle, folder)
	}
	return cleaned, nil
}

// notInKey are the characters that OLM replaces in the names of files.
var notInKey = regexp.MustCompile("[^-A-Za-z0-9_.]")

// checkManifests refuses what OLM takes for a manifest and others do not: it reads every file, whatever its name is.
func (b *Unpacked) checkManifests() error {
	keys := map[string]string{}
	for _, name := range b.ManifestFiles() {
		base := path.Base(name)
		key := notInKey.ReplaceAllString(base, "-")
		if other := keys[key]; other != "" {
			return fmt.Errorf("%w: OLM takes only one of the files %s and %s: rename one", ErrNotBundle, other, name)
		}
		keys[key] = name
		if isVisibleManifest(base) {
			if err := checkManifest(name, b.Files[name]); err != nil {
				return err
			}
			continue
		}
		if untrusted.CheckYAML(b.Files[name]) != nil || isObject(b.Files[name]) {
			return fmt.Errorf("%w: OLM takes the file %s for a manifest: rename it to end in .yaml, or remove it",
				ErrNotBundle, name)
		}
	}
	return nil
}

// checkManifest refuses a manifest that OLM reads in another way. What is too dangerous to decode is not decoded as OLM
// does it.
func checkManifest(name string, content []byte) error {
	if !utilyaml.IsJSONBuffer(content) {
		if err := untrusted.CheckYAML(content); err != nil {
			return fmt.Errorf("%w: manifest %s: %w", ErrNotBundle, name, err)
		}
	}
	if isObject(content) != hasKind(content) {
		return fmt.Errorf("%w: OLM reads the manifest %s in another way than Bellwether: keep one YAML document in "+
			"it, and nothing before that", ErrNotBundle, name)
	}
	return nil
}

// ManifestFiles returns the files directly in the folder of the manifests, sorted.
func (b *Unpacked) ManifestFiles() []string {
	var out []string
	for name := range b.Files {
		if path.Dir(name) == b.Manifests {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// isVisibleManifest tells whether a file is a manifest here: hidden files are left out of images.
func isVisibleManifest(base string) bool {
	return !strings.HasPrefix(base, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(base))
}

// hasKind tells whether a manifest is an object, as it is read here.
func hasKind(content []byte) bool {
	var object struct{ Kind any }
	if utilyaml.IsJSONBuffer(content) {
		return json.Unmarshal(content, &object) == nil && object.Kind != nil
	}
	converted, err := untrusted.ToJSON(content)
	return err == nil && json.Unmarshal(converted, &object) == nil && object.Kind != nil
}

// isObject tells whether OLM reads a file as an object.
func isObject(content []byte) bool {
	var object struct{ Kind any }
	err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 30).Decode(&object)
	return err == nil && object.Kind != nil
}

// cleanName is the name of a file below the root of an image.
func cleanName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }
