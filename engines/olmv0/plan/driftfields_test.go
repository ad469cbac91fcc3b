// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/bundletest"
)

// readPublishedCSV reads the CSV of a published bundle.
func readPublishedCSV(t *testing.T, bundle string) *operatorsv1alpha1.ClusterServiceVersion {
	t.Helper()
	csv := bundletest.Read(t, bundle).CSV
	if len(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) == 0 {
		t.Fatalf("%s has no Deployment", bundle)
	}
	return csv
}

// compare returns the differing fields of both objects.
func compare(t *testing.T, expected *ExpectedFields, csv *operatorsv1alpha1.ClusterServiceVersion, d *appsv1.Deployment,
	autoscaled bool) []DriftField {
	t.Helper()
	fields, err := expected.CompareCSV(csv)
	if err != nil {
		t.Fatal(err)
	}
	more, err := expected.CompareDeployment(d, autoscaled)
	if err != nil {
		t.Fatal(err)
	}
	return append(fields, more...)
}

// correct corrects the fields in both objects.
func correct(t *testing.T, bundle *operatorsv1alpha1.ClusterServiceVersion, config *v1alpha1.OperatorConfig,
	fields []DriftField, csv *operatorsv1alpha1.ClusterServiceVersion, d *appsv1.Deployment) {
	t.Helper()
	for kind, spec := range map[string]any{KindCSV: &csv.Spec, KindDeployment: &d.Spec} {
		ofKind := slices.DeleteFunc(slices.Clone(fields), func(f DriftField) bool { return f.Kind != kind })
		live, err := toPlain(spec)
		if err != nil {
			t.Fatal(err)
		}
		corrected, err := CorrectDrift(bundle, config, ofKind, live.(map[string]any))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(corrected)
		if err != nil {
			t.Fatal(err)
		}
		reflect.ValueOf(spec).Elem().SetZero()
		if err := json.Unmarshal(text, spec); err != nil {
			t.Fatal(err)
		}
	}
}

// installed is a Deployment as OLM and the API server leave it.
func installed(csv *operatorsv1alpha1.ClusterServiceVersion, config *v1alpha1.OperatorConfig) *appsv1.Deployment {
	d := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	live := &appsv1.Deployment{Spec: *d.Spec.DeepCopy()}
	live.Name = d.Name
	one, grace := int32(1), int64(30)
	if live.Spec.Replicas == nil {
		live.Spec.Replicas = &one
	}
	live.Spec.RevisionHistoryLimit = &one
	pod := &live.Spec.Template.Spec
	if pod.TerminationGracePeriodSeconds == nil {
		pod.TerminationGracePeriodSeconds = &grace
	}
	applyConfig(pod, config)
	if live.Spec.Template.Annotations == nil {
		live.Spec.Template.Annotations = map[string]string{}
	}
	for key, value := range csv.Annotations {
		live.Spec.Template.Annotations[key] = value
	}
	live.Spec.Template.Annotations["olm.targetNamespaces"] = ""
	for i := range pod.Containers {
		c := &pod.Containers[i]
		c.Env = append(c.Env, corev1.EnvVar{Name: "OPERATOR_CONDITION_NAME", Value: csv.Name})
		c.TerminationMessagePath = "/dev/termination-log"
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "webhook-cert", MountPath: "/certs"})
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "webhook-cert"})
	return live
}

func TestCompare(t *testing.T) {
	config := &v1alpha1.OperatorConfig{
		Env:          []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}},
		NodeSelector: map[string]string{"disk": "fast"},
		Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{
			corev1.ResourceMemory: resource.MustParse("0.5Gi")}},
	}
	type object struct {
		csv        *operatorsv1alpha1.ClusterServiceVersion
		deployment *appsv1.Deployment
	}
	zero := int32(0)
	tests := map[string]struct {
		config     *v1alpha1.OperatorConfig
		change     func(object)
		autoscaled bool
		want       []string // NAME stands for the Deployment's
	}{
		"as installed":             {change: func(object) {}},
		"as installed, configured": {config: config, change: func(object) {}},
		"what the agent removes":   {change: func(o object) { o.csv.Spec.Replaces = "" }},
		"a label that somebody added": {change: func(o object) {
			o.deployment.Spec.Template.Labels["example.com/team"] = "a"
		}},
		"scaled by hand": {change: func(o object) { o.deployment.Spec.Replicas = &zero },
			want: []string{"Deployment NAME spec.replicas"}},
		"scaled by an autoscaler": {change: func(o object) { o.deployment.Spec.Replicas = &zero }, autoscaled: true},
		"scaled in the CSV": {
			change: func(o object) {
				o.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Replicas = &zero
				o.deployment.Spec.Replicas = &zero
			},
			want: []string{"ClusterServiceVersion CSV spec.install.spec.deployments[NAME].spec.replicas",
				"Deployment NAME spec.replicas"},
		},
		"another image": {
			change: func(o object) { o.deployment.Spec.Template.Spec.Containers[0].Image = "example.com/other:1" },
			want:   []string{"Deployment NAME spec.template.spec.containers[CONTAINER].image"},
		},
		"the configuration was taken away": {
			config: config,
			change: func(o object) { o.deployment.Spec.Template.Spec.NodeSelector = nil },
			want:   []string{"Deployment NAME spec.template.spec.nodeSelector.disk"},
		},
		"another account": {
			change: func(o object) { o.deployment.Spec.Template.Spec.ServiceAccountName = "admin" },
			want:   []string{"Deployment NAME spec.template.spec.serviceAccountName"},
		},
		"more permissions": {
			change: func(o object) {
				o.csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions = append(
					o.csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions,
					operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: "admin"})
			},
			want: []string{"ClusterServiceVersion CSV spec.install.spec.clusterPermissions"},
		},
	}
	for _, bundle := range bundletest.Names(t) {
		read := readPublishedCSV(t, bundle)
		for name, test := range tests {
			csv := read.DeepCopy()
			t.Run(csv.Name+"/"+name, func(t *testing.T) {
				one := int32(1)
				first := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
				first.Spec.Replicas = &one
				expected, err := ReadExpectedFields(csv, test.config)
				if err != nil {
					t.Fatal(err)
				}
				o := object{csv.DeepCopy(), installed(csv, test.config)}
				test.change(o)
				differing := compare(t, expected, o.csv, o.deployment, test.autoscaled)
				var got []string
				for _, f := range differing {
					got = append(got, f.String())
				}
				names := strings.NewReplacer("ClusterServiceVersion CSV", "ClusterServiceVersion "+csv.Name,
					"CONTAINER", first.Spec.Template.Spec.Containers[0].Name, "NAME", first.Name)
				var want []string
				for _, path := range test.want {
					want = append(want, names.Replace(path))
				}
				if _, set := expected.csv["spec.install.spec.clusterPermissions"]; !set && name == "more permissions" {
					want = nil // the bundle does not set them
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("differing fields (-want +got):\n%s", diff)
				}
				correct(t, csv, test.config, differing, o.csv, o.deployment)
				if left := compare(t, expected, o.csv, o.deployment, test.autoscaled); len(left) > 0 {
					t.Errorf("after the correction there differ: %v", left)
				}
			})
		}
	}
}
