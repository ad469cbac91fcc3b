// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ExpectedFields has the fields that a bundle sets in the objects that OLM installs: the ClusterServiceVersion, and the
// Deployments that OLM makes from it. Only these fields are compared, so defaults of the API server and additions of
// OLM are not drift. It has a hash for each field, because a CSV has hundreds of kilobytes and an agent keeps one
// ExpectedFields for each operator.
type ExpectedFields struct {
	// Bundle is the name of the CSV.
	Bundle string
	// Replicas are the replicas that the bundle sets, by Deployment.
	Replicas map[string]int32

	csv         map[string]uint64
	deployments map[string]map[string]uint64
}

// ReadExpectedFields returns the fields that a bundle's CSV and its Deployments set, without the fields of
// Deployments that OLM sets. config is the configuration that OLM applies to the Deployments.
func ReadExpectedFields(csv *operatorsv1alpha1.ClusterServiceVersion,
	config *v1alpha1.OperatorConfig) (*ExpectedFields, error) {
	e := &ExpectedFields{Bundle: csv.Name, Replicas: map[string]int32{}, deployments: map[string]map[string]uint64{}}
	var err error
	if e.csv, err = hashCSVFields(csv); err != nil {
		return nil, err
	}
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		spec := *d.Spec.DeepCopy()
		e.Replicas[d.Name] = countReplicas(spec.Replicas)
		applyConfig(&spec.Template.Spec, config)
		fields, err := hashFields("spec", spec)
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(fields, func(path string, _ uint64) bool { return isSetByOLM(path, csv.Annotations) })
		e.deployments[d.Name] = fields
	}
	return e, nil
}

// DriftField is a field of an object that OLM installed.
type DriftField struct {
	Kind, Name string
	// Path starts with "spec"; elements of lists are named by their keys.
	Path string
}

// String returns the kind, the name and the path.
func (f DriftField) String() string { return f.Kind + " " + f.Name + " " + f.Path }

// CompareCSV returns the fields that the bundle sets and that differ in a live CSV, sorted.
func (e *ExpectedFields) CompareCSV(live *operatorsv1alpha1.ClusterServiceVersion) ([]DriftField, error) {
	fields, err := hashCSVFields(live)
	if err != nil {
		return nil, err
	}
	return listDiffering(KindCSV, live.Name, e.csv, fields), nil
}

// CompareDeployment returns the differing fields of a live Deployment, sorted. It leaves out the replicas if an
// autoscaler sets them.
func (e *ExpectedFields) CompareDeployment(live *appsv1.Deployment, autoscaled bool) ([]DriftField, error) {
	fields, err := hashFields("spec", live.Spec)
	if err != nil {
		return nil, err
	}
	expected := e.deployments[live.Name]
	if autoscaled {
		expected = maps.Clone(expected)
		delete(expected, "spec.replicas")
	}
	return listDiffering(KindDeployment, live.Name, expected, fields), nil
}

// listDiffering returns the expected fields whose hash in the live object differs, sorted.
func listDiffering(kind, name string, expected, live map[string]uint64) []DriftField {
	var out []DriftField
	for path, hash := range expected {
		if live[path] != hash {
			out = append(out, DriftField{Kind: kind, Name: name, Path: path})
		}
	}
	slices.SortFunc(out, func(a, b DriftField) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// isSetByOLM reports whether OLM sets a field of a Deployment itself: mounted certificates, the annotations of the
// CSV, and the number of old ReplicaSets.
func isSetByOLM(path string, csvAnnotations map[string]string) bool {
	const annotations = "spec.template.metadata.annotations."
	if key, ok := strings.CutPrefix(path, annotations); ok {
		_, ok := csvAnnotations[key]
		return ok
	}
	return path == "spec.revisionHistoryLimit" || strings.Contains(path, "[apiservice-cert]") ||
		strings.Contains(path, "[webhook-cert]")
}

// applyConfig applies a configuration to a pod as OLM does: it sets environment variables by name and replaces the
// resources in every container, replaces the node selector, and adds tolerations.
func applyConfig(pod *corev1.PodSpec, config *v1alpha1.OperatorConfig) {
	if config == nil {
		return
	}
	for i := range pod.Containers {
		c := &pod.Containers[i]
		for _, variable := range config.Env {
			c.Env = append(slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == variable.Name }),
				variable)
		}
		if config.Resources != nil {
			c.Resources = *config.Resources
		}
	}
	if config.NodeSelector != nil {
		pod.NodeSelector = config.NodeSelector
	}
	for _, toleration := range config.Tolerations {
		if !slices.ContainsFunc(pod.Tolerations, func(have corev1.Toleration) bool {
			return equality.Semantic.DeepEqual(have, toleration)
		}) {
			pod.Tolerations = append(pod.Tolerations, toleration)
		}
	}
}

