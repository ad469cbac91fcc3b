// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package localpolicy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
)

const own = "bellwether-system"

func parse(t *testing.T, text string) *localpolicy.Policy {
	t.Helper()
	p := localpolicy.Parse(map[string]string{localpolicy.Key: text}, own)
	if p.Invalid != "" {
		t.Fatalf("policy is invalid: %s", p.Invalid)
	}
	return p
}

// refused checks the reason and the message of a refusal; an empty message means that there must be no refusal.
func refused(t *testing.T, err error, says string) {
	t.Helper()
	if says == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	var refusal *localpolicy.RefusalError
	if !errors.As(err, &refusal) || refusal.Reason != v1alpha1.ReasonLocalPolicy ||
		!strings.Contains(refusal.Message, says) || !strings.Contains(refusal.Message, localpolicy.ConfigMap) {
		t.Errorf("%v, want a refusal that says %q", err, says)
	}
}

func key(t *testing.T) string {
	t.Helper()
	pair, err := sign.GenerateKey(sign.Ed25519, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(pair.Public)
}

func releaseIn(namespace, image string, keys ...string) v1alpha1.Release {
	return v1alpha1.Release{Package: "echo", Version: "1.0.0", Install: v1alpha1.InstallSettings{Namespace: namespace},
		Catalog: v1alpha1.CatalogPin{Source: v1alpha1.CatalogSource{Image: image}, PublicKeys: keys}}
}

func TestRelease(t *testing.T) {
	const registries = "allowedRegistries: [registry.example.com/team, quay.io]"
	tests := map[string]struct {
		policy  string
		release v1alpha1.Release
		says    string
	}{
		"nothing is limited": {"{}", releaseIn("echo", "evil.example.com/x"), ""},
		"kube-system": {"{}", releaseIn("kube-system", "quay.io/x"),
			"namespace kube-system is denied (kube-*)"},
		"the agent's namespace": {"{}", releaseIn(own, "quay.io/x"), "namespace " + own + " is denied"},
		"OLM's":                 {"{}", releaseIn("olm", "quay.io/x"), "namespace olm is denied"},
		"OLM's on OpenShift": {"{}", releaseIn("openshift-operator-lifecycle-manager", "quay.io/x"),
			"openshift-operator-lifecycle-manager is denied"},
		"OpenShift's for operators": {"{}", releaseIn("openshift-operators", "quay.io/x"), ""},
		"of a team of OpenShift":    {"{}", releaseIn("openshift-custom-domains-operator", "quay.io/x"), ""},
		"the owner's list":          {"deniedNamespaces: [prod-*]", releaseIn("prod-1", "quay.io/x"), "denied (prod-*)"},
		"which replaces the default": {"deniedNamespaces: [prod-*]", releaseIn("kube-system", "quay.io/x"),
			""},
		"an empty list":               {"deniedNamespaces: []", releaseIn(own, "quay.io/x"), ""},
		"a namespace by its package":  {"deniedNamespaces: [echo]", releaseIn("", "quay.io/x"), "namespace echo"},
		"a repository":                {registries, releaseIn("", "registry.example.com/team/catalog:v1"), ""},
		"a registry":                  {registries, releaseIn("", "quay.io/any@sha256:"+strings.Repeat("0", 64)), ""},
		"the same beginning":          {registries, releaseIn("", "registry.example.com/teams/c"), "allowedRegistries"},
		"another host":                {registries, releaseIn("", "quay.io.evil.example.com/c"), "allowedRegistries"},
		"another port":                {registries, releaseIn("", "quay.io:5000/c"), "allowedRegistries"},
		"the default registry":        {registries, releaseIn("", "team/catalog"), "docker.io/team/catalog"},
		"no image at all":             {registries, releaseIn("", "quay.io/UPPER"), "no reference of an image"},
		"a directory has no registry": {registries, releaseIn("", ""), "directory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, test.policy).JudgeRelease(test.release)
			refused(t, err, test.says)
		})
	}
}

