// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// endsAHold says for every field of a release whether a release with another value is not covered by a hold
// of settings.
var endsAHold = map[string]bool{
	"Version": true,
	// The source of the bundle is not a setting.
	"Package": false, "Channel": false, "Bundle": false, "Catalog.Digest": false, "Catalog.PublicKeys[]": false,
	"Catalog.Source.Image": false, "Catalog.Source.Directory": false, "Catalog.Source.Insecure": false,
	"Catalog.Source.PullSecret": false,
	// How others' installs are taken over. With AsInstalled a release has no version, and no hold of one covers it.
	"Adopt.Accept[]": false, "AsInstalled": false,

	"Install.Namespace": true, "Install.Mode": true,
	"Install.Config.NodeSelector{key}": true, "Install.Config.NodeSelector{}": true,
	"Install.Config.Tolerations[].Key": true, "Install.Config.Tolerations[].Operator": true,
	"Install.Config.Tolerations[].Value": true, "Install.Config.Tolerations[].Effect": true,
	"Install.Config.Tolerations[].TolerationSeconds": true,
	"Install.Config.Resources.Limits{key}":           true, "Install.Config.Resources.Limits{}": true,
	"Install.Config.Resources.Requests{key}": true, "Install.Config.Resources.Requests{}": true,
	"Install.Config.Resources.Claims[].Name": true, "Install.Config.Resources.Claims[].Request": true,
	"Install.Config.Env[].Name": true, "Install.Config.Env[].Value": true,
	"Install.Config.Env[].ValueFrom.FieldRef.APIVersion":                       true,
	"Install.Config.Env[].ValueFrom.FieldRef.FieldPath":                        true,
	"Install.Config.Env[].ValueFrom.ResourceFieldRef.ContainerName":            true,
	"Install.Config.Env[].ValueFrom.ResourceFieldRef.Resource":                 true,
	"Install.Config.Env[].ValueFrom.ResourceFieldRef.Divisor":                  true,
	"Install.Config.Env[].ValueFrom.ConfigMapKeyRef.LocalObjectReference.Name": true,
	"Install.Config.Env[].ValueFrom.ConfigMapKeyRef.Key":                       true,
	"Install.Config.Env[].ValueFrom.ConfigMapKeyRef.Optional":                  true,
	"Install.Config.Env[].ValueFrom.SecretKeyRef.LocalObjectReference.Name":    true,
	"Install.Config.Env[].ValueFrom.SecretKeyRef.Key":                          true,
	"Install.Config.Env[].ValueFrom.SecretKeyRef.Optional":                     true,
	"Install.Config.Env[].ValueFrom.FileKeyRef.VolumeName":                     true,
	"Install.Config.Env[].ValueFrom.FileKeyRef.Path":                           true,
	"Install.Config.Env[].ValueFrom.FileKeyRef.Key":                            true,
	"Install.Config.Env[].ValueFrom.FileKeyRef.Optional":                       true,
}

// TestWhichChangesEndAHold changes every field of a release and of its settings, one at a time. A new field needs a
// verdict in the table.
func TestWhichChangesEndAHold(t *testing.T) {
	t.Parallel()
	var held v1alpha1.Release
	var paths []string
	fill(reflect.ValueOf(&held).Elem())
	visit(reflect.ValueOf(&held).Elem(), "", func(path string, _ reflect.Value) { paths = append(paths, path) })
	ofVersion := v1alpha1.VersionHold{Version: held.Version}
	ofSettings := rollouts.NewHold(&v1alpha1.OperatorRollout{Spec: v1alpha1.OperatorRolloutSpec{Release: held}},
		v1alpha1.Release{Version: held.Version})
	if !ofVersion.Covers(held) || !ofSettings.Covers(held) || !ofSettings.IsOfSettings() {
		t.Fatalf("%+v and %+v do not cover what they hold", ofVersion, ofSettings)
	}
	for path := range endsAHold {
		if !slices.Contains(paths, path) {
			t.Errorf("a release has no field %s", path)
		}
	}
	for _, path := range paths {
		ends, known := endsAHold[path]
		if !known {
			t.Errorf("field %s has no verdict: does a hold end when it changes?", path)
			continue
		}
		var release v1alpha1.Release
		fill(reflect.ValueOf(&release).Elem())
		visit(reflect.ValueOf(&release).Elem(), "", func(p string, v reflect.Value) {
			if p == path {
				change(v)
			}
		})
		if ofSettings.Covers(release) == ends {
			t.Errorf("another %s: a hold of settings ends: %v, want %v", path, !ends, ends)
		}
		if ofVersion.Covers(release) != (path != "Version") {
			t.Errorf("another %s: a hold of the version does not depend on the version alone", path)
		}
		changes := rollouts.SettingsChanges(held, release)
		if path != "Version" && (len(changes) > 0) != ends {
			t.Errorf("another %s: the hash and the changes disagree: %q", path, changes)
		}
		if strings.Contains(path, ".Env[].Value") && strings.Contains(strings.Join(changes, " "), "hunter2") {
			t.Errorf("another %s: the value of a variable is shown: %q", path, changes)
		}
	}
}

