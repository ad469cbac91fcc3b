// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/requirements"
)

// listOLMV0Rules returns the rules about bundles that OLM v0 (operator-lifecycle-manager v0.46) refuses or does not
// install completely.
func listOLMV0Rules() []Rule {
	return []Rule{{
		ID: "olmv0-kind", Title: "OLM v0 does not install this kind", Severity: Error, Check: checkV0Kinds,
		Why: "OLM v0 supports a fixed list of kinds. An InstallPlan with any other kind fails as a whole, with " +
			"`UnsupportedResource`, and the operator is not installed.",
		Fix: "Let the operator create the object, or leave it out of the bundle.",
	}, {
		ID: "olmv0-second-document", Title: "OLM v0 reads only the first document of a file", Severity: Error,
		Check: checkSecondDocument,
		Why: "OLM v0 never installs what follows the first `---` of a manifest file, and reports no error. OLM v1 " +
			"installs it.",
		Fix: "Give every manifest a file of its own.",
	}, {
		ID: "olmv0-unpack", Title: "OLM v0 reads other content from the bundle's image", Severity: Error,
		Check: checkUnpack,
		Why: "OLM v0 finds `annotations.yaml` anywhere in the image, copies the folders that this file names, and " +
			"decodes the first document of each manifest. If a comment and a `---` come first, that document is " +
			"empty, and the manifest is never installed. `bellwether bundle push` and `bellwether catalog publish` " +
			"refuse such a bundle.",
		Fix: "Put comments below the first `---`, or remove the line; call no other file `annotations.yaml`; give " +
			"files names that differ in letters and digits.",
	}, {
		ID: "olmv0-bundle-size", Title: "The bundle is too large for OLM v0", Severity: Error, Check: checkBundleSize,
		Why: "OLM v0 unpacks a bundle image into one ConfigMap. The files, each compressed, must fit into 1 MiB; " +
			"otherwise the unpack Job fails on every cluster.",
		Fix: "Shorten descriptions in CustomResourceDefinitions (controller-gen has `maxDescLen`), or split the " +
			"operator.",
	}, {
		ID: "olmv0-inline-size", Title: "The bundle is too large to be served without its image", Severity: Info,
		Check: checkInlineSize,
		Why: "Bellwether serves bundles straight from the catalog, which needs no unpack Job. One InstallPlan then " +
			"holds all manifests, and " +
			"etcd refuses objects above 1.5 MiB. This bundle goes through its image instead, which the clusters must " +
			"be able to pull.",
		Fix: "Nothing, if the clusters can pull the bundle's image. Otherwise shorten descriptions in " +
			"CustomResourceDefinitions.",
	}, {
		ID: "olmv0-unserved-version", Title: "OLM v0 requires a version that is not served", Severity: Error,
		Check: checkV0Served,
		Why: "OLM v0 takes the last version that `spec.customresourcedefinitions.owned` lists of a " +
			"CustomResourceDefinition, and waits until it is served. If the definition says `served: false`, the " +
			"ClusterServiceVersion stays `Pending` with `CRD version not served`.",
		Fix: "List served versions only.",
	}, {
		ID: "olmv0-webhook-rule", Title: "OLM v0 refuses a webhook's rule", Severity: Error, Check: checkV0WebhookRules,
		Why: "OLM v0 does not install an operator whose webhooks match all API groups, OLM's own or admission " +
			"webhooks: they could lock OLM out. The ClusterServiceVersion fails.",
		Fix: "Name the API groups that the webhook is about.",
	}}
}

