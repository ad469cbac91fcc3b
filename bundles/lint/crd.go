// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// listCRDRules returns the rules about single CustomResourceDefinitions and about their changes since published
// versions. Rule crd-schema-invalid checks that schemas are structural.
func listCRDRules() []Rule {
	return append([]Rule{{
		ID: "crd-no-validation", Title: "A CustomResourceDefinition does not validate its objects", Severity: Warning,
		Check: checkEachVersion(checkValidation),
		Why: "Without a schema the API server accepts any field: a misspelt field is not noticed " +
			"before the operator fails on it. `kubectl explain` shows nothing, and no later version can be " +
			"checked against this one.",
		Fix: "Describe the fields of `spec` in the schema. controller-gen does it from the Go types. Keep " +
			"`x-kubernetes-preserve-unknown-fields` for single fields that hold objects of another API.",
	}, {
		ID: "crd-no-status", Title: "A CustomResourceDefinition has no status subresource", Severity: Warning,
		Check: checkEachVersion(checkStatus),
		Why: "Without the subresource users can overwrite the status, each status update counts as a new generation, " +
			"and RBAC cannot permit writing only one of the two. Tools that wait for a resource have no " +
			"status to wait for.",
		Fix: "Add `subresources: {status: {}}` to the version, and have the operator write conditions to `.status`. " +
			"A kind that only holds configuration does not need it (the finding is Info then).",
	}, {
		ID: "crd-no-printer-columns", Title: "A CustomResourceDefinition shows nothing in kubectl get", Severity: Info,
		Check: checkEachVersion(checkColumns),
		Why: "`kubectl get` shows only the name and the age, so people on call have to open each resource to find " +
			"the one that is not ready.",
		Fix: "Add `additionalPrinterColumns`, at least one for the condition that tells whether the resource is ready.",
	}, {
		ID: "crd-no-conversion", Title: "Versions differ and nothing converts between them", Severity: Error,
		Check: checkConversion,
		Why: "Without a conversion webhook the API server only rewrites `apiVersion`: what the other version does " +
			"not know is dropped the next time the resource is written through it. Users lose data without an " +
			"error. Where one version requires a field, or allows fewer values, objects of the other are invalid " +
			"in it: they can be read and not written, and OLM, which validates them before it changes the " +
			"definition, fails the InstallPlan. This is a warning for fields of `.status`, and where it cannot be " +
			"decided.",
		Fix: "Give all served versions the same fields and the same validation, or serve one version only, or write " +
			"a conversion webhook (and declare it in the ClusterServiceVersion). Keep it for as long as several " +
			"versions are defined.",
	}, {
		ID: "crd-undefined", Title: "The bundle lacks a CustomResourceDefinition that its operator needs",
		Severity: Warning, Check: checkUndefined,
		Why: "A webhook is called for the resource, or the operator may write its status, as only the operator that " +
			"reconciles a kind does; but no CustomResourceDefinition of the bundle defines it, and no dependency " +
			"brings it. If the cluster does not have the resource, an operator that watches it fails when it " +
			"starts, and no user can create such an object. APIs of Kubernetes, OLM and OpenShift are not reported.",
		Fix: "Add the CustomResourceDefinition and list it under `spec.customresourcedefinitions.owned`. If another " +
			"operator brings it, list it under `required`, which OLM then installs too. Waive this finding if the " +
			"operator works without it.",
	}}, listCRDHistoryRules()...)
}

// checkUndefined reports resources that the operator needs and that the bundle does not define.
func checkUndefined(in *Input) []Finding {
	var out []Finding
	for _, u := range in.Bundle.UndefinedResources() {
		out = append(out, newObjectFinding(in.Bundle.CSVObject(),
			fmt.Sprintf("%s needs %s, which nothing in the bundle defines", u.NeededBy, u.Name), u.Path...))
	}
	return out
}

// checkEachVersion returns a check of the bundle that calls check for each served version of each
// CustomResourceDefinition. check returns the severity, the message, and the path below the version; an empty message
// means no finding.
func checkEachVersion(check func(*apiextensionsv1.CustomResourceDefinitionVersion) (Severity, string,
	[]any)) func(*Input) []Finding {
	return func(in *Input) []Finding {
		var out []Finding
		for _, d := range in.Bundle.CRDs {
			for i := range d.Spec.Versions {
				v := &d.Spec.Versions[i]
				if !v.Served {
					continue
				}
				severity, message, path := check(v)
				if message == "" {
					continue
				}
				f := newObjectFinding(in.Bundle.CRDObject(d.Name), message,
					append([]any{"spec", "versions", i}, path...)...)
				f.Severity = severity
				out = append(out, f)
			}
		}
		return out
	}
}

// checkValidation reports a version whose schema, or the schema of its spec, has no fields.
func checkValidation(v *apiextensionsv1.CustomResourceDefinitionVersion) (Severity, string, []any) {
	root := []any{"schema", "openAPIV3Schema"}
	switch {
	case v.Schema == nil || v.Schema.OpenAPIV3Schema == nil:
		return Warning, fmt.Sprintf("version %s has no schema", v.Name), nil
	case hasNoFields(v.Schema.OpenAPIV3Schema):
		return Warning, fmt.Sprintf("the schema of version %s names no fields", v.Name), root
	}
	spec, ok := v.Schema.OpenAPIV3Schema.Properties["spec"]
	if ok && hasNoFields(&spec) {
		return Warning, fmt.Sprintf("the schema of version %s names no fields of .spec", v.Name),
			append(root, "properties", "spec")
	}
	return "", "", nil
}

// hasNoFields reports whether a schema describes no field.
func hasNoFields(s *apiextensionsv1.JSONSchemaProps) bool {
	return (s.Type == "object" || s.Type == "") && len(s.Properties) == 0 && s.AdditionalProperties == nil
}

// checkStatus reports a version without a status subresource: a warning if the schema has a status, and Info otherwise.
func checkStatus(v *apiextensionsv1.CustomResourceDefinitionVersion) (Severity, string, []any) {
	if v.Subresources != nil && v.Subresources.Status != nil {
		return "", "", nil
	}
	if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
		if _, ok := v.Schema.OpenAPIV3Schema.Properties["status"]; ok {
			return Warning, fmt.Sprintf("version %s has a status, and no subresource for it", v.Name),
				[]any{"subresources"}
		}
	}
	return Info, fmt.Sprintf("version %s has no status", v.Name), []any{"subresources"}
}

// checkColumns reports a version without printer columns.
func checkColumns(v *apiextensionsv1.CustomResourceDefinitionVersion) (Severity, string, []any) {
	if len(v.AdditionalPrinterColumns) > 0 {
		return "", "", nil
	}
	return Info, fmt.Sprintf("version %s has no printer columns", v.Name), nil
}
