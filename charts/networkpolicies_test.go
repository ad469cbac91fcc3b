// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// anyone is where a rule of a NetworkPolicy names no sender.
const anyone = "anyone"

// TestNetworkPoliciesCoverEveryPort verifies the allowed senders of each port that a pod opens.
// The author of a new port must decide about its senders.
func TestNetworkPoliciesCoverEveryPort(t *testing.T) {
	const olm = "kubernetes.io/metadata.name in (olm,openshift-marketplace,openshift-operator-lifecycle-manager)"
	monitoring := "metricsFrom: [{namespaceSelector: {matchLabels: {team: sre}}}]"
	for name, test := range map[string]struct {
		values string
		// want are the senders by Deployment and port. The port of probes has no senders: the
		// pod's node can always reach it.
		want map[string]map[string]string
	}{
		"hub": {"hub: {enabled: true}", map[string]map[string]string{"bellwether-hub": {"metrics": anyone}}},
		"hub with a gate": {
			"hub: {enabled: true, remoteWriteGate: {enabled: true, storeURL: 'http://p'}, networkPolicy: {" +
				monitoring + "}}",
			map[string]map[string]string{"bellwether-hub": {"metrics": "team=sre"},
				"bellwether-remote-write-gate": {"write": anyone, "metrics": "team=sre"}}},
		"hub with an inventory": {
			"hub: {enabled: true, replicas: 1, inventory: {enabled: true}, networkPolicy: {" + monitoring + "}}",
			map[string]map[string]string{"bellwether-hub": {"metrics": "team=sre", "inventory": anyone}}},
		"agent": {"agent: {enabled: true, cluster: c}", map[string]map[string]string{"bellwether-agent": {
			"50100-50999": olm, "metrics": anyone}}},
		"agent beside another OLM": {
			"agent: {enabled: true, cluster: c, viewPorts: {first: 40000, last: 40001}, " +
				"networkPolicy: {olmNamespaces: [catalogs], " + monitoring + "}}", map[string]map[string]string{"bellwether-agent": {
				"40000-40001": "kubernetes.io/metadata.name in (catalogs)", "metrics": "team=sre"}}},
		"hosted agent": {
			"agent: {enabled: true, hosted: {enabled: true}, viewHost: v, viewPorts: {last: 50102}}",
			map[string]map[string]string{"bellwether-agent": {"50100-50102": anyone, "metrics": anyone}}},
		"both": {"{hub: {enabled: true}, agent: {enabled: true, cluster: c}}", map[string]map[string]string{
			"bellwether-hub": {"metrics": anyone}, "bellwether-agent": {"50100-50999": olm, "metrics": anyone}}},
		"switched off": {"{hub: {enabled: true, networkPolicy: {enabled: false}}, agent: {enabled: true, cluster: c, " +
			"networkPolicy: {enabled: false}}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			deployments, policies := parts(t, test.values)
			got := map[string]map[string]string{}
			for i := range deployments {
				d := &deployments[i]
				if opened := senders(t, d, policies); opened != nil {
					got[d.Name] = opened
				}
				if test.want != nil {
					checkPorts(t, d, test.want[d.Name])
				}
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("senders by port (-want +got):\n%s", diff)
			}
		})
	}
}

// parts are the Deployments and NetworkPolicies that are rendered.
func parts(t *testing.T, values string) ([]appsv1.Deployment, []networkingv1.NetworkPolicy) {
	t.Helper()
	manifests, err := render(t, load(t), values)
	if err != nil {
		t.Fatal(err)
	}
	var deployments []appsv1.Deployment
	var policies []networkingv1.NetworkPolicy
	for _, manifest := range manifests {
		switch key := sortKey(t, manifest); {
		case strings.HasPrefix(key, "Deployment/"):
			deployments = append(deployments, decode[appsv1.Deployment](t, manifest))
		case strings.HasPrefix(key, "NetworkPolicy/"):
			policies = append(policies, decode[networkingv1.NetworkPolicy](t, manifest))
		}
	}
	return deployments, policies
}

