// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// Keys in form, and of no service.
const (
	fleetKey = "F1eet0123456789abcdef0123456789a"
	teamKey  = "Team00123456789abcdef0123456789a"
)

// pagingWorld is a hub with an operator, and a policy for the fleet.
type pagingWorld struct {
	*harness
	t         *testing.T
	namespace string
}

func pagerDutySecret(namespace, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pagerduty",
		Labels: map[string]string{v1alpha1.LabelPagingSecret: "true"}}, StringData: map[string]string{"key": value}}
}

func pagingPolicy(namespace, name string, scope v1alpha1.PagingScope) *v1alpha1.PagingPolicy {
	return &v1alpha1.PagingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.PagingPolicySpec{Scope: scope, Pages: v1alpha1.PageTarget{Receivers: []string{"oncall"}},
			Receivers: []v1alpha1.PagingReceiver{{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{
				RoutingKey: v1alpha1.SecretKey{Name: "pagerduty", Key: "key"}}}}}}
}

// written is the Secret that the hub makes for Alertmanager.
func (w *pagingWorld) written() *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	must(
		w.t,
		client.IgnoreNotFound(
			w.Get(w.t.Context(), client.ObjectKey{Namespace: hubNamespace, Name: paging.SecretName}, s),
		),
	)
	return s
}

// routed waits until a release of the operator pages this receiver.
func (w *pagingWorld) routed(receiver string) {
	w.t.Helper()
	eventually(w.t, func() error {
		router, err := paging.NewRouter(w.written().Data[paging.ConfigFile])
		if err != nil {
			return err
		}
		in := router.Incidents(map[string]string{"alertname": slo.AlertRelease, "severity": "page", "scope": "release",
			"operator_namespace": w.namespace, "operator": "echo", "version": "1.0.0"})
		if len(in) != 1 || in[0].Receiver != receiver {
			return fmt.Errorf("the release goes to %+v, want %s", in, receiver)
		}
		return nil
	})
}

// TestPaging plays the life of PagingPolicies with the permissions that the chart gives the hub.
func TestPaging(t *testing.T) {
	t.Parallel()
	h := startWhole(t)
	w := &pagingWorld{harness: h, t: t, namespace: testenv.Namespace(t, h.cluster.RESTConfig(), "payments")}
	operator := parse(t, goodOperator, w.namespace)
	operator.SetName("echo")
	must(t, w.Create(t.Context(), operator))

	// Nothing is written before there is a policy for the fleet.
	team := pagingPolicy(w.namespace, "team", v1alpha1.PagingNamespace)
	must(t, w.Create(t.Context(), pagerDutySecret(w.namespace, teamKey+"\n")))
	must(t, w.Create(t.Context(), team))
	w.reaches(t, team, "Stalled SecretUnavailable",
		"add {namespace: "+w.namespace+", name: pagerduty} to hub.paging.secrets",
		"kubectl create role bellwether-paging-pagerduty -n "+w.namespace+
			" --verb=get --resource=secrets --resource-name=pagerduty",
		"kubectl create rolebinding bellwether-paging-pagerduty -n "+w.namespace+
			" --role=bellwether-paging-pagerduty --serviceaccount=bellwether-system:bellwether-hub")
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: "bellwether-paging-pagerduty"}
	must(t, w.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""},
		Resources: []string{"secrets"}, ResourceNames: []string{"pagerduty"}, Verbs: []string{"get"}}}}))
	must(t, w.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubNamespace,
			Name: "bellwether-hub"}},
	}))
	w.reaches(t, team, "Stalled NoFleetPolicy", "scope Fleet")
	if got := w.written(); len(got.Data) > 0 {
		t.Errorf("%d keys are written", len(got.Data))
	}

	fleet := pagingPolicy(hubNamespace, "platform", v1alpha1.PagingFleet)
	must(t, w.Create(t.Context(), fleet))
	w.reaches(t, fleet, "Stalled SecretUnavailable", "there is no such Secret")
	secret := pagerDutySecret(hubNamespace, fleetKey)
	secret.Labels = nil
	must(t, w.Create(t.Context(), secret))
	w.reaches(t, fleet, "Stalled SecretUnavailable", v1alpha1.LabelPagingSecret)
	w.change(t, secret, func() { secret.Labels = map[string]string{v1alpha1.LabelPagingSecret: "true"} })
	w.reaches(t, fleet, "True Succeeded", "clusters and the fleet")
	w.reaches(t, team, "True Succeeded", "1 operator ")
	w.routed(w.namespace + "/team/standard")
	if got := string(w.written().Data["secret_"+w.namespace+"_team_oncall"]); got != teamKey {
		t.Errorf("the key of the team has %d characters in what is written, want %d", len(got), len(teamKey))
	}

	// A key that is replaced is written; one that is broken leaves the old one.
	secret = pagerDutySecret(w.namespace, "")
	w.change(t, secret, func() { secret.StringData = map[string]string{"key": strings.ToLower(teamKey)} })
	eventually(t, func() error {
		if got := string(w.written().Data["secret_"+w.namespace+"_team_oncall"]); got != strings.ToLower(teamKey) {
			return errNotYet
		}
		return nil
	})
	w.change(t, secret, func() { secret.StringData = map[string]string{"key": "too-short"} })
	w.reaches(t, team, "Stalled SecretUnavailable", "9 characters", "as it was in generation 1 stays in force")
	if got := string(w.written().Data["secret_"+w.namespace+"_team_oncall"]); got != strings.ToLower(teamKey) {
		t.Error("the broken key took the place of the good one")
	}
	w.routed(w.namespace + "/team/standard")

	// After a restart of the hub the policy that is broken is still in force as it was.
	w.restartHub(t)
	w.change(t, fleet, func() { fleet.Spec.SingleCluster = v1alpha1.SingleClusterAll })
	w.reaches(t, fleet, "True Succeeded")
	w.routed(w.namespace + "/team/standard")
	w.noKeyIsShown()

	must(t, w.Delete(t.Context(), team))
	w.routed(hubNamespace + "/platform/pages")
	w.objects(fleet)
}