// listOLMV1Rules returns the rules about bundles that OLM v1 (operator-controller) refuses. Bellwether uses OLM v0, so
// these findings are warnings; they matter to authors who also support OLM v1.
func listOLMV1Rules() []Rule {
	return []Rule{{
		ID: "olmv1-kind", Title: "OLM v1 does not install this kind", Severity: Warning, Check: checkV1Kinds,
		Why: "OLM v1 supports a fixed list of kinds, and refuses a bundle with any other kind.",
		Fix: "Let the operator create the object, or leave it out of the bundle.",
	}, {
		ID: "olmv1-install-mode", Title: "OLM v1 cannot install the bundle for all namespaces", Severity: Warning,
		Check: checkV1InstallMode,
		Why: "OLM v1 installs an operator for all namespaces unless a namespace to watch is configured, and " +
			"does not support MultiNamespace.",
		Fix: "Support the install mode AllNamespaces.",
	}, {
		ID: "olmv1-dependency", Title: "OLM v1 does not install bundles with dependencies", Severity: Warning,
		Check: checkV1Dependencies,
		Why: "OLM v1 resolves no dependencies, and refuses bundles that declare some: required APIs, `olm.package`, " +
			"`olm.gvk` or `olm.constraint`.",
		Fix: "Make the dependency optional and look for it at run time, or document that users install it themselves.",
	}, {
		ID: "olmv1-api-service", Title: "OLM v1 does not install API services", Severity: Warning,
		Check: checkV1APIService,
		Why:   "OLM v1 refuses bundles with `apiservicedefinitions`.",
		Fix:   "Serve the API with a CustomResourceDefinition.",
	}, {
		ID: "olmv1-webhook", Title: "OLM v1 refuses a webhook definition", Severity: Warning, Check: checkV1Webhooks,
		Why: "OLM v1 checks webhook definitions before it installs anything: each has a unique and " +
			"valid name, a " +
			"CustomResourceDefinition has one conversion webhook at most, and bundles with webhooks support no " +
			"install mode but AllNamespaces (newer releases require that of conversion webhooks only).",
		Fix: "Correct the definition that the finding is at.",
	}, {
		ID: "olmv1-webhook-rule", Title: "OLM v1 refuses a webhook's rule", Severity: Warning,
		Check: checkV1WebhookRules,
		Why: "OLM v1 does not install an operator whose webhooks match all API groups, OLM's own or admission " +
			"webhooks: they could lock OLM out.",
		Fix: "Name the API groups that the webhook is about.",
	}, {
		ID: "olmv1-deployment", Title: "OLM v1 refuses a Deployment's name", Severity: Warning,
		Check: checkV1Deployments,
		Why: "OLM v1 refuses bundles in which two Deployments have one name, or one has a name that the API server " +
			"would refuse. OLM v0 lets the later one win.",
		Fix: "Give each Deployment of `spec.install.spec.deployments` a valid name of its own.",
	}, {
		ID: "olmv1-operator-condition", Title: "The operator uses OperatorConditions, which OLM v1 does not have",
		Severity: Info,
		Check:    checkV1OperatorCondition,
		Why: "The operator is granted rights to OperatorConditions. That API does not exist under OLM v1, and most " +
			"operators that need it fail when they start.",
		Fix: "Let the operator work without the API where it is missing.",
	}}
}

// v1Kinds are the kinds that OLM v1 installs (pkg/lib/bundle/supported_resources.go of operator-registry).
var v1Kinds = []string{"ClusterServiceVersion", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding",
	"Service", "ServiceAccount",
	"Role", "RoleBinding", "PrometheusRule", "ServiceMonitor", "Secret", "ConfigMap", "PodDisruptionBudget",
	"PriorityClass",
	"VerticalPodAutoscaler", "ConsoleYAMLSample", "ConsoleQuickStart", "ConsoleCLIDownload", "ConsoleLink",
	"ConsolePlugin",
	"NetworkPolicy", "PodMonitor"}

// checkV0Kinds reports objects of kinds that OLM v0 does not install.
func checkV0Kinds(in *Input) []Finding {
	return reportOtherKinds(in.Bundle, bundles.IsInstalledByOLM, "OLM v0")
}

// checkV1Kinds reports objects of kinds that OLM v1 does not install.
func checkV1Kinds(in *Input) []Finding {
	return reportOtherKinds(in.Bundle, func(kind string) bool { return slices.Contains(v1Kinds, kind) }, "OLM v1")
}

// reportOtherKinds returns findings for the objects of kinds that an OLM with the given name does not install.
func reportOtherKinds(b *bundles.Bundle, installs func(kind string) bool, olmName string) []Finding {
	var out []Finding
	for _, o := range b.Objects {
		if !installs(o.GetKind()) {
			out = append(out, newObjectFinding(o, fmt.Sprintf("%s does not install objects of kind %s", olmName,
				o.GetKind()), "kind"))
		}
	}
	return out
}

// checkSecondDocument reports objects that are not the first document of their file.
func checkSecondDocument(in *Input) []Finding {
	isListed := map[string]bool{}
	var out []Finding
	for _, o := range in.Bundle.Objects {
		if isListed[o.File] {
			out = append(out, newObjectFinding(o, fmt.Sprintf("%s %s is not the first document of its file",
				o.GetKind(), o.GetName())))
		}
		isListed[o.File] = true
	}
	return out
}

