// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	oferrors "github.com/operator-framework/api/pkg/validation/errors"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/requirements"
)

// listOperatorRules returns the rules that call the validators of operator-framework/api, which operator-sdk and opm
// also use, and the rules of listGapRules about the faults that these validators miss.
func listOperatorRules() []Rule {
	return slices.Concat([]Rule{{
		ID: "of-csv", Title: "The ClusterServiceVersion is invalid or incomplete", Severity: Error,
		Check: checkOfCSV,
		Why: "The validator of operator-framework/api objects to the ClusterServiceVersion. operator-sdk, opm and " +
			"most catalogs refuse " +
			"what it calls an error: a missing required field, a name that is not a valid label value (at " +
			"most 63 characters), " +
			"no supported install mode, an invalid `minKubeVersion`, examples that do not parse.",
		Fix: "Correct the field that the message names. What is a warning here (such as a missing example) only " +
			"makes the operator harder to use.",
	}, {
		ID: "of-crd", Title: "A CustomResourceDefinition is invalid", Severity: Error, Check: checkOfCRD,
		Why: "The API server validates CustomResourceDefinitions with the same code, and refuses this one: the " +
			"InstallPlan fails.",
		Fix: "Correct the field that the message names. Definitions that controller-gen generated pass.",
	}, {
		ID: "of-bundle", Title: "The manifests of the bundle do not fit together", Severity: Error,
		Check: checkOfBundle,
		Why: "OLM installs a bundle as a whole. A CustomResourceDefinition that the ClusterServiceVersion does not " +
			"own (or owns and the " +
			"bundle does not have), or a ServiceAccount that OLM makes itself, makes OLM refuse the bundle, or " +
			"change the object again and again.",
		Fix: "List every version of every CustomResourceDefinition of the bundle that users may use in " +
			"`spec.customresourcedefinitions.owned`, and delete ServiceAccounts that the ClusterServiceVersion names.",
	}, {
		ID: "of-object", Title: "A manifest requests more than an operator should", Severity: Error,
		Check: checkOfObject,
		Why: "A PriorityClass that is the global default changes the priority of every Pod of the cluster, and " +
			"rights to change " +
			"PodDisruptionBudgets or OpenShift's default SecurityContextConstraints reach far beyond the operator.",
		Fix: "Leave `globalDefault` out, and grant only the verbs that the operator needs.",
	}, {
		ID: "of-removed-api", Title: "A manifest uses an API that Kubernetes removed", Severity: Error,
		Check: checkOfRemovedAPI,
		Why:   "The API server of every supported Kubernetes version refuses the manifest, so the InstallPlan fails.",
		Fix: "Move the manifest to the version of the API that replaced it; see " +
			"[the deprecation guide](https://kubernetes.io/docs/reference/using-api/deprecation-guide/).",
	}, {
		ID: "of-good-practice", Title: "The bundle does not follow the good practices of the Operator Framework",
		Severity: Warning,
		Check:    checkOfGoodPractice,
		Why: "Users rely on the conventions: a name of the form `name.v1.2.3`, channels called candidate, fast and " +
			"stable, a description " +
			"of each API. If an operator creates CustomResourceDefinitions itself, neither OLM nor " +
			"this check handles them.",
		Fix: "Follow the convention that the message names.",
	}, {
		ID: "of-hub", Title: "OperatorHub would not list the bundle", Severity: Warning, Check: checkOfHub,
		Why: "Catalogs and consoles show the provider, maintainers, links and the icon. OperatorHub.io refuses a " +
			"bundle where they are not well-formed.",
		Fix: "Fill in the field that the message names. In your own catalog, a waiver is sufficient.",
	}, {
		ID: "of-category", Title: "A category or capability level is not one of the standard ones", Severity: Warning,
		Check: checkOfCategory,
		Why:   "Consoles filter by these annotations; users who filter do not find an operator with another value.",
		Fix: "Use a capability level of `Basic Install`, `Seamless Upgrades`, `Full Lifecycle`, `Deep Insights` or " +
			"`Auto Pilot`, and the categories that the [documentation of " +
			"OperatorHub](https://sdk.operatorframework.io/docs/olm-integration/generation/#csv-fields) lists.",
	}}, listGapRules())
}

// checkOfCSV reports what the validator of ClusterServiceVersions reports.
func checkOfCSV(in *Input) []Finding {
	return toFindings(in.Bundle.CSVObject(),
		validation.ClusterServiceVersionValidator.Validate(in.Bundle.CSV.DeepCopy()))
}

// checkOfCRD reports what the validator of CustomResourceDefinitions reports. It skips definitions of v1beta1: the
// validator applies the rules for v1 to them, and rule of-removed-api reports them.
func checkOfCRD(in *Input) []Finding {
	var out []Finding
	for _, crd := range in.Bundle.CRDs {
		out = append(out, toFindings(in.Bundle.CRDObject(crd.Name),
			validation.CustomResourceDefinitionValidator.Validate(crd.DeepCopy()))...)
	}
	return out
}