// noKeyIsShown looks for keys in all statuses and events.
func (w *pagingWorld) noKeyIsShown() {
	w.t.Helper()
	var policies v1alpha1.PagingPolicyList
	must(w.t, w.List(w.t.Context(), &policies))
	var events corev1.EventList
	must(w.t, w.List(w.t.Context(), &events))
	for _, list := range []any{policies, events} {
		text, err := yaml.Marshal(list)
		must(w.t, err)
		for _, key := range []string{fleetKey, teamKey, strings.ToLower(teamKey), "too-short"} {
			if bytes.Contains(text, []byte(key)) {
				w.t.Errorf("%T has a key of a Secret", list)
			}
		}
	}
}

// objects has prometheus-operator come: then there are AlertmanagerConfigs.
func (w *pagingWorld) objects(fleet *v1alpha1.PagingPolicy) {
	w.t.Helper()
	must(w.t, w.Create(w.t.Context(), alertmanagerConfigCRD()))
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("monitoring.coreos.com/v1alpha1")
	list.SetKind("AlertmanagerConfigList")
	eventually(w.t, func() error {
		if err := w.List(w.t.Context(), list); err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].GetNamespace() != hubNamespace ||
			list.Items[0].GetName() != "bellwether-platform" {
			return fmt.Errorf("AlertmanagerConfigs %v", list.Items)
		}
		return nil
	})
	eventually(w.t, func() error {
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(fleet), fleet); err != nil {
			return err
		}
		if c := fleet.Status.Configuration; c == nil || c.Kind != "AlertmanagerConfig" ||
			c.Name != "bellwether-platform" {
			return fmt.Errorf("configuration %+v", c)
		}
		return nil
	})
	if _, plain := w.written().Data[paging.ConfigFile]; !plain {
		w.t.Error("the plain configuration is gone, which an Alertmanager may read")
	}
}

func alertmanagerConfigCRD() *unstructured.Unstructured {
	crd := prometheusRuleCRD()
	crd.SetName("alertmanagerconfigs.monitoring.coreos.com")
	spec := crd.Object["spec"].(map[string]any)
	spec["names"] = map[string]any{"kind": "AlertmanagerConfig", "plural": "alertmanagerconfigs",
		"singular": "alertmanagerconfig", "listKind": "AlertmanagerConfigList"}
	spec["versions"].([]any)[0].(map[string]any)["name"] = "v1alpha1"
	return crd
}

