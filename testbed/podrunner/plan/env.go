// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan holds what the pod runner decides without touching anything:
// a container's environment and command, where its mounts are, when it is
// started again, and what the pod's status says. No client, no clock, no logger.
package plan

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ErrConfig marks what a pod's author has to put right: a reference to
// something that does not exist or that the testbed does not know.
var ErrConfig = errors.New("container configuration")

// Var is one environment variable.
type Var struct{ Name, Value string }

// Sources are the objects that a container's environment may refer to, by name.
// A missing object has no entry.
type Sources struct {
	Secrets    map[string]map[string][]byte
	ConfigMaps map[string]map[string]string
}

// References returns the names of the Secrets and the ConfigMaps that the
// environment of c refers to, sorted.
func References(c *corev1.Container) (secrets, configMaps []string) {
	s, m := map[string]bool{}, map[string]bool{}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil {
			s[from.SecretRef.Name] = true
		}
		if from.ConfigMapRef != nil {
			m[from.ConfigMapRef.Name] = true
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			s[ref.Name] = true
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			m[ref.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(s)), slices.Sorted(maps.Keys(m))
}

// Environment returns the variables of c in the order in which Kubernetes
// defines them: envFrom first, then env, each name once. $(NAME) in a value
// refers to the variables before it. The pod must have its address in status.
// Errors wrap ErrConfig.
func Environment(pod *corev1.Pod, c *corev1.Container, src Sources) ([]Var, error) {
	e := environment{values: map[string]string{}}
	for _, from := range c.EnvFrom {
		if err := e.addAll(from, src); err != nil {
			return nil, err
		}
	}
	for _, v := range c.Env {
		value, ok, err := resolve(pod, c, v, src)
		if err != nil {
			return nil, fmt.Errorf("%w: variable %s: %w", ErrConfig, v.Name, err)
		}
		if ok {
			if v.ValueFrom == nil {
				value = Expand(value, e.values)
			}
			e.set(v.Name, value)
		}
	}
	return e.vars(), nil
}

type environment struct {
	order  []string
	values map[string]string
}

func (e *environment) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.order = append(e.order, name)
	}
	e.values[name] = value
}

func (e *environment) vars() []Var {
	vars := make([]Var, 0, len(e.order))
	for _, name := range e.order {
		vars = append(vars, Var{name, e.values[name]})
	}
	return vars
}

func (e *environment) addAll(from corev1.EnvFromSource, src Sources) error {
	data := map[string]string{}
	switch {
	case from.ConfigMapRef != nil:
		found, ok := src.ConfigMaps[from.ConfigMapRef.Name]
		if !ok && !isTrue(from.ConfigMapRef.Optional) {
			return fmt.Errorf("%w: configmap %q not found", ErrConfig, from.ConfigMapRef.Name)
		}
		data = found
	case from.SecretRef != nil:
		found, ok := src.Secrets[from.SecretRef.Name]
		if !ok && !isTrue(from.SecretRef.Optional) {
			return fmt.Errorf("%w: secret %q not found", ErrConfig, from.SecretRef.Name)
		}
		for k, v := range found {
			data[k] = string(v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		e.set(from.Prefix+name, data[name])
	}
	return nil
}

// resolve returns the value of v; ok is false where an optional source is missing.
func resolve(pod *corev1.Pod, c *corev1.Container, v corev1.EnvVar, src Sources) (value string, ok bool, err error) {
	from := v.ValueFrom
	switch {
	case from == nil:
		return v.Value, true, nil
	case from.FieldRef != nil:
		value, err = Field(pod, from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err = resourceField(c, from.ResourceFieldRef)
		return value, err == nil, err
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		data, found := src.Secrets[ref.Name][ref.Key]
		if !found && !isTrue(ref.Optional) {
			return "", false, fmt.Errorf("key %q of secret %q not found", ref.Key, ref.Name)
		}
		return string(data), found, nil
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		data, found := src.ConfigMaps[ref.Name][ref.Key]
		if !found && !isTrue(ref.Optional) {
			return "", false, fmt.Errorf("key %q of configmap %q not found", ref.Key, ref.Name)
		}
		return data, found, nil
	default:
		return "", false, errors.New("source is not supported by the pod runner")
	}
}

// Field returns a field of pod as the downward API names it.
func Field(pod *corev1.Pod, path string) (string, error) {
	if name, key, ok := strings.Cut(path, "['"); ok {
		key = strings.TrimSuffix(key, "']")
		switch name {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
	}
	fields := map[string]func() string{
		"metadata.name":           func() string { return pod.Name },
		"metadata.namespace":      func() string { return pod.Namespace },
		"metadata.uid":            func() string { return string(pod.UID) },
		"metadata.labels":         func() string { return keyValues(pod.Labels) },
		"metadata.annotations":    func() string { return keyValues(pod.Annotations) },
		"spec.nodeName":           func() string { return pod.Spec.NodeName },
		"spec.serviceAccountName": func() string { return pod.Spec.ServiceAccountName },
		"status.hostIP":           func() string { return pod.Status.HostIP },
		"status.hostIPs":          func() string { return pod.Status.HostIP },
		"status.podIP":            func() string { return pod.Status.PodIP },
		"status.podIPs":           func() string { return pod.Status.PodIP },
	}
	f, ok := fields[path]
	if !ok {
		return "", fmt.Errorf("field %q is not known", path)
	}
	return f(), nil
}

// keyValues formats labels as the downward API does: one key="value" a line.
func keyValues(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, k+"="+strconv.Quote(m[k]))
	}
	return strings.Join(lines, "\n")
}

// resourceField returns a limit or request in units of the divisor, rounded
// up; 0 where there is none, since the testbed bounds nothing.
func resourceField(c *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	lists := map[string]corev1.ResourceList{"limits": c.Resources.Limits, "requests": c.Resources.Requests}
	list, ok := lists[kind]
	if !ok {
		return "", fmt.Errorf("resource %q is not known", ref.Resource)
	}
	quantity := list[corev1.ResourceName(name)]
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	return ceilDiv(quantity, divisor), nil
}

func ceilDiv(a, b resource.Quantity) string {
	q := new(big.Rat).Quo(rational(a), rational(b))
	n, rest := new(big.Int).QuoRem(q.Num(), q.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	return n.String()
}

func rational(q resource.Quantity) *big.Rat {
	r, ok := new(big.Rat).SetString(q.AsDec().String())
	if !ok {
		return new(big.Rat)
	}
	return r
}

func isTrue(b *bool) bool { return b != nil && *b }
