// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles/build"
)

// anywhere writes manifests as a chart does that leaves the namespace to the one who installs it. Subjects of bindings
// have one.
func anywhere(text string) string {
	return strings.NewReplacer("{name: manager, namespace: ns}", "{name: manager}", "{name: sa, namespace: ns}",
		"{name: sa}", "{name: r, namespace: ns}", "{name: r}", "{name: rb, namespace: ns}", "{name: rb}").Replace(text)
}

// bindingOf binds a ClusterRole to a service account, in the cluster or in the namespace of the operator.
func bindingOf(kind, role, subject string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: b}\nroleRef: {apiGroup: " +
		"rbac.authorization.k8s.io, kind: ClusterRole, name: '" + role + "'}\nsubjects: [{kind: ServiceAccount, " +
		subject + "}]\n"
}

// Objects without a namespace, and the accounts that their bindings name, are in the namespace of the Deployments.
func TestManifestsWithoutNamespace(t *testing.T) {
	const (
		mine   = "{kind: ServiceAccount, name: sa, namespace: ns}"
		reader = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: reader, namespace: " +
			"kube-system}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}\nsubjects: [" + mine +
			"]\n"
		settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: %s}\n"
	)
	pods := strings.Split(strings.ReplaceAll(anywhere(role(mine)), "kind: Role\n", "kind: ClusterRole\n"), "---\n")[0]
	runner := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: runner}\n"
	withArgs := func(args string) string {
		return strings.Replace(deployment, `image: "example.com/m:1"`, `image: "example.com/m:1", args: [`+args+`]`, 1)
	}
	for name, tc := range map[string]struct {
		documents []string
		// granted are the accounts that have rules in the bundle.
		granted []string
		problem string
		// warning is a part of one, and absent a part of none. Files of the bundle never name the author's namespace.
		warning, absent string
	}{
		"the operator's binding": {documents: []string{deployment, account, role(mine)}, granted: []string{"sa"}},
		"a subject without one": {documents: []string{deployment, role("{kind: ServiceAccount, name: sa}")},
			granted: []string{"sa"}},
		"a second account": {documents: []string{deployment, runner,
			role("{kind: ServiceAccount, name: runner, namespace: ns}")}, granted: []string{"runner"}},
		"a second account of a ClusterRoleBinding": {documents: []string{deployment, runner, pods,
			bindingOf("ClusterRoleBinding", "r", "name: runner, namespace: ns")}, granted: []string{"runner"}},
		"a second account, and a subject without one": {documents: []string{deployment, runner, pods,
			bindingOf("ClusterRoleBinding", "r", "name: runner")}, granted: []string{"runner"}},
		"the account of another namespace": {documents: []string{deployment, role(mine), pods,
			bindingOf("ClusterRoleBinding", "r", "name: sa, namespace: monitoring")}, granted: []string{"sa"}},
		"elsewhere": {documents: []string{deployment, role(mine), reader},
			problem: "RoleBinding reader (in.yaml, line 20) is in namespace kube-system, but a bundle installs into " +
				"one namespace, here ns"},
		"elsewhere, and nothing has one": {documents: []string{deployment, fmt.Sprintf(settings, "kube-system")},
			problem: "here that of the Deployments, which name none"},
		"an object with one": {documents: []string{deployment, fmt.Sprintf(settings, "ns")}},
		"an argument names it": {documents: []string{withArgs("--watch-namespace, ns"), role(mine)},
			granted: []string{"sa"}, warning: `has the argument "ns", but the namespace is chosen`},
		"an argument says ns": {documents: []string{withArgs("--election-id=ns"), role(mine)},
			granted: []string{"sa"}, absent: "the namespace is chosen"},
		"a RoleBinding to edit": {documents: []string{deployment,
			bindingOf("RoleBinding", "edit", "name: sa, namespace: ns")},
			warning: "RoleBinding b (in.yaml, line 9) stays a manifest", absent: "works only where"},
		"an account that the operator makes, in its namespace": {documents: []string{deployment, pods,
			bindingOf("RoleBinding", "r", "name: made, namespace: ns"),
			fmt.Sprintf(settings, "ns")}, absent: "stays a manifest"},
		"an account that the operator makes": {documents: []string{deployment, pods,
			bindingOf("ClusterRoleBinding", "r", "name: made, namespace: ns"), fmt.Sprintf(settings, "ns")},
			warning: "names service account made, which is not among the manifests, in namespace ns"},
	} {
		t.Run(name, func(t *testing.T) {
			r := assembled(t, anywhere(join(tc.documents...)),
				build.Options{About: build.About{InstallModes: ownNamespace}}, tc.problem)
			if r == nil {
				return
			}
			if diff := cmp.Diff(tc.granted, grantedTo(t, r)); diff != "" {
				t.Errorf("accounts with rules (-want +got):\n%s", diff)
			}
			warnings := strings.Join(r.Warnings, "\n")
			if !strings.Contains(warnings, tc.warning) || tc.absent != "" && strings.Contains(warnings, tc.absent) {
				t.Errorf("warnings:\n%s\nwant %q, and not %q", warnings, tc.warning, tc.absent)
			}
			for file, text := range r.Files {
				isBound := strings.HasPrefix(file, "manifests/b_") && strings.Contains(tc.warning, "in namespace ns")
				if named := strings.Contains(string(text), "namespace: ns\n"); named != isBound {
					t.Errorf("%s names the author's namespace: %t\n%s", file, named, text)
				}
			}
		})
	}
}

