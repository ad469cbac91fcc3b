// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

func ports(first, last int) serve.Ports { return serve.Ports{First: first, Last: last} }

func TestFreePorts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		taken []serve.Ports
		want  serve.Ports
	}{
		"none is taken":            {nil, ports(50100, 50129)},
		"behind the first":         {[]serve.Ports{ports(50100, 50129)}, ports(50130, 50159)},
		"in a gap":                 {[]serve.Ports{ports(50100, 50129), ports(50160, 50169)}, ports(50130, 50159)},
		"behind a narrow gap":      {[]serve.Ports{ports(50100, 50129), ports(50159, 50200)}, ports(50201, 50230)},
		"those below do not count": {[]serve.Ports{ports(100, 200)}, ports(50100, 50129)},
		"ranges in one another":    {[]serve.Ports{ports(50100, 50300), ports(50110, 50120)}, ports(50301, 50330)},
		"beyond the last":          {[]serve.Ports{ports(50100, 65520)}, ports(65521, 65550)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var taken []takenPorts
			for _, r := range test.taken {
				taken = append(taken, takenPorts{Ports: r})
			}
			if got := findFreePorts(50100, taken); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

const hosting = "bellwether-hosted"

// hostedSecrets are those of clusters c00, c01 and so on, with 30 ports each.
func hostedSecrets(n int) []client.Object {
	var all []client.Object
	for i := range n {
		all = append(all, hostedSecret(fmt.Sprintf("c%02d", i), ports(50100+30*i, 50129+30*i)))
	}
	return all
}

func hostedSecret(name string, taken serve.Ports) client.Object {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hosting, Name: "hosted-" + name,
			Labels: map[string]string{v1alpha1.LabelHostedCluster: name}},
		Data: map[string][]byte{v1alpha1.HostedPortsKey: []byte(taken.String())},
	}
}

func hostedDeployment(args ...string) client.Object {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: hosting, Name: "bellwether-agent",
		Labels: map[string]string{"app.kubernetes.io/instance": "release"}}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy"},
		{Name: "agent", Args: append([]string{"--hosted-namespace=" + hosting}, args...)}}
	return d
}

// hostedPortsTests are about a cluster named new.
var hostedPortsTests = map[string]struct {
	args    []string
	secrets []client.Object
	flag    string
	want    string
	// says and hints are parts of the error.
	says, hints string
}{
	"the first": {args: []string{"--view-ports=50100-50399"}, want: "50100-50129"},
	"the tenth": {args: []string{"--view-ports=50100-50399"}, secrets: hostedSecrets(9), want: "50370-50399"},
	"the eleventh": {args: []string{"--view-ports=50100-50399"}, secrets: hostedSecrets(10),
		says: "have the ports 50100-50399, enough for 10 clusters with 30 each; 10 clusters use 300 of them " +
			"(Deployment bellwether-hosted/bellwether-agent)",
		hints: "raise agent.viewPorts.last of Helm release release in namespace bellwether-hosted to 50429"},
	"the eleventh, with more ports": {args: []string{"--view-ports=50100-50429"}, secrets: hostedSecrets(10),
		want: "50400-50429"},
	"the seventeenth of a Service": {args: []string{"--view-ports=50100-50599"}, secrets: hostedSecrets(16),
		says: "enough for 16 clusters", hints: "the chart's Service has at most 500 ports (16 clusters)"},
	"the last of all ports": {args: []string{"--view-ports=50100-65535"}, secrets: hostedSecrets(514),
		says: "enough for 514 clusters", hints: "another namespace"},
	"a range that begins elsewhere": {args: []string{"--view-ports=40000-40059"}, secrets: hostedSecrets(2),
		want: "40000-40029"},
	"the last argument counts": {args: []string{"--view-ports=50100-50399", "--view-ports", "40000-40059"},
		want: "40000-40029"},
	"the agent's default":   {secrets: hostedSecrets(29), want: "50970-50999"},
	"more than the default": {secrets: hostedSecrets(30), says: "50100-50999, enough for 30 clusters"},
	"an argument that is no range": {args: []string{"--view-ports=many"},
		says: `no range of ports as --view-ports: "many"`},
	"joined again, with ports of another cluster": {args: []string{"--view-ports=50100-50399"},
		secrets: append(hostedSecrets(10), hostedSecret("new", ports(50390, 50399)))[1:], want: "50100-50129"},
	"joined again, keeps its ports": {args: []string{"--view-ports=50100-50399"},
		secrets: append(hostedSecrets(2), hostedSecret("new", ports(50300, 50309))), want: "50300-50309"},
	"joined again, with ports that the agents refuse": {args: []string{"--view-ports=50100-50399"},
		secrets: append(hostedSecrets(2), hostedSecret("new", ports(50400, 50429))), want: "50160-50189"},
	"named ports": {args: []string{"--view-ports=50100-50399"}, secrets: hostedSecrets(2), flag: "50390-50399",
		want: "50390-50399"},
	"named ports that the agents refuse": {args: []string{"--view-ports=50100-50399"}, flag: "50390-50400",
		says: "not within the ports of the hosted agents, 50100-50399", hints: "agent.viewPorts"},
	"named ports of another cluster": {args: []string{"--view-ports=50100-50399"}, secrets: hostedSecrets(2),
		flag: "50150-50170", says: "are those of hosted cluster c01, 50130-50159"},
	"named ports that are none": {flag: "50100", says: `invalid value "50100" of --view-ports`},
}

func TestHostedPorts(t *testing.T) {
	t.Parallel()
	for name, test := range hostedPortsTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := fake.NewClientBuilder().WithObjects(append(test.secrets, hostedDeployment(test.args...))...).Build()
			got, err := chooseHostedPorts(t.Context(), h, &hostedOptions{namespace: hosting, ports: test.flag},
				"hosted-new")
			if test.says == "" {
				if err != nil || got != test.want {
					t.Errorf("got %s (%v), want %s", got, err, test.want)
				}
				return
			}
			var hint *exit.HintError
			if !errors.As(err, &hint) || !strings.Contains(err.Error(), test.says) ||
				!strings.Contains(hint.Hint, test.hints) {
				t.Errorf("got %v\nhint %+v\nwant %q, hint %q", err, hint, test.says, test.hints)
			}
		})
	}
}

// TestNoHostedAgents: agents that the chart did not install are not found, so the user has to name ports.
func TestNoHostedAgents(t *testing.T) {
	t.Parallel()
	h := fake.NewClientBuilder().WithObjects(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: hosting,
		Name: "other"}}).Build()
	_, err := chooseHostedPorts(t.Context(), h, &hostedOptions{namespace: hosting}, "hosted-new")
	var hint *exit.HintError
	if !errors.As(err, &hint) || !strings.Contains(hint.Hint, "agent.hosted.enabled=true") ||
		!strings.Contains(hint.Hint, "--view-ports") {
		t.Errorf("got %v (%+v)", err, hint)
	}
	got, err := chooseHostedPorts(t.Context(), h, &hostedOptions{namespace: hosting, ports: "700-709"}, "hosted-new")
	if err != nil || got != "700-709" {
		t.Errorf("got %s (%v)", got, err)
	}
}
