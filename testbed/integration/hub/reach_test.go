// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// program is the agent's program, on a cluster of its own without OLM.
type program struct {
	h       *harness
	cluster *v1alpha1.FleetCluster
	local   *cluster.Cluster
	// hubKubeconfig is the file that holds the agent's credentials.
	hubKubeconfig, log, health string
	process                    *process.Process
}

func (h *harness) startProgram(t *testing.T, name string) *program {
	t.Helper()
	c := fleetCluster(name)
	h.join(t, c)
	dir := t.TempDir()
	p := &program{h: h, cluster: c, local: testenv.Cluster(t, cluster.Options{APIServerOnly: true}),
		hubKubeconfig: filepath.Join(dir, "hub.kubeconfig"), log: filepath.Join(dir, "agent.log")}
	testenv.InstallCRDs(t, p.local)
	p.join(t)
	must(t, loopback.OnFreePorts(t.Context(), 1, func(ports []int) error {
		p.health = loopback.Address(ports[0])
		var err error
		p.process, err = process.Start(process.Spec{
			Name: "agent-" + name, Path: testenv.Binary(t, build.Agent), Dir: dir, Log: p.log,
			Args: []string{"--cluster", name, "--hub-kubeconfig", p.hubKubeconfig, "--kubeconfig", p.local.Kubeconfig(),
				"--view-bind-address", "127.0.0.1", "--metrics-bind-address", "0",
				"--health-probe-bind-address", p.health, "--lease-renew-interval", "1s"},
		})
		return err
	}))
	t.Cleanup(func() {
		p.process.Stop(context.Background())
		if t.Failed() {
			t.Logf("agent:\n%s", p.process.Tail())
		}
	})
	return p
}

// join writes the credentials that the hub has for the agent now.
func (p *program) join(t *testing.T) {
	t.Helper()
	config := p.h.agentConfig(t, p.cluster)
	file := clientcmdapi.NewConfig()
	file.Clusters["hub"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["agent"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "agent"}
	file.CurrentContext = "hub"
	must(t, clientcmd.WriteToFile(*file, p.hubKubeconfig))
}

// TestAnAPIServerThatDies takes the API server of an agent away, and gives it back.
func TestAnAPIServerThatDies(t *testing.T) {
	h := start(t)
	p := h.startProgram(t, "blinded")
	h.reaches(t, p.cluster, "Stalled OLMMissing")
	if !rollouts.ObserveCluster(p.cluster).Online || p.cluster.Status.StaleSince != nil {
		t.Errorf("status %+v", p.cluster.Status)
	}
	generation := p.cluster.Status.ObservedGeneration

	p.local.KillAPIServer()
	h.reaches(t, p.cluster, "Stalled APIServerUnreachable", "connection refused", "check the cluster's control plane")
	olm := conditions.Get(p.cluster.Status.Conditions, v1alpha1.ConditionOLMAvailable)
	if olm.Status != metav1.ConditionUnknown || rollouts.ObserveCluster(p.cluster).Online ||
		p.cluster.Status.StaleSince == nil ||
		!conditions.IsTrue(p.cluster.Status.Conditions, v1alpha1.ConditionOnline) {
		t.Errorf("OLMAvailable=%s, status %+v", olm.Status, p.cluster.Status)
	}
	version := p.cluster.ResourceVersion
	holds(t, 3*leaseRenewal, func() error {
		if err := h.Get(t.Context(), client.ObjectKeyFromObject(p.cluster), p.cluster); err != nil {
			return err
		}
		if p.cluster.ResourceVersion != version || p.cluster.Status.ObservedGeneration != generation {
			return fmt.Errorf("the status is written while nothing changes: %+v", p.cluster.Status)
		}
		return nil
	})

	must(t, p.local.RestartAPIServer(t.Context()))
	h.reaches(t, p.cluster, "Stalled OLMMissing")
	if !rollouts.ObserveCluster(p.cluster).Online || p.cluster.Status.StaleSince != nil {
		t.Errorf("status %+v", p.cluster.Status)
	}
}

// TestACredentialIsRenewed revokes an agent's credential while it runs, and gives
// it another one.
func TestACredentialIsRenewed(t *testing.T) {
	h := start(t)
	p := h.startProgram(t, "renewed")
	h.reaches(t, p.cluster, "Stalled OLMMissing")
	pid := p.process.PID()
	if got := p.readyz(t); got != "ok" {
		t.Errorf("/readyz/hub says %q", got)
	}

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster.Status.Namespace,
		Name: p.cluster.Status.CredentialsSecret.Name}}
	must(t, h.Delete(t.Context(), secret))
	const refusal = "hub refuses my credentials since 20"
	eventually(t, func() error {
		if got := p.readyz(t); !strings.Contains(got, refusal) {
			return fmt.Errorf("%w: /readyz/hub says %q", errNotYet, got)
		}
		return nil
	})
	h.reaches(t, p.cluster, "Stalled AgentOffline")
	text, err := os.ReadFile(p.log)
	must(t, err)
	if n := strings.Count(string(text), "hub refuses my credentials"); n != 1 {
		t.Errorf("the log says %d times that the hub refuses the credentials", n)
	}

	p.join(t)
	h.reaches(t, p.cluster, "Stalled OLMMissing")
	eventually(t, func() error {
		if got := p.readyz(t); got != "ok" {
			return fmt.Errorf("%w: /readyz/hub says %q", errNotYet, got)
		}
		return nil
	})
	if now := p.process.PID(); now != pid {
		t.Errorf("the process is %d, was %d", now, pid)
	}
}

// readyz is what the agent's health check of the hub says; nothing where it does
// not answer.
func (p *program) readyz(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.health+"/readyz/hub", nil)
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return string(body)
}
