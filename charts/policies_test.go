// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
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
	declared = append(declared, cel.Variable("authorizer", library.AuthorizerType))
	env, err := base.Extend(declared...)
	if err != nil {
		t.Fatal(err)
	}
	return evaluator{env}
}

// value returns the value of an expression. It fails the test if the expression does not
// compile. An expression with an error denies, because of the failurePolicy.
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
		if e.value(t, v.Expression, in) == true {
			continue
		}
		if v.MessageExpression != "" {
			return fmt.Sprint(e.value(t, v.MessageExpression, in))
		}
		return v.Message
	}
	return ""
}

// policies returns the policies of the chart, with a Secret that the hub may read.
func policies(t *testing.T) map[string]*admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	manifests, err := render(t, load(t), "hub: {enabled: true, "+
		"paging: {secrets: [{namespace: payments, name: pagerduty}]}}")
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

// TestPoliciesOfAccess evaluates the policies that limit the hub and its agents. The testbed
// verifies that API servers enforce them.
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
	secret := func(name, kind string) object { return object{"metadata": object{"name": name}, "type": kind} }
	labelled := func(labels object) object { return object{"metadata": object{"labels": labels}} }
	routes := labelled(object{"bellwether.dev/paging-hub": "bellwether-system"})
	othersRoutes := labelled(object{"bellwether.dev/paging": "true", "bellwether.dev/paging-hub": "another-hub"})
	rules := labelled(object{"bellwether.dev/rules": "true"})
	unlabelled := object{"metadata": object{}}
	managed := func(managers int) object {
		return object{"metadata": object{"managedFields": slices.Repeat([]any{object{"manager": "a"}}, managers)}}
	}
	changes := by("system:serviceaccount:bellwether-a:bellwether-agent", "bellwether-a", "UPDATE")
	install := func(metadata object) object {
		metadata["labels"] = object{"bellwether.dev/cluster": "a"}
		return object{"metadata": metadata, "spec": object{"cluster": "a"}}
	}
	entry := func(manager, field string) object {
		return object{"manager": manager, "operation": "Apply", "apiVersion": "bellwether.dev/v1alpha1",
			"fieldsV1": object{"f:spec": object{"f:" + field: object{}}}}
	}
	finalizer := func(manager string, names ...string) object {
		keys := object{".": object{}}
		for _, name := range names {
			keys[`v:"`+name+`"`] = object{}
		}
		return object{"manager": manager, "operation": "Update", "apiVersion": "bellwether.dev/v1alpha1",
			"fieldsV1": object{"f:metadata": object{"f:finalizers": keys}}}
	}
	fields := func(manager string, names object) object {
		return object{"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsV1": names}
	}
	below := func(entry object) object {
		keys := entry["fieldsV1"].(object)["f:metadata"].(object)["f:finalizers"].(object)
		keys[`v:"bellwether.dev/agent"`] = object{"f:x": object{}}
		return entry
	}
	owning := func(o object, entries ...any) object {
		o["metadata"].(object)["managedFields"] = entries
		return o
	}
	saves := func(spec object) object { return object{"metadata": object{}, "spec": spec} }
	many := object{}
	for i := range 1000 {
		many[fmt.Sprintf("f:field-%d", i)] = object{}
	}
	hidden := entry("bellwether-rollout", "b")
	hidden["subresource"] = "x"
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
		"an Event":           {"agents-events", agent, ours, event("agent-03f", "kind"), nil, ""},
		"another Event":      {"agents-events", agent, ours, event("a.1", "kind"), nil, "agent-03f"},
		"one Event too many": {"agents-events", agent, ours, event("agent-040", "kind"), nil, "agent-03f"},
		"an Event of a field": {"agents-events", agent, ours, event("agent-00a", "fieldPath"),
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
		"its own entry": {"agents", changes, ours, wrote(finalizer("bellwether-finalizers"),
			entry("bellwether-rollout", "b")), wrote(entry("bellwether-rollout", "b")), ""},
		"its own entry with more than the finalizer": {"agents", changes, ours, wrote(entry("bellwether-finalizers", "a"),
			entry("bellwether-rollout", "b")), wrote(entry("bellwether-rollout", "b")), "no more than its finalizer"},
		"an entry as if of the status": {"agents", changes, ours, wrote(func() object {
			e := entry("agent", "a")
			e["subresource"] = "status"
			return e
		}()), wrote(), "no more than its finalizer"},
		"its finalizer, which somebody else has set": {"agents", changes, ours, wrote(entry("bellwether-rollout", "b")),
			wrote(finalizer("velero", "bellwether.dev/agent"), entry("bellwether-rollout", "b")), ""},
		"another's entry, by another subresource": {"agents", changes, ours, wrote(hidden),
			wrote(entry("bellwether-rollout", "b")), "what others own"},
		"a finalizer given to another writer": {"agents", changes, ours, wrote(finalizer("velero", "a/b")),
			wrote(finalizer("velero")), "what others own"},
		"a finalizer taken from another writer": {"agents", changes, ours, wrote(finalizer("velero")),
			wrote(finalizer("velero", "a/b")), "what others own"},
		"an entry in another's name": {"agents", changes, ours, wrote(entry("bellwether-rollout", "a"),
			entry("bellwether-rollout", "b")), wrote(entry("bellwether-rollout", "b")), "what others own"},
		"another's entry, changed": {"agents", changes, ours, wrote(entry("bellwether-rollout", "a")),
			wrote(entry("bellwether-rollout", "b")), "what others own"},
		"another's entry, removed": {"agents", changes, ours, wrote(), wrote(entry("bellwether-rollout", "b")),
			"what others own"},
		"a name below its finalizer": {"agents", changes, ours, wrote(below(finalizer("agent", "bellwether.dev/agent"))),
			wrote(), "no more than its finalizer"},
		"another finalizer in its entry": {"agents", changes, ours, wrote(finalizer("agent", "a/b")), wrote(),
			"no more than its finalizer"},
		"a name below another's finalizer": {"agents", changes, ours, wrote(below(finalizer("velero", "bellwether.dev/agent"))),
			wrote(finalizer("velero", "bellwether.dev/agent")), "no more than its finalizer"},
		"a field that nobody owns": {"agents", changes, ours, wrote(fields("x", object{"f:x": object{}})), wrote(),
			"no more than its finalizer"},
		"the names of an Event's fields": {"agents-events", agent, ours, owning(event("agent-001", "kind"),
			fields("agent", object{"f:note": object{}, "f:series": object{".": object{}, "f:count": object{}}})),
			nil, ""},
		"an Event with a large name of a field": {"agents-events", agent, ours, owning(event("agent-001", "kind"),
			fields("agent", object{"f:" + strings.Repeat("x", 5000): object{}})), nil, "at most 4096 characters"},
		"an Event with many names of fields": {"agents-events", agent, ours, owning(event("agent-001", "kind"),
			fields("agent", many)), nil, "at most 4096 characters"},
		"an Event with deep names of fields": {"agents-events", agent, ours, owning(event("agent-001", "kind"),
			fields("agent", object{"f:a": object{"f:b": object{"f:c": object{"f:d": object{}}}}})),
			nil, "three levels"},
		"a Lease with much in all": {"agents-leases", agent, ours, owning(lease("bellwether-agent", version, "1"),
			slices.Repeat([]any{fields("agent", object{"f:spec": object{"f:" + strings.Repeat("x", 1000): object{}}})},
				30)...), nil, "at most 16384 characters"},
		"a Lease with the names of its annotations": {"agents-leases", agent, ours,
			owning(lease("bellwether-agent", version, "1"), fields("agent", object{"f:metadata": object{
				"f:annotations": object{".": object{}, "f:" + version: object{}}}, "f:spec": object{
				"f:holderIdentity": object{}}})), nil, ""},
		"a backup with Secrets": {"agents-backups", agent, ours, saves(object{"maxSize": "1Gi", "secrets": object{
			"matchLabels": object{"a": "b"}, "matchExpressions": []any{object{"key": "a", "operator": "In",
				"values": []any{"b"}}}}}), nil, ""},
		"a backup with a large selector": {"agents-backups", agent, ours, saves(object{"secrets": object{
			"matchLabels": object{"a": strings.Repeat("b", 20<<10)}}}), nil, "at most 16 KiB"},
		"a backup with many empty values": {"agents-backups", agent, ours, saves(object{"secrets": object{
			"matchExpressions": []any{object{"key": "a", "operator": "In", "values": slices.Repeat([]any{""}, 3000)}}}}),
			nil, "at most 16 KiB"},
		"a backup of a long size": {"agents-backups", agent, ours, saves(object{"maxSize": "1" + strings.Repeat("0", 100)}),
			nil, "a number such as 1Gi"},
		"a backup of a size without a unit": {"agents-backups", agent, ours, saves(object{"maxSize": int64(1000)}), nil, ""},
		"a backup":                          {"agents-backups", agent, ours, install(object{}), nil, ""},
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
		"a Secret": {"hub-secrets", hub("bellwether-system", "CREATE"), foreign,
			secret("bellwether-alertmanager", "Opaque"), nil, ""},
		"another Secret": {"hub-secrets", hub("bellwether-system", "CREATE"), foreign, secret("other", "Opaque"), nil,
			"bellwether-alertmanager only"},
		"a token's Secret": {"hub-secrets", hub("bellwether-system", "CREATE"), foreign,
			secret("bellwether-alertmanager", "kubernetes.io/service-account-token"), nil, "Opaque"},
		"a pager": {"hub-paging", hub("payments", "CREATE"), foreign,
			receiver("pagerdutyConfigs", object{"routingKey": object{"name": "pagerduty"}}), nil, ""},
		"one with another Secret": {"hub-paging", hub("payments", "CREATE"), foreign,
			receiver("pagerdutyConfigs", object{"routingKey": object{"name": "other"}}), nil, "refers to the Secrets"},
		"one with a Secret of that name elsewhere": {"hub-paging", hub("other", "UPDATE"), foreign,
			receiver("slackConfigs", object{"apiURL": object{"name": "pagerduty"}}), nil, "refers to the Secrets"},
		"a webhook with another Secret": {"hub-paging", hub("payments", "CREATE"), foreign,
			receiver("webhookConfigs", object{"urlSecret": object{"name": "other"}}), nil, "refers to the Secrets"},
		"another Secret as bearer token": {"hub-paging", hub("payments", "CREATE"), foreign,
			receiver("webhookConfigs", object{"url": "https://example.com", "httpConfig": object{}}), nil,
			"no other fields"},
		"a receiver of another kind": {"hub-paging", hub("payments", "CREATE"), foreign,
			receiver("opsgenieConfigs", object{}), nil, "no other fields"},
		"a receiver without Secrets": {"hub-paging", hub("other", "CREATE"), foreign,
			receiver("emailConfigs", object{"to": "sre@example.com"}), nil, ""},
		"a receiver with a password": {"hub-paging", hub("other", "CREATE"), foreign,
			receiver("emailConfigs", object{"authPassword": object{"name": "other"}}), nil, "refers to the Secrets"},
		"routes":         {"hub-alertmanagerconfigs", hub("payments", "CREATE"), foreign, routes, nil, ""},
		"changed routes": {"hub-alertmanagerconfigs", hub("payments", "UPDATE"), foreign, routes, routes, ""},
		"the end of routes": {"hub-alertmanagerconfigs", hub("payments", "DELETE"), foreign, nil, routes,
			""},
		"routes without a label": {"hub-alertmanagerconfigs", hub("payments", "CREATE"), foreign, unlabelled, nil,
			"only AlertmanagerConfigs"},
		"routes of another hub": {"hub-alertmanagerconfigs", hub("payments", "CREATE"), foreign, othersRoutes, nil,
			"only AlertmanagerConfigs"},
		"another's routes made its own": {"hub-alertmanagerconfigs", hub("payments", "UPDATE"), foreign, routes,
			unlabelled, "only AlertmanagerConfigs"},
		"its routes made another's": {"hub-alertmanagerconfigs", hub("payments", "UPDATE"), foreign, othersRoutes,
			routes, "only AlertmanagerConfigs"},
		"the end of another's routes": {"hub-alertmanagerconfigs", hub("payments", "DELETE"), foreign, nil,
			unlabelled, "only AlertmanagerConfigs"},
		"the end of another hub's routes": {"hub-alertmanagerconfigs", hub("payments", "DELETE"), foreign, nil,
			othersRoutes, "only AlertmanagerConfigs"},
		"routes of a person": {"hub-alertmanagerconfigs", by("olga", "payments", "DELETE"), foreign, nil, unlabelled,
			""},
		"rules":         {"hub-prometheusrules", hub("bellwether-system", "CREATE"), foreign, rules, nil, ""},
		"changed rules": {"hub-prometheusrules", hub("bellwether-system", "UPDATE"), foreign, rules, rules, ""},
		"the end of rules": {"hub-prometheusrules", hub("bellwether-system", "DELETE"), foreign, nil, rules,
			""},
		"rules without a label": {"hub-prometheusrules", hub("bellwether-system", "CREATE"), foreign, unlabelled, nil,
			"only PrometheusRules"},
		"another's rules made its own": {"hub-prometheusrules", hub("bellwether-system", "UPDATE"), foreign, rules,
			unlabelled, "only PrometheusRules"},
		"the end of another's rules": {"hub-prometheusrules", hub("bellwether-system", "DELETE"), foreign, nil,
			unlabelled, "only PrometheusRules"},
		"the end of a freeze, by a controller": {"freezes", hub("", "DELETE"), nil, nil, object{}, "a person ends a freeze"},
		"the end of a freeze, by a node":       {"freezes", by("system:node:a", "", "DELETE"), nil, nil, object{}, "a person"},
		"the end of a freeze, by the garbage collector": {"freezes", by("system:kube-controller-manager", "", "DELETE"),
			nil, nil, object{}, "a person"},
		"a freeze with an owner": {"freezes", by("olga", "", "CREATE"), nil, object{"metadata": object{
			"ownerReferences": nobody}}, nil, "no owners"},
		"a freeze":                         {"freezes", hub("", "CREATE"), nil, object{"metadata": object{}}, nil, ""},
		"the end of a freeze, by a person": {"freezes", by("olga", "", "DELETE"), nil, nil, object{}, ""},
		"a backup by the hub": {"hub-backups", hub("bellwether-a", "CREATE"), ours, object{}, nil,
			"writes no OperatorBackups"},
		"where a backup is, by the hub": {"hub-backups", hub("bellwether-a", "UPDATE"), ours, object{}, object{},
			"writes no OperatorBackups"},
		"the end of a backup, by the hub": {"hub-backups", hub("bellwether-a", "DELETE"), ours, nil, object{},
			"writes no OperatorBackups"},
		"a backup by a person": {"hub-backups", by("olga", "bellwether-a", "CREATE"), ours, object{}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			policy, there := all["bellwether-"+test.policy]
			if !there {
				t.Fatalf("nothing forbids it: there is no policy %s", test.policy)
			}
			got := e.denies(t, policy, object{"object": test.is, "oldObject": test.was,
				"request": test.request, "namespaceObject": test.namespace})
			if (got != "") != (test.want != "") || !strings.Contains(got, test.want) {
				t.Errorf("the policy says %q, want %q", got, test.want)
			}
		})
	}
}