// checkOfBundle reports what the validator of bundles reports.
func checkOfBundle(in *Input) []Finding {
	return toFindings(in.Bundle.CSVObject(), validation.BundleValidator.Validate(toValidatorBundle(in.Bundle)))
}

// checkOfObject reports what the validator of objects reports. It skips PodDisruptionBudgets, because the validator
// treats every percentage as zero; rule pdb-blocks-drain checks them.
func checkOfObject(in *Input) []Finding {
	var out []Finding
	for _, o := range in.Bundle.Objects {
		if o.GetKind() != "PodDisruptionBudget" {
			out = append(out, toFindings(o, validation.ObjectValidator.Validate(o.Unstructured))...)
		}
	}
	return out
}

// checkOfRemovedAPI reports each manifest with an API that Kubernetes removed. An API that Kubernetes will remove in a
// later version is a warning.
func checkOfRemovedAPI(in *Input) []Finding {
	var out []Finding
	for _, removed := range requirements.RemovedAPIs(in.Bundle) {
		o := removed.Object
		api := o.GetAPIVersion() + " " + o.GetKind()
		if bundles.CompareKubernetes(removed.In, requirements.Kubernetes) <= 0 {
			out = append(out, newObjectFinding(o, api+" was removed in Kubernetes v"+removed.In, "apiVersion"))
			continue
		}
		f := newObjectFinding(o, "Kubernetes v"+removed.In+" will remove "+api, "apiVersion")
		f.Severity = Warning
		out = append(out, f)
	}
	return out
}

// checkOfGoodPractice reports what the validator of good practices reports. It ignores resource requests, which other
// rules check, because the validator accepts a request for only CPU or only memory. It checks each channel separately,
// because the validator lists channels in random order and in the wrong file.
func checkOfGoodPractice(in *Input) []Finding {
	b := toValidatorBundle(in.Bundle)
	b.Channels, b.DefaultChannel = nil, ""
	out := slices.DeleteFunc(toFindings(in.Bundle.CSVObject(), validation.GoodPracticesValidator.Validate(b)),
		func(f Finding) bool {
			return strings.HasPrefix(f.Message, "unable to find the resource requests")
		})
	empty := &operatorsv1alpha1.ClusterServiceVersion{}
	for _, channel := range slices.Compact(slices.Sorted(slices.Values(in.Bundle.Channels))) {
		results := validation.GoodPracticesValidator.Validate(&manifests.Bundle{CSV: empty,
			Channels: []string{channel}})
		if slices.ContainsFunc(toFindings(nil, results),
			func(f Finding) bool { return strings.HasPrefix(f.Message, "channel(s)") }) {
			out = append(out, newFileFinding(in, annotationsFile, bundles.AnnotationChannels,
				fmt.Sprintf("channel %q does not begin with candidate, fast or stable", channel), "annotations",
				bundles.AnnotationChannels))
		}
	}
	return out
}

// checkOfHub reports what the validator for OperatorHub reports, except problems that rules of-csv and
// of-removed-api report. Each severity is lowered by one level, because only OperatorHub refuses such bundles.
func checkOfHub(in *Input) []Finding {
	b := toValidatorBundle(in.Bundle)
	b.Objects, b.V1beta1CRDs = nil, nil
	found := toFindings(in.Bundle.CSVObject(), validation.OperatorHubV2Validator.Validate(b))
	found = slices.DeleteFunc(found, func(f Finding) bool { // rule of-csv reports a wrong minKubeVersion
		return strings.Contains(strings.ToLower(f.Message), "minkubeversion")
	})
	for i, f := range found {
		found[i].Severity = Info
		if f.Severity == Error {
			found[i].Severity = Warning
		}
	}
	return found
}

// checkOfCategory reports non-standard categories and capability levels. All findings are warnings.
func checkOfCategory(in *Input) []Finding {
	b := toValidatorBundle(in.Bundle)
	results := slices.Concat(validation.StandardCapabilitiesValidator.Validate(b),
		validation.StandardCategoriesValidator.Validate(b))
	found := toFindings(in.Bundle.CSVObject(), results)
	for i := range found {
		found[i].Severity = Warning
	}
	return found
}

// toValidatorBundle converts a bundle to the type of the validators. Objects that the validators change are copied. The
// sizes are set to 1, because rule olmv0-bundle-size checks them.
func toValidatorBundle(b *bundles.Bundle) *manifests.Bundle {
	out := &manifests.Bundle{Name: b.Name, Package: b.Package, Channels: slices.Clone(b.Channels),
		DefaultChannel: b.DefaultChannel,
		CSV:            b.CSV.DeepCopy(), V1CRDs: b.CRDs, CompressedSize: 1, Size: 1}
	for _, o := range b.Objects {
		out.Objects = append(out.Objects, o.Unstructured)
	}
	for _, o := range b.Objects {
		if crd := requirements.DecodeV1beta1CRD(o); crd != nil {
			out.V1beta1CRDs = append(out.V1beta1CRDs, crd)
		}
	}
	return out
}