// TestConfigOfTheAgent checks that the hub cannot change where the agent reads its limits, with and without a policy.
func TestConfigOfTheAgent(t *testing.T) {
	variable := v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "POD_NAMESPACE", Value: "other"}}}
	for name, test := range map[string]struct {
		namespace string
		config    v1alpha1.OperatorConfig
		says      string
	}{
		"a variable": {own, variable, "Remove env from install.config"},
		"a variable of a Secret": {own, v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "BELLWETHER_AGENT_BACKUP_STORE",
			ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "a"}}}}}, "Remove env"},
		"of another operator": {"echo", variable, ""},
		"what it takes and where it runs": {own, v1alpha1.OperatorConfig{Resources: &corev1.ResourceRequirements{},
			NodeSelector: map[string]string{"a": "b"}, Tolerations: []corev1.Toleration{{Key: "a"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			release := releaseIn(test.namespace, "quay.io/x")
			release.Install.Config = &test.config
			without := &localpolicy.Policy{OwnNamespace: own, Absent: true}
			for _, p := range []*localpolicy.Policy{parse(t, "deniedNamespaces: []"), without} {
				_, err := p.JudgeRelease(release)
				if test.says == "" && err != nil || test.says != "" && !strings.Contains(fmt.Sprint(err), test.says) {
					t.Errorf("got %v, want %q", err, test.says)
				}
			}
		})
	}
}

// TestTrustedKeys checks that a hub can neither omit the owner's keys nor use other keys.
func TestTrustedKeys(t *testing.T) {
	ours, other := key(t), key(t)
	policy, err := json.Marshal(localpolicy.Spec{TrustedKeys: []string{ours}})
	if err != nil {
		t.Fatal(err)
	}
	p := parse(t, string(policy))
	tests := map[string]struct {
		asked []string
		want  string
		says  string
	}{
		"the hub asks for none":              {nil, ours, ""},
		"for the owner's":                    {[]string{ours}, ours, ""},
		"written otherwise":                  {[]string{"\n" + ours + "\n\n"}, "\n" + ours + "\n\n", ""},
		"for another one":                    {[]string{other}, "", "none of the 1 signing key"},
		"for both":                           {[]string{other, ours}, ours, ""},
		"for something that is no key":       {[]string{"x"}, "", "none of the 1 signing key"},
		"another key hides behind the first": {[]string{ours + other}, "", "none of the 1 signing key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			keys, err := p.JudgeRelease(releaseIn("", "quay.io/x", test.asked...))
			refused(t, err, test.says)
			if got := strings.Join(keys, "|"); got != test.want {
				t.Errorf("keys %q, want %q", got, test.want)
			}
		})
	}
	refused(t, p.RefuseUnsigned(errors.New("no signature")), "not signed by one of trustedKeys (no signature)")
	if err := parse(t, "{}").RefuseUnsigned(errors.New("no signature")); err != nil {
		t.Errorf("a policy without keys: %v", err)
	}
}

// TestInvalidPolicy checks that an invalid policy permits nothing.
func TestInvalidPolicy(t *testing.T) {
	for name, data := range map[string]map[string]string{
		"no key":           {"policy.yml": "{}"},
		"a field mistyped": {localpolicy.Key: "trustedKey: []"},
		"no YAML":          {localpolicy.Key: "\t{"},
		"no key in PEM":    {localpolicy.Key: "trustedKeys: [abc]"},
		"no pattern":       {localpolicy.Key: "deniedNamespaces: ['[']"},
		"no registry":      {localpolicy.Key: "allowedRegistries: ['https://quay.io']"},
		"no whole rule":    {localpolicy.Key: "permissions: {denied: [{resources: [secrets], verbs: [get]}]}"},
	} {
		p := localpolicy.Parse(data, own)
		_, err := p.JudgeRelease(releaseIn("echo", "quay.io/x"))
		var refusal *localpolicy.RefusalError
		if !errors.As(err, &refusal) || refusal.Reason != v1alpha1.ReasonLocalPolicyInvalid {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}

type object = map[string]any

// bundleOf returns the manifests of an operator, whose CSV is changed.
func bundleOf(t *testing.T, change func(spec object), others ...object) [][]byte {
	t.Helper()
	csv := catalogtest.CSV("echo.v1.0.0", "1.0.0", "echo.example.com")
	if change != nil {
		change(csv["spec"].(object))
	}
	var out [][]byte
	for _, o := range append([]object{csv}, others...) {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, raw)
	}
	return out
}

func strategy(spec object) object { return spec["install"].(object)["spec"].(object) }

func rule(group, resource string, verbs ...string) object {
	return object{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": verbs}
}

func asks(field string, rules ...object) func(object) {
	return func(spec object) {
		strategy(spec)[field] = []any{object{"serviceAccountName": "operator", "rules": rules}}
	}
}

func role(kind, name string, rules ...object) object {
	return object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": object{"name": name},
		"rules": rules}
}

func binding(kind, role string) object {
	return object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind + "Binding",
		"metadata": object{"name": "b"}, "roleRef": object{"kind": kind, "name": role,
			"apiGroup": "rbac.authorization.k8s.io"}}
}