// checkUnpack reports other reasons why OLM v0 would read the image of the bundle incorrectly. It reports nothing if
// the bundle violates the rules about annotations, stray files or second documents, because then no image is built.
func checkUnpack(in *Input) []Finding {
	if in.Files == nil || in.Bundle.Annotations[bundles.AnnotationManifests] == "" ||
		len(checkSecondDocument(in)) > 0 || len(checkStrayFiles(in)) > 0 {
		return nil
	}
	files, err := readImageFiles(in.Files)
	if err != nil {
		return nil // the bundle cannot be read either, or it is too large
	}
	_, err = bundles.Unpack(files, in.Bundle.Annotations)
	if err == nil {
		return nil
	}
	return []Finding{{Message: strings.TrimPrefix(err.Error(), bundles.ErrNotBundle.Error()+": ")}}
}

// readImageFiles returns the files that an image of the bundle would contain: all files that are not hidden. The error
// is bundles.ErrTooLarge if they have more than bundles.MaxBytes.
func readImageFiles(files fs.FS) (map[string][]byte, error) {
	out, remaining := map[string][]byte{}, bundles.MaxBytes
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		text, err := readFile(files, name)
		if remaining -= len(text); err == nil && remaining < 0 {
			err = bundles.ErrTooLarge
		}
		out[name] = text
		return err
	})
	return out, err
}

// checkBundleSize reports a bundle whose compressed files do not fit into a ConfigMap. A bundle that needs more than
// 85% of the space is a warning.
func checkBundleSize(in *Input) []Finding {
	files, err := readUnpackedFiles(in)
	if err != nil {
		return nil
	}
	size, err := requirements.PackedSize(files)
	if err != nil || size*100 <= requirements.MaxPacked*85 {
		return nil
	}
	f := Finding{Message: fmt.Sprintf("its files take %d KiB when compressed one by one; %d KiB fit", size>>10,
		requirements.MaxPacked>>10)}
	if size <= requirements.MaxPacked {
		f.Severity = Warning
	}
	return []Finding{f}
}

// readUnpackedFiles returns the files that OLM v0 writes into the ConfigMap. The file of annotations is excluded,
// because OLM writes its content into the annotations of the ConfigMap.
func readUnpackedFiles(in *Input) ([][]byte, error) {
	if in.Files == nil {
		return in.Bundle.Manifests()
	}
	var out [][]byte
	for _, pattern := range []string{bundles.ManifestsDir + "/*", bundles.MetadataDir + "/*"} {
		files, err := fs.Glob(in.Files, pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := readFile(in.Files, file)
			if err == nil && file != annotationsFile { // a folder or another unreadable entry is skipped
				out = append(out, text)
			}
		}
	}
	return out, nil
}

// checkInlineSize reports a bundle whose manifests do not fit into an InstallPlan.
func checkInlineSize(in *Input) []Finding {
	manifests, err := in.Bundle.Manifests()
	if err != nil {
		return nil
	}
	size := 0
	for _, text := range manifests {
		quoted, err := json.Marshal(string(text)) // an InstallPlan contains manifests as strings
		if err != nil {
			return nil
		}
		size += len(quoted)
	}
	if size <= bundles.MaxInlineBytes {
		return nil
	}
	return []Finding{{Message: fmt.Sprintf("its manifests take %d KiB of an InstallPlan; %d KiB fit", size>>10,
		bundles.MaxInlineBytes>>10)}}
}

// checkV0WebhookRules reports webhook rules that OLM v0 refuses, because they match all API groups or OLM's own group.
func checkV0WebhookRules(in *Input) []Finding {
	return findForbiddenWebhookRules(in, []string{"*", "operators.coreos.com"})
}

// checkV1WebhookRules reports webhook rules that OLM v1 refuses, because they match all API groups or OLM's own group.
func checkV1WebhookRules(in *Input) []Finding {
	return findForbiddenWebhookRules(in, []string{"*", "olm.operatorframework.io"})
}

