// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// found says what a rule finds in an example, as "severity place path: message"
// without what is empty.
func found(t *testing.T, rule, example string) []string {
	t.Helper()
	in, o := examplePlay(t, example)
	o.Only = []string{rule}
	var out []string
	for _, f := range Run(in, o).Findings {
		out = append(out, strings.TrimSpace(string(f.Severity)+" "+f.Path)+": "+f.Message)
	}
	return out
}

func csvPatch(text string) string { return "-- " + baseCSV + ".patch --\n" + text + "\n" }

func pdb(spec string) string {
	return "-- manifests/pdb.yaml --\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: " +
		"echo}\nspec: {selector: {matchLabels: {app.kubernetes.io/name: echo-operator}}, " + spec + "}\n"
}

func profile(value string) string {
	return "-- metadata/properties.yaml --\nproperties:\n- {type: bellwether.dev/slo, value: {" + value + "}}\n"
}

func replicas(n string) string {
	return csvPatch("spec: {install: {spec: {deployments: [{name: echo-operator, spec: {replicas: " + n + "}}]}}}")
}

// Each condition under which a rule reports a finding, or must not report one.
func TestBranches(t *testing.T) {
	const history = "-- history/1.0.0/metadata/annotations.yaml.patch --\nannotations: {}\n"
	const dependencies = "-- metadata/dependencies.yaml --\ndependencies:\n"
	for name, test := range map[string]struct {
		rule, example string
		want          []string
	}{
		"version: a pre-release": {"version-format", csvPatch("spec: {version: 1.2.0-rc.1}"),
			[]string{"warning spec.version: version 1.2.0-rc.1 is a pre-release"}},
		"version: none": {"version-format", csvPatch("spec: {version: null}"),
			[]string{"error spec.version: spec.version is missing, or 0.0.0"}},
		"version: taken under another name": {"version-taken", history +
			csvPatch("metadata: {name: echo-operator-v1.0.0}\nspec: {version: 1.0.0}"),
			[]string{"error spec.version: version 1.0.0 was published before, as echo-operator.v1.0.0"}},
		"name: without a version": {"version-name", csvPatch("metadata: {name: echo-operator}"), nil},

		"replaces: itself": {"replaces-invalid", csvPatch("spec: {replaces: echo-operator.v1.1.0}"),
			[]string{"error spec.replaces: it replaces itself"}},
		"replaces: one published": {"replaces-invalid", history +
			csvPatch("spec: {replaces: echo-operator.v1.0.0}"), nil},
		"replaces: one not published": {"replaces-invalid", history +
			csvPatch("spec: {replaces: echo-operator.v1.0.1}"),
			[]string{"warning spec.replaces: it replaces echo-operator.v1.0.1, which is not among the published " +
				"versions"}},
		"replaces: without a history": {"replaces-invalid", csvPatch("spec: {replaces: echo-operator.v1.0.1}"), nil},
		"skip range: no range": {"skip-range-invalid",
			csvPatch(`metadata: {annotations: {olm.skipRange: "below 1.0"}}`),
			[]string{`error metadata.annotations[olm.skipRange]: "below 1.0" is no range of versions: Could not ` +
				`get version from string: "below"`}},
		"least Kubernetes: first said": {"min-kube-raised", "-- history/1.0.0/" + baseCSV +
			".patch --\nspec: {minKubeVersion: null}\n",
			[]string{"warning spec.minKubeVersion: minKubeVersion is 1.30.0, and was none in version 1.0.0"}},
		"least Kubernetes: lowered": {"min-kube-raised", "-- history/1.0.0/" + baseCSV +
			".patch --\nspec: {minKubeVersion: 1.31.0}\n", nil},

		"profile: another Service": {"slo-profile", profile("services: [{name: other, port: 80}]"),
			[]string{"warning properties[0].value: Service other is probed and not in the bundle"}},
		"profile: another port": {"slo-profile", profile("services: [{name: echo-operator-metrics, port: 80}]"),
			[]string{"error properties[0].value: Service echo-operator-metrics is probed on port 80, which it does " +
				"not have"}},
		"profile: an unknown field": {"slo-profile", profile("service: []"),
			[]string{`error properties[0].value: decode: unknown field "service"`}},
		"profile: twice": {"slo-profile", profile("without: [csv]") +
			"- {type: bellwether.dev/slo, value: {}}\n",
			[]string{"error properties[1].value: there are several properties bellwether.dev/slo; only the first one " +
				"counts"}},
		"profile: other properties": {"slo-profile",
			"-- metadata/properties.yaml --\nproperties: [{type: olm.maxOpenShiftVersion, value: '4.20'}]\n", nil},

		"budget: a percentage": {"pdb-blocks-drain", pdb("maxUnavailable: 25%"), nil},
		"budget: none unavailable": {"pdb-blocks-drain", pdb("maxUnavailable: 0"),
			[]string{"error spec.maxUnavailable: maxUnavailable is 0"}},
		"budget: zero percent": {"pdb-blocks-drain", pdb("maxUnavailable: 0%"),
			[]string{"error spec.maxUnavailable: maxUnavailable is 0%"}},
		"budget: all available": {"pdb-blocks-drain", pdb("minAvailable: 100%"),
			[]string{"error spec.minAvailable: minAvailable is 100%"}},
		"budget: both": {"pdb-blocks-drain", pdb("minAvailable: 1, maxUnavailable: 1"),
			[]string{"error spec: minAvailable and maxUnavailable are both set; the API server refuses that"}},
		"budget: one of two": {"pdb-blocks-drain", pdb("minAvailable: 1") + replicas("2"), nil},
		"budget: two of two": {"pdb-blocks-drain", pdb("minAvailable: 2") + replicas("2"),
			[]string{"error spec.minAvailable: minAvailable is 2, and Deployment echo-operator has 2"}},
		"budget: rounded up to all": {"pdb-blocks-drain", pdb("minAvailable: 60%") + replicas("2"),
			[]string{"error spec.minAvailable: minAvailable is 60%, and Deployment echo-operator has 2"}},
		"budget: of no Deployment": {"pdb-blocks-drain",
			strings.Replace(pdb("minAvailable: 1"), "echo-operator}", "others}", 1), nil},
		"budget: of validators, falsely": {"of-object", pdb("maxUnavailable: 25%"), nil},

		"annotations: none": {"bundle-annotations",
			"-- metadata/annotations.yaml.patch --\nannotations: {operators.operatorframework.io.bundle.channels.v1: " +
				"null, operators.operatorframework.io.bundle.channel.default.v1: null}\n",
			[]string{"error annotations[operators.operatorframework.io.bundle.channels.v1]: the annotation " +
				"operators.operatorframework.io.bundle.channels.v1 is missing"}},
		"annotations: other folders": {"bundle-annotations",
			"-- metadata/annotations.yaml.patch --\nannotations: {operators.operatorframework.io.bundle.metadata.v1: " +
				"meta/}\n",
			[]string{`warning annotations[operators.operatorframework.io.bundle.metadata.v1]: ` +
				`operators.operatorframework.io.bundle.metadata.v1 is "meta/"; many tools look in metadata/ only`}},
		"stray: a folder": {"bundle-stray-file", "-- manifests/crds/a.yaml --\nkind: A\n",
			[]string{"error: a folder among the manifests"}},

		"dependency: fine": {"dependency-invalid", dependencies +
			"- {type: olm.package, value: {packageName: a, version: '>1.0.0'}}\n- {type: olm.gvk, value: {group: a, " +
			"version: v1, kind: A}}\n" +
			"- {type: olm.constraint, value: {failureMessage: a, cel: {rule: 'true'}}}\n- {type: olm.label, value: " +
			"{label: a}}\n", nil},
		"dependency: of no type": {"dependency-invalid", dependencies + "- {type: olm.crd, value: {}}\n",
			[]string{"error dependencies[0]: dependency 1 (olm.crd): OLM knows no dependency of this type"}},
		"dependency: incomplete": {"dependency-invalid", dependencies +
			"- {type: olm.gvk, value: {group: a, version: v1}}\n",
			[]string{"error dependencies[0]: dependency 1 (olm.gvk): API Kind is empty"}},

		"image: with tag and digest": {"image-digest",
			csvPatch("spec: {relatedImages: [{name: a, image: " +
				"'a.io/b:v1@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'}]}"), nil},
		"image: in two places": {"image-digest",
			csvPatch("spec: {relatedImages: [{name: a, image: a.io/b}, {name: b, image: a.io/b}]}"),
			[]string{"warning spec.relatedImages[1].image: image a.io/b has no digest"}},
		"image: no annotation": {"container-image", csvPatch("metadata: {annotations: {containerImage: null}}"),
			[]string{"info metadata.annotations: the annotation containerImage is missing"}},
		"image: of an init container": {"image-unlisted",
			csvPatch("spec: {install: {spec: {deployments: [{name: echo-operator, spec: {template: {spec: " +
				"{initContainers: [{name: a, image: a.io/b}]}}}}]}}}"),
			[]string{"warning spec.install.spec.deployments[0].spec.template.spec.initContainers[0].image: image " +
				"a.io/b is not in spec.relatedImages"}},

		"binding: of the cluster, to nowhere": {"binding-namespace",
			"-- manifests/b.yaml --\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: " +
				"{name: 'a:b'}\nsubjects: [{kind: ServiceAccount, name: echo-operator}]\n",
			[]string{"error subjects[0]: ClusterRoleBinding a:b does not say in which namespace ServiceAccount " +
				"echo-operator is; the API server refuses that"}},
		"binding: of somebody else": {"binding-namespace",
			"-- manifests/b.yaml --\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: " +
				"b}\nsubjects: [{kind: ServiceAccount, name: prometheus, namespace: monitoring}]\n", nil},
		"metadata: a name with colons": {"object-metadata",
			"-- manifests/b.yaml --\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " +
				"'a:b'}\n", nil},
		"metadata: no name": {"object-metadata",
			"-- manifests/b.yaml --\napiVersion: v1\nkind: ConfigMap\ndata: {}\n",
			[]string{"error metadata.name: Required value: name or generateName is required"}},

		"install modes: one namespace": {"olmv1-install-mode",
			csvPatch("spec: {installModes: [{type: OwnNamespace, supported: true}, {type: AllNamespaces, supported: " +
				"false}]}"),
			[]string{"info spec.installModes: AllNamespaces is not supported, so every ClusterExtension has to " +
				"configure the namespace to watch"}},
		"webhook: with other modes": {"olmv1-webhook",
			csvPatch("spec: {installModes: [{type: OwnNamespace, supported: true}], webhookdefinitions: [{type: " +
				"ValidatingAdmissionWebhook, generateName: a.b}]}"),
			[]string{"warning spec.installModes: the bundle has webhooks, and supports other install modes than " +
				"AllNamespaces"}},
		"webhook: about admission": {"olmv0-webhook-rule",
			csvPatch("spec: {webhookdefinitions: [{type: ValidatingAdmissionWebhook, generateName: a.b, rules: " +
				"[{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations]}]}]}"),
			[]string{"error spec.webhookdefinitions[0].rules[0].apiGroups[0]: webhook a.b matches admission webhooks"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, found(t, test.rule, test.example)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.rule, diff)
			}
		})
	}
}

// The gaps in operator-framework/api still exist. Otherwise, the rule that closes the gap would report each
// fault twice.
func TestValidatorGapsExist(t *testing.T) {
	for _, rule := range listGapRules() {
		t.Run(rule.ID, func(t *testing.T) {
			in, o := examplePlay(t, readExample(rule.ID, "bad"))
			for _, f := range Run(in, o).Findings {
				if strings.HasPrefix(f.Rule, "of-") {
					t.Errorf("%s finds it now: %s", f.Rule, f.Message)
				}
			}
		})
	}
}