func owned(o object) object { return marked(o, "olm.owner") }

func marked(o object, label string) object {
	o["metadata"].(object)["labels"] = object{label: "true"}
	return o
}

func webhook(kind, group, resource string) func(object) {
	return func(spec object) {
		spec["webhookdefinitions"] = []any{object{"type": kind, "generateName": "w.example.com",
			"admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "deploymentName": "echo",
			"rules": []any{object{"apiGroups": []any{group}, "apiVersions": []any{"*"}, "resources": []any{resource},
				"operations": []any{"*"}}}}}
	}
}

func monitor(endpoint object) object {
	return object{"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": object{"name": "m"},
		"spec": object{"endpoints": []any{endpoint}}}
}

func TestPermissions(t *testing.T) {
	const (
		wildcards = "permissions: {denyClusterWildcards: true}"
		secrets   = `permissions: {denied: [{apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}]}`
		escalate  = `permissions: {denied: [{apiGroups: [rbac.authorization.k8s.io], resources: ["*"], verbs: ["*"]}]}`
		maximum   = `permissions: {maximum: [{apiGroups: ["", apps], resources: ["*"], verbs: [get, list, watch]}]}`
		metrics   = `permissions: {denied: [{nonResourceURLs: ["/debug/*"], verbs: [get]}]}`
	)
	tests := map[string]struct {
		policy string
		bundle [][]byte
		mode   v1alpha1.InstallMode
		says   string
	}{
		"cluster-admin": {wildcards, bundleOf(t, asks("clusterPermissions", rule("*", "*", "*"))), "",
			"* * in * (clusterPermissions of service account operator)"},
		"a wildcard in its own namespace": {wildcards, bundleOf(t, asks("permissions", rule("*", "*", "*"))),
			v1alpha1.InstallOwnNamespace, ""},
		"which OLM makes cluster-wide": {wildcards, bundleOf(t, asks("permissions", rule("", "*", "get"))),
			v1alpha1.InstallAllNamespaces, "denyClusterWildcards"},
		"a wildcard in a ClusterRole of its own": {wildcards, bundleOf(t, nil, role("ClusterRole", "r",
			rule("", "pods/*", "get"))), "", "ClusterRole r"},
		"a right that is denied": {secrets, bundleOf(t, asks("permissions", rule("", "secrets", "list"))),
			v1alpha1.InstallOwnNamespace, "rights that are denied: list secrets in core"},
		"within a wildcard": {secrets, bundleOf(t, asks("clusterPermissions", rule("*", "*", "get"))), "",
			"denied"},
		"another verb": {secrets, bundleOf(t, asks("clusterPermissions", rule("", "secrets", "create"))), "",
			""},
		"another resource": {secrets, bundleOf(t, asks("clusterPermissions", rule("", "secrets/x", "get"))), "",
			""},
		"a role of a bundle": {escalate, bundleOf(t, nil, role("Role", "r", rule("", "pods", "get"))), "", ""},
		"which gives rights": {secrets, bundleOf(t, nil, role("Role", "r", rule("", "secrets", "get"))), "",
			"Role r"},
		"a binding to its own": {secrets, bundleOf(t, nil, role("ClusterRole", "r"), binding("ClusterRole", "r")),
			"", ""},
		"to the cluster's own": {secrets, bundleOf(t, nil, binding("ClusterRole", "cluster-admin")), "", "no limit"},
		"a webhook for Secrets": {secrets, bundleOf(t, webhook("ValidatingAdmissionWebhook", "", "*")), "",
			"webhook w"},
		"for all there is": {escalate, bundleOf(t, webhook("MutatingAdmissionWebhook", "*", "*/*")), "",
			"webhook w"},
		"for Secrets and their subresources": {secrets, bundleOf(t, webhook("MutatingAdmissionWebhook", "", "secrets/*")),
			"", "webhook w"},
		"for all subresources of pods": {`permissions: {denied: [{apiGroups: [""], resources: [pods/exec], verbs: ["*"]}]}`,
			bundleOf(t, webhook("MutatingAdmissionWebhook", "", "pods/*")), "", "webhook w"},
		"for its own kinds": {secrets, bundleOf(t, webhook("MutatingAdmissionWebhook", "echo.example.com", "things")),
			"", ""},
		"the token of Prometheus": {maximum, bundleOf(t, nil, monitor(object{"bearerTokenFile": "/token"})), "",
			"ServiceMonitor m, whose bearerTokenFile has Prometheus send its own token"},
		"a scrape": {maximum, bundleOf(t, nil, monitor(object{"port": "metrics"})), "", ""},
		"a token of another account": {maximum, bundleOf(t, nil, object{"apiVersion": "v1", "kind": "Secret",
			"type": "kubernetes.io/service-account-token", "metadata": object{"name": "s",
				"annotations": object{"kubernetes.io/service-account.name": "admin"}}}), "",
			"Secret s, which gets a token of service account admin"},
		"which only OLM reads": {maximum, bundleOf(t, nil, object{"apiVersion": "v1", "kind": "Secret",
			"Type": "kubernetes.io/service-account-token", "metadata": object{"name": "s",
				"annotations": object{"kubernetes.io/service-account.name": "admin"}}}), "",
			`Secret s has the field "Type"`},
		"the priority of all pods": {wildcards, bundleOf(t, nil, object{"apiVersion": "scheduling.k8s.io/v1",
			"kind": "PriorityClass", "metadata": object{"name": "p"}, "value": 1, "globalDefault": true}), "",
			"PriorityClass p holds for all pods of the cluster"},
		"a kind of another API": {wildcards, bundleOf(t, nil, object{"apiVersion": "x/v1", "kind": "PrometheusRule",
			"metadata": object{"name": "p"}}), "", "what PrometheusRule p of API group x does is not known"},
		"a kind that OLM does not know": {wildcards, bundleOf(t, nil, object{"apiVersion": "apps/v1",
			"kind": "DaemonSet", "metadata": object{"name": "d"}}), "", "what DaemonSet d of API group apps does"},
		"an account of others": {secrets, bundleOf(t, func(spec object) {
			d := strategy(spec)["deployments"].([]any)[0].(object)["spec"].(object)
			d["template"].(object)["spec"].(object)["serviceAccountName"] = "admin"
		}), "", "runs as service account admin"},
		"an account of others by the old field": {secrets, bundleOf(t, func(spec object) {
			d := strategy(spec)["deployments"].([]any)[0].(object)["spec"].(object)
			delete(d["template"].(object)["spec"].(object), "serviceAccountName")
			d["template"].(object)["spec"].(object)["serviceAccount"] = "admin"
		}), "", "runs as service account admin"},
		"both fields, of which the new one counts": {secrets, bundleOf(t, func(spec object) {
			d := strategy(spec)["deployments"].([]any)[0].(object)["spec"].(object)
			d["template"].(object)["spec"].(object)["serviceAccountName"] = "default"
			d["template"].(object)["spec"].(object)["serviceAccount"] = "admin"
		}), "", ""},
		"a Role that OLM grants in all namespaces": {secrets, bundleOf(t, nil, owned(role("Role", "r",
			rule("", "pods", "get")))), v1alpha1.InstallAllNamespaces, "has the label olm.owner"},
		"a role that is added to the agent's": {secrets, bundleOf(t, nil, marked(role("ClusterRole", "r",
			rule("", "pods", "get")), "bellwether.dev/aggregate-to-agent-backup")), "",
			"gives its rights to the agent"},
		"within the maximum": {maximum, bundleOf(t, asks("clusterPermissions", rule("apps", "deployments", "get"))), "",
			""},
		"a webhook within the maximum, for which OLM grants more": {`permissions: {denied: [{apiGroups: ` +
			`[authentication.k8s.io], resources: [tokenreviews], verbs: [create]}], maximum: [{apiGroups: ` +
			`["", echo.example.com], resources: [configmaps, things], verbs: ["*"]}]}`,
			bundleOf(t, webhook("MutatingAdmissionWebhook", "echo.example.com", "things")), "", ""},
		"another operator": {secrets, bundleOf(t, nil, object{"apiVersion": "operators.coreos.com/v1alpha1",
			"kind": "Subscription", "metadata": object{"name": "other"}}), "",
			"Subscription other makes OLM install another operator"},
		"an aggregated role": {secrets, bundleOf(t, nil, object{"apiVersion": "rbac.authorization.k8s.io/v1",
			"kind": "ClusterRole", "metadata": object{"name": "r"}, "aggregationRule": object{}}), "",
			"ClusterRole r is aggregated from others"},
		"beyond the maximum": {maximum, bundleOf(t, asks("clusterPermissions", rule("apps", "deployments", "delete"))),
			"", "more than the maximum: delete deployments in apps"},
		"a role of another API, which OLM knows by its kind": {secrets, bundleOf(t, nil, object{"apiVersion": "x/v1",
			"kind": "ClusterRole", "metadata": object{"name": "r"}, "rules": []any{rule("", "secrets", "get")}}), "",
			"ClusterRole r"},
		"a binding of another API": {secrets, bundleOf(t, nil, object{"apiVersion": "x/v1",
			"kind": "ClusterRoleBinding", "metadata": object{"name": "b"},
			"roleRef": object{"kind": "ClusterRole", "name": "cluster-admin"}}), "",
			"binds ClusterRole cluster-admin"},
		"a field that OLM takes for rules": {secrets, bundleOf(t, nil, object{"kind": "ClusterRole",
			"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": object{"name": "r"},
			"Rules": []any{rule("", "secrets", "get")}}), "", `ClusterRole r has the field "Rules"`},
		"one in the CSV": {secrets, bundleOf(t, asks("clusterPermission\u017f", rule("", "secrets", "get"))), "",
			"install.spec.clusterPermission\u017f"},
		"URLs": {metrics, bundleOf(t, asks("clusterPermissions", object{"nonResourceURLs": []any{"/debug/pprof"},
			"verbs": []any{"get"}})), "", "get /debug/pprof"},
		"other URLs": {metrics, bundleOf(t, asks("clusterPermissions", object{"nonResourceURLs": []any{"/metrics"},
			"verbs": []any{"get"}})), "", ""},
		"no limits":    {"{}", bundleOf(t, asks("clusterPermissions", rule("*", "*", "*"))), "", ""},
		"no manifests": {secrets, nil, "", "cannot be judged"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			refused(t, parse(t, test.policy).JudgeBundle("echo.v1.0.0", "", test.bundle, "echo", test.mode), test.says)
		})
	}
}