// hashCSVFields returns the hashes of the fields of a CSV's spec. It leaves out spec.replaces, which the
// agent changes.
func hashCSVFields(csv *operatorsv1alpha1.ClusterServiceVersion) (map[string]uint64, error) {
	fields, err := hashFields("spec", csv.Spec)
	delete(fields, "spec.replaces")
	return fields, err
}

// wholeFields are the large fields of a CSV that are compared as a whole.
var wholeFields = []string{"spec.customresourcedefinitions", "spec.description", "spec.icon",
	"spec.install.spec.permissions", "spec.install.spec.clusterPermissions"}

// hashFields returns a hash for each set field of an object, by the path of the field.
func hashFields(path string, object any) (map[string]uint64, error) {
	value, err := toPlain(object)
	if err != nil {
		return nil, err
	}
	fields := map[string]uint64{}
	return fields, addFieldHashes(fields, path, value)
}

// toPlain converts an object to maps, lists and scalars.
func toPlain(object any) (any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("decode %T: %w", object, err)
	}
	return value, nil
}

// addFieldHashes adds the hash of a value, or of each of its parts, by path. A null is the same as a missing field.
func addFieldHashes(fields map[string]uint64, path string, value any) error {
	if value == nil {
		return nil
	}
	parts, ok := splitValue(path, value)
	if !ok {
		return addHash(fields, path, value)
	}
	for part, v := range parts {
		if err := addFieldHashes(fields, part, v); err != nil {
			return err
		}
	}
	return nil
}

// splitValue returns the parts of a value by their paths; false if the value is compared as a whole.
func splitValue(path string, value any) (map[string]any, bool) {
	if slices.Contains(wholeFields, path) {
		return nil, false
	}
	parts := map[string]any{}
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			parts[path+"."+key] = v
		}
		return parts, true
	case []any:
		keys, ok := findKeys(value)
		for i, key := range keys {
			parts[path+"["+key+"]"] = value[i]
		}
		return parts, ok
	}
	return nil, false
}

// addHash adds the hash of a value that is compared as a whole.
func addHash(fields map[string]uint64, path string, value any) error {
	text, err := json.Marshal(value) // the keys of maps are sorted
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	hash := fnv.New64a()
	_, _ = hash.Write(text)
	fields[path] = hash.Sum64()
	return nil
}

// findKeys returns a key for each element of a list: the first of name, mountPath and generateName that is unique in
// the list, or else the index. It returns false for an empty list and a list of scalars.
func findKeys(list []any) ([]string, bool) {
	for _, field := range []string{"name", "mountPath", "generateName"} {
		if keys := findUniqueKeys(list, field); keys != nil {
			return keys, true
		}
	}
	keys := make([]string, len(list))
	for i, element := range list {
		if _, ok := element.(map[string]any); !ok {
			return nil, false
		}
		keys[i] = fmt.Sprint(i)
	}
	return keys, len(list) > 0
}

// findUniqueKeys returns the values of a field of all elements; nil if an element lacks the field or a value repeats.
func findUniqueKeys(list []any, field string) []string {
	var keys []string
	for _, element := range list {
		object, _ := element.(map[string]any)
		key, ok := object[field].(string)
		if !ok || slices.Contains(keys, key) {
			return nil
		}
		keys = append(keys, key)
	}
	return keys
}