// grantedTo are the accounts that have rules in a bundle, those of Roles first.
func grantedTo(t *testing.T, r *build.Result) []string {
	t.Helper()
	b, err := r.Files.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	strategy := b.CSV.Spec.InstallStrategy.StrategySpec
	for _, p := range append(strategy.Permissions, strategy.ClusterPermissions...) {
		if len(p.Rules) > 0 {
			out = append(out, p.ServiceAccountName)
		}
	}
	return out
}

// Every Pod that names no account has the rights of the account default.
func TestDefaultAccount(t *testing.T) {
	const asDefault = "the service account default has permissions of the ClusterServiceVersion"
	withoutAccount := strings.ReplaceAll(deployment, "serviceAccountName: sa, ", "")
	bound := role("{kind: ServiceAccount, name: default, namespace: ns}")
	for name, tc := range map[string]struct {
		text    string
		granted []string
		warning string
	}{
		"of the Deployment": {join(withoutAccount, bound), []string{"default"}, asDefault +
			": Deployment manager (in.yaml, line 1) runs as it"},
		"of no Deployment":  {join(deployment, account, bound), []string{"default"}, asDefault + ": "},
		"with no namespace": {anywhere(join(withoutAccount, bound)), []string{"default"}, asDefault},
		"of another":        {join(withoutAccount, strings.ReplaceAll(bound, "e: ns}]", "e: away}]")), nil, ""},
		"without a right":   {withoutAccount, nil, ""},
		"an account of ours": {join(deployment, role("{kind: ServiceAccount, name: sa, namespace: ns}")),
			[]string{"sa"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(tc.text)}},
				build.Options{Package: "p", Version: "1.0.0"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.granted, grantedTo(t, r)); diff != "" {
				t.Errorf("accounts with rules (-want +got):\n%s", diff)
			}
			warnings := strings.Join(r.Warnings, "\n")
			if !strings.Contains(warnings, tc.warning) || tc.warning == "" && strings.Contains(warnings, asDefault) {
				t.Errorf("warnings %q, want %q", warnings, tc.warning)
			}
		})
	}
}

// OLM sets the namespaces to watch in an annotation. The author gets a message about the old setting.
func TestWatchNamespace(t *testing.T) {
	const replaced = "Deployment manager (in.yaml, line 1): container manager gets WATCH_NAMESPACE from OLM's " +
		"annotation olm.targetNamespaces, which is empty for all namespaces; in the manifests it is "
	for name, tc := range map[string]struct{ variable, want string }{
		"empty":       {"{name: WATCH_NAMESPACE, value: ''}", replaced + `""`},
		"a namespace": {"{name: WATCH_NAMESPACE, value: shop}", replaced + `"shop"`},
		"its own": {"{name: WATCH_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}",
			replaced + "the field metadata.namespace"},
		"of a ConfigMap": {"{name: WATCH_NAMESPACE, valueFrom: {configMapKeyRef: {name: c, key: k, optional: true}}}",
			replaced + "from another source"},
		"OLM's": {"{name: WATCH_NAMESPACE, valueFrom: {fieldRef: {fieldPath: " +
			`"metadata.annotations['olm.targetNamespaces']"}}}`, ""},
		"another": {"{name: POD_NAMESPACE, value: shop}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(deployment, `image: "example.com/m:1"`, `image: "example.com/m:1", env: [`+
				tc.variable+`]`, 1)
			r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(join(text, account))}},
				build.Options{Package: "p", Version: "1.0.0"})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.Warnings, "\n"); got != tc.want {
				t.Errorf("warnings %q, want %q", got, tc.want)
			}
		})
	}
}

