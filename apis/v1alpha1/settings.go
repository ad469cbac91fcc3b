// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Setting is one of the settings that an operator is installed with, under the name by which people know it.
type Setting struct {
	// Name is such as "namespace", or "environment variable LEVEL".
	Name string
	// Value has every default filled in: settings are equal where their names and values are.
	Value string
	// Text is the value as it may be shown. It is empty for what may be secret, and where the name says it all.
	Text string
}

// Settings returns what the operator is installed with, sorted by name. The version is not among them, nor is where
// the bundle comes from: package, bundle, channel, catalog and the keys that have signed it. The order of lists does
// not count, and a default counts the same whether it is written or left out.
func (r Release) Settings() []Setting {
	mode := string(cmp.Or(r.Install.Mode, InstallAllNamespaces))
	all := []Setting{shown("namespace", r.TargetNamespace()), shown("install mode", mode)}
	if c := r.Install.Config; c != nil {
		for _, e := range c.Env {
			all = append(all, Setting{Name: "environment variable " + e.Name, Value: envValue(e)})
		}
		for key, value := range c.NodeSelector {
			all = append(all, shown("node selector "+key, value))
		}
		for _, t := range c.Tolerations {
			all = append(all, toleration(t))
		}
		all = append(all, resources(c.Resources)...)
	}
	slices.SortFunc(all, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	return slices.CompactFunc(all, func(a, b Setting) bool { return a.Name == b.Name && a.Value == b.Value })
}

// SettingsHash identifies the Settings of a release.
func (r Release) SettingsHash() string {
	var pairs [][2]string
	for _, s := range r.Settings() {
		pairs = append(pairs, [2]string{s.Name, s.Value})
	}
	sum := sha256.Sum256([]byte(encode(pairs)))
	return hex.EncodeToString(sum[:])
}

func shown(name, value string) Setting {
	return Setting{Name: name, Value: value, Text: cmp.Or(value, `""`)}
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal settings: %v", err))
	}
	return string(text)
}

// envValue is the value of a variable, or where it is read from, with the defaults of Kubernetes.
func envValue(e corev1.EnvVar) string {
	e = *e.DeepCopy()
	e.Name = ""
	from := e.ValueFrom
	if from == nil {
		return encode(e)
	}
	if r := from.FieldRef; r != nil {
		r.APIVersion = cmp.Or(r.APIVersion, "v1")
	}
	if r := from.ResourceFieldRef; r != nil {
		if r.Divisor.IsZero() {
			r.Divisor = resource.MustParse("1")
		}
		r.Divisor = resource.MustParse(plain(r.Divisor))
	}
	if r := from.ConfigMapKeyRef; r != nil {
		r.Optional = onlyTrue(r.Optional)
	}
	if r := from.SecretKeyRef; r != nil {
		r.Optional = onlyTrue(r.Optional)
	}
	if r := from.FileKeyRef; r != nil {
		r.Optional = onlyTrue(r.Optional)
	}
	return encode(e)
}

// onlyTrue is nil where a value is false, which is the default.
func onlyTrue(v *bool) *bool {
	if v == nil || !*v {
		return nil
	}
	return v
}

func toleration(t corev1.Toleration) Setting {
	t.Operator = cmp.Or(t.Operator, corev1.TolerationOpEqual)
	taint := cmp.Or(t.Key, "any taint")
	switch t.Operator {
	case corev1.TolerationOpExists:
	case corev1.TolerationOpEqual:
		taint += "=" + t.Value
	default:
		taint += fmt.Sprintf(" %s %s", t.Operator, t.Value)
	}
	if t.Effect != "" {
		taint += ":" + string(t.Effect)
	}
	if t.TolerationSeconds != nil {
		taint += fmt.Sprintf(" for %ds", *t.TolerationSeconds)
	}
	return Setting{Name: "toleration of " + taint, Value: encode(t)}
}

// resources are those of the operator's containers. Kubernetes takes a limit as the request where there is none. OLM
// replaces the resources of a bundle as soon as there are any, so none at all is a setting too.
func resources(r *corev1.ResourceRequirements) []Setting {
	if r == nil {
		return nil
	}
	all := []Setting{{Name: "resources in place of the bundle's", Value: "true"}}
	requests := r.Requests.DeepCopy()
	for name, limit := range r.Limits {
		all = append(all, quantity("limit of "+string(name), limit))
		if _, ok := requests[name]; !ok {
			all = append(all, quantity("request of "+string(name), limit))
		}
	}
	for name, request := range requests {
		all = append(all, quantity("request of "+string(name), request))
	}
	for _, c := range r.Claims {
		name := strings.TrimSpace("resource claim " + c.Name + " " + c.Request)
		all = append(all, Setting{Name: name, Value: encode(c)})
	}
	return all
}

func quantity(name string, q resource.Quantity) Setting {
	return Setting{Name: name, Value: plain(q), Text: q.String()}
}

// plain is a quantity without the form in which it was written: 1000m is 1, and 1Ki is 1024.
func plain(q resource.Quantity) string {
	var sum resource.Quantity
	sum.Add(q)
	sum.Format = resource.DecimalSI
	return sum.String()
}
