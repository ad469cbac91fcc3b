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
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/bundles/requirements"
)

// operatorRules are the validators of operator-framework/api, the ones that
// operator-sdk and opm run. What they overlook is found by gapRules.
func operatorRules() []Rule {
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
	}}, gapRules())
}

func checkOfCSV(in *Input) []Finding {
	return ofFindings(in.Bundle.CSVObject(),
		validation.ClusterServiceVersionValidator.Validate(in.Bundle.CSV.DeepCopy()))
}

// checkOfCRD leaves definitions of v1beta1 to rule of-removed-api: the
// validator judges them by the rules for v1.
func checkOfCRD(in *Input) []Finding {
	var out []Finding
	for _, crd := range in.Bundle.CRDs {
		out = append(out, ofFindings(in.Bundle.CRDObject(crd.Name),
			validation.CustomResourceDefinitionValidator.Validate(crd.DeepCopy()))...)
	}
	return out
}

func checkOfBundle(in *Input) []Finding {
	return ofFindings(in.Bundle.CSVObject(), validation.BundleValidator.Validate(ofBundle(in.Bundle)))
}

// checkOfObject leaves PodDisruptionBudgets out: the validator takes every
// percentage for zero. Rule pdb-blocks-drain is about them.
func checkOfObject(in *Input) []Finding {
	var out []Finding
	for _, o := range in.Bundle.Objects {
		if o.GetKind() != "PodDisruptionBudget" {
			out = append(out, ofFindings(o, validation.ObjectValidator.Validate(o.Unstructured))...)
		}
	}
	return out
}

// checkOfRemovedAPI has a finding for each manifest. What is still to be removed is a warning.
func checkOfRemovedAPI(in *Input) []Finding {
	var out []Finding
	for _, removed := range requirements.RemovedAPIs(in.Bundle) {
		o := removed.Object
		api := o.GetAPIVersion() + " " + o.GetKind()
		if registryv1.CompareKubernetes(removed.In, requirements.Kubernetes) <= 0 {
			out = append(out, at(o, api+" was removed in Kubernetes v"+removed.In, "apiVersion"))
			continue
		}
		f := at(o, "Kubernetes v"+removed.In+" will remove "+api, "apiVersion")
		f.Severity = Warning
		out = append(out, f)
	}
	return out
}

// checkOfGoodPractice leaves resource requests to the rules about them: the
// validator is content where only one of CPU and memory is requested. It looks
// at one channel at a time, because the validator names them in any order, and
// in the wrong file.
func checkOfGoodPractice(in *Input) []Finding {
	b := ofBundle(in.Bundle)
	b.Channels, b.DefaultChannel = nil, ""
	out := slices.DeleteFunc(ofFindings(in.Bundle.CSVObject(), validation.GoodPracticesValidator.Validate(b)),
		func(f Finding) bool {
			return strings.HasPrefix(f.Message, "unable to find the resource requests")
		})
	empty := &operatorsv1alpha1.ClusterServiceVersion{}
	for _, channel := range slices.Compact(slices.Sorted(slices.Values(in.Bundle.Channels))) {
		results := validation.GoodPracticesValidator.Validate(&manifests.Bundle{CSV: empty,
			Channels: []string{channel}})
		if slices.ContainsFunc(ofFindings(nil, results),
			func(f Finding) bool { return strings.HasPrefix(f.Message, "channel(s)") }) {
			out = append(out, inFile(in, annotationsFile, registryv1.AnnotationChannels,
				fmt.Sprintf("channel %q does not begin with candidate, fast or stable",
					channel), "annotations", registryv1.AnnotationChannels))
		}
	}
	return out
}