// Pods that need an object which no program creates do not start.
func TestMissingObjects(t *testing.T) {
	needing := func(container, volumes string) string {
		return strings.Replace(deployment, `containers: [{name: manager, image: "example.com/m:1"}]`,
			`volumes: [`+volumes+`], containers: [{name: manager, image: "example.com/m:1", `+container+`}]`, 1)
	}
	maker := strings.NewReplacer("name: manager", "name: maker", `image: "example.com/m:1"`,
		`image: "example.com/m:1", args: [--secret-name=s]`).Replace(deployment)
	object := func(kind, name, annotations string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: ns, annotations: {" +
			annotations + "}}\n"
	}
	for name, tc := range map[string]struct {
		text     string
		leaveOut []string
		want     string
	}{
		"all variables of a ConfigMap": {text: needing("envFrom: [{configMapRef: {name: c}}]", ""),
			want: "ConfigMap c in containers[0].envFrom[0]"},
		"all variables of a Secret": {text: needing("envFrom: [{secretRef: {name: s}}]", ""),
			want: "Secret s in containers[0].envFrom[0]"},
		"a variable": {text: needing("env: [{name: A, valueFrom: {configMapKeyRef: {name: c, key: k}}}, {name: B, "+
			"valueFrom: {configMapKeyRef: {name: c, key: l}}}]", ""), want: "ConfigMap c in containers[0].env[0]"},
		"volumes": {text: needing("stdin: false",
			"{name: v, configMap: {name: c}}, {name: w, secret: {secretName: s}}"),
			want: "ConfigMap c in volumes[0], Secret s in volumes[1]"},
		"a projected volume": {text: needing("stdin: false",
			"{name: v, projected: {sources: [{configMap: {name: c}}, {secret: {name: s, optional: true}}]}}"),
			want: "ConfigMap c in volumes[0].projected.sources[0]"},
		"all that is optional": {text: needing("envFrom: [{secretRef: {name: s, optional: true}}], env: [{name: A, "+
			"valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}]",
			"{name: v, configMap: {name: c, optional: true}}, {name: w, secret: {secretName: s, optional: true}}")},
		"what the bundle has": {text: join(needing("envFrom: [{configMapRef: {name: c}}]",
			"{name: w, secret: {secretName: s}}"), object("ConfigMap", "c", ""), object("Secret", "s", ""))},
		"of another kind": {text: join(needing("envFrom: [{configMapRef: {name: c}}]", ""), object("Secret", "c", "")),
			want: "ConfigMap c in containers[0].envFrom[0]"},
		"the cluster's CAs": {text: needing("stdin: false", "{name: v, configMap: {name: kube-root-ca.crt}}")},
		"a Secret of OpenShift": {text: join(needing("stdin: false", "{name: v, secret: {secretName: s}}"),
			object("Service", "x", "service.beta.openshift.io/serving-cert-secret-name: s"))},
		"what another Deployment is told of": {text: join(needing("envFrom: [{secretRef: {name: s}}]", ""), maker)},
		"knowingly": {text: needing("envFrom: [{secretRef: {name: s}}]", ""),
			leaveOut: []string{"secret/s"}},
		"a volume that OLM fills": {text: webhookInput("volumeMounts: [{name: webhook-cert, mountPath: /certs}]",
			"{name: webhook-cert, secret: {secretName: mine}}")},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(tc.text)}},
				build.Options{Package: "p", Version: "1.0.0", LeaveOut: tc.leaveOut})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range r.Warnings {
				if rest, ok := strings.CutPrefix(w, "Deployment manager needs "); ok {
					rest, _, _ = strings.Cut(rest, ", which ")
					got = append(got, strings.ReplaceAll(rest, "spec.template.spec.", ""))
				}
			}
			if text := strings.Join(got, ", "); text != tc.want {
				t.Errorf("missing: %q, want %q; all warnings: %q", text, tc.want, r.Warnings)
			}
		})
	}
}

// Without a Deployment, the install strategy of the base stays, and so do the rights of other accounts.
func TestRightsBesideBase(t *testing.T) {
	const installed = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: one}
spec:
  install:
    strategy: deployment
    spec:
      deployments:
      - name: manager
        spec:
          selector: {matchLabels: {a: b}}
          template:
            metadata: {labels: {a: b}}
            spec: {containers: [{name: manager, image: "example.com/m:1"}]}
`
	for _, account := range []string{"default", "sa"} {
		text := join(installed, strings.ReplaceAll("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: sa}\n", "sa",
			account), anywhere(role("{kind: ServiceAccount, name: "+account+", namespace: ns}")))
		if account == "default" {
			text = join(installed, role("{kind: ServiceAccount, name: default, namespace: ns}"))
		}
		r, err := build.Assemble([]build.Source{{Name: "in.yaml", Text: []byte(text)}},
			build.Options{Package: "p", Version: "1.0.0"})
		if err != nil {
			t.Errorf("%s: %v", account, err)
			continue
		}
		if r.Files["manifests/rb_rbac.authorization.k8s.io_v1_rolebinding.yaml"] == nil || grantedTo(t, r) != nil {
			t.Errorf("%s: the binding is not in the bundle, or its rules are granted by the ClusterServiceVersion: %v",
				account, grantedTo(t, r))
		}
	}
}