// fill gives every field of a value, and of what it points to, a value.
func fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[resource.Quantity]() {
		v.Set(reflect.ValueOf(resource.MustParse("3")))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("secret")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default:
		panic("unexpected kind " + v.Kind().String())
	}
}

// visit calls a function with every field that is a plain value. What it sets is kept.
func visit(v reflect.Value, path string, do func(path string, v reflect.Value)) {
	if v.Type() == reflect.TypeFor[resource.Quantity]() {
		do(path, v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		visit(v.Elem(), path, do)
	case reflect.Struct:
		for i := range v.NumField() {
			visit(v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), do)
		}
	case reflect.Slice:
		visit(v.Index(0), path+"[]", do)
	case reflect.Map:
		from := v.MapKeys()[0]
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.Set(from)
		value.Set(v.MapIndex(from))
		do(path+"{key}", key)
		visit(value, path+"{}", do)
		v.SetMapIndex(from, reflect.Value{})
		v.SetMapIndex(key, value)
	default:
		do(path, v)
	}
}

// change gives a plain value another one.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("hunter2")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	default:
		v.Set(reflect.ValueOf(resource.MustParse("4")))
	}
}

func installed(config *v1alpha1.OperatorConfig) v1alpha1.Release {
	return v1alpha1.Release{Package: "echo", Version: "1.3.0", Install: v1alpha1.InstallSettings{Config: config}}
}

func env(names ...string) []corev1.EnvVar {
	var list []corev1.EnvVar
	for i, name := range names {
		list = append(list, corev1.EnvVar{Name: name, Value: fmt.Sprintf("hunter%d", i)})
	}
	return list
}

func list(name corev1.ResourceName, quantity string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(quantity)}
}