// findForbiddenWebhookRules returns findings for rules of admission webhooks that match one of the API groups, or that
// match webhook configurations. Such a webhook can block OLM.
func findForbiddenWebhookRules(in *Input, groups []string) []Finding {
	var out []Finding
	for i, w := range in.Bundle.CSV.Spec.WebhookDefinitions {
		if w.Type == operatorsv1alpha1.ConversionWebhook {
			continue
		}
		for j, rule := range w.Rules {
			for k, group := range rule.APIGroups {
				place := []any{"spec", "webhookdefinitions", i, "rules", j, "apiGroups", k}
				switch {
				case slices.Contains(groups, group):
					out = append(out, newObjectFinding(in.Bundle.CSVObject(),
						fmt.Sprintf("webhook %s matches API group %q", w.GenerateName, group), place...))
				case group == "admissionregistration.k8s.io" && slices.ContainsFunc(rule.Resources, isAdmissionWebhook):
					out = append(out, newObjectFinding(in.Bundle.CSVObject(),
						fmt.Sprintf("webhook %s matches admission webhooks", w.GenerateName), place...))
				}
			}
		}
	}
	return out
}

// isAdmissionWebhook reports whether a resource is a webhook configuration.
func isAdmissionWebhook(resource string) bool {
	name := strings.TrimSuffix(strings.ToLower(resource), "s")
	return resource == "*" || name == "mutatingwebhookconfiguration" || name == "validatingwebhookconfiguration"
}

// listSupportedModes returns the install modes that the bundle supports.
func listSupportedModes(b *bundles.Bundle) []operatorsv1alpha1.InstallModeType {
	var out []operatorsv1alpha1.InstallModeType
	for _, m := range b.CSV.Spec.InstallModes {
		if m.Supported {
			out = append(out, m.Type)
		}
	}
	return out
}

// checkV1InstallMode reports a bundle that does not support AllNamespaces. It is Info if the bundle supports one
// namespace, because OLM v1 can then install it with a setting.
func checkV1InstallMode(in *Input) []Finding {
	modes := listSupportedModes(in.Bundle)
	if len(modes) == 0 || slices.Contains(modes, operatorsv1alpha1.InstallModeTypeAllNamespaces) {
		return nil // rule of-csv reports a bundle without install modes
	}
	f := newCSVFinding(in, "only MultiNamespace is supported, which OLM v1 does not have", "spec", "installModes")
	if slices.Contains(modes, operatorsv1alpha1.InstallModeTypeOwnNamespace) ||
		slices.Contains(modes, operatorsv1alpha1.InstallModeTypeSingleNamespace) {
		f[0].Message = "AllNamespaces is not supported, so every ClusterExtension has to configure the namespace to " +
			"watch"
		f[0].Severity = Info
	}
	return f
}

// checkV1Dependencies reports required APIs and dependencies.
func checkV1Dependencies(in *Input) []Finding {
	var out []Finding
	for i, required := range in.Bundle.CSV.Spec.CustomResourceDefinitions.Required {
		out = append(out, newCSVFinding(in, fmt.Sprintf("%s is required", required.Name), "spec",
			"customresourcedefinitions", "required", i)...)
	}
	for i, required := range in.Bundle.CSV.Spec.APIServiceDefinitions.Required {
		out = append(out, newCSVFinding(in, fmt.Sprintf("%s is required", required.Name), "spec",
			"apiservicedefinitions", "required", i)...)
	}
	for i, d := range in.Bundle.Dependencies {
		out = append(out, newFileFinding(in, dependenciesFile, d.Type,
			fmt.Sprintf("dependency %d is of type %s", i+1, d.Type), "dependencies", i))
	}
	refused := []string{bundles.PropertyGVKRequired, bundles.PropertyPackageRequired,
		bundles.PropertyConstraint}
	for i, p := range in.Bundle.Properties {
		if slices.Contains(refused, p.Type) {
			out = append(out, newFileFinding(in, propertiesFile, p.Type,
				fmt.Sprintf("property %d is of type %s", i+1, p.Type), "properties", i))
		}
	}
	return out
}

// checkV1APIService reports owned API services.
func checkV1APIService(in *Input) []Finding {
	var out []Finding
	for i, d := range in.Bundle.CSV.Spec.APIServiceDefinitions.Owned {
		out = append(out, newCSVFinding(in, fmt.Sprintf("API service %s.%s is owned", d.Version, d.Group), "spec",
			"apiservicedefinitions", "owned", i)...)
	}
	return out
}

