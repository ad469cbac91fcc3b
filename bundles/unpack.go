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

	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// AnnotationsName is the name of the file that OLM's unpacker (util/cpb of OLM) searches in the whole image. The
// unpacker uses the last file with this name and copies the folder that the file names. It ignores the labels of
// the image.
const AnnotationsName = "annotations.yaml"

// mountedFolders are the folders over which the container runtime or OLM's Job can mount a volume. The unpacker might
// not see the content that the image has in these folders.
var mountedFolders = []string{"dev", "proc", "sys", "etc", "run", "var", "bundle", "util"}

// Unpacked is the content that OLM's unpacker reads from a bundle image.
type Unpacked struct {
	// Manifests is the folder of the manifests.
	Manifests string
	// Files are the files in that folder and in the folder of annotations.yaml, by their paths in the image.
	Files map[string][]byte
}

// Unpack finds the bundle among all files of an image, as OLM's unpacker does. The error wraps ErrNotBundle if the
// result is ambiguous, or if OLM reads different content than this package.
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
	case 1: // the only one is the file of the bundle
	default:
		return nil, fmt.Errorf("%w: it has %d files %s (%s): OLM uses only one of them; keep only the file of the "+
			"bundle", ErrNotBundle, len(found), AnnotationsName, strings.Join(found[:2], ", "))
	}
	manifests, err := readManifestsFolder(all[found[0]])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", found[0], err)
	}
	if label := labels[AnnotationManifests]; label != "" && cleanName(label) != manifests {
		return nil, fmt.Errorf("%w: its label %s says %q, but %s says %q, which OLM uses; make them the same",
			ErrNotBundle, AnnotationManifests, label, found[0], manifests)
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

// readManifestsFolder returns the folder of the manifests that annotations.yaml names, relative to the root of the
// image. It uses the YAML library of OLM's unpacker, because other libraries decode unusual documents differently. It
// refuses the root, a path with "..", and folders in which the unpacker sees other content.
func readManifestsFolder(annotations []byte) (string, error) {
	if err := untrusted.CheckYAML(annotations); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotBundle, err)
	}
	var in struct {
		Annotations map[string]string `yaml:"annotations"`
	}
	if err := yamlv3.Unmarshal(annotations, &in); err != nil {
		return "", fmt.Errorf("%w: decode: %w", ErrNotBundle, err)
	}
	folder := in.Annotations[AnnotationManifests]
	if folder == "" {
		return "", fmt.Errorf("%w: it lacks %s", ErrNotBundle, AnnotationManifests)
	}
	cleaned := cleanName(folder)
	topFolder, _, _ := strings.Cut(cleaned, "/")
	if cleaned == "" || slices.Contains(strings.Split(folder, "/"), "..") ||
		slices.Contains(mountedFolders, topFolder) {
		return "", fmt.Errorf("%w: the manifests cannot be in the folder %q", ErrNotBundle, folder)
	}
	return cleaned, nil
}

// invalidKeyCharacter matches the characters that OLM replaces in file names.
var invalidKeyCharacter = regexp.MustCompile("[^-A-Za-z0-9_.]")

// checkManifests returns an error if OLM reads other manifests than this package: it treats a file as a manifest that
// this package does not, it decodes a manifest differently, or two files have the same key in OLM's ConfigMap. OLM
// reads every file in the folder, whatever its name is.
func (b *Unpacked) checkManifests() error {
	keys := map[string]string{}
	for _, name := range b.ManifestFiles() {
		base := path.Base(name)
		key := invalidKeyCharacter.ReplaceAllString(base, "-")
		if earlier := keys[key]; earlier != "" {
			return fmt.Errorf("%w: OLM keeps only one of the files %s and %s: rename one", ErrNotBundle, earlier, name)
		}
		keys[key] = name
		if isVisibleManifest(base) {
			if err := checkManifest(name, b.Files[name]); err != nil {
				return err
			}
			continue
		}
		if untrusted.CheckYAML(b.Files[name]) != nil || isObjectForOLM(b.Files[name]) {
			return fmt.Errorf("%w: OLM treats the file %s as a manifest: rename it to end in .yaml, or remove it",
				ErrNotBundle, name)
		}
	}
	return nil
}

// checkManifest returns an error if OLM decodes a manifest differently than this package. It first refuses YAML that is
// too dangerous to decode.
func checkManifest(name string, content []byte) error {
	if !utilyaml.IsJSONBuffer(content) {
		if err := untrusted.CheckYAML(content); err != nil {
			return fmt.Errorf("%w: manifest %s: %w", ErrNotBundle, name, err)
		}
	}
	if isObjectForOLM(content) != isObjectForBellwether(content) {
		return fmt.Errorf("%w: OLM reads the manifest %s in another way than Bellwether: keep one YAML document in "+
			"it, and nothing before that", ErrNotBundle, name)
	}
	return nil
}

// ManifestFiles returns the paths of the files directly in the folder of the manifests, sorted.
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

// isVisibleManifest reports whether this package treats a file as a manifest. Hidden files are not manifests.
func isVisibleManifest(base string) bool {
	return !strings.HasPrefix(base, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(base))
}

// isObjectForBellwether reports whether this package decodes a manifest as a Kubernetes object, which has a kind.
func isObjectForBellwether(content []byte) bool {
	var object struct{ Kind any }
	if utilyaml.IsJSONBuffer(content) {
		return json.Unmarshal(content, &object) == nil && object.Kind != nil
	}
	converted, err := untrusted.ToJSON(content)
	return err == nil && json.Unmarshal(converted, &object) == nil && object.Kind != nil
}

// isObjectForOLM reports whether OLM decodes a file as a Kubernetes object.
func isObjectForOLM(content []byte) bool {
	var object struct{ Kind any }
	err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 30).Decode(&object)
	return err == nil && object.Kind != nil
}

// cleanName returns the path of a file relative to the root of an image, without a leading slash.
func cleanName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }
