// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package templates renders the objects that the agent creates on a fleet cluster. Users may replace the template of
// each object. Bellwether adds the labels by which it finds the objects, and the hash of the rendered text.
package templates

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

//go:embed *.yaml
var defaults embed.FS

// templateFiles maps the kinds that have a template to the file with the template.
var templateFiles = map[string]string{
	"Namespace":     "namespace.yaml",
	"OperatorGroup": "operatorgroup.yaml",
	"CatalogSource": "catalogsource.yaml",
	"Subscription":  "subscription.yaml",
}

// ErrInvalid means that a template does not render to an object of the required kind and name.
var ErrInvalid = errors.New("invalid template")

// Data are the values for a template.
type Data struct {
	// Cluster, Operator and OperatorNamespace name the FleetCluster and the
	// ManagedOperator on the hub.
	Cluster, Operator, OperatorNamespace string
	// Namespace is the namespace that the operator is installed into.
	Namespace string
	Package   string
	Channel   string
	Version   string
	// Subscription is the name of the operator's Subscription: the name of the package, or the name of an adopted
	// Subscription. Empty means the name of the package.
	Subscription string
	Mode         v1alpha1.InstallMode
	// Config is nil if nothing is configured.
	Config *v1alpha1.OperatorConfig
	// ViewAddress is the host:port of the catalog view.
	ViewAddress string
}

// Set is a complete set of templates.
type Set struct {
	parsed map[string]*template.Template
}

// Load reads the built-in templates. A file with the same name in dir replaces a built-in template; an empty dir
// replaces none. The files are namespace.yaml, operatorgroup.yaml, catalogsource.yaml and subscription.yaml.
func Load(dir string) (*Set, error) {
	set := &Set{parsed: map[string]*template.Template{}}
	for kind, name := range templateFiles {
		text, err := readTemplate(dir, name)
		if err != nil {
			return nil, err
		}
		parsed, err := template.New(name).Option("missingkey=error").Funcs(newFunctions()).Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		set.parsed[kind] = parsed
	}
	return set, nil
}

// readTemplate returns the text of a template from dir, or else the built-in text.
func readTemplate(dir, name string) ([]byte, error) {
	if dir != "" {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
	}
	return defaults.ReadFile(name)
}

// newFunctions returns the functions for templates.
func newFunctions() template.FuncMap {
	return template.FuncMap{
		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSpace(string(text)), err
		},
		// quote joins its arguments into one quoted string: a name such as 123
		// would be a number otherwise.
		"quote": func(parts ...string) string { return strconv.Quote(strings.Join(parts, "")) },
		"indent": func(n int, text string) string {
			pad := strings.Repeat(" ", n)
			return pad + strings.ReplaceAll(text, "\n", "\n"+pad)
		},
	}
}

// Render renders the object of a kind. Errors wrap ErrInvalid.
func (s *Set) Render(kind string, data Data) (*unstructured.Unstructured, error) {
	var text bytes.Buffer
	if err := s.parsed[kind].Execute(&text, data); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(text.Bytes(), &object.Object); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrInvalid, templateFiles[kind], err)
	}
	if err := checkObject(kind, object, data); err != nil {
		return nil, err
	}
	if kind == "Subscription" && data.Subscription != "" {
		object.SetName(data.Subscription)
	}
	sum := sha256.Sum256(text.Bytes())
	addMarks(object, data, hex.EncodeToString(sum[:]))
	return object, nil
}

// checkObject returns an error if a template rendered an object with another kind, namespace or name, because
// Bellwether would not find such an object again. A template must render the Subscription with the name of the
// package. Render then sets the name of an adopted Subscription.
func checkObject(kind string, object *unstructured.Unstructured, data Data) error {
	namespace, name := data.Namespace, ""
	switch kind {
	case "Namespace":
		namespace, name = "", data.Namespace
	case "Subscription":
		name = data.Package
	case "CatalogSource":
		name = "bellwether-" + data.Package
	}
	switch {
	case object.GetKind() != kind:
		return fmt.Errorf("%w %s: it renders a %q, not a %s", ErrInvalid, templateFiles[kind], object.GetKind(), kind)
	case object.GetNamespace() != namespace:
		return fmt.Errorf("%w %s: metadata.namespace must be %q, not %q", ErrInvalid, templateFiles[kind], namespace,
			object.GetNamespace())
	case kind == "Subscription" && data.Subscription != "" && object.GetName() == data.Subscription:
		return nil // the template uses the name of the adopted Subscription itself
	case name != "" && object.GetName() != name, object.GetName() == "":
		return fmt.Errorf("%w %s: metadata.name must be %q, not %q", ErrInvalid, templateFiles[kind], name,
			object.GetName())
	}
	return nil
}

// addMarks adds the labels by which Bellwether finds an object, and the hash of the rendered text.
func addMarks(object *unstructured.Unstructured, data Data, hash string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, v1alpha1.OperatorReference{Namespace: data.OperatorNamespace,
		Name: data.Operator}.ManagedLabels())
	object.SetLabels(labels)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationSpecHash] = hash
	object.SetAnnotations(annotations)
}

// InSync reports whether a live object matches the rendered object: the hashes are equal, and all fields that the
// template sets have their values.
func InSync(rendered, live *unstructured.Unstructured) bool {
	hash := rendered.GetAnnotations()[v1alpha1.AnnotationSpecHash]
	return live.GetAnnotations()[v1alpha1.AnnotationSpecHash] == hash && hasFields(live.Object, rendered.Object)
}

// hasFields reports whether live has every field of want with an equal value. Lists must be equal as a whole.
func hasFields(live, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		return hasMapFields(live, want)
	case []any:
		live, ok := live.([]any)
		return ok && slices.EqualFunc(live, want, hasFields)
	default:
		return isEqualScalar(live, want)
	}
}

// hasMapFields reports whether live is a map with every field of want. A missing value is the same as an empty map.
func hasMapFields(live any, want map[string]any) bool {
	fields, ok := live.(map[string]any)
	if !ok {
		return len(want) == 0 && live == nil
	}
	for key, value := range want {
		if !hasFields(fields[key], value) {
			return false
		}
	}
	return true
}

// isEqualScalar compares numbers by value, because YAML decodes 1 to another type than JSON does.
func isEqualScalar(live, want any) bool {
	return live == want || fmt.Sprint(live) == fmt.Sprint(want)
}
