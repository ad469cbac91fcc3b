// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles/build"
)

// webhookInput returns an operator with a webhook. The parameters are its rules, and the container and the volumes of
// its Deployment.
func webhookInput(container, volumes string, others ...string) string {
	return join(append([]string{`apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: ns}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      serviceAccountName: sa
      volumes: [` + volumes + `]
      containers:
      - {name: manager, image: "example.com/m:1", ` + container + `}
      - {name: kube-rbac-proxy, image: "example.com/p:1", args: [--tls-cert-file=/etc/tls/private/tls.crt]}
`, `apiVersion: v1
kind: Service
metadata: {name: hooks, namespace: ns}
spec: {selector: {a: b}, ports: [{port: 443, targetPort: 9443}]}
`, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: checks}
webhooks:
- name: w.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: hooks, namespace: ns}}
`}, others...)...)
}

// rulesOf returns permissions of the operator.
func rulesOf(rules string) string {
	return strings.NewReplacer("kind: Role\n", "kind: ClusterRole\n",
		"kind: RoleBinding\n", "kind: ClusterRoleBinding\n",
		"kind: Role,", "kind: ClusterRole,", `{apiGroups: [""], resources: [pods], verbs: [get]}`, rules).
		Replace(role("{kind: ServiceAccount, name: sa, namespace: ns}"))
}

// The API server trusts only OLM's certificate. If any other program creates one, the author gets a message.
func TestCertificatesOfOthers(t *testing.T) {
	const (
		injects = "{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], verbs: " +
			"[get, patch]}"
		secret  = "apiVersion: v1\nkind: Secret\nmetadata: {name: hooks, namespace: ns}\n"
		trusted = "The API server trusts only the certificate that OLM mounts at " +
			"/tmp/k8s-webhook-server/serving-certs, as tls.crt and tls.key"
		maybe = ". If that is the certificate of its webhooks: the API server trusts only the one that OLM mounts at " +
			"/tmp/k8s-webhook-server/serving-certs, as tls.crt and tls.key. Let the program read it from there"
		makes = ", by which it seems to make certificates; OLM makes that of the webhooks, and writes the CA into " +
			"webhook configurations that it names itself. Turn it off, unless it is for something else"
		service = ", which names Service hooks; the webhooks are behind Service manager-service, which OLM makes, " +
			"and its certificate is for that name. Change it, or turn off what needs that name"
		manager = "Deployment manager (in.yaml, line 1): container manager "
	)
	mount := func(path string) string { return "volumeMounts: [{name: v, mountPath: " + path + "}]" }
	volume := func(secret string) string { return "{name: v, secret: {secretName: " + secret + ", optional: true}}" }
	for name, tc := range map[string]struct {
		text     string
		leaveOut []string
		problem  string
		warnings []string
	}{
		"OLM's": {text: webhookInput("args: [--metrics-cert-path=/m, --webhook-cert-path="+
			"/tmp/k8s-webhook-server/serving-certs, --client-ca-file=/ca/ca.crt]", "")},
		"OLM's older path, and a volume that is not used": {text: webhookInput("env: [{name: WEBHOOK_CERT_DIR, value: "+
			"/apiserver.local.config/certificates}], "+mount("/run/webhook"), volume("webhook-cert"))},
		"a volume that OLM fills": {text: webhookInput("volumeMounts: [{name: webhook-cert, mountPath: /certs}]",
			"{name: webhook-cert, secret: {secretName: mine}}")},
		"an optional Secret": {text: webhookInput(mount("/run/webhook"), volume("mine-webhook-cert")),
			problem: manager + "mounts Secret mine-webhook-cert at /run/webhook. " + trusted},
		"an optional Secret, knowingly": {text: webhookInput(mount("/run/webhook"), volume("mine-webhook-cert")),
			leaveOut: []string{"secret/mine-webhook-cert"},
			warnings: []string{manager + "mounts Secret mine-webhook-cert at /run/webhook" + maybe}},
		"a Secret whose CA the operator writes": {text: webhookInput(mount("/certs"), volume("mine-certs"),
			rulesOf(injects)),
			problem: "mounts Secret mine-certs at /certs. " + trusted},
		"a Secret of the bundle that a flag names": {text: webhookInput(mount("/t")+", args: [--cert-dir, /t]",
			volume("hooks"), secret), problem: "mounts Secret hooks at /t, which --cert-dir names. " + trusted},
		"a projected Secret": {text: webhookInput(mount("/t"),
			"{name: v, projected: {sources: [{secret: {name: webhook-tls}}]}}"),
			problem: "mounts Secret webhook-tls at /t. " + trusted},
		"a Secret of nothing known": {text: webhookInput(mount("/etc/certs"), volume("mine")),
			warnings: []string{manager + "mounts Secret mine at /etc/certs" + maybe}},
		"a Secret of a client": {text: webhookInput(mount("/etc/certs"), volume("webhook-client-cert"),
			rulesOf(injects))},
		"a Secret of a server": {text: webhookInput(mount("/etc/certs"), volume("etcd-certs"), rulesOf(injects))},
		"a password":           {text: webhookInput(mount("/etc/password"), volume("password"), rulesOf(injects))},
		"made by the program": {text: webhookInput("args: [--cert-dir=/tmp/certs, --tls-key=/tmp/certs/key]", ""),
			warnings: []string{manager + "has --cert-dir=/tmp/certs, --tls-key=/tmp/certs/key. " + trusted + ". Let " +
				"the program read it from there"}},
		"rotated by the program": {text: webhookInput("args: [--enable-cert-rotation=true]", ""),
			warnings: []string{manager + "has --enable-cert-rotation=true" + makes}},
		"not rotated": {text: webhookInput("args: [--enable-cert-rotation=false, --disable-cert-rotation]", "")},
		"the name of the Service": {text: webhookInput(
			"command: [hooks], args: [--service-name=hooks, "+
				"--namespace=hooks]", ""), warnings: []string{manager + `has the argument ` +
			`"--service-name=hooks"` + service}},
		"the name of the Service, in the next argument": {text: webhookInput("args: [--service-name, hooks]", ""),
			warnings: []string{manager + `has the argument "hooks"` + service}},
		"the DNS name of the Service": {text: webhookInput("args: [--dns-name=hooks.ns.svc]", ""), warnings: []string{
			manager + `has the argument "--dns-name=hooks.ns.svc", but the namespace is chosen at installation; take ` +
				`it ` +
				"from a fieldRef to metadata.namespace",
			manager + `has the argument "--dns-name=hooks.ns.svc"` + service}},
		"the URL of another Service": {text: webhookInput(
			"env: [{name: URL, value: 'https://other.ns.svc:8443/x'}, {name: API, value: kubernetes.default.svc}]", ""),
			warnings: []string{manager + "has URL=https://other.ns.svc:8443/x, but the namespace is chosen at " +
				"installation; take it from a fieldRef to metadata.namespace"}},
		"a DNS name of a variable": {text: webhookInput("args: [--dns-name=hooks.$(NAMESPACE).svc]", "")},
		"the name of the configuration": {text: webhookInput("env: [{name: CONFIGURATION, value: checks}]", ""),
			warnings: []string{manager + "has CONFIGURATION=checks, which names ValidatingWebhookConfiguration " +
				"checks; OLM makes others, with names of its own, and writes the CA into them. Change it, or turn " +
				"off what needs that name"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := assembled(t, tc.text, build.Options{LeaveOut: tc.leaveOut}, tc.problem)
			if r == nil {
				return
			}
			var got []string
			for _, w := range r.Warnings {
				ofRights := strings.HasPrefix(w, "OLM gives roles") || strings.Contains(w, " runs as service account ")
				if !ofRights {
					got = append(got, w)
				}
			}
			if diff := cmp.Diff(tc.warnings, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// A Secret of cert-manager with another purpose is reported only if the pods need it.
func TestCertificatesOfMetrics(t *testing.T) {
	const certificate = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: c}\nspec: {secretName: " +
		"metrics-cert}\n"
	input := func(optional string) string {
		return webhookInput("args: [--metrics-cert-path=/m], volumeMounts: [{name: v, mountPath: /m}]",
			"{name: v, secret: {secretName: metrics-cert, optional: "+optional+"}}", certificate)
	}
	for optional, want := range map[string]string{"true": "", "false": "its pods would never start. Do without it"} {
		_, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(input(optional))}},
			build.Options{Package: "p", Version: "1.0.0"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("optional: %s: got %v, want %q", optional, err, want)
		}
	}
}

// The message about an omitted certificate depends on its purpose.
func TestLeftOutCertificates(t *testing.T) {
	const (
		olm    = "OLM makes the certificates of webhooks itself"
		nobody = "OLM makes certificates of webhooks only, so there is no Secret tls unless somebody else makes it"
	)
	certificate := func(spec string) string {
		return "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: c}\nspec: {secretName: tls" + spec +
			"}\n"
	}
	mounted := func(path string) string {
		return webhookInput("volumeMounts: [{name: v, mountPath: "+path+"}]",
			"{name: v, secret: {secretName: tls, optional: true}}", certificate(""))
	}
	for name, tc := range map[string]struct{ text, want string }{
		"where OLM mounts its own": {mounted("/tmp/k8s-webhook-server/serving-certs"), olm},
		"elsewhere":                {mounted("/etc/metrics"), nobody},
		"with the name of the Service": {webhookInput("tty: false", "",
			certificate(", dnsNames: [hooks.ns.svc]")), olm},
		"of metrics": {webhookInput("tty: false", "",
			certificate(", dnsNames: [metrics.ns.svc]")), nobody},
		"of an operator without a webhook": {join(deployment, certificate("")), nobody},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(tc.text + `---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: i}
