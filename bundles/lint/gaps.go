// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bellwether-dev/bellwether/bundles"
)

// gapRules find what the validators of operator-framework/api overlook.
func gapRules() []Rule {
	return []Rule{{
		ID: "crd-schema-invalid", Title: "The API server would refuse a CustomResourceDefinition's schema",
		Severity: Error,
		Check:    checkCRDSchema,
		Why: "The API server validates schemas, rules and status subresources when a CustomResourceDefinition is " +
			"applied, and refuses " +
			"the whole definition: the InstallPlan fails on every cluster. The validator of operator-framework/api " +
			"runs the same code, " +
			"but drops these errors, so `operator-sdk bundle validate` reports the bundle as valid.",
		Fix: "Correct the schema at the path of the finding. `kubectl apply --dry-run=server` says the same thing.",
	}, {
		ID: "csv-duplicate-install-mode", Title: "An install mode is listed twice", Severity: Error,
		Check: checkInstallModes,
		Why: "OLM takes the last entry of each install mode, other tools the first. Whether the operator can be " +
			"installed then depends " +
			"on the tool. The validator of operator-framework/api should refuse this, but does not.",
		Fix: "List each of OwnNamespace, SingleNamespace, MultiNamespace and AllNamespaces once.",
	}, {
		ID: "pdb-blocks-drain", Title: "A PodDisruptionBudget never allows an eviction",
		Severity: Error, Check: checkPDBs,
		Why: "A node whose Pod may not be evicted cannot be drained, so upgrades of the cluster hang until " +
			"the budget is deleted " +
			"manually. The validator of operator-framework/api finds some of these, but treats every " +
			"percentage of `maxUnavailable` as zero.",
		Fix: "Set `maxUnavailable: 1`, and more than one replica.",
	}}
}

func checkInstallModes(in *Input) []Finding {
	seen := map[operatorsv1alpha1.InstallModeType]bool{}
	var out []Finding
	for i, mode := range in.Bundle.CSV.Spec.InstallModes {
		if seen[mode.Type] {
			out = append(out, at(in.Bundle.CSVObject(), fmt.Sprintf("install mode %s is listed twice", mode.Type),
				"spec", "installModes", i))
		}
		seen[mode.Type] = true
	}
	return out
}

func checkCRDSchema(in *Input) []Finding {
	var out []Finding
	for _, crd := range in.Bundle.CRDs {
		crd = crd.DeepCopy()
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
		internal := &apiextensions.CustomResourceDefinition{}
		o := in.Bundle.CRDObject(crd.Name)
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd,
			internal, nil); err != nil {
			out = append(out, at(o, "it cannot be converted: "+clip(err.Error()), "spec"))
			continue
		}
		for _, err := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal) {
			if overlooked(err) {
				out = append(out, at(o, clip(err.ErrorBody()), crdPath(parsePath(err.Field))...))
			}
		}
	}
	return out
}

// overlooked are the errors that the validator of operator-framework/api
// drops, less those about the status of the definition itself, which no
// manifest has.
func overlooked(err *field.Error) bool {
	return strings.HasPrefix(err.Field, "spec.") &&
		(strings.Contains(err.Field, "openAPIV3Schema") || strings.Contains(err.Field, "status"))
}

// crdPath is the path in the manifest. The validation speaks of a form in
// which what all versions have in common is beside them.
func crdPath(path []any) []any {
	if len(path) < 2 || path[0] != "spec" {
		return path
	}
	switch path[1] {
	case "validation":
		return slices.Concat([]any{"spec", "versions", 0, "schema"}, path[2:])
	case "subresources", "additionalPrinterColumns", "selectableFields":
		return slices.Concat([]any{"spec", "versions", 0}, path[1:])
	}
	return path
}

func checkPDBs(in *Input) []Finding {
	var out []Finding
	for _, o := range in.Bundle.Objects {
		if o.GetKind() != "PodDisruptionBudget" {
			continue
		}
		pdb := &policyv1.PodDisruptionBudget{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pdb); err != nil {
			out = append(out, at(o, "it does not decode: "+clip(err.Error()), "spec"))
			continue
		}
		out = append(out, checkPDB(in.Bundle, o, pdb)...)
	}
	return out
}

func checkPDB(b *bundles.Bundle, o *bundles.Object, pdb *policyv1.PodDisruptionBudget) []Finding {
	least, most := pdb.Spec.MinAvailable, pdb.Spec.MaxUnavailable
	if least != nil && most != nil {
		return []Finding{at(o, "minAvailable and maxUnavailable are both set; the API server refuses that", "spec")}
	}
	if most != nil && isPart(most, 0) {
		return []Finding{at(o, fmt.Sprintf("maxUnavailable is %s", most), "spec", "maxUnavailable")}
	}
	if least == nil {
		return nil
	}
	if isPart(least, 100) && least.Type == intstr.String {
		return []Finding{at(o, fmt.Sprintf("minAvailable is %s", least), "spec", "minAvailable")}
	}
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if !selects(pdb.Spec.Selector, d.Spec.Template.Labels) {
			continue
		}
		replicas := 1
		if d.Spec.Replicas != nil {
			replicas = int(*d.Spec.Replicas)
		}
		need, err := intstr.GetScaledValueFromIntOrPercent(least, replicas, true)
		if err == nil && replicas > 0 && need >= replicas {
			return []Finding{at(o, fmt.Sprintf("minAvailable is %s, and Deployment %s has %d", least, d.Name, replicas),
				"spec", "minAvailable")}
		}
	}
	return nil
}

// isPart reports whether a budget is a number, or the same number of percents.
func isPart(v *intstr.IntOrString, n int) bool {
	if v.Type == intstr.String {
		return v.StrVal == fmt.Sprintf("%d%%", n)
	}
	return v.IntValue() == n
}

func selects(selector *metav1.LabelSelector, have map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !s.Empty() && s.Matches(labels.Set(have))
}