func decode[T any](t *testing.T, manifest string) T {
	t.Helper()
	var out T
	if err := yaml.UnmarshalStrict([]byte(manifest), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// senders returns the senders that the policies of a Deployment's pods allow, by port;
// nil if there is no policy.
func senders(t *testing.T, d *appsv1.Deployment, policies []networkingv1.NetworkPolicy) map[string]string {
	t.Helper()
	var out map[string]string
	for i := range policies {
		p := &policies[i].Spec
		selector, err := metav1.LabelSelectorAsSelector(&p.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		if policies[i].Namespace != d.Namespace || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
			continue
		}
		if !slices.Equal(p.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
			t.Errorf("NetworkPolicy %s is about %v by default", policies[i].Name, p.PolicyTypes)
		}
		if out != nil {
			t.Errorf("two NetworkPolicies are about %s", d.Name)
		}
		out = map[string]string{}
		for _, rule := range p.Ingress {
			if len(rule.Ports) == 0 {
				t.Errorf("a rule of NetworkPolicy %s is about all ports", policies[i].Name)
			}
			for _, port := range rule.Ports {
				name := port.Port.String()
				if port.EndPort != nil {
					name += "-" + strconv.Itoa(int(*port.EndPort))
				}
				out[name] = sender(t, rule.From)
			}
		}
	}
	return out
}

func sender(t *testing.T, from []networkingv1.NetworkPolicyPeer) string {
	t.Helper()
	if len(from) == 0 {
		return anyone
	}
	if len(from) != 1 || from[0].NamespaceSelector == nil || from[0].PodSelector != nil || from[0].IPBlock != nil {
		t.Fatalf("not one namespace selector: %v", from)
	}
	selector, err := metav1.LabelSelectorAsSelector(from[0].NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	return selector.String()
}

// anAddress is a flag with an address to listen on.
var anAddress = regexp.MustCompile(`^--.*address=.*:(\d+)$`)

// checkPorts compares the ports that a pod opens, according to its container and its
// flags, with the allowed ports.
func checkPorts(t *testing.T, d *appsv1.Deployment, in map[string]string) {
	t.Helper()
	for _, c := range d.Spec.Template.Spec.Containers {
		var numbers []int32
		for _, port := range c.Ports {
			numbers = append(numbers, port.ContainerPort)
			_, isIn := in[port.Name]
			if isProbed := port.Name == probedPort(c); isIn == isProbed {
				t.Errorf("port %s of %s is let in: %t; only the kubelet uses it: %t", port.Name, d.Name, isIn, isProbed)
			}
		}
		for _, arg := range c.Args {
			if found := anAddress.FindStringSubmatch(arg); found != nil {
				port, err := strconv.ParseInt(found[1], 10, 32)
				if err != nil || !slices.Contains(numbers, int32(port)) {
					t.Errorf("%s listens on a port that is not among the container's: %s", d.Name, arg)
				}
			}
			if views, ok := strings.CutPrefix(arg, "--view-ports="); ok && in[views] == "" {
				t.Errorf("the views' ports %s of %s are not let in", views, d.Name)
			}
		}
	}
}

// probedPort is the port that all probes of a container use.
func probedPort(c corev1.Container) string {
	ports := map[string]bool{}
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		ports[ptr.Deref(p, corev1.Probe{}).HTTPGet.Port.String()] = true
	}
	if len(ports) != 1 {
		return ""
	}
	for port := range ports {
		return port
	}
	return ""
}

// TestNetworkPoliciesBoundEgress verifies that egress is limited only if the values request it,
// and then as they specify.
func TestNetworkPoliciesBoundEgress(t *testing.T) {
	_, policies := parts(t, everything)
	want := map[string]int{"sheep-hub": 2, "sheep-agent": 1, "sheep-remote-write-gate": 0}
	got := map[string]int{}
	for i := range policies {
		p := &policies[i]
		got[p.Name] = len(p.Spec.Egress)
		isBounded := slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		if isBounded != (want[p.Name] > 0) {
			t.Errorf("NetworkPolicy %s bounds egress: %t", p.Name, isBounded)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules for egress (-want +got):\n%s", diff)
	}
}
