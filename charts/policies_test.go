// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

// evaluator evaluates admission policies as API servers do.
type evaluator struct{ env *cel.Env }

func newEvaluator(t *testing.T) evaluator {
	t.Helper()
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.NewExpressions)
	if err != nil {
		t.Fatal(err)
	}
	var declared []cel.EnvOption
	for _, name := range []string{"object", "oldObject", "request", "namespaceObject", "variables"} {
		declared = append(declared, cel.Variable(name, cel.DynType))
	}
	env, err := base.Extend(declared...)
	if err != nil {
		t.Fatal(err)
	}
	return evaluator{env}
}

// value fails the test if an expression does not compile. An expression that fails denies, as failurePolicy says.
func (e evaluator) value(t *testing.T, expression string, in object) any {
	t.Helper()
	ast, issues := e.env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("compile %s: %v", expression, issues.Err())
	}
	program, err := e.env.Program(ast)
	if err != nil {
		t.Fatalf("compile %s: %v", expression, err)
	}
	out, _, err := program.Eval(in)
	if err != nil {
		return err
	}
	return out.Value()
}

// denies returns the message of the first validation that a request does not pass; empty: it is admitted.
func (e evaluator) denies(t *testing.T, p *admissionv1.ValidatingAdmissionPolicy, in object) string {
	t.Helper()
	for _, condition := range p.Spec.MatchConditions {
		if e.value(t, condition.Expression, in) != true {
			return ""
		}
	}
	variables := object{}
	in["variables"] = variables
	for _, v := range p.Spec.Variables {
		variables[v.Name] = e.value(t, v.Expression, in)
	}
	for _, v := range p.Spec.Validations {
		if e.value(t, v.Expression, in) != true {
			return v.Message
		}
	}
	return ""
}

// policies are those of the chart, with a namespace in which the hub may read Secrets.
func policies(t *testing.T) map[string]*admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	manifests, err := render(t, load(t), "hub: {enabled: true, paging: {secretNamespaces: [payments]}}")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*admissionv1.ValidatingAdmissionPolicy{}
	for _, text := range manifests {
		if strings.Contains(text, "kind: ValidatingAdmissionPolicy\n") {
			p := &admissionv1.ValidatingAdmissionPolicy{}
			if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
				t.Fatal(err)
			}
			out[p.Name] = p
		}
	}
	return out
}

