// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/catalog"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/root"
	"github.com/bellwether-dev/bellwether/internal/tools/long"
)

// echoCatalog is a folder with a catalog of the versions in a graph.
func echoCatalog(t *testing.T, graph string) string {
	t.Helper()
	dir := t.TempDir()
	catalog := regexp.MustCompile(`/echo:[0-9.]+`).ReplaceAllStringFunc(catalogtest.Graph("echo", graph),
		func(tag string) string {
			return fmt.Sprintf("/echo@sha256:%x", sha256.Sum256([]byte(tag)))
		})
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(catalog), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func keygen(t *testing.T, h *clitest.Hub) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	t.Setenv(catalog.PasswordVariable, "secret")
	if r := h.Run(t, "catalog", "keygen", name); r.Code != exit.OK {
		t.Fatal(r.Err)
	}
	return name
}

func TestCatalogPublishAndVerify(t *testing.T) {
	h := clitest.NewHub()
	key, ref := keygen(t, h), clitest.StartRegistry(t)+"/catalogs/main:latest"
	one, two := echoCatalog(t, "1.0.0"), echoCatalog(t, "1.0.0\n1.1.0 replaces 1.0.0")
	first := h.Run(t, "catalog", "publish", one, ref, "--key", key+".key", "--expect", "none", "--no-bundle-check")
	if first.Code != exit.OK || !strings.Contains(first.Err, "Published 1 package with 1 bundle as") {
		t.Fatalf("%+v", first)
	}
	if want := clitest.MustResolve(t, oci.Source{Image: ref}) + "\n"; first.Out != want {
		t.Errorf("it printed %q, and the registry has %q", first.Out, want)
	}
	verified := h.Run(t, "catalog", "verify", ref, "--key", key+".pub", "--no-bundle-check")
	for _, line := range []string{
		"✓ signature  signed by a key that was given\n", "✓ catalog    packages: 1, bundles: 1\n",
		"✓ sbom       it lists what the catalog has\n", "· bundles    not looked for\n",
		"✓ upgrades   all 2 upgrade paths reach the head",
	} {
		if !strings.Contains(verified.Out, line) || verified.Code != exit.OK {
			t.Errorf("verify does not say %q, exit status %d:\n%s%s", line, verified.Code, verified.Out, verified.Err)
		}
	}
	if r := h.Run(t, "catalog", "verify", ref, "--key", keygen(t, h)+".pub", "--no-bundle-check"); r.Code != 1 ||
		!strings.Contains(r.Out, "✗ signature  none is one by a key that was given") {
		t.Errorf("with another key: %+v", r)
	}
	if r := h.Run(t, "catalog", "publish", two, ref, "--no-bundle-check", "-o", "json"); r.Code != exit.OK ||
		!strings.Contains(r.Out, `"changed": true`) || !strings.Contains(r.Out, `"unsigned": true`) {
		t.Errorf("second: %+v", r)
	}
	if r := h.Run(t, "catalog", "verify", ref, "--key", key+".pub", "--no-bundle-check"); r.Code != 1 ||
		!strings.Contains(r.Out, "✗ signature  it has none") {
		t.Errorf("unsigned: %+v", r)
	}
}

func TestCatalogPublishRefuses(t *testing.T) {
	h := clitest.NewHub()
	key, ref := keygen(t, h), clitest.StartRegistry(t)+"/catalogs/main:latest"
	two, three := echoCatalog(t, "1.0.0\n1.1.0 replaces 1.0.0"),
		echoCatalog(t, "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0")
	if r := h.Run(t, "catalog", "publish", two, ref, "--no-bundle-check"); r.Code != exit.OK {
		t.Fatal(r.Err)
	}
	tests := map[string]struct {
		args []string
		code int
		says []string
	}{
		"a loss": {
			[]string{"publish", echoCatalog(t, "1.0.0"), ref, "--no-bundle-check"}, exit.Error,
			[]string{"package echo, channel stable: there is no upgrade path from 1.1.0 to the head", "--force REASON"},
		},
		"an unexpected digest": {[]string{"publish", three, ref, "--expect", "none", "--no-bundle-check"}, exit.Error,
			[]string{"the tag has moved", "somebody else has published"}},
		"a public key": {[]string{"publish", three, ref, "--key", key + ".pub"}, exit.Error,
			[]string{"private key is needed", "catalog keygen"}},
		"no such key": {[]string{"publish", three, ref, "--key", "/none.key"}, exit.Error,
			[]string{"no such file", "catalog keygen"}},
		"a key that exists": {[]string{"keygen", key}, exit.Error, []string{"already exists", "use another name"}},
		"an odd algorithm": {[]string{"keygen", key + "2", "--algorithm", "rot13"}, exit.Error,
			[]string{"ecdsa-p256 or ed25519"}},
		"verify with a private key": {
			[]string{"verify", ref, "--key", key + ".key"}, 2, []string{"use a public key"},
		},
		"verify what is not there": {[]string{"verify", ref + "-none"}, 2, []string{"not found"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := h.Run(t, append([]string{"catalog"}, tc.args...)...)
			if got.Code != tc.code {
				t.Errorf("exit status %d, want %d", got.Code, tc.code)
			}
			for _, s := range tc.says {
				if !strings.Contains(got.Err, s) {
					t.Errorf("it does not say %q:\n%s", s, got.Err)
				}
			}
		})
	}
}