`)}}, build.Options{Package: "p", Version: "1.0.0"})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, p := range r.Placements {
				what, _, _ := strings.Cut(p.Object, " (")
				got[what] = strings.TrimPrefix(p.Becomes, "left out: ")
			}
			if got["Certificate c"] != tc.want {
				t.Errorf("of the certificate it says %q, want %q", got["Certificate c"], tc.want)
			}
			if want := "a bundle cannot ask cert-manager for certificates"; got["Issuer i"] != want {
				t.Errorf("of the issuer it says %q, want %q", got["Issuer i"], want)
			}
		})
	}
}

// Kinds of webhooks, and kinds whose status the operator writes, must be defined.
func TestUndefinedKinds(t *testing.T) {
	definition := definitionOf("Thing")
	writes := func(group, resources string) string {
		return rulesOf("{apiGroups: [" + group + "], resources: [" + resources + "], verbs: [update]}")
	}
	hook := func(group, resource string) string {
		return webhookInput("ports: [{containerPort: 9443}]", "") + "  rules: [{apiGroups: [" + group +
			"], apiVersions: [v1], operations: [CREATE], resources: [" + resource + "]}]\n"
	}
	const advice = ". Add what is missing, or list it as required in a ClusterServiceVersion (--csv), unless the " +
		"operator works without it"
	for name, tc := range map[string]struct{ text, want string }{
		"defined": {join(deployment, definition, writes("example.com", "things/status")), ""},
		"not defined": {join(deployment, definition, writes("example.com", "others/status, others")),
			"others.example.com (clusterPermissions of service account sa)"},
		"used only":      {join(deployment, writes("example.com", "others")), ""},
		"of Kubernetes":  {join(deployment, writes("apps", "deployments/status")), ""},
		"of OpenShift":   {join(deployment, writes("config.openshift.io", "clusteroperators/status")), ""},
		"all of a group": {join(deployment, writes("example.com", "'*/status'")), ""},
		"required": {join(deployment, writes("example.com", "others/status"), strings.Replace(csv, "displayName: One",
			"displayName: One, customresourcedefinitions: {required: [{name: others.example.com, version: v1, kind: "+
				"Other}]}",
			1)), ""},
		"of a webhook":     {hook("example.com", "others"), "others.example.com (webhook w.example.com)"},
		"all of a webhook": {hook("example.com", "'*'"), "*.example.com (webhook w.example.com)"},
		"all of a webhook, and subresources": {hook("example.com", "'*/*'"),
			"*.example.com (webhook w.example.com)"},
		"all of a defined group": {join(hook("example.com", "'*'"), definition), ""},
		"all of all groups":      {hook("'*'", "'*'"), ""},
		"of a webhook on Pods":   {hook("''", "pods/exec"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(tc.text)}},
				build.Options{Package: "p", Version: "1.0.0"})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, w := range r.Warnings {
				if rest, ok := strings.CutPrefix(w, "no CustomResourceDefinition among the manifests defines "); ok {
					got = strings.TrimSuffix(rest, advice)
				}
			}
			if got != tc.want {
				t.Errorf("reported %q, want %q; all warnings: %q", got, tc.want, r.Warnings)
			}
		})
	}
}