// checkOfHub leaves out what of-csv and of-removed-api say.
func checkOfHub(in *Input) []Finding {
	b := ofBundle(in.Bundle)
	b.Objects, b.V1beta1CRDs = nil, nil
	found := ofFindings(in.Bundle.CSVObject(), validation.OperatorHubV2Validator.Validate(b))
	found = slices.DeleteFunc(found, func(f Finding) bool {
		return strings.Contains(strings.ToLower(f.Message),
			"minkubeversion")
	})
	for i, f := range found {
		found[i].Severity = Info
		if f.Severity == Error {
			found[i].Severity = Warning
		}
	}
	return found
}

func checkOfCategory(in *Input) []Finding {
	b := ofBundle(in.Bundle)
	results := slices.Concat(validation.StandardCapabilitiesValidator.Validate(b),
		validation.StandardCategoriesValidator.Validate(b))
	found := ofFindings(in.Bundle.CSVObject(), results)
	for i := range found {
		found[i].Severity = Warning
	}
	return found
}

// ofBundle is the bundle as the validators want it. They change what they are
// given, so it is a copy. Sizes are left to rule olmv0-bundle-size.
func ofBundle(b *bundles.Bundle) *manifests.Bundle {
	out := &manifests.Bundle{Name: b.Name, Package: b.Package, Channels: slices.Clone(b.Channels),
		DefaultChannel: b.DefaultChannel,
		CSV:            b.CSV.DeepCopy(), V1CRDs: b.CRDs, CompressedSize: 1, Size: 1}
	for _, o := range b.Objects {
		out.Objects = append(out.Objects, o.Unstructured)
	}
	for _, o := range b.Objects {
		if crd := requirements.OldCRD(o); crd != nil {
			out.V1beta1CRDs = append(out.V1beta1CRDs, crd)
		}
	}
	return out
}

// ofFindings turns what a validator says of a manifest into findings there.
func ofFindings(o *bundles.Object, results []oferrors.ManifestResult) []Finding {
	var out []Finding
	for _, r := range results {
		for _, e := range slices.Concat(r.Errors, r.Warnings) {
			severity := Warning
			if e.Level == oferrors.LevelError {
				severity = Error
			}
			f := at(o, ofMessage(o, e), ofPath(o, e)...)
			f.Severity = severity
			out = append(out, f)
		}
	}
	return out
}

// ofMessage is one sentence, without what the finding says elsewhere.
func ofMessage(o *bundles.Object, e oferrors.Error) string {
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
	for _, r := range ofRewritten {
		if strings.HasPrefix(text, r.begins) {
			text = r.short
		}
	}
	return cmp.Or(clip(text), string(e.Type))
}

// ofRewritten are messages that go on for too long.
var ofRewritten = []struct{ begins, short string }{
	{"csv.Spec.minKubeVersion is not informed",
		"minKubeVersion is missing, so OLM installs the operator on clusters of any version"},
	{"CSV contains permissions to create CRD",
		"the operator may create CustomResourceDefinitions, which OLM does not manage then"},
}

// ofPlaces says which field the text of an error is about, where the error
// itself does not.
var ofPlaces = []struct {
	text string
	path []any
}{
	// The names of APIs come first: a group such as example.com has words of other messages in it.
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

func ofPath(o *bundles.Object, e oferrors.Error) []any {
	if e.Field != "" {
		if o != nil && o.GetKind() == operatorsv1alpha1.ClusterServiceVersionKind {
			return jsonPath(reflect.TypeFor[operatorsv1alpha1.ClusterServiceVersion](), strings.Split(e.Field, "."))
		}
		return crdPath(parsePath(e.Field))
	}
	if _, place, ok := strings.Cut(e.Detail, "relatedImages["); ok {
		index, _, _ := strings.Cut(place, "]")
		return parsePath("spec.relatedImages[" + index + "].image")
	}
	for _, p := range ofPlaces {
		if strings.Contains(e.Detail, p.text) {
			return p.path
		}
	}
	return nil
}

// jsonPath turns names of Go's fields into those of the manifest.
func jsonPath(t reflect.Type, names []string) []any {
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
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag != "" {
			out = append(out, tag)
		}
	}
	return out
}