// commandLine holds the arguments with which a test starts this binary as the program.
const commandLine = "BELLWETHER_TEST_COMMAND_LINE"

// TestMain runs the program instead of the tests if a test starts this binary as a separate process.
func TestMain(m *testing.M) {
	text := os.Getenv(commandLine)
	if text == "" {
		os.Exit(m.Run())
	}
	var args []string
	if err := json.Unmarshal([]byte(text), &args); err != nil {
		panic(err)
	}
	os.Exit(root.Main(append([]string{"bellwether"}, args...),
		genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}

// killer is a proxy that kills a process when it makes its n-th request, before or after the registry got it.
type killer struct {
	host string

	mu       sync.Mutex
	requests int
	at       int
	after    bool
	victim   *os.Process
}

func newKiller(t *testing.T, backend string) *killer {
	t.Helper()
	k := &killer{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: backend})
		r.Out.Host = r.In.Host
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kill, after := k.count()
		if kill != nil && !after {
			_ = kill.Kill()
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
		if kill != nil {
			_ = kill.Kill()
		}
	}))
	t.Cleanup(server.Close)
	k.host = strings.TrimPrefix(server.URL, "http://")
	return k
}

func (k *killer) count() (*os.Process, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.requests++
	if k.victim == nil || k.requests < k.at {
		return nil, false
	}
	return k.victim, k.after
}

// aim starts a command that is killed at its n-th request.
func (k *killer) aim(t *testing.T, n int, after bool, args ...string) error {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), commandLine+"="+string(text), "TMPDIR="+t.TempDir()) // it leaves its own
	k.mu.Lock()
	if err := command.Start(); err != nil {
		k.mu.Unlock()
		t.Fatal(err)
	}
	k.requests, k.at, k.after, k.victim = 0, n, after, command.Process
	k.mu.Unlock()
	err = command.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.victim = nil
	return err
}

// TestAKilledPublish kills the program at random requests of a publish. The tag must hold a whole catalog, the old one
// or the new one, and the same command must then succeed.
func TestAKilledPublish(t *testing.T) {
	h := clitest.NewHub()
	key, k := keygen(t, h), newKiller(t, clitest.StartRegistry(t))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	graph := "1.0.0"
	ref := k.host + "/catalogs/main:latest"
	publish := func(dir string) []string {
		return []string{"catalog", "publish", dir, ref, "--key", key + ".key", "--no-bundle-check"}
	}
	old := echoCatalog(t, graph)
	if r := h.Run(t, publish(old)...); r.Code != exit.OK {
		t.Fatal(r.Err)
	}
	rounds, killed := long.Cases(8, 30), 0
	for round := 1; round <= rounds; round++ {
		before := clitest.MustResolve(t, oci.Source{Image: ref})
		graph += fmt.Sprintf("\n1.%d.0 replaces 1.%d.0", round, round-1)
		next := echoCatalog(t, graph)
		n, after := 1+random.IntN(30), random.IntN(2) == 0
		if err := k.aim(t, n, after, publish(next)...); err != nil {
			killed++
		}
		held := clitest.MustResolve(t, oci.Source{Image: ref})
		if r := h.Run(t, "catalog", "verify", ref, "--key", key+".pub", "--no-bundle-check"); r.Code != exit.OK {
			t.Fatalf("killed at request %d, the tag holds what does not verify:\n%s%s", n, r.Out, r.Err)
		}
		done := h.Run(t, publish(next)...)
		if done.Code != exit.OK {
			t.Fatalf("killed at request %d, and then: %s", n, done.Err)
		}
		if want := strings.TrimSpace(done.Out); held != before && held != want {
			t.Errorf("killed at request %d, the tag held %s, which is neither the old catalog nor the new one", n, held)
		}
	}
	if killed == 0 {
		t.Error("nothing was killed")
	}
	t.Logf("killed %d times in %d rounds", killed, rounds)
}
