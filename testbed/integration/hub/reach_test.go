// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
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
	// through changes how the agent reaches the hub.
	through func(*rest.Config) *rest.Config
	// own is a client of the agent's cluster.
	own client.Client
	// hubKubeconfig is the file that holds the agent's credentials.
	hubKubeconfig, log, health string
	process                    *process.Process
}

func (h *harness) startProgram(t *testing.T, name string) *program {
	t.Helper()
	return h.startProgramWith(t, name, h.newToken(t))
}

// newToken returns what makes a token as `bellwether fleet join` does.
func (h *harness) newToken(t *testing.T) func(*program) string {
	return func(p *program) string { return h.agentConfig(t, p.cluster).BearerToken }
}

// credentialsSecret is where the program stores what it renews, on its own cluster.
const credentialsSecret = "hub-credentials"

// startProgramWith starts the agent's program with a token of the test's.
func (h *harness) startProgramWith(t *testing.T, name string, token func(*program) string) *program {
	t.Helper()
	c := fleetCluster(name)
	h.join(t, c)
	return h.startProgramAt(t, c, rest.CopyConfig, token)
}

// startProgramAt starts the agent of a cluster that has joined. It reaches the hub as through says.
func (h *harness) startProgramAt(t *testing.T, c *v1alpha1.FleetCluster,
	through func(*rest.Config) *rest.Config, token func(*program) string) *program {
	t.Helper()
	dir := t.TempDir()
	p := &program{h: h, cluster: c, through: through, local: testenv.Cluster(t, cluster.Options{APIServerOnly: true}),
		hubKubeconfig: filepath.Join(dir, "hub.kubeconfig"), log: filepath.Join(dir, "agent.log")}
	testenv.InstallCRDs(t, p.local)
	p.own = h.as(t, p.local.RESTConfig())
	must(t, p.own.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault,
		Name: credentialsSecret}}))
	p.use(t, token(p))
	path := testenv.Binary(t, build.Agent) // before a port is chosen, as it may have to be built
	must(t, loopback.OnFreePorts(t.Context(), 1, func(ports []int) error {
		p.health = loopback.Address(ports[0])
		var err error
		p.process, err = process.Start(process.Spec{
			Name: "agent-" + c.Name, Path: path, Dir: dir, Log: p.log,
			Args: []string{"--cluster", c.Name, "--hub-kubeconfig", p.hubKubeconfig,
				"--kubeconfig", p.local.Kubeconfig(),
				"--own-namespace", metav1.NamespaceDefault, "--hub-kubeconfig-secret", credentialsSecret,
				"--view-bind-address", "127.0.0.1", "--metrics-bind-address", "0",
				"--health-probe-bind-address", p.health, "--lease-renew-interval", leaseRenewal.String(),
				"--lease-duration", "30s"},
		})
		return err
	}))
	testenv.StopAtEnd(t, p.process)
	return p
}

// join hands over a new token, as `bellwether fleet join` does.
func (p *program) join(t *testing.T) {
	t.Helper()
	p.use(t, p.h.newToken(t)(p))
}

// use writes a kubeconfig with a token.
func (p *program) use(t *testing.T, token string) {
	t.Helper()
	config := p.through(p.h.withToken(token))
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

// renewed returns the token that the program has stored; empty if that is none.
func (p *program) renewed(t *testing.T) string {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: credentialsSecret}
	must(t, p.own.Get(t.Context(), key, secret))
	var stored struct{ Token string }
	if text := secret.Data["hub.kubeconfig.renewed"]; len(text) > 0 {
		must(t, json.Unmarshal(text, &stored))
	}
	return stored.Token
}

// saysRefused waits until the agent says that it is locked out, in its health check and in an Event on its cluster, and
// what to do.
func (p *program) saysRefused(t *testing.T) {
	t.Helper()
	help := "bellwether fleet join " + p.cluster.Name + " --cluster-kubeconfig FILE"
	eventually(t, func() error {
		if got := p.readyz(t); !strings.Contains(got, "hub refuses my credentials since 20") ||
			!strings.Contains(got, help) {
			return fmt.Errorf("%w: /readyz/hub says %q", errNotYet, got)
		}
		return nil
	})
	eventually(t, func() error {
		var events eventsv1.EventList
		if err := p.own.List(t.Context(), &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "HubRefusesCredentials" && e.Regarding.Name == credentialsSecret &&
				strings.Contains(e.Note, help) {
				return nil
			}
		}
		return fmt.Errorf("%w: no Event says that the hub refuses the credentials", errNotYet)
	})
}

// saysConnected waits for what the health check says that the readiness probe leaves out.
func (p *program) saysConnected(t *testing.T, status int, says string) {
	t.Helper()
	eventually(t, func() error {
		if got, text := page(t, p.health, "/readyz/hub-connection"); got != status || !strings.Contains(text, says) {
			return fmt.Errorf("%w: /readyz/hub-connection says %d %q", errNotYet, got, text)
		}
		return nil
	})
}

// isReady waits until the agent says that the hub accepts it.
func (p *program) isReady(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		if got := p.readyz(t); got != "ok" {
			return fmt.Errorf("%w: /readyz/hub says %q", errNotYet, got)
		}
		return nil
	})
}