func TestImages(t *testing.T) {
	p := parse(t, "allowedRegistries: [quay.io/team]")
	objects := bundleOf(t, func(spec object) {
		deployment := strategy(spec)["deployments"].([]any)[0].(object)["spec"].(object)
		deployment["template"].(object)["spec"].(object)["containers"] = []any{object{"name": "manager",
			"image": "quay.io/team/echo:v1"}}
	})
	digest := "@sha256:" + strings.Repeat("0", 64)
	refused(t, p.JudgeBundle("echo", "", objects, "echo", ""), "")
	refused(t, p.JudgeBundle("echo", "quay.io/team/bundle"+digest, objects, "echo", ""),
		"would unpack quay.io/team/bundle"+digest+" into a ConfigMap")
	p = parse(t, "allowedRegistries: [registry.example.com]") // where the Deployment's image is
	for where, change := range map[string]func(spec, pod object){
		"a related image": func(spec, _ object) {
			spec["relatedImages"] = []any{object{"name": "miner", "image": "evil.example.com/miner"}}
		},
		"a container": func(_, pod object) {
			pod["containers"] = []any{object{"name": "miner", "image": "evil.example.com/miner"}}
		},
		"an init container": func(_, pod object) {
			pod["initContainers"] = []any{object{"name": "miner", "image": "evil.example.com/miner"}}
		},
		"a volume": func(_, pod object) {
			pod["volumes"] = []any{object{"name": "m", "image": object{"reference": "evil.example.com/miner"}}}
		},
		"a variable": func(_, pod object) {
			pod["containers"] = []any{object{"name": "m", "image": "registry.example.com/m", "env": []any{
				object{"name": "RELATED_IMAGE_MINER", "value": "evil.example.com/miner"}}}}
		},
	} {
		t.Run(where, func(t *testing.T) {
			objects := bundleOf(t, func(spec object) {
				deployment := strategy(spec)["deployments"].([]any)[0].(object)["spec"].(object)
				change(spec, deployment["template"].(object)["spec"].(object))
			})
			refused(t, p.JudgeBundle("echo", "", objects, "echo", ""), "evil.example.com/miner")
		})
	}
	refused(t, (*localpolicy.Policy)(nil).JudgeBundle("echo", "", nil, "echo", ""), "")
}

