// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift compares what OLM installed with the bundle as it is configured:
// the ClusterServiceVersion, and the Deployments that OLM made from it. Only
// fields that the bundle sets are compared, so what the API server defaults and
// what OLM adds is no drift. It is pure.
package drift

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

// Expected is what a bundle sets. It holds a hash for each field, because a CSV
// has hundreds of kilobytes and an agent keeps one for each operator.
type Expected struct {
	// Bundle is the name of the CSV.
	Bundle string
	// Replicas are what the bundle asks for, by Deployment.
	Replicas map[string]int32

	csv         map[string]uint64
	deployments map[string]map[string]uint64
}

// Read returns what a bundle's CSV sets, with the configuration that OLM applies
// to its Deployments.
func Read(csv *operatorsv1alpha1.ClusterServiceVersion, config *v1alpha1.OperatorConfig) (*Expected, error) {
	e := &Expected{Bundle: csv.Name, Replicas: map[string]int32{}, deployments: map[string]map[string]uint64{}}
	var err error
	if e.csv, err = csvFields(csv); err != nil {
		return nil, err
	}
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		spec := *d.Spec.DeepCopy()
		e.Replicas[d.Name] = replicasOf(spec.Replicas)
		configure(&spec.Template.Spec, config)
		fields, err := fieldsOf("spec", spec)
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(fields, func(path string, _ uint64) bool { return isOfOLM(path, csv.Annotations) })
		e.deployments[d.Name] = fields
	}
	return e, nil
}

// Field is a field of an object that OLM installed.
type Field struct {
	Kind, Name string
	// Path starts with "spec"; elements of lists are named by their keys.
	Path string
}

func (f Field) String() string { return f.Kind + " " + f.Name + " " + f.Path }

// The kinds that are compared.
const (
	KindCSV        = operatorsv1alpha1.ClusterServiceVersionKind
	KindDeployment = "Deployment"
)

// CSV returns the fields of a live CSV that differ, sorted.
func (e *Expected) CSV(live *operatorsv1alpha1.ClusterServiceVersion) ([]Field, error) {
	fields, err := csvFields(live)
	if err != nil {
		return nil, err
	}
	return differing(KindCSV, live.Name, e.csv, fields), nil
}

// Deployment returns the fields of a live Deployment that differ, sorted. Where
// an autoscaler sets its replicas those are left out.
func (e *Expected) Deployment(live *appsv1.Deployment, autoscaled bool) ([]Field, error) {
	fields, err := fieldsOf("spec", live.Spec)
	if err != nil {
		return nil, err
	}
	expected := e.deployments[live.Name]
	if autoscaled {
		expected = maps.Clone(expected)
		delete(expected, "spec.replicas")
	}
	return differing(KindDeployment, live.Name, expected, fields), nil
}

func differing(kind, name string, expected, live map[string]uint64) []Field {
	var out []Field
	for path, hash := range expected {
		if live[path] != hash {
			out = append(out, Field{Kind: kind, Name: name, Path: path})
		}
	}
	slices.SortFunc(out, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// isOfOLM tells whether OLM sets a field of a Deployment to a value of its own:
// the certificates that it mounts, the annotations of the CSV, and how many old
// ReplicaSets are kept.
func isOfOLM(path string, csvAnnotations map[string]string) bool {
	const annotations = "spec.template.metadata.annotations."
	if key, ok := strings.CutPrefix(path, annotations); ok {
		_, ok := csvAnnotations[key]
		return ok
	}
	return path == "spec.revisionHistoryLimit" || strings.Contains(path, "[apiservice-cert]") ||
		strings.Contains(path, "[webhook-cert]")
}

// configure applies a configuration as OLM does: environment variables are set by
// name and resources are replaced in every container, the node selector is
// replaced, and tolerations are added.
func configure(pod *corev1.PodSpec, config *v1alpha1.OperatorConfig) {
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

func replicasOf(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// csvFields returns the fields of a CSV's spec without spec.replaces, which the
// agent changes.
func csvFields(csv *operatorsv1alpha1.ClusterServiceVersion) (map[string]uint64, error) {
	fields, err := fieldsOf("spec", csv.Spec)
	delete(fields, "spec.replaces")
	return fields, err
}

// wholes are the fields of a CSV that are compared as one, because they are large.
var wholes = []string{"spec.customresourcedefinitions", "spec.description", "spec.icon",
	"spec.install.spec.permissions", "spec.install.spec.clusterPermissions"}

// fieldsOf returns a hash for each field that is set, by its path.
func fieldsOf(path string, object any) (map[string]uint64, error) {
	value, err := plain(object)
	if err != nil {
		return nil, err
	}
	fields := map[string]uint64{}
	return fields, addFields(fields, path, value)
}

// plain returns an object as maps, lists and scalars.
func plain(object any) (any, error) {
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

func addFields(fields map[string]uint64, path string, value any) error {
	if value == nil {
		return nil
	}
	parts, ok := partsOf(path, value)
	if !ok {
		return addHash(fields, path, value)
	}
	for part, v := range parts {
		if err := addFields(fields, part, v); err != nil {
			return err
		}
	}
	return nil
}

// partsOf returns the parts of a value by their paths, unless it is compared as
// one.
func partsOf(path string, value any) (map[string]any, bool) {
	if slices.Contains(wholes, path) {
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
		keys, ok := keysOf(value)
		for i, key := range keys {
			parts[path+"["+key+"]"] = value[i]
		}
		return parts, ok
	}
	return nil, false
}

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

// keysOf returns what tells the elements of a list apart: the field of theirs
// that is unique, or else their place. Lists of scalars have no keys.
func keysOf(list []any) ([]string, bool) {
	for _, field := range []string{"name", "mountPath", "generateName"} {
		if keys := uniqueKeys(list, field); keys != nil {
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

func uniqueKeys(list []any, field string) []string {
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
