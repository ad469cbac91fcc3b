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

// Setting is one of the settings that an operator is installed with, under a name for people.
type Setting struct {
	// Name is for example "namespace", or "environment variable LEVEL".
	Name string
	// Value has every default filled in: two settings are equal if their names and values are.
	Value string
	// Text is the value in a form that may be shown. It is empty for a value that may be secret, and if the name
	// says everything.
	Text string
}

// Settings returns the settings that the operator is installed with, sorted by name. They do not include the version
// and the origin of the bundle: package, bundle, channel, catalog and the keys that signed it. The order of lists
// does not matter, and a default is the same whether it is set or not.
func (r Release) Settings() []Setting {
	mode := string(cmp.Or(r.Install.Mode, InstallAllNamespaces))
	all := []Setting{newShownSetting("namespace", r.TargetNamespace()), newShownSetting("install mode", mode)}
	if c := r.Install.Config; c != nil {
		for _, e := range c.Env {
			all = append(all, Setting{Name: "environment variable " + e.Name, Value: encodeEnvValue(e)})
		}
		for key, value := range c.NodeSelector {
			all = append(all, newShownSetting("node selector "+key, value))
		}
		for _, t := range c.Tolerations {
			all = append(all, newTolerationSetting(t))
		}
		all = append(all, listResourceSettings(c.Resources)...)
	}
	slices.SortFunc(all, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	return slices.CompactFunc(all, func(a, b Setting) bool { return a.Name == b.Name && a.Value == b.Value })
}

// SettingsHash returns a hash of the Settings of a release.
func (r Release) SettingsHash() string {
	var pairs [][2]string
	for _, s := range r.Settings() {
		pairs = append(pairs, [2]string{s.Name, s.Value})
	}
	sum := sha256.Sum256([]byte(encode(pairs)))
	return hex.EncodeToString(sum[:])
}

// newShownSetting returns a setting whose value may be shown.
func newShownSetting(name, value string) Setting {
	return Setting{Name: name, Value: value, Text: cmp.Or(value, `""`)}
}

// encode returns a value as JSON.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal settings: %v", err))
	}
	return string(text)
}

// encodeEnvValue returns the value of a variable, or the source that it is read from, as JSON with the defaults
// of Kubernetes.
func encodeEnvValue(e corev1.EnvVar) string {
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
		r.Divisor = resource.MustParse(normalizeQuantity(r.Divisor))
	}
	if r := from.ConfigMapKeyRef; r != nil {
		r.Optional = dropFalse(r.Optional)
	}
	if r := from.SecretKeyRef; r != nil {
		r.Optional = dropFalse(r.Optional)
	}
	if r := from.FileKeyRef; r != nil {
		r.Optional = dropFalse(r.Optional)
	}
	return encode(e)
}

// dropFalse returns nil for false, which is the default, and v otherwise.
func dropFalse(v *bool) *bool {
	if v == nil || !*v {
		return nil
	}
	return v
}

// newTolerationSetting returns the setting for a toleration.
func newTolerationSetting(t corev1.Toleration) Setting {
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

// listResourceSettings returns the settings for the resources of the operator's containers. Kubernetes uses a limit
// as the request if there is no request. OLM replaces the resources of a bundle as soon as the resources are set, so
// empty resources are a setting too.
func listResourceSettings(r *corev1.ResourceRequirements) []Setting {
	if r == nil {
		return nil
	}
	all := []Setting{{Name: "resources in place of the bundle's", Value: "true"}}
	requests := r.Requests.DeepCopy()
	for name, limit := range r.Limits {
		all = append(all, newQuantitySetting("limit of "+string(name), limit))
		if _, ok := requests[name]; !ok {
			all = append(all, newQuantitySetting("request of "+string(name), limit))
		}
	}
	for name, request := range requests {
		all = append(all, newQuantitySetting("request of "+string(name), request))
	}
	for _, c := range r.Claims {
		name := strings.TrimSpace("resource claim " + c.Name + " " + c.Request)
		all = append(all, Setting{Name: name, Value: encode(c)})
	}
	return all
}

// newQuantitySetting returns the setting for a quantity.
func newQuantitySetting(name string, q resource.Quantity) Setting {
	return Setting{Name: name, Value: normalizeQuantity(q), Text: q.String()}
}

// normalizeQuantity returns a quantity in one form for equal quantities: 1000m is 1, and 1Ki is 1024.
func normalizeQuantity(q resource.Quantity) string {
	var sum resource.Quantity
	sum.Add(q)
	sum.Format = resource.DecimalSI
	return sum.String()
}