// TestObjectsOfTheOwner: an owner may permit operators in the agent's namespace, which upgrades of the agent by OLM
// need, but no bundle may replace the owner's objects in it.
func TestObjectsOfTheOwner(t *testing.T) {
	bringing := func(kind, name string) [][]byte {
		return bundleOf(t, nil, object{"apiVersion": "v1", "kind": kind, "metadata": object{"name": name}})
	}
	configMap := func(name string) [][]byte { return bringing("ConfigMap", name) }
	for name, tc := range map[string]struct {
		policy, namespace string
		bundle            [][]byte
		says              string
	}{
		"the policy": {"deniedNamespaces: []", own, configMap("bellwether-policy"), "ConfigMap bellwether-policy"},
		"the veto":   {"deniedNamespaces: []", own, configMap("bellwether-veto"), "ConfigMap bellwether-veto"},
		"with other limits": {"deniedNamespaces: []\npermissions: {denyClusterWildcards: true}", own,
			configMap("bellwether-policy"), "ConfigMap bellwether-policy"},
		"its settings": {"deniedNamespaces: []", own, configMap("bellwether-agent-settings"),
			"ConfigMap bellwether-agent-settings"},
		"its credentials": {"deniedNamespaces: []", own, bringing("Secret", "bellwether-hub-kubeconfig"),
			"Secret bellwether-hub-kubeconfig"},
		"its account": {"deniedNamespaces: []", own, bringing("ServiceAccount", "bellwether-agent"),
			"ServiceAccount bellwether-agent"},
		"its Role": {"deniedNamespaces: []", own, bringing("Role", "bellwether-agent-credentials"),
			"Role bellwether-agent-credentials"},
		"its ClusterRole, from anywhere": {"permissions: {denyClusterWildcards: true}", "echo",
			bringing("ClusterRole", "bellwether-agent"), "ClusterRole bellwether-agent"},
		"its Service":           {"deniedNamespaces: []", own, bringing("Service", "bellwether-agent"), ""},
		"another ConfigMap":     {"deniedNamespaces: []", own, configMap("settings"), "ConfigMap settings"},
		"another namespace":     {"deniedNamespaces: []", "echo", configMap("bellwether-policy"), ""},
		"content without limit": {"deniedNamespaces: []", own, nil, "cannot be judged"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, parse(t, tc.policy).JudgeBundle("bellwether-agent.v1.0.0", "", tc.bundle, tc.namespace, ""),
				tc.says)
		})
	}
	// Its pods could have the labels of the agent's, by which OLM finds the catalogs of the agent.
	refused(t, parse(t, "deniedNamespaces: []").JudgeBundle("echo.v1.0.0", "", bundleOf(t, nil), own, ""),
		"bundle echo.v1.0.0 is not the agent's")
}