const goodPaging = `
apiVersion: bellwether.dev/v1alpha1
kind: PagingPolicy
metadata: {name: valid}
spec:
  operators: [echo]
  pages: {receivers: [oncall]}
  tickets: {receivers: [channel], hours: {timeZone: Europe/Berlin, start: "09:00", end: "17:00"}}
  receivers:
  - name: oncall
    pagerDuty: {routingKey: {name: pagerduty, key: key}, url: "https://events.eu.pagerduty.com/v2/enqueue"}
  - {name: channel, slack: {apiURL: {name: slack, key: url}, channel: "#operators"}}`

// TestPagingValidation makes policies that the API server has to refuse with a message that helps.
func TestPagingValidation(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "pagingvalid")
	email := func(fields string) string {
		return `[{name: oncall, email: {to: a@example.com, from: b@example.com, smarthost: "mail:25"` + fields +
			`}}, ` +
			`{name: channel, webhook: {url: {name: a, key: b}}}]`
	}
	for name, test := range map[string]struct{ path, value, want string }{
		"as it is":             {"metadata.labels", "{a: b}", ""},
		"for the fleet":        {"spec.scope", "Fleet", "neither operators nor teams"},
		"other scope":          {"spec.scope", "World", "Unsupported value"},
		"heartbeat of a team":  {"spec.heartbeat", "{url: {name: a, key: b}}", "only the policy with scope Fleet"},
		"no pages":             {"spec.pages", "", "Required value"},
		"nobody is paged":      {"spec.pages.receivers", "[]", "should have at least 1"},
		"unknown receiver":     {"spec.pages.receivers", "[nobody]", "pages.receivers must be names of receivers"},
		"unknown for tickets":  {"spec.tickets.receivers", "[nobody]", "tickets.receivers must be names of receivers"},
		"PagerDuty with hours": {"spec.tickets.receivers", "[oncall]", "cannot go to PagerDuty"},
		"change events":        {"spec.changeEvents", "{receivers: [oncall]}", ""},
		"changes to Slack":     {"spec.changeEvents", "{receivers: [channel]}", "receivers with pagerDuty"},
		"changes to nobody":    {"spec.changeEvents", "{receivers: [nobody]}", "receivers with pagerDuty"},
		"over midnight":        {"spec.tickets.hours.end", "\"08:00\"", ""},
		"no hours":             {"spec.tickets.hours.end", "\"09:00\"", "start and end must differ"},
		"hour 25":              {"spec.tickets.hours.end", "\"25:00\"", "such as 17:00, or 24:00"},
		"until midnight":       {"spec.tickets.hours.end", "\"24:00\"", ""},
		"no day":               {"spec.tickets.hours.days", "[]", "should have at least 1"},
		"other day":            {"spec.tickets.hours.days", "[Funday]", "Unsupported value"},
		"without tickets":      {"spec.tickets", "", ""},
		"no kind of receiver":  {"spec.receivers", "[{name: oncall}, {name: channel}]", "exactly one of"},
		"two kinds": {"spec.receivers", "[{name: oncall, webhook: {url: {name: a, key: b}}, " +
			"slack: {apiURL: {name: a, key: b}}}, " +
			"{name: channel, webhook: {url: {name: a, key: b}}}]", "exactly one of"},
		"a mail":             {"spec.receivers", email(""), ""},
		"a mail with a user": {"spec.receivers", email(", username: a"), "set both of username and password"},
		"a mail with both":   {"spec.receivers", email(", username: a, password: {name: a, key: b}"), ""},
		"a template in a field": {"spec.receivers", email(`, to: "{{ .Evil }}@example.com"`),
			"such as sre@example.com"},
		"URL of a file": {"spec.receivers", `[{name: oncall, pagerDuty: ` +
			`{routingKey: {name: a, key: b}, url: "file:///etc"}}, ` +
			`{name: channel, webhook: {url: {name: a, key: b}}}]`, "must be an http or https URL"},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, goodPaging, namespace)
			set(t, object, test.path, test.value)
			expect(t, h.Create(t.Context(), object, client.DryRunAll), test.want)
		})
	}
}