func TestSettingsChanges(t *testing.T) {
	t.Parallel()
	plain := installed(nil)
	from := func(source corev1.EnvVarSource) v1alpha1.Release {
		return installed(&v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "A", ValueFrom: &source}}})
	}
	resources := func(r corev1.ResourceRequirements) v1alpha1.Release {
		return installed(&v1alpha1.OperatorConfig{Resources: &r})
	}
	tolerates := func(all ...corev1.Toleration) v1alpha1.Release {
		return installed(&v1alpha1.OperatorConfig{Tolerations: all})
	}
	tests := map[string]struct {
		before, after v1alpha1.Release
		want          []string
	}{
		"nothing": {before: plain, after: plain},
		"defaults that are written out": {
			before: plain,
			after: v1alpha1.Release{Package: "echo", Version: "1.3.0", Channel: "stable", Bundle: "echo.v1.3.0",
				Install: v1alpha1.InstallSettings{Namespace: "echo", Mode: v1alpha1.InstallAllNamespaces,
					Config: &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{}, NodeSelector: map[string]string{}}}},
		},
		"namespace and mode": {
			before: plain,
			after: v1alpha1.Release{Package: "echo", Install: v1alpha1.InstallSettings{Namespace: "tools",
				Mode: v1alpha1.InstallOwnNamespace}},
			want: []string{"install mode is OwnNamespace, was AllNamespaces", "namespace is tools, was echo"},
		},
		"the order of variables": {
			before: installed(&v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "A"}, {Name: "B"}}}),
			after:  installed(&v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "B"}, {Name: "A"}}}),
		},
		"variables, without their values": {
			before: installed(&v1alpha1.OperatorConfig{Env: env("GONE", "A", "SAME")}),
			after:  installed(&v1alpha1.OperatorConfig{Env: env("A", "NEW", "SAME")}),
			want: []string{"environment variable A has another value", "environment variable GONE is removed",
				"environment variable NEW is added"},
		},
		"the source of a variable": {
			before: from(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "a"}}),
			after:  from(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "b"}}),
			want:   []string{"environment variable A has another value"},
		},
		"defaults of sources": {
			before: from(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}),
			after: from(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName",
				APIVersion: "v1"}}),
		},
		"a source that need not exist": {
			before: from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "a"}}),
			after: from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "a",
				Optional: new(false)}}),
		},
		"divisors": {
			before: from(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}),
			after: from(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu",
				Divisor: resource.MustParse("1000m")}}),
		},
		"node selectors": {
			before: installed(&v1alpha1.OperatorConfig{NodeSelector: map[string]string{"disk": "fast", "zone": "a"}}),
			after:  installed(&v1alpha1.OperatorConfig{NodeSelector: map[string]string{"disk": "slow", "gpu": "yes"}}),
			want: []string{"node selector disk is slow, was fast", "node selector gpu is added: yes",
				"node selector zone is removed: a"},
		},
		"how a quantity is written": {
			before: resources(corev1.ResourceRequirements{Limits: list("memory", "1Gi")}),
			after: resources(corev1.ResourceRequirements{Limits: list("memory", "1073741824"),
				Requests: list("memory", "1048576Ki")}),
		},
		"limits and requests": {
			before: resources(corev1.ResourceRequirements{Limits: list("cpu", "1"), Requests: list("cpu", "100m")}),
			after:  resources(corev1.ResourceRequirements{Limits: list("cpu", "2"), Requests: list("memory", "1Gi")}),
			want: []string{"limit of cpu is 2, was 1", "request of cpu is 2, was 100m",
				"request of memory is added: 1Gi"},
		},
		"no resources in place of the bundle's": {
			before: plain, after: resources(corev1.ResourceRequirements{}),
			want: []string{"resources in place of the bundle's is added"},
		},
		"tolerations in another order, and with the operator written out": {
			before: tolerates(corev1.Toleration{Key: "a", Value: "b"}, corev1.Toleration{Operator: "Exists"}),
			after: tolerates(corev1.Toleration{Operator: "Exists"},
				corev1.Toleration{Key: "a", Operator: "Equal", Value: "b"}),
		},
		"tolerations": {
			before: tolerates(corev1.Toleration{Key: "a", Value: "b", Effect: "NoSchedule"}),
			after: tolerates(corev1.Toleration{Operator: "Exists", Effect: "NoExecute",
				TolerationSeconds: new(int64(30))}),
			want: []string{"toleration of a=b:NoSchedule is removed",
				"toleration of any taint:NoExecute for 30s is added"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, rollouts.SettingsChanges(test.before, test.after)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if same := test.before.SettingsHash() == test.after.SettingsHash(); same != (len(test.want) == 0) {
				t.Errorf("the same hash: %v", same)
			}
		})
	}
}

// TestHoldSaysWhatWasChanged checks that a hold lists as many changes as the API permits, and describes the other
// change if no setting changed.
func TestHoldSaysWhatWasChanged(t *testing.T) {
	t.Parallel()
	hold := func(before, held v1alpha1.Release) []string {
		ro := &v1alpha1.OperatorRollout{}
		ro.Spec.Release = held
		return rollouts.NewHold(ro, before).Changes
	}
	many := installed(&v1alpha1.OperatorConfig{Env: env("A", "B", "C", "D", "E", "F", strings.Repeat("G", 200))})
	want := []string{"environment variable A is added", "environment variable B is added",
		"environment variable C is added", "environment variable D is added", "3 more changes"}
	if diff := cmp.Diff(want, hold(installed(nil), many)); diff != "" {
		t.Errorf("many changes (-want +got):\n%s", diff)
	}
	long := installed(&v1alpha1.OperatorConfig{Env: env(strings.Repeat("G", 200))})
	if got := hold(installed(nil), long); len(got) != 1 || len([]rune(got[0])) != 128 {
		t.Errorf("a long name is not cut: %q", got)
	}
	beta := installed(nil)
	beta.Channel = "beta"
	if diff := cmp.Diff([]string{"the channel is beta, was stable"}, hold(func() v1alpha1.Release {
		stable := installed(nil)
		stable.Channel = "stable"
		return stable
	}(), beta)); diff != "" {
		t.Errorf("only the channel was changed (-want +got):\n%s", diff)
	}
}