// checkV1Webhooks reports webhook definitions, and install modes together with webhooks, that OLM v1 refuses.
func checkV1Webhooks(in *Input) []Finding {
	definitions := in.Bundle.CSV.Spec.WebhookDefinitions
	var out []Finding
	for i, w := range definitions {
		for field, message := range findWebhookProblems(definitions[:i], w) {
			out = append(out, newCSVFinding(in, message, "spec", "webhookdefinitions", i, field)...)
		}
	}
	if modes := listSupportedModes(in.Bundle); len(definitions) > 0 &&
		!slices.Equal(modes, []operatorsv1alpha1.InstallModeType{operatorsv1alpha1.InstallModeTypeAllNamespaces}) {
		out = append(out, newCSVFinding(in,
			"the bundle has webhooks, and supports other install modes than AllNamespaces", "spec", "installModes")...)
	}
	return out
}

// findWebhookProblems returns messages about a webhook definition, by field: an invalid name, or a name or a converted
// CustomResourceDefinition that one of the earlier definitions already has.
func findWebhookProblems(earlierDefinitions []operatorsv1alpha1.WebhookDescription,
	w operatorsv1alpha1.WebhookDescription) map[string]string {
	out := map[string]string{}
	if problems := validation.IsDNS1123Subdomain(w.GenerateName); len(problems) > 0 {
		out["generateName"] = fmt.Sprintf("%q is no valid name", w.GenerateName)
	}
	for _, earlier := range earlierDefinitions {
		if earlier.Type != w.Type {
			continue
		}
		if earlier.GenerateName == w.GenerateName {
			out["generateName"] = fmt.Sprintf("two webhooks of type %s are called %s", w.Type, w.GenerateName)
		}
		if i := slices.IndexFunc(w.ConversionCRDs,
			func(crd string) bool { return slices.Contains(earlier.ConversionCRDs, crd) }); i >= 0 {
			out["conversionCRDs"] = fmt.Sprintf("%s has two conversion webhooks, %s and %s", w.ConversionCRDs[i],
				earlier.GenerateName, w.GenerateName)
		}
	}
	return out
}

// checkV1Deployments reports Deployments with an invalid name, or with the name of an earlier Deployment.
func checkV1Deployments(in *Input) []Finding {
	var out []Finding
	isListed := map[string]bool{}
	for i, d := range in.Bundle.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		place := []any{"spec", "install", "spec", "deployments", i, "name"}
		if isListed[d.Name] {
			out = append(out, newCSVFinding(in, fmt.Sprintf("two Deployments are called %s", d.Name), place...)...)
		}
		isListed[d.Name] = true
		if problems := validation.IsDNS1123Subdomain(d.Name); len(problems) > 0 {
			out = append(out, newCSVFinding(in, fmt.Sprintf("%q is no valid name for a Deployment", d.Name),
				place...)...)
		}
	}
	return out
}

// checkV1OperatorCondition reports a right to OperatorConditions.
func checkV1OperatorCondition(in *Input) []Finding {
	for _, r := range in.Bundle.Rights() {
		if r.IsRequested() && isAboutConditions(r.Rule) {
			return newCSVFinding(in, "the operator is granted rights to OperatorConditions", r.Path...)
		}
	}
	return nil
}

// isAboutConditions reports whether a rule includes OperatorConditions.
func isAboutConditions(rule rbacv1.PolicyRule) bool {
	return slices.Contains(rule.APIGroups, operatorsv1alpha1.GroupName) &&
		slices.ContainsFunc(rule.Resources, func(resource string) bool {
			return strings.HasPrefix(resource, "operatorconditions")
		})
}

// checkV0Served reports owned definitions whose version is not served. OLM v0 uses only the last version that the
// ClusterServiceVersion lists for a definition (GetAllCRDDescriptions of operator-framework/api).
func checkV0Served(in *Input) []Finding {
	var out []Finding
	owned := in.Bundle.CSV.Spec.CustomResourceDefinitions.Owned
	for i, o := range owned {
		isSame := func(later operatorsv1alpha1.CRDDescription) bool { return later.Name == o.Name }
		isOverridden := slices.ContainsFunc(owned[i+1:], isSame)
		if isOverridden || !isUnserved(in.Bundle, o) {
			continue
		}
		out = append(out, newObjectFinding(in.Bundle.CSVObject(),
			fmt.Sprintf("version %s of %s is not served", o.Version, o.Name),
			"spec", "customresourcedefinitions", "owned", i, "version"))
	}
	return out
}

// isUnserved reports whether the bundle defines the version of an owned definition and does not serve it.
func isUnserved(b *bundles.Bundle, o operatorsv1alpha1.CRDDescription) bool {
	for _, d := range b.CRDs {
		for _, v := range d.Spec.Versions {
			if d.Name == o.Name && v.Name == o.Version {
				return !v.Served
			}
		}
	}
	return false
}