// TestPoliciesOfAccess asks what the policies admit that bound the hub and its agents. That API servers do as they say
// is tested in the testbed.
func TestPoliciesOfAccess(t *testing.T) {
	by := func(user, namespace, operation string) object {
		return object{"userInfo": object{"username": user}, "namespace": namespace, "operation": operation}
	}
	hub := func(namespace, operation string) object {
		return by("system:serviceaccount:bellwether-system:bellwether-hub", namespace, operation)
	}
	agent := by("system:serviceaccount:bellwether-a:bellwether-agent", "bellwether-a", "CREATE")
	ours := object{"metadata": object{"name": "bellwether-a", "labels": object{"bellwether.dev/cluster": "a"}}}
	lying := object{"metadata": object{"name": "kube-system", "labels": object{"bellwether.dev/cluster": "a"}}}
	foreign := object{"metadata": object{"name": "kube-system"}}
	lease := func(name, key, value string) object {
		return object{"metadata": object{"name": name, "annotations": object{key: value}},
			"spec": object{"holderIdentity": "agent-0"}}
	}
	event := func(name, field string) object {
		return object{"metadata": object{"name": name}, "regarding": object{"name": "echo", field: "x"},
			"deprecatedSource": object{}, "note": "fine"}
	}
	receiver := func(kind string, config object) object {
		return object{"spec": object{"receivers": []any{object{"name": "nobody"},
			object{"name": "team", kind: []any{config}}}}}
	}
	managed := func(managers int) object {
		return object{"metadata": object{"managedFields": slices.Repeat([]any{object{"manager": "a"}}, managers)}}
	}
	changes := by("system:serviceaccount:bellwether-a:bellwether-agent", "bellwether-a", "UPDATE")
	install := func(metadata object) object {
		metadata["labels"] = object{"bellwether.dev/cluster": "a"}
		return object{"metadata": metadata, "spec": object{"cluster": "a"}}
	}
	entry := func(manager, field string) object {
		return object{"manager": manager, "operation": "Apply", "fieldsV1": object{"f:" + field: object{}}}
	}
	wrote := func(entries ...any) object { return install(object{"managedFields": entries}) }
	nobody := []any{object{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "x"}}
	const version, restricted = "bellwether.dev/agent-version", "a namespace bellwether-NAME"
	all, e := policies(t), newEvaluator(t)
	for name, test := range map[string]struct {
		policy             string
		request            object
		namespace, is, was object
		want               string
	}{
		"a Lease": {"agents-leases", agent, ours, lease("bellwether-agent", version, "1"), nil,
			""},
		"another Lease": {"agents-leases", agent, ours, lease("b", version, "1"), nil,
			"one Lease"},
		"another's Lease is not the policy's": {"agents-leases", by("olga", "bellwether-a", "CREATE"), ours,
			lease("b", "a", "1"), nil, ""},
		"17 KiB": {"agents-leases", agent, ours,
			lease("bellwether-agent", version, strings.Repeat("x", 17<<10)), nil, "16 KiB"},
		"an annotation": {"agents-leases", agent, ours, lease("bellwether-agent", "a", "b"), nil,
			"annotations of bellwether.dev"},
		"an Event":      {"agents-events", agent, ours, event("agent-0af", "kind"), nil, ""},
		"another Event": {"agents-events", agent, ours, event("a.1", "kind"), nil, "agent-fff"},
		"an Event of a field": {"agents-events", agent, ours, event("agent-0af", "fieldPath"),
			nil, "no fields"},
		"32 field managers": {"agents-managers", agent, ours, managed(32), nil, ""},
		"33 field managers": {"agents-managers", agent, ours, managed(33), nil, "at most 32 field managers"},
		"33 of others":      {"agents-managers", by("olga", "bellwether-a", "UPDATE"), ours, managed(33), nil, ""},
		"its finalizer": {"agents", changes, ours, install(object{"finalizers": []any{"bellwether.dev/agent"}}),
			install(object{}), ""},
		"another's finalizer": {"agents", changes, ours, install(object{"finalizers": []any{"a/b"}}),
			install(object{}), "bellwether.dev/agent only"},
		"an owner of an install": {"agents", changes, ours, install(object{"ownerReferences": nobody}),
			install(object{}), "owners of an OperatorInstall"},
		"no owner of it": {"agents", changes, ours, install(object{}), install(object{"ownerReferences": nobody}),
			"owners of an OperatorInstall"},
		"its own entry": {"agents", changes, ours, wrote(entry("bellwether-finalizers", "a"),
			entry("bellwether-rollout", "b")), wrote(entry("bellwether-rollout", "b")), ""},
		"an entry in another's name": {"agents", changes, ours, wrote(entry("bellwether-rollout", "a"),
			entry("bellwether-rollout", "b")), wrote(entry("bellwether-rollout", "b")), "no entries of managedFields"},
		"another's entry, changed": {"agents", changes, ours, wrote(entry("bellwether-rollout", "a")),
			wrote(entry("bellwether-rollout", "b")), "no entries of managedFields"},
		"another's entry, removed": {"agents", changes, ours, wrote(), wrote(entry("bellwether-rollout", "b")),
			"no entries of managedFields"},
		"a backup": {"agents-backups", agent, ours, install(object{}), nil, ""},
		"a backup with an owner": {"agents-backups", agent, ours, install(object{"ownerReferences": nobody}), nil,
			"no owners"},
		"a backup with a label": {"agents-backups", agent, ours, object{"metadata": object{"labels": object{"a": "b"}}},
			nil, "only the labels"},
		"access to a cluster":    {"hub", hub("bellwether-a", "CREATE"), ours, object{}, nil, ""},
		"access to another one":  {"hub", hub("kube-system", "CREATE"), foreign, object{}, nil, restricted},
		"a wrong label":          {"hub", hub("kube-system", "DELETE"), lying, nil, object{}, restricted},
		"an administrator":       {"hub", by("olga", "kube-system", "CREATE"), foreign, object{}, nil, ""},
		"a cluster's namespace":  {"hub-namespaces", hub("", "CREATE"), nil, ours, nil, ""},
		"the end of it":          {"hub-namespaces", hub("", "DELETE"), nil, nil, ours, ""},
		"another namespace":      {"hub-namespaces", hub("", "CREATE"), nil, foreign, nil, restricted},
		"the end of another one": {"hub-namespaces", hub("", "DELETE"), nil, nil, foreign, restricted},
		"a label on another one": {"hub-namespaces", hub("", "UPDATE"), nil, lying, foreign, restricted},
		"a token":                {"hub-tokens", hub("bellwether-a", "CREATE"), ours, object{}, nil, "no tokens"},
		"a Secret": {"hub-secrets", hub("bellwether-system", "CREATE"), foreign, object{"type": "Opaque"}, nil,
			""},
		"a token's Secret": {"hub-secrets", hub("bellwether-system", "CREATE"), foreign,
			object{"type": "kubernetes.io/service-account-token"}, nil, "Opaque"},
		"a pager": {"hub-paging", hub("payments", "CREATE"), foreign,
			receiver("pagerdutyConfigs", object{}), nil, ""},
		"one where the hub reads no Secrets": {"hub-paging", hub("other", "CREATE"), foreign,
			receiver("pagerdutyConfigs", object{}), nil, "refers to Secrets"},
		"a receiver without Secrets": {"hub-paging", hub("other", "CREATE"), foreign,
			receiver("emailConfigs", object{"to": "sre@example.com"}), nil, ""},
		"a receiver with a password": {"hub-paging", hub("other", "CREATE"), foreign,
			receiver("emailConfigs", object{"authPassword": object{}}), nil, "refers to Secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			got := e.denies(t, all["bellwether-"+test.policy], object{"object": test.is, "oldObject": test.was,
				"request": test.request, "namespaceObject": test.namespace})
			if (got != "") != (test.want != "") || !strings.Contains(got, test.want) {
				t.Errorf("the policy says %q, want %q", got, test.want)
			}
		})
	}
}