// toFindings converts the results of a validator for a manifest to findings at this manifest.
func toFindings(o *bundles.Object, results []oferrors.ManifestResult) []Finding {
	var out []Finding
	for _, r := range results {
		for _, e := range slices.Concat(r.Errors, r.Warnings) {
			severity := Warning
			if e.Level == oferrors.LevelError {
				severity = Error
			}
			f := newObjectFinding(o, formatValidatorMessage(o, e), findValidatorPath(o, e)...)
			f.Severity = severity
			out = append(out, f)
		}
	}
	return out
}

// formatValidatorMessage returns the error of a validator as one sentence, without the object and field that the
// finding has separately; the type of the error if the validator gives no text. shortMessages replace long messages.
func formatValidatorMessage(o *bundles.Object, e oferrors.Error) string {
	text := e.Detail
	if o != nil {
		text = strings.TrimPrefix(text, "("+o.GetName()+") ")
	}
	if e.Field != "" {
		text = strings.TrimPrefix(text, e.Field+": ")
	}
	if err, ok := e.BadValue.(error); ok {
		text += ": " + err.Error()
	} else if e.Type == oferrors.ErrorInvalidOperation {
		text += fmt.Sprintf(": %v", e.BadValue)
	}
	for _, r := range shortMessages {
		if strings.HasPrefix(text, r.prefix) {
			text = r.short
		}
	}
	return cmp.Or(clip(text), string(e.Type))
}

// shortMessages replace messages of validators that are too long.
var shortMessages = []struct{ prefix, short string }{
	{"csv.Spec.minKubeVersion is not informed",
		"minKubeVersion is missing, so OLM installs the operator on clusters of any version"},
	{"CSV contains permissions to create CRD",
		"the operator may create CustomResourceDefinitions, which OLM does not manage then"},
}

// validatorPaths maps a part of an error text to the field that the error is about. It is used if the error has
// no field.
var validatorPaths = []struct {
	text string
	path []any
}{
	// The names of APIs come first, because an API group such as example.com can contain the texts of later entries.
	{"owned CRD", []any{"spec", "customresourcedefinitions", "owned"}},
	{"required CRD", []any{"spec", "customresourcedefinitions", "required"}},
	{"not defined in CSV", []any{"spec", "customresourcedefinitions", "owned"}},
	{"annotation", []any{"metadata", "annotations"}},
	{"xample", []any{"metadata", "annotations", "alm-examples"}},
	{"provided API", []any{"metadata", "annotations", "alm-examples"}},
	{"ategories", []any{"metadata", "annotations", "categories"}},
	{"apabilities", []any{"metadata", "annotations", "capabilities"}},
	{"spec.replaces", []any{"spec", "replaces"}},
	{"metadata.name", []any{"metadata", "name"}},
	{"csv.metadata.Name", []any{"metadata", "name"}},
	{"install mode", []any{"spec", "installModes"}},
	{"InstallMode", []any{"spec", "installModes"}},
	{"MinKubeVersion", []any{"spec", "minKubeVersion"}},
	{"minKubeVersion", []any{"spec", "minKubeVersion"}},
	{"csv.Spec.Icon", []any{"spec", "icon"}},
	{"csv.Spec.Links", []any{"spec", "links"}},
	{"csv.Spec.Maintainers", []any{"spec", "maintainers"}},
	{"csv.Spec.Provider", []any{"spec", "provider"}},
	{"csv.Spec.Version", []any{"spec", "version"}},
	{"find a deployment", []any{"spec", "install", "spec", "deployments"}},
	{"permissions to create CRD", []any{"spec", "install", "spec"}},
	{"globalDefault", []any{"globalDefault"}},
	{"RBAC", []any{"rules"}},
}

// findValidatorPath returns the path in the manifest of the field that the error of a validator is about: from the
// field of the error, or else from its text; nil if the path is unknown.
func findValidatorPath(o *bundles.Object, e oferrors.Error) []any {
	if e.Field != "" {
		if o != nil && o.GetKind() == operatorsv1alpha1.ClusterServiceVersionKind {
			return toJSONPath(reflect.TypeFor[operatorsv1alpha1.ClusterServiceVersion](), strings.Split(e.Field, "."))
		}
		return toManifestPath(parsePath(e.Field))
	}
	if _, place, ok := strings.Cut(e.Detail, "relatedImages["); ok {
		index, _, _ := strings.Cut(place, "]")
		return parsePath("spec.relatedImages[" + index + "].image")
	}
	for _, p := range validatorPaths {
		if strings.Contains(e.Detail, p.text) {
			return p.path
		}
	}
	return nil
}

// toJSONPath converts the names of Go fields, beginning at type t, to the field names of the manifest. It stops at a
// name that it cannot find.
func toJSONPath(t reflect.Type, names []string) []any {
	var out []any
	for _, name := range names {
		field, ok := reflect.StructField{}, false
		if t.Kind() == reflect.Struct {
			field, ok = t.FieldByName(name)
		}
		if !ok {
			return out
		}
		t = field.Type
		// Embedded structs have no name in the manifest.
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag != "" {
			out = append(out, tag)
		}
	}
	return out
}