// refuses waits until the hub's API server refuses a token. It remembers a valid one for some seconds.
func (h *harness) refuses(t *testing.T, token string) {
	t.Helper()
	c := h.as(t, h.withToken(token))
	eventually(t, func() error {
		err := c.Create(t.Context(), &authenticationv1.SelfSubjectReview{})
		if !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("%w: the hub answers %q", errNotYet, apierrors.ReasonForError(err))
		}
		return nil
	})
}

// TestARevokedAgentJoinsAgain revokes an agent's access while it runs, and hands over another token.
func TestARevokedAgentJoinsAgain(t *testing.T) {
	h := start(t)
	var joined string
	p := h.startProgramWith(t, "revoked", func(p *program) string {
		joined = h.agentConfig(t, p.cluster).BearerToken
		return joined
	})
	h.reaches(t, p.cluster, "Stalled OLMMissing")
	p.isReady(t)
	pid := p.process.PID()
	eventually(t, func() error {
		if got := p.renewed(t); got == "" || got == joined {
			return fmt.Errorf("%w: no renewed token is stored", errNotYet)
		}
		return nil
	})
	renewed := p.renewed(t)

	must(t, h.Delete(t.Context(), accountOf(p.cluster)))
	p.saysRefused(t)
	h.reaches(t, p.cluster, "Stalled AccessRevoked", "bellwether fleet join revoked")
	eventually(t, func() error {
		if err := h.Get(t.Context(), client.ObjectKeyFromObject(p.cluster), p.cluster); err != nil {
			return err
		}
		online := conditions.Get(p.cluster.Status.Conditions, v1alpha1.ConditionOnline)
		if online.Status != metav1.ConditionFalse || online.Reason != v1alpha1.ReasonAccessRevoked {
			return fmt.Errorf("%w: Online is %s %s", errNotYet, online.Status, online.Reason)
		}
		return nil
	})
	account := accountOf(p.cluster)
	eventually(t, func() error { return h.Get(t.Context(), client.ObjectKeyFromObject(account), account) })
	h.refuses(t, joined)
	h.refuses(t, renewed)
	p.saysConnected(t, http.StatusInternalServerError, "the Lease on the hub has not been renewed since 20")
	text, err := os.ReadFile(p.log)
	must(t, err)
	if n := strings.Count(string(text), "hub refuses my credentials;"); n != 1 {
		t.Errorf("the log says %d times that the hub refuses the credentials", n)
	}

	p.join(t)
	h.reaches(t, p.cluster, "Stalled OLMMissing")
	p.isReady(t)
	p.saysConnected(t, http.StatusOK, "ok")
	if now := p.process.PID(); now != pid {
		t.Errorf("the process is %d, was %d", now, pid)
	}
}

// TestAnAgentThatWasAwayJoinsAgain starts an agent whose token has expired.
func TestAnAgentThatWasAwayJoinsAgain(t *testing.T) {
	h := start(t)
	p := h.startProgramWith(t, "away", func(p *program) string {
		account := accountOf(p.cluster)
		must(t, h.Get(t.Context(), client.ObjectKeyFromObject(account), account))
		return h.expiredToken(t, account)
	})
	p.saysRefused(t)
	h.reaches(t, p.cluster, "False NeverJoined")
	p.join(t)
	h.reaches(t, p.cluster, "Stalled OLMMissing")
	p.isReady(t)
}

// expiredToken is what the API server issued a day ago for an hour, signed with its key.
func (h *harness) expiredToken(t *testing.T, account *corev1.ServiceAccount) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.cluster.Dir(), "pki", "sa.key"))
	must(t, err)
	block, _ := pem.Decode(text)
	key, err := x509.ParseECPrivateKey(block.Bytes)
	must(t, err)
	// The header names the key, and that is hard to make up: it comes from a token of today.
	header, payload, _ := strings.Cut(h.agentConfig(t, &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{
		Name: strings.TrimPrefix(account.Namespace, v1alpha1.ClusterNamespace(""))}}).BearerToken, ".")
	payload, _, _ = strings.Cut(payload, ".")
	body, err := base64.RawURLEncoding.DecodeString(payload)
	must(t, err)
	claims := map[string]any{}
	must(t, json.Unmarshal(body, &claims))
	issued := time.Now().Add(-24 * time.Hour).Unix()
	claims["iat"], claims["nbf"], claims["exp"] = issued, issued, issued+3600
	body, err = json.Marshal(claims)
	must(t, err)
	signed := header + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	must(t, err)
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// TestAnAgentIsNoOtherCluster gives an agent the token of another cluster's.
func TestAnAgentIsNoOtherCluster(t *testing.T) {
	h := start(t)
	other := fleetCluster("another")
	h.join(t, other)
	p := h.startProgramWith(t, "mistaken", func(*program) string { return h.agentConfig(t, other).BearerToken })
	p.saysRefused(t)
	h.reaches(t, p.cluster, "False NeverJoined")
	h.reaches(t, other, "False NeverJoined")
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