// TestAnAgentChangesNoMetadata: what an object's metadata has can delete the object, or have others take it for
// another one.
func TestAnAgentChangesNoMetadata(t *testing.T) {
	ofAPIServer := []string{"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation",
		"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"}
	values := object{
		"labels":          object{"bellwether.dev/wave": "canary"},
		"annotations":     object{"a": "b"},
		"ownerReferences": []any{object{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "x"}},
		"finalizers":      []any{"example.com/other"},
		"managedFields":   []any{object{"manager": "bellwether-rollout"}},
	}
	request := object{"userInfo": object{"username": "system:serviceaccount:bellwether-a:bellwether-agent"},
		"namespace": "bellwether-a", "operation": "UPDATE"}
	install := func(metadata object) object { return object{"metadata": metadata, "spec": object{"cluster": "a"}} }
	policy, e := policies(t)["bellwether-agents"], newEvaluator(t)
	for field := range reflect.TypeFor[metav1.ObjectMeta]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if slices.Contains(ofAPIServer, name) {
			continue
		}
		for action, change := range map[string][2]object{
			"sets": {{}, {name: values[name]}}, "removes": {{name: values[name]}, {}},
		} {
			if e.denies(t, policy, object{"object": install(change[1]), "oldObject": install(change[0]),
				"request": request, "namespaceObject": object{"metadata": object{"name": "bellwether-a",
					"labels": object{"bellwether.dev/cluster": "a"}}}}) == "" {
				t.Errorf("an agent %s metadata.%s", action, name)
			}
		}
	}
}
