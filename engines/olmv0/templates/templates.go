// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package templates renders the objects that the agent creates on a fleet
// cluster. Each comes from a template that the user may replace; Bellwether
// adds the labels it finds them by and the hash of the rendered text.
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

// Kinds that have a template, and the file that holds it.
var files = map[string]string{
	"Namespace":     "namespace.yaml",
	"OperatorGroup": "operatorgroup.yaml",
	"CatalogSource": "catalogsource.yaml",
	"Subscription":  "subscription.yaml",
}

// ErrInvalid says that a template does not render to the object that it is for.
var ErrInvalid = errors.New("invalid template")

// Data is what a template may use.
type Data struct {
	// Cluster, Operator and OperatorNamespace name the FleetCluster and the
	// ManagedOperator on the hub.
	Cluster, Operator, OperatorNamespace string
	// Namespace is the one that the operator is installed into.
	Namespace string
	Package   string
	Channel   string
	Version   string
	// Subscription is the name of the operator's Subscription: that of the package, or
	// that of one that was adopted. Empty: that of the package.
	Subscription string
	Mode         v1alpha1.InstallMode
	// Config is nil where nothing is configured.
	Config *v1alpha1.OperatorConfig
	// ViewAddress is the catalog view's host:port.
	ViewAddress string
}

// Set is a complete set of templates.
type Set struct {
	parsed map[string]*template.Template
}

// Load reads the templates: the built-in ones, each replaced by the file of
// the same name in dir where there is one. An empty dir means the built-in
// ones. The files are namespace.yaml, operatorgroup.yaml, catalogsource.yaml
// and subscription.yaml.
func Load(dir string) (*Set, error) {
	set := &Set{parsed: map[string]*template.Template{}}
	for kind, name := range files {
		text, err := read(dir, name)
		if err != nil {
			return nil, err
		}
		parsed, err := template.New(name).Option("missingkey=error").Funcs(functions()).Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		set.parsed[kind] = parsed
	}
	return set, nil
}

func read(dir, name string) ([]byte, error) {
	if dir != "" {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
	}
	return defaults.ReadFile(name)
}

func functions() template.FuncMap {
	return template.FuncMap{
		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSpace(string(text)), err
		},
		// quote joins its arguments to one quoted string: a name such as 123
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
		return nil, fmt.Errorf("%w %s: %w", ErrInvalid, files[kind], err)
	}
	if err := check(kind, object, data); err != nil {
		return nil, err
	}
	if kind == "Subscription" && data.Subscription != "" {
		object.SetName(data.Subscription)
	}
	sum := sha256.Sum256(text.Bytes())
	mark(object, data, hex.EncodeToString(sum[:]))
	return object, nil
}

// check holds a template to the object that it is for: Bellwether would not
// find another one again. A Subscription has the name of the package, also where one of another name was adopted: that
// name is set afterwards, so that templates need not know of it.
func check(kind string, object *unstructured.Unstructured, data Data) error {
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
		return fmt.Errorf("%w %s: it renders a %q, not a %s", ErrInvalid, files[kind], object.GetKind(), kind)
	case object.GetNamespace() != namespace:
		return fmt.Errorf("%w %s: metadata.namespace must be %q, not %q", ErrInvalid, files[kind], namespace,
			object.GetNamespace())
	case kind == "Subscription" && data.Subscription != "" && object.GetName() == data.Subscription:
		return nil
	case name != "" && object.GetName() != name, object.GetName() == "":
		return fmt.Errorf("%w %s: metadata.name must be %q, not %q", ErrInvalid, files[kind], name, object.GetName())
	}
	return nil
}

func mark(object *unstructured.Unstructured, data Data, hash string) {
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

// InSync tells whether a live object is as rendered: its hash is equal and
// nothing that the template sets was changed since.
func InSync(rendered, live *unstructured.Unstructured) bool {
	hash := rendered.GetAnnotations()[v1alpha1.AnnotationSpecHash]
	return live.GetAnnotations()[v1alpha1.AnnotationSpecHash] == hash && covers(live.Object, rendered.Object)
}

// covers tells whether live has every field of want with an equal value. Lists
// are compared as wholes.
func covers(live, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		return coversMap(live, want)
	case []any:
		live, ok := live.([]any)
		return ok && slices.EqualFunc(live, want, covers)
	default:
		return equalScalar(live, want)
	}
}

func coversMap(live any, want map[string]any) bool {
	fields, ok := live.(map[string]any)
	if !ok {
		return len(want) == 0 && live == nil
	}
	for key, value := range want {
		if !covers(fields[key], value) {
			return false
		}
	}
	return true
}

// equalScalar compares numbers by value: YAML reads 1 as another type than a
// live object's JSON.
func equalScalar(live, want any) bool {
	return live == want || fmt.Sprint(live) == fmt.Sprint(want)
}