// TestAnAgentChangesNoMetadata verifies that an agent cannot change metadata, which could delete
// an object, or make other programs treat it as another object.
func TestAnAgentChangesNoMetadata(t *testing.T) {
	ofAPIServer := []string{"name", "namespace", "selfLink", "uid", "resourceVersion", "generation",
		"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"}
	values := object{
		"generateName":    "x",
		"labels":          object{"bellwether.dev/wave": "canary"},
		"annotations":     object{"a": "b"},
		"ownerReferences": []any{object{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "x"}},
		"finalizers":      []any{"example.com/other"},
		"managedFields": []any{object{"manager": "bellwether-rollout", "operation": "Apply",
			"apiVersion": "bellwether.dev/v1alpha1", "fieldsV1": object{"f:spec": object{}}}},
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

// TestTheHubsAlertmanagerConfigsAreAdmitted builds an AlertmanagerConfig with receivers of each
// kind. The policies must admit it, although they permit only fields that they name.
func TestTheHubsAlertmanagerConfigsAreAdmitted(t *testing.T) {
	key := v1alpha1.SecretKey{Name: "pagerduty", Key: "key"}
	spec := v1alpha1.PagingPolicySpec{
		Scope:     v1alpha1.PagingFleet,
		Pages:     v1alpha1.PageTarget{Receivers: []string{"pager", "channel", "hook", "mail"}},
		Tickets:   &v1alpha1.TicketTarget{Receivers: []string{"channel"}},
		Heartbeat: &v1alpha1.HeartbeatTarget{URL: key},
		Receivers: []v1alpha1.PagingReceiver{
			{Name: "pager", PagerDuty: &v1alpha1.PagerDutyReceiver{RoutingKey: key, URL: "https://events.example.com"}},
			{Name: "channel", Slack: &v1alpha1.SlackReceiver{APIURL: key, Channel: "#operators"}},
			{Name: "hook", Webhook: &v1alpha1.WebhookReceiver{URL: key}},
			{Name: "mail", Email: &v1alpha1.EmailReceiver{To: "a@example.com", From: "b@example.com",
				Smarthost: "mail:25", Username: "b", Password: &key}},
		},
	}
	policy := paging.Policy{Namespace: "payments", Name: "platform", Spec: spec}
	made, err := paging.BuildObject(policy, []paging.Policy{policy})
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(made)
	if err != nil {
		t.Fatal(err)
	}
	config := object{"spec": content, "metadata": object{"labels": object{
		"bellwether.dev/paging-hub": "bellwether-system"}}}
	all, e := policies(t), newEvaluator(t)
	request := object{"namespace": "payments", "operation": "CREATE", "userInfo": object{
		"username": "system:serviceaccount:bellwether-system:bellwether-hub"}}
	for _, name := range []string{"bellwether-hub-paging", "bellwether-hub-alertmanagerconfigs"} {
		got := e.denies(t, all[name], object{"object": config, "oldObject": nil, "request": request,
			"namespaceObject": nil})
		if got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if receivers, _ := content["receivers"].([]any); len(receivers) < 4 {
		t.Errorf("there are %d receivers, so few that not every kind was judged", len(receivers))
	}
}
