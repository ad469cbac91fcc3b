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

// listGapRules returns the rules about faults that the validators of operator-framework/api do not report.
func listGapRules() []Rule {
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
		Why: "OLM uses the last entry of each install mode, and other tools use the first. Whether the operator can " +
			"be installed then depends on the tool. The validator of operator-framework/api should refuse this, but " +
			"does not.",
		Fix: "List each of OwnNamespace, SingleNamespace, MultiNamespace and AllNamespaces once.",
	}, {
		ID: "pdb-blocks-drain", Title: "A PodDisruptionBudget never allows an eviction",
		Severity: Error, Check: checkPDBs,
		Why: "A node whose Pod must not be evicted cannot be drained, so upgrades of the cluster hang until " +
			"the budget is deleted " +
			"manually. The validator of operator-framework/api finds some of these, but treats every " +
			"percentage of `maxUnavailable` as zero.",
		Fix: "Set `maxUnavailable: 1`, and more than one replica.",
	}}
}

// checkInstallModes reports install modes that are listed twice.
func checkInstallModes(in *Input) []Finding {
	isListed := map[operatorsv1alpha1.InstallModeType]bool{}
	var out []Finding
	for i, mode := range in.Bundle.CSV.Spec.InstallModes {
		if isListed[mode.Type] {
			out = append(out, newObjectFinding(in.Bundle.CSVObject(),
				fmt.Sprintf("install mode %s is listed twice", mode.Type), "spec", "installModes", i))
		}
		isListed[mode.Type] = true
	}
	return out
}

// checkCRDSchema reports the schema errors for which the API server would refuse a CustomResourceDefinition.
func checkCRDSchema(in *Input) []Finding {
	var out []Finding
	for _, crd := range in.Bundle.CRDs {
		crd = crd.DeepCopy()
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
		internal := &apiextensions.CustomResourceDefinition{}
		o := in.Bundle.CRDObject(crd.Name)
		// The API server validates the internal form.
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd,
			internal, nil); err != nil {
			out = append(out, newObjectFinding(o, "it cannot be converted: "+clip(err.Error()), "spec"))
			continue
		}
		for _, err := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal) {
			if isOverlooked(err) {
				out = append(out, newObjectFinding(o, clip(err.ErrorBody()), toManifestPath(parsePath(err.Field))...))
			}
		}
	}
	return out
}

// isOverlooked reports whether the validator of operator-framework/api drops an error. Errors about the status of the
// definition itself are excluded, because manifests have no such status.
func isOverlooked(err *field.Error) bool {
	return strings.HasPrefix(err.Field, "spec.") &&
		(strings.Contains(err.Field, "openAPIV3Schema") || strings.Contains(err.Field, "status"))
}

// toManifestPath converts a path of the validator to the path in the manifest. The validator uses the internal form, in
// which fields that are equal in all versions are in the spec and not in each version.
func toManifestPath(path []any) []any {
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

// checkPDBs reports PodDisruptionBudgets that never allow an eviction, and those that cannot be decoded.
func checkPDBs(in *Input) []Finding {
	var out []Finding
	for _, o := range in.Bundle.Objects {
		if o.GetKind() != "PodDisruptionBudget" {
			continue
		}
		pdb := &policyv1.PodDisruptionBudget{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pdb); err != nil {
			out = append(out, newObjectFinding(o, "it does not decode: "+clip(err.Error()), "spec"))
			continue
		}
		out = append(out, checkPDB(in.Bundle, o, pdb)...)
	}
	return out
}

// checkPDB returns a finding if a PodDisruptionBudget is invalid or never allows an eviction: maxUnavailable is
// zero, minAvailable is 100%, or a Deployment of the operator has not more replicas than minAvailable. It returns
// nil otherwise.
func checkPDB(b *bundles.Bundle, o *bundles.Object, pdb *policyv1.PodDisruptionBudget) []Finding {
	minAvailable, maxUnavailable := pdb.Spec.MinAvailable, pdb.Spec.MaxUnavailable
	if minAvailable != nil && maxUnavailable != nil {
		return []Finding{newObjectFinding(o,
			"minAvailable and maxUnavailable are both set; the API server refuses that", "spec")}
	}
	if maxUnavailable != nil && isNumberOrPercent(maxUnavailable, 0) {
		return []Finding{newObjectFinding(o, fmt.Sprintf("maxUnavailable is %s", maxUnavailable), "spec",
			"maxUnavailable")}
	}
	if minAvailable == nil {
		return nil
	}
	// The number 100 blocks evictions only if there are not more replicas, which is checked below.
	if isNumberOrPercent(minAvailable, 100) && minAvailable.Type == intstr.String {
		return []Finding{newObjectFinding(o, fmt.Sprintf("minAvailable is %s", minAvailable), "spec", "minAvailable")}
	}
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if !matchesLabels(pdb.Spec.Selector, d.Spec.Template.Labels) {
			continue
		}
		replicas := 1
		if d.Spec.Replicas != nil {
			replicas = int(*d.Spec.Replicas)
		}
		required, err := intstr.GetScaledValueFromIntOrPercent(minAvailable, replicas, true)
		if err == nil && replicas > 0 && required >= replicas {
			return []Finding{newObjectFinding(o, fmt.Sprintf("minAvailable is %s, and Deployment %s has %d",
				minAvailable, d.Name, replicas), "spec", "minAvailable")}
		}
	}
	return nil
}

// isNumberOrPercent reports whether v is the number n or n percent.
func isNumberOrPercent(v *intstr.IntOrString, n int) bool {
	if v.Type == intstr.String {
		return v.StrVal == fmt.Sprintf("%d%%", n)
	}
	return v.IntValue() == n
}

// matchesLabels reports whether a selector is valid, not empty, and matches the labels.
func matchesLabels(selector *metav1.LabelSelector, have map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !s.Empty() && s.Matches(labels.Set(have))
}
